// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/fft/plan.hpp>
#include <bracewell/geometry/ctf.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/detail/sampling/padded_windows.hpp>
#include <bracewell/project/detail/stencil.hpp>
#include <bracewell/project/prepared_reference.hpp>
#include <bracewell/reconstruct/shells.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace Bracewell {

/// Micrographs of a TemplateMatching, and the map that it looks for.
struct TemplateMatchingSizes {
  int height;            ///< of micrographs
  int width;             ///< of micrographs
  double pixel_size = 1; ///< of micrographs, in Angstrom
  double voxel_size = 1; ///< of the map that references were prepared from, in Angstrom
};

/// Options of TemplateMatching.
struct TemplateMatchingOptions {
  /// Frequencies up to this one are compared, in cycles per pixel of the micrograph, at most up to the Nyquist limits
  /// of the micrograph and of the map.
  double limit = 0.5;
  /// Bytes for the spectra and correlations of a batch of orientations; a batch has at least one. 0: 2 GiB on GPUs, 64 MiB
  /// on hosts.
  std::int64_t bytes = 0;
};

/// What TemplateMatching::results writes, each [rows, columns] of the plan. It writes only the arrays that are given.
template <class T, class MemorySpace>
struct TemplateMatches {
  Array<T, MemorySpace> scores = {};     ///< (maximum - mean) / deviation; 0 where the deviation is 0
  Array<T, MemorySpace> maxima = {};     ///< of the correlation over all orientations
  Array<int, MemorySpace> best = {};     ///< orientation of the maximum, the first of equal ones
  Array<T, MemorySpace> means = {};      ///< of the correlation over all orientations
  Array<T, MemorySpace> deviations = {}; ///< the square root of its variance over all orientations
};

/// The score t that `expected` of `trials` independent or dependent standard normal numbers exceed on average:
///   trials erfc(t / sqrt(2)) / 2 = expected.
/// The mean of a sum is the sum of the means, even of dependent numbers. So this is the threshold for `expected` false positives
/// in pixels x orientations trials (Rickgauer et al. 2017, eLife 6, e25648, use expected = 1).
/// @throws Error on trials that are not above 0, and unless 0 < expected < trials
inline double false_positive_threshold(double trials, double expected = 1) {
  constexpr Impl::Arguments arguments{"false_positive_threshold"};
  arguments.positive("trials", trials);
  arguments.require(
      expected > 0 && expected < trials, "expected", [&] { return "from 0 to " + Impl::number(trials); },
      [&] { return Impl::number(expected); });
  double low = -8, high = 38; // erfc is a normal number up to there
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(middle / std::sqrt(2.0)) * trials > expected ? low : high) = middle;
  }
  return (low + high) / 2;
}

namespace Impl {

/// The frequencies that are compared, on the grid of correlations.
struct MatchedBand {
  HalfSpectrumLayout<2> grid; ///< of correlations
  int size[2];                ///< of the micrograph (x, y)
  int most[2];                ///< frequency below both Nyquist limits (x, y)
  double limit;               ///< cycles per pixel of the micrograph

  /// The last column of row y that is compared; -1: none.
  KOKKOS_FUNCTION int last_column(int y) const {
    const double across = double(y) / size[1], rest = limit * limit - across * across;
    if (rest < 0 || Kokkos::abs(y) > most[1])
      return -1;
    return Kokkos::min(static_cast<int>(Kokkos::sqrt(rest) * size[0] + 1e-9), most[0]);
  }

  /// Whether an element of row y, whose last column is given, is compared; the zero frequency is not.
  KOKKOS_FUNCTION static bool within(int x, int y, int last) { return x <= last && (x != 0 || y != 0); }
};

} // namespace Impl

/// Looks for a map in a micrograph, at every pixel and in many orientations (2D template matching; Sigworth 2004, J Struct
/// Biol 145, 111; Rickgauer et al. 2017, eLife 6, e25648; Lucas et al. 2021, eLife 10, e68946). X is the spectrum of the
/// micrograph, and A is the root of the mean of |X|^2 in a shell. P is the projection of the map by `project`, at the
/// frequencies of the micrograph. The correlation at pixel x is
///   c(x) = sum over k of (X / A) conj(T) exp(2 pi i k.x / n) / sqrt(sum over k of |T|^2),   T = CTF P / A.
/// The sums go over all frequencies up to the limit but zero. In a micrograph of noise alone c has the variance 1. Every
/// pixel keeps the maximum over all orientations, its orientation, the sum and the sum of squares.
/// \code
/// TemplateMatching<Space> matching(space, {.height = h, .width = w, .pixel_size = 1.06, .voxel_size = 1.06});
/// matching.set_micrograph(space, micrograph);
/// matching.set_ctf(space, ctf);
/// matching.search(space, prepare_map<Linear>(space, map, 2 * n), matrices);
/// matching.results(space, {.scores = scores, .best = best});
/// \endcode
/// Scores have [rows(), columns()] pixels and show the whole micrograph. The limit is their Nyquist frequency, rounded up to
/// a fast size of transforms. Pixel (r, c) lies at (r height / rows, c width / columns) of the micrograph. It is the place of
/// the map's centre, floor(n/2). The micrograph is periodic: within half a box of an edge the scores also see the opposite
/// edge. Movable; for one instance at a time.
///
/// @tparam T  float, or double
template <class ExecutionSpace, class T = float>
class TemplateMatching {
  using Memory = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  template <class DataType>
  using View = Kokkos::View<DataType, Kokkos::LayoutRight, Memory>;

public:
  /// The map, padded to twice its box or more; one of the batch.
  using Reference = PreparedReference<Linear, ExecutionSpace, 3, Complex>;

  /// @throws Error on sizes or options out of range
  TemplateMatching(const ExecutionSpace& space, const TemplateMatchingSizes& sizes,
                   const TemplateMatchingOptions& options = {});

  /// Takes a micrograph, real [height, width], and forgets the one before, its CTF and its results. Waits.
  /// @throws Error on another shape, on values that are not finite (or whose squares are not), and on a micrograph that is
  /// constant
  void set_micrograph(const ExecutionSpace& space, const Array<const T, Memory>& micrograph);

  /// Sets the CTF of the templates of later searches. A negative CTF::scale looks for dark particles. Without this call the
  /// CTF is 1.
  /// @throws Error before set_micrograph
  void set_ctf(const ExecutionSpace& space, const CTF& ctf);

  /// Compares the micrograph with the map in these orientations, and adds them to the results. Several searches add up. Does
  /// not wait for the last batch.
  /// @param reference  prepared from a cubic map; the spectrum's width is the padded one
  /// @param matrices   [P, 3, 3], see Poses::matrices; multiples of batch() are fastest
  /// @throws Error on another shape, matrices that are not finite, before set_micrograph, and for 2^31 orientations or more;
  /// nothing is changed then
  void search(const ExecutionSpace& space, const Reference& reference,
              const Array<const T, Memory>& matrices);

  /// Writes what is asked for.
  /// @throws Error on shapes that do not fit, shared memory, and before a search
  void results(const ExecutionSpace& space, const TemplateMatches<T, Memory>& matches) const;

  int rows() const { return band_.grid.size[1]; }    ///< of correlations
  int columns() const { return band_.grid.size[0]; } ///< of correlations
  /// Cycles per pixel of the micrograph: the limit that is used.
  double limit() const { return band_.limit; }
  /// Orientations that are taken together.
  int batch() const { return batch_; }
  /// Orientations that were searched since set_micrograph: the next one has this number.
  std::int64_t orientations() const { return orientations_; }
  /// Root of the mean of |X|^2 in every shell, up to the limit; shell s holds (s - 1/2) / width to (s + 1/2) / width cycles
  /// per pixel.
  const std::vector<double>& amplitudes() const { return amplitudes_; }
  /// Bytes of memory that it holds; the plan of transforms has as much as the correlations.
  std::size_t memory_bytes() const;

private:
  static Impl::MatchedBand band_of(const TemplateMatchingSizes& sizes,
                                   const TemplateMatchingOptions& options) {
    constexpr Impl::Arguments arguments{"TemplateMatching"};
    arguments.within("sizes.height", sizes.height, 4, 32768);
    arguments.within("sizes.width", sizes.width, 4, 32768);
    arguments.positive("sizes.pixel_size", sizes.pixel_size);
    arguments.positive("sizes.voxel_size", sizes.voxel_size);
    arguments.positive("options.limit", options.limit);
    arguments.within("options.limit", options.limit, 0., 0.5);
    arguments.not_negative("options.bytes", options.bytes);
    Impl::MatchedBand band;
    band.limit = std::min(options.limit, sizes.pixel_size / (2 * sizes.voxel_size));
    const int full[2] = {sizes.width, sizes.height};
    for (int axis = 0; axis < 2; ++axis) {
      const double needed = std::max(4., std::ceil(2 * band.limit * full[axis] - 1e-6));
      band.size[axis] = full[axis];
      band.grid.size[axis] = static_cast<int>(next_fast_size(static_cast<std::int64_t>(needed), axis == 0));
      band.most[axis] = (std::min(band.grid.size[axis], full[axis]) - 1) / 2;
    }
    return band;
  }

  Impl::Shells<2> shells() const {
    return Impl::Shells<2>(Impl::Box<2>{{band_.size[0], band_.size[1]}, band_.size[0] / 2 + 1, 1});
  }

  TemplateMatchingSizes sizes_;
  Impl::MatchedBand band_;
  int batch_;
  FFT<ExecutionSpace, 2, Complex, T> inverse_;
  std::vector<double> amplitudes_;
  std::int64_t orientations_ = 0;
  View<double*> gains_;
  View<Complex**> whitened_, image_;
  View<T**> power_, maxima_;
  View<int**> best_;
  View<double**> sums_, squares_, norms_;
  View<Complex***> spectra_;
  View<T***> correlations_;
  View<T*> factors_;
};

namespace Impl {

/// |X|^2 of a spectrum.
template <class T>
struct PowerOfSpectrum {
  const Kokkos::complex<T>* spectrum;
  T* power;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto value = spectrum[i];
    power[i] = value.real() * value.real() + value.imag() * value.imag();
  }
};

/// X / A within the band, on the grid of correlations; A: root of the mean power of a shell.
template <class T>
struct WhitenSpectrum {
  MatchedBand band;
  Shells<2> shells;
  const Kokkos::complex<T>* spectrum;
  const double* gains; ///< [shells] 1 / A
  Kokkos::complex<T>* whitened;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const auto& grid = band.grid;
    const int y = grid.frequency(static_cast<int>(row), grid.size[1]), last = band.last_column(y);
    const double squared = shells.squared(y, 1);
    const std::int64_t from = std::int64_t(y < 0 ? y + band.size[1] : y) * (band.size[0] / 2 + 1),
                       to = row * grid.columns();
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, grid.columns()), [&](int x) {
      Kokkos::complex<T> value(0);
      if (band.within(x, y, last))
        value = static_cast<T>(gains[shells.shell(x, squared)]) * spectrum[from + x];
      whitened[to + x] = value;
    });
  }
};

/// What is the same for all orientations: with the filter f = CTF / A of templates, the whitened micrograph times f, and f^2
/// as often as it counts in the full spectrum.
template <class T>
struct FilterTemplates {
  MatchedBand band;
  Shells<2> shells;
  CTF ctf;
  double step[2]; ///< 1/Angstrom from one frequency to the next (x, y)
  const double* gains;
  const Kokkos::complex<T>* whitened;
  Kokkos::complex<T>* image;
  T* power;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const auto& grid = band.grid;
    const int y = grid.frequency(static_cast<int>(row), grid.size[1]), last = band.last_column(y);
    const double squared = shells.squared(y, 1);
    const std::int64_t begin = row * grid.columns();
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, grid.columns()), [&](int x) {
      T filter(0);
      if (band.within(x, y, last))
        filter =
            ctf.template value<T>(x * step[0], y * step[1]) * static_cast<T>(gains[shells.shell(x, squared)]);
      image[begin + x] = filter * whitened[begin + x];
      power[begin + x] = static_cast<T>(grid.multiplicity(x)) * filter * filter;
    });
  }
};

/// Reads the map's spectrum at a position in its own frequencies, as it is stored (hosts) or prepared (GPUs).
template <class T, class Spectra>
struct MapReader;

template <class T, class Stored>
struct MapReader<T, StoredSpectra<Stored>> {
  HalfSpectrumLayout<3> layout;
  StoredSpectra<Stored> spectra;

  MapReader(const HalfSpectrumLayout<3>& layout_, const StoredSpectra<Stored>& spectra_)
      : layout(layout_), spectra(spectra_) {}

  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> operator()(T (&q)[3]) const {
    Stencil<Linear, 3, Mates::Single, T> stencil;
    return stencil.place(layout, q, true) ? stencil.gather(spectra(0)) : Kokkos::complex<T>(0);
  }
};

template <class T, class Stored>
struct MapReader<T, PaddedSpectra<Stored, 3, Linear::width>> {
  CopiedPositions<Linear::width, T, 3> copied;
  PaddedSpectra<Stored, 3, Linear::width> spectra;

  MapReader(const HalfSpectrumLayout<3>& layout, const PaddedSpectra<Stored, 3, Linear::width>& spectra_)
      : copied(layout), spectra(spectra_) {}

  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> operator()(T (&q)[3]) const {
    bool mirrored = false;
    if (!copied.bring_back(q, true, mirrored))
      return Kokkos::complex<T>(0);
    const Kokkos::complex<T> value = sum_of_window<Linear>(spectra.order, spectra(0), q);
    return mirrored ? conjugate(value) : value;
  }
};

/// Spectra of correlations before their norm, and the shares that rows have of its square. Orientations are next to each
/// other, so that they read a row of the micrograph once.
template <class T, class Spectra>
struct SampleTemplates {
  MatchedBand band;
  MapReader<T, Spectra> map;
  const T* matrices; ///< [count, 3, 3] of these orientations
  T scale[2];        ///< frequencies of the reference to one of the micrograph (x, y)
  std::int64_t count;
  const Kokkos::complex<T>* image;
  const T* power;
  Kokkos::complex<T>* correlations; ///< [count, rows, columns/2+1]
  double* norms;                    ///< [count, rows]

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t item, const Member& member) const {
    const auto& grid = band.grid;
    const std::int64_t row = item / count, orientation = item - row * count, begin = row * grid.columns();
    const int y = grid.frequency(static_cast<int>(row), grid.size[1]), last = band.last_column(y);
    const T* const m = matrices + 9 * orientation;
    T origin[3], along[3];
    for (int d = 0; d < 3; ++d) {
      origin[d] = m[3 * d + 1] * (scale[1] * static_cast<T>(y));
      along[d] = m[3 * d] * scale[0];
    }
    Kokkos::complex<T>* const out = correlations + orientation * grid.elements() + begin;
    double norm = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(member, grid.columns()),
        [&](int x, double& sum) {
          Kokkos::complex<T> value(0);
          if (x <= last) {
            T q[3];
            for (int d = 0; d < 3; ++d)
              q[d] = origin[d] + static_cast<T>(x) * along[d];
            const Kokkos::complex<T> sample = map(q), pixel = image[begin + x];
            const T a = sample.real(), b = sample.imag(), c = pixel.real(), d = pixel.imag();
            value = Kokkos::complex<T>(c * a + d * b, d * a - c * b);
            sum += double(power[begin + x] * (a * a + b * b));
          }
          store_streaming(out + x, value);
        },
        norm);
    Kokkos::single(Kokkos::PerThread(member), [&] { norms[orientation * grid.size[1] + row] = norm; });
  }
};

/// One over the norm of templates; of one that is zero, 0.
template <class T>
struct NormaliseTemplates {
  const double* norms; ///< [count, rows]
  int rows;
  T* factors; ///< [count]

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const std::int64_t orientation = member.league_rank();
    double square = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, rows),
        [&](int row, double& sum) { sum += norms[orientation * rows + row]; }, square);
    Kokkos::single(Kokkos::PerTeam(member), [&] {
      factors[orientation] = square > 0 ? static_cast<T>(1 / Kokkos::sqrt(square)) : T(0);
    });
  }
};

/// Takes the correlations of a batch into what is kept of all orientations: their only reading.
template <class T>
struct AccumulateMatches {
  const T* correlations; ///< [count, pixels]
  const T* factors;      ///< [count]
  std::int64_t pixels;
  int count, first; ///< orientations, and the number of the first
  T* maxima;
  int* best;
  double *sums, *squares;

  KOKKOS_FUNCTION void operator()(std::int64_t pixel) const {
    T most = maxima[pixel], sum = 0, squared = 0;
    int which = -1;
    for (int i = 0; i < count; ++i) {
      const T value = factors[i] * correlations[i * pixels + pixel];
      sum += value;
      squared += value * value;
      which = value > most ? i : which;
      most = value > most ? value : most;
    }
    if (which >= 0) {
      maxima[pixel] = most;
      best[pixel] = first + which;
    }
    sums[pixel] += double(sum);
    squares[pixel] += double(squared);
  }
};

/// Mean, deviation and score of every pixel.
template <class T>
struct FinishMatches {
  const T* maxima;
  const int* best;
  const double *sums, *squares;
  double count;
  T *out_scores, *out_maxima, *out_means, *out_deviations;
  int* out_best;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const double mean = sums[i] / count, variance = squares[i] / count - mean * mean,
                 deviation = variance > 0 ? Kokkos::sqrt(variance) : 0;
    if (out_scores)
      out_scores[i] = deviation > 0 ? static_cast<T>((double(maxima[i]) - mean) / deviation) : T(0);
    if (out_maxima)
      out_maxima[i] = maxima[i];
    if (out_best)
      out_best[i] = best[i];
    if (out_means)
      out_means[i] = static_cast<T>(mean);
    if (out_deviations)
      out_deviations[i] = static_cast<T>(deviation);
  }
};

/// Of values: how many are not finite or too large for squares in float, least and largest.
struct ValueRange {
  std::int64_t refused = 0;
  double least = 1e300, largest = -1e300;

  bool differ() const { return least < largest; }
  KOKKOS_FUNCTION ValueRange& operator+=(const ValueRange& other) {
    refused += other.refused;
    least = Kokkos::min(least, other.least);
    largest = Kokkos::max(largest, other.largest);
    return *this;
  }
};
template <class T>
struct CheckedValues {
  const T* values;

  KOKKOS_FUNCTION void operator()(std::int64_t i, ValueRange& range) const {
    const T value = values[i];
    const bool fine = is_finite(value) && Kokkos::abs(value) <= T(1e10);
    range += fine ? ValueRange{0, double(value), double(value)} : ValueRange{1};
  }
};

} // namespace Impl

template <class ExecutionSpace, class T>
TemplateMatching<ExecutionSpace, T>::TemplateMatching(const ExecutionSpace& space,
                                                      const TemplateMatchingSizes& sizes,
                                                      const TemplateMatchingOptions& options)
    : sizes_(sizes), band_(band_of(sizes, options)), batch_([&] {
        const std::int64_t standard = std::int64_t(1) << (Impl::is_host<ExecutionSpace> ? 26 : 31),
                           each = band_.grid.elements() * std::int64_t(sizeof(Complex)) +
                                  std::int64_t(rows()) * columns() * std::int64_t(sizeof(T));
        return static_cast<int>(
            std::clamp<std::int64_t>((options.bytes > 0 ? options.bytes : standard) / each, 1, 32));
      }()),
      inverse_(space, {rows(), columns()}, batch_) {
  const int half = band_.grid.columns();
  const auto label = [](const char* name) { return Impl::Label("Bracewell::TemplateMatching::", name); };
  whitened_ = Impl::device_view<Complex**>(space, label("whitened"), rows(), half);
  image_ = Impl::device_view<Complex**>(space, label("image"), rows(), half);
  power_ = Impl::device_view<T**>(space, label("power"), rows(), half);
  maxima_ = Impl::device_view<T**>(space, label("maxima"), rows(), columns());
  best_ = Impl::device_view<int**>(space, label("best"), rows(), columns());
  sums_ = Impl::device_view<double**>(space, label("sums"), rows(), columns());
  squares_ = Impl::device_view<double**>(space, label("squares"), rows(), columns());
  norms_ = Impl::device_view<double**>(space, label("norms"), batch_, rows());
  correlations_ = Impl::device_view<T***>(space, label("correlations"), batch_, rows(), columns());
  factors_ = Impl::device_view<T*>(space, label("factors"), batch_);
  // Orientations that a last batch lacks are transformed, too.
  spectra_ = Impl::device_zeros<Complex***>(space, label("spectra"), batch_, rows(), half);
}

template <class ExecutionSpace, class T>
std::size_t TemplateMatching<ExecutionSpace, T>::memory_bytes() const {
  return Impl::bytes_of(gains_, whitened_, image_, power_, maxima_, best_, sums_, squares_, norms_, spectra_,
                        correlations_, factors_) +
         inverse_.memory_bytes();
}

template <class ExecutionSpace, class T>
void TemplateMatching<ExecutionSpace, T>::set_micrograph(const ExecutionSpace& space,
                                                         const Array<const T, Memory>& micrograph) {
  constexpr Impl::Arguments arguments{"TemplateMatching::set_micrograph"};
  arguments.given("micrograph", micrograph);
  arguments.shape("micrograph", micrograph, {sizes_.height, sizes_.width});
  const Kokkos::Profiling::ScopedRegion region("Bracewell::TemplateMatching::set_micrograph");
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  Impl::CheckedValues<T> values{micrograph.data};
  Impl::ValueRange range;
  Kokkos::parallel_reduce("Bracewell::TemplateMatching::check", Policy(space, 0, micrograph.size()), values,
                          range);
  arguments.require(range.refused == 0, "micrograph", "finite values of at most 1e10",
                    [&] { return Impl::number(range.refused) + " others"; });
  arguments.require(range.differ(), "micrograph", "values that differ", "a constant");

  const int half = sizes_.width / 2 + 1;
  const auto spectrum =
      Impl::device_view<Complex***>(space, "Bracewell::TemplateMatching::spectrum", 1, sizes_.height, half);
  const FFT<ExecutionSpace, 2, T, Complex> forward(space, {sizes_.height, sizes_.width});
  forward.execute(space, micrograph, spectrum);
  const auto count = static_cast<std::size_t>(band_.limit * sizes_.width + 0.5) + 2;
  const auto averages = Impl::device_view<double**>(space, "Bracewell::TemplateMatching::averages", 1, count);
  const auto power =
      Impl::device_view<T***>(space, "Bracewell::TemplateMatching::powers", 1, sizes_.height, half);
  Kokkos::parallel_for("Bracewell::TemplateMatching::powers",
                       Policy(space, 0, static_cast<std::int64_t>(spectrum.size())),
                       Impl::PowerOfSpectrum<T>{spectrum.data(), power.data()});
  shell_averages(space, HalfSpectrum{power, sizes_.width}, averages);
  const auto on_host = Kokkos::create_mirror_view(averages);
  Kokkos::deep_copy(space, on_host, averages);
  space.fence("Bracewell::TemplateMatching::set_micrograph");
  amplitudes_.resize(count);
  gains_ = Impl::device_view<double*>(space, "Bracewell::TemplateMatching::gains", count);
  const auto gains = Kokkos::create_mirror_view(gains_);
  for (std::size_t s = 0; s < count; ++s) {
    amplitudes_[s] = std::sqrt(on_host(0, s));
    gains(s) = amplitudes_[s] > 0 ? 1 / amplitudes_[s] : 0;
  }
  Kokkos::deep_copy(space, gains_, gains);
  Impl::for_each_row(
      space, "Bracewell::TemplateMatching::whiten", rows(),
      Impl::WhitenSpectrum<T>{band_, shells(), spectrum.data(), gains_.data(), whitened_.data()});
  const std::int64_t pixels = std::int64_t(rows()) * columns();
  Impl::fill(space, "Bracewell::TemplateMatching::maxima", maxima_.data(), pixels,
             -std::numeric_limits<T>::infinity());
  Impl::fill(space, "Bracewell::TemplateMatching::best", best_.data(), pixels, -1);
  Impl::clear(space, "Bracewell::TemplateMatching::sums", sums_.data(), pixels);
  Impl::clear(space, "Bracewell::TemplateMatching::squares", squares_.data(), pixels);
  orientations_ = 0;
  CTF flat; // 1 everywhere: sin(pi / 2)
  flat.offset = 0.5;
  flat.scale = 1;
  set_ctf(space, flat);
  space.fence("Bracewell::TemplateMatching::set_micrograph"); // the spectrum goes
}

template <class ExecutionSpace, class T>
void TemplateMatching<ExecutionSpace, T>::set_ctf(const ExecutionSpace& space, const CTF& ctf) {
  Impl::Arguments{"TemplateMatching::set_ctf"}.require(gains_.size() > 0, "micrograph",
                                                       "set_micrograph before", "none");
  const double step[2] = {1 / (sizes_.width * sizes_.pixel_size), 1 / (sizes_.height * sizes_.pixel_size)};
  Impl::for_each_row(space, "Bracewell::TemplateMatching::filter", rows(),
                     Impl::FilterTemplates<T>{band_,
                                              shells(),
                                              ctf,
                                              {step[0], step[1]},
                                              gains_.data(),
                                              whitened_.data(),
                                              image_.data(),
                                              power_.data()});
}

template <class ExecutionSpace, class T>
void TemplateMatching<ExecutionSpace, T>::search(const ExecutionSpace& space, const Reference& reference,
                                                 const Array<const T, Memory>& matrices) {
  constexpr Impl::Arguments arguments{"TemplateMatching::search"};
  const Kokkos::Profiling::ScopedRegion region("Bracewell::TemplateMatching::search");
  arguments.require(gains_.size() > 0, "micrograph", "set_micrograph before", "none");
  const auto source = reference.reference(arguments.function, "reference");
  const auto& layout = reference.layout();
  arguments.require(source.shape.extents[0] == 1, "reference", "one map",
                    [&] { return Impl::number(source.shape.extents[0]); });
  arguments.require(layout.size[0] == layout.size[1] && layout.size[0] == layout.size[2], "reference",
                    "a spectrum with sides of one length", [&] { return source.shape.shape(); });
  arguments.given("matrices", matrices);
  const std::int64_t count = matrices.extents[0];
  arguments.shape("matrices", matrices, {count, 3, 3});
  arguments.require(orientations_ + count < std::int64_t(1) << 31, "matrices", "fewer than 2^31 in all",
                    [&] { return Impl::number(orientations_ + count); });
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  Impl::ValueRange range;
  Kokkos::parallel_reduce("Bracewell::TemplateMatching::check", Policy(space, 0, matrices.size()),
                          Impl::CheckedValues<T>{matrices.data}, range);
  arguments.require(range.refused == 0, "matrices", "finite values of at most 1e10",
                    [&] { return Impl::number(range.refused) + " others"; });

  const std::int64_t pixels = std::int64_t(rows()) * columns();
  const double scale = layout.size[0] * sizes_.voxel_size / sizes_.pixel_size;
  for (std::int64_t first = 0; first < count; first += batch_) {
    const auto taken = static_cast<int>(std::min<std::int64_t>(batch_, count - first));
    using Spectra = std::remove_cvref_t<decltype(source.spectra)>;
    Impl::for_each_row(space, "Bracewell::TemplateMatching::sample", std::int64_t(rows()) * taken,
                       Impl::SampleTemplates<T, Spectra>{
                           band_,
                           {layout, source.spectra},
                           matrices.data + 9 * first,
                           {static_cast<T>(scale / sizes_.width), static_cast<T>(scale / sizes_.height)},
                           taken,
                           image_.data(),
                           power_.data(),
                           spectra_.data(),
                           norms_.data()});
    Kokkos::parallel_for(
        "Bracewell::TemplateMatching::normalise",
        Kokkos::TeamPolicy<ExecutionSpace>(space, taken, Impl::is_host<ExecutionSpace> ? 1 : 256),
        Impl::NormaliseTemplates<T>{norms_.data(), rows(), factors_.data()});
    inverse_.execute(space, spectra_, correlations_);
    Kokkos::parallel_for("Bracewell::TemplateMatching::accumulate", Policy(space, 0, pixels),
                         Impl::AccumulateMatches<T>{correlations_.data(), factors_.data(), pixels, taken,
                                                    static_cast<int>(orientations_ + first), maxima_.data(),
                                                    best_.data(), sums_.data(), squares_.data()});
  }
  orientations_ += count;
}

template <class ExecutionSpace, class T>
void TemplateMatching<ExecutionSpace, T>::results(const ExecutionSpace& space,
                                                  const TemplateMatches<T, Memory>& matches) const {
  constexpr Impl::Arguments arguments{"TemplateMatching::results"};
  arguments.require(orientations_ > 0, "orientations", "a search before", "none");
  const auto shape = [&](const char* name, const Impl::ArrayShape& array) {
    if (array)
      arguments.shape(name, array, {rows(), columns()});
  };
  shape("matches.scores", matches.scores);
  shape("matches.maxima", matches.maxima);
  shape("matches.best", matches.best);
  shape("matches.means", matches.means);
  shape("matches.deviations", matches.deviations);
  arguments.disjoint({{"matches.scores", matches.scores},
                      {"matches.maxima", matches.maxima},
                      {"matches.best", matches.best},
                      {"matches.means", matches.means},
                      {"matches.deviations", matches.deviations}},
                     {});
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(
      "Bracewell::TemplateMatching::results", Policy(space, 0, std::int64_t(rows()) * columns()),
      Impl::FinishMatches<T>{maxima_.data(), best_.data(), sums_.data(), squares_.data(),
                             double(orientations_), matches.scores.data, matches.maxima.data,
                             matches.means.data, matches.deviations.data, matches.best.data});
}

#define BRACEWELL_INSTANCES_TEMPLATE_MATCHING(Extern, Space, Real)                                           \
  Extern template class TemplateMatching<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_TEMPLATE_MATCHING)

} // namespace Bracewell
