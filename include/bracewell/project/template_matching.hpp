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
#include <tuple>
#include <vector>

namespace Bracewell {

/// Micrographs or tomograms of a TemplateMatching, and the map that it looks for.
struct TemplateMatchingSizes {
  int height;            ///< of micrographs and tomograms
  int width;             ///< of micrographs and tomograms
  double pixel_size = 1; ///< of micrographs and tomograms, in Angstrom
  double voxel_size = 1; ///< of the map that references were prepared from, in Angstrom
  int depth = 1;         ///< of tomograms
};

/// Frequencies that a tilt series about the y axis measures of a tomogram. The view at angle a shows x cos a + z sin a: it
/// measures the plane through (cos a, 0, sin a) and y. The zero angle measures z = 0.
struct TiltWedge {
  double lowest = -90;             ///< degrees; all planes from the lowest to the highest are measured
  double highest = 90;             ///< degrees
  std::vector<double> angles = {}; ///< degrees; where given, these planes are measured, and no others
  /// Cycles per pixel: how thick planes are. One over the diameter of the molecule in pixels, within which it knows no finer
  /// frequencies. A frequency at a distance d from a plane has a share of max(0, 1 - d / thickness). The shares of planes add
  /// up to at most 1.
  double thickness = 0;
};

/// Options of TemplateMatching.
struct TemplateMatchingOptions {
  /// Frequencies up to this one are compared, in cycles per pixel of the micrograph, at most up to the Nyquist limits
  /// of the micrograph and of the map.
  double limit = 0.5;
  /// Nyquist frequency of the correlations, in cycles per pixel; it is rounded up to a fast size of transforms. 0: the limit.
  double nyquist = 0;
  /// Bytes for the spectra and correlations of a batch of orientations; a batch has at least one. 0: 2 GiB on GPUs, 64 MiB
  /// on hosts.
  std::int64_t bytes = 0;
  TiltWedge wedge = {}; ///< of tomograms
};

/// What TemplateMatching::results writes, each [rows, columns] of the plan, of tomograms [layers, rows, columns]. It writes
/// only the arrays that are given.
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
template <int Dim>
struct MatchedBand {
  HalfSpectrumLayout<Dim> grid; ///< of correlations
  int size[Dim];                ///< of the micrograph (x, y[, z])
  int most[Dim];                ///< frequency below both Nyquist limits (x, y[, z])
  double limit;                 ///< cycles per pixel of the micrograph

  /// Rows of the grid.
  KOKKOS_FUNCTION int rows() const { return grid.size[1] * (Dim == 3 ? grid.size[Dim - 1] : 1); }
  /// Sizes of the micrograph's own half spectrum.
  Box<Dim> box() const {
    Box<Dim> result{{}, size[0] / 2 + 1, 1};
    std::copy(size, size + Dim, result.size);
    return result;
  }
};

/// What share_of needs of a TiltWedge.
struct MeasuredShare {
  double low[2], high[2]; ///< cosine and sine of the angles
  const double* planes;   ///< [count, 2] the same
  int count;              ///< of planes; -1: all from low to high
  double thickness;       ///< cycles per pixel
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
/// In tomograms (Dim = 3) P is the spectrum of the map itself, turned, and T = W CTF P / A with the share W of a frequency that
/// the tilt series measured (TiltWedge). A^2 is the mean of W^2 |X|^2 over that of W^2: noise in what was measured has the
/// variance 1. The CTF is its value along x at every |k|. Results are [layers, rows, columns].
///
/// @tparam T    float, or double
/// @tparam Dim  2: micrographs, 3: tomograms
template <class ExecutionSpace, class T = float, int Dim = 2>
class TemplateMatching {
  static_assert(Dim == 2 || Dim == 3, "Bracewell::TemplateMatching: Dim: expected 2 or 3, found another.");
  using Memory = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  template <class DataType>
  using View = Kokkos::View<DataType, Kokkos::LayoutRight, Memory>;
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  template <class Value>
  using Grid = View<std::conditional_t<Dim == 3, Value***, Value**>>;
  template <class Value>
  using Grids = View<std::conditional_t<Dim == 3, Value****, Value***>>;

public:
  /// The map, padded to twice its box or more; one of the batch.
  using Reference = PreparedReference<Linear, ExecutionSpace, 3, Complex>;

  /// @throws Error on sizes or options out of range
  TemplateMatching(const ExecutionSpace& space, const TemplateMatchingSizes& sizes,
                   const TemplateMatchingOptions& options = {});

  /// Takes a micrograph, real [height, width], or a tomogram [depth, height, width], and forgets the one before, its CTF and
  /// its results. Waits.
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

  int layers() const { return Dim == 3 ? band_.grid.size[Dim - 1] : 1; } ///< of correlations
  int rows() const { return band_.grid.size[1]; }                        ///< of correlations
  int columns() const { return band_.grid.size[0]; }                     ///< of correlations
  /// Cycles per pixel of the micrograph: the limit that is used.
  double limit() const { return band_.limit; }
  /// Orientations that are taken together.
  int batch() const { return batch_; }
  /// Orientations that were searched since set_micrograph: the next one has this number.
  std::int64_t orientations() const { return orientations_; }
  /// A of every shell, up to the limit; shell s holds (s - 1/2) / width to (s + 1/2) / width cycles
  /// per pixel.
  const std::vector<double>& amplitudes() const { return amplitudes_; }
  /// Bytes of memory that it holds; the plan of transforms has as much as the correlations.
  std::size_t memory_bytes() const;

private:
  static Impl::MatchedBand<Dim> band_of(const TemplateMatchingSizes& sizes,
                                        const TemplateMatchingOptions& options) {
    constexpr Impl::Arguments arguments{"TemplateMatching"};
    arguments.within("sizes.height", sizes.height, 4, 32768);
    arguments.within("sizes.width", sizes.width, 4, 32768);
    arguments.within("sizes.depth", sizes.depth, Dim == 3 ? 4 : 1, Dim == 3 ? 32768 : 1);
    arguments.positive("sizes.pixel_size", sizes.pixel_size);
    arguments.positive("sizes.voxel_size", sizes.voxel_size);
    arguments.positive("options.limit", options.limit);
    arguments.within("options.limit", options.limit, 0., 0.5);
    arguments.within("options.nyquist", options.nyquist, 0., 0.5);
    arguments.not_negative("options.bytes", options.bytes);
    const TiltWedge& wedge = options.wedge;
    arguments.within("options.wedge.lowest", wedge.lowest, -90., 90.);
    arguments.within("options.wedge.highest", wedge.highest, -90., 90.);
    arguments.require(
        wedge.lowest < wedge.highest, "options.wedge.highest",
        [&] { return "above " + Impl::number(wedge.lowest); }, [&] { return Impl::number(wedge.highest); });
    for (const double angle : wedge.angles)
      arguments.within("options.wedge.angles", angle, -90., 90.);
    if (!wedge.angles.empty())
      arguments.positive("options.wedge.thickness", wedge.thickness);
    Impl::MatchedBand<Dim> band;
    band.limit = std::min(options.limit, sizes.pixel_size / (2 * sizes.voxel_size));
    const int full[3] = {sizes.width, sizes.height, sizes.depth};
    for (int axis = 0; axis < Dim; ++axis) {
      const double needed =
          std::max(4., std::ceil(2 * std::max(band.limit, options.nyquist) * full[axis] - 1e-6));
      band.size[axis] = full[axis];
      band.grid.size[axis] = static_cast<int>(next_fast_size(static_cast<std::int64_t>(needed), axis == 0));
      band.most[axis] = (std::min(band.grid.size[axis], full[axis]) - 1) / 2;
    }
    return band;
  }

  /// Sizes in the order of axes of arrays; `half`: of a half spectrum.
  static std::array<int, Dim> shape_of(const int (&size)[Dim], bool half = false) {
    std::array<int, Dim> shape;
    std::reverse_copy(size, size + Dim, shape.begin());
    if (half)
      shape[Dim - 1] = size[0] / 2 + 1;
    return shape;
  }
  static void require_shape(const Impl::Arguments& arguments, const char* name, const Impl::ArrayShape& array,
                            const int (&size)[Dim]) {
    if constexpr (Dim == 3)
      arguments.shape(name, array, {size[2], size[1], size[0]});
    else
      arguments.shape(name, array, {size[1], size[0]});
  }
  /// Zeros: spectra (`half`) or values of so many points, behind other axes.
  template <class Result, class... Leading>
  static Result zeros(const ExecutionSpace& space, const char* name, const int (&size)[Dim], bool half,
                      Leading... leading) {
    return std::apply(
        [&](auto... rest) {
          return Impl::device_zeros<typename Result::data_type>(
              space, Impl::Label("Bracewell::TemplateMatching::", name), leading..., rest...);
        },
        shape_of(size, half));
  }
  std::int64_t pixels() const { return std::int64_t(layers()) * rows() * columns(); }
  Impl::Shells<Dim> shells() const { return Impl::Shells<Dim>(band_.box()); }
  std::vector<double> means_of_shells(const ExecutionSpace& space, const Grid<T>& values) const {
    const auto count = static_cast<std::size_t>(band_.limit * sizes_.width + 0.5) + 2;
    const auto averages =
        Impl::device_view<double**>(space, "Bracewell::TemplateMatching::averages", 1, count);
    Impl::reduce_shells<Dim>(space, Impl::Arguments{"TemplateMatching::set_micrograph"}, "averages",
                             "Bracewell::TemplateMatching::averages", band_.box(),
                             Array<double, Memory>(averages), Impl::MeanOfShell<T>{values.data()});
    std::vector<double> means(count);
    Kokkos::deep_copy(space,
                      Kokkos::View<double*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(means.data(), count),
                      Kokkos::subview(averages, 0, Kokkos::ALL));
    space.fence("Bracewell::TemplateMatching::set_micrograph");
    return means;
  }

  TemplateMatchingSizes sizes_;
  Impl::MatchedBand<Dim> band_;
  int batch_;
  FFT<ExecutionSpace, Dim, Complex, T> inverse_;
  std::vector<double> amplitudes_;
  std::int64_t orientations_ = 0;
  View<double*> planes_;
  Impl::MeasuredShare measured_;
  View<double*> gains_;
  Grid<Complex> whitened_, image_;
  Grid<T> power_, maxima_;
  Grid<int> best_;
  Grid<double> sums_, squares_;
  View<double**> norms_;
  Grids<Complex> spectra_;
  Grids<T> correlations_;
  View<T*> factors_;
};

namespace Impl {

/// A row of the grid.
template <int Dim>
struct MatchedRow {
  int k[Dim];         ///< its frequencies (0, y[, z])
  int last;           ///< the last column that is compared; -1: none
  std::int64_t begin; ///< of its elements
  std::int64_t from;  ///< where the row begins in the micrograph's half spectrum

  KOKKOS_FUNCTION MatchedRow(const MatchedBand<Dim>& band, std::int64_t row)
      : k{}, last(-1), begin(row * band.grid.columns()), from(0) {
    double rest = band.limit * band.limit;
    bool below = true;
    std::int64_t stride = band.size[0] / 2 + 1;
    for (int d = 1; d < Dim; ++d) {
      k[d] = band.grid.frequency(static_cast<int>(row % band.grid.size[d]), band.grid.size[d]);
      row /= band.grid.size[d];
      const double across = double(k[d]) / band.size[d];
      rest -= across * across;
      below = below && Kokkos::abs(k[d]) <= band.most[d];
      from += (k[d] < 0 ? k[d] + band.size[d] : k[d]) * stride;
      stride *= band.size[d];
    }
    if (below && rest >= 0)
      last = Kokkos::min(static_cast<int>(Kokkos::sqrt(rest) * band.size[0] + 1e-9), band.most[0]);
  }

  /// Whether an element of the row is compared; the zero frequency is not.
  KOKKOS_FUNCTION bool compares(int x) const {
    return x <= last && (x != 0 || k[1] != 0 || (Dim == 3 && k[Dim - 1] != 0));
  }

  KOKKOS_FUNCTION double squared(const Shells<Dim>& shells) const {
    double sum = 0;
    for (int d = 1; d < Dim; ++d)
      sum += shells.squared(k[d], d);
    return sum;
  }
};

/// Whether planes from the lowest to the highest angle hold a frequency, x from 0 on.
KOKKOS_INLINE_FUNCTION bool between_angles(const MeasuredShare& measured, double x, double z) {
  const double some = 1e-9;
  return z * measured.low[0] - x * measured.low[1] >= -some &&
         z * measured.high[0] - x * measured.high[1] <= some;
}

/// The share of a frequency of cycles per pixel that is measured; x from 0 on.
KOKKOS_INLINE_FUNCTION double share_of(const MeasuredShare& measured, double x, double z) {
  if (measured.count < 0)
    return between_angles(measured, x, z) || (x == 0 && between_angles(measured, x, -z)) ? 1 : 0;
  double share = 0;
  for (int i = 0; i < measured.count; ++i) {
    const double distance = z * measured.planes[2 * i] - x * measured.planes[2 * i + 1];
    share += Kokkos::max(0., 1 - Kokkos::abs(distance) / measured.thickness);
  }
  return Kokkos::min(share, 1.);
}

/// W^2 |X|^2 of the micrograph's half spectrum, W^2 where none is given.
template <class T, int Dim>
struct PowerOfSpectrum {
  MatchedBand<Dim> band;
  MeasuredShare measured;
  const Kokkos::complex<T>* spectrum;
  T* power;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto value = spectrum ? spectrum[i] : Kokkos::complex<T>(1);
    T weight(1);
    if constexpr (Dim == 3) {
      HalfSpectrumLayout<Dim> layout;
      for (int d = 0; d < Dim; ++d)
        layout.size[d] = band.size[d];
      int k[Dim];
      layout.frequency(i, k);
      weight = static_cast<T>(share_of(measured, double(k[0]) / band.size[0], double(k[2]) / band.size[2]));
    }
    power[i] = weight * weight * (value.real() * value.real() + value.imag() * value.imag());
  }
};

/// X / A within the band, on the grid of correlations; A: root of the mean power of a shell.
template <class T, int Dim>
struct WhitenSpectrum {
  MatchedBand<Dim> band;
  Shells<Dim> shells;
  const Kokkos::complex<T>* spectrum;
  const double* gains; ///< [shells] 1 / A
  Kokkos::complex<T>* whitened;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t index, const Member& member) const {
    const MatchedRow<Dim> row(band, index);
    const double squared = row.squared(shells);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, band.grid.columns()), [&](int x) {
      Kokkos::complex<T> value(0);
      if (row.compares(x))
        value = static_cast<T>(gains[shells.shell(x, squared)]) * spectrum[row.from + x];
      whitened[row.begin + x] = value;
    });
  }
};

/// What is the same for all orientations: with the filter f = W CTF / A of templates, the whitened micrograph times f, and
/// f^2 as often as it counts in the full spectrum.
template <class T, int Dim>
struct FilterTemplates {
  MatchedBand<Dim> band;
  Shells<Dim> shells;
  MeasuredShare measured;
  CTF ctf;
  double step[Dim]; ///< 1/Angstrom from one frequency to the next (x, y[, z])
  const double* gains;
  const Kokkos::complex<T>* whitened;
  Kokkos::complex<T>* image;
  T* power;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t index, const Member& member) const {
    const MatchedRow<Dim> row(band, index);
    const double squared = row.squared(shells);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, band.grid.columns()), [&](int x) {
      T filter(0);
      if (row.compares(x))
        filter = transfer(x, row.k) * static_cast<T>(gains[shells.shell(x, squared)]);
      image[row.begin + x] = filter * whitened[row.begin + x];
      power[row.begin + x] = static_cast<T>(band.grid.multiplicity(x)) * filter * filter;
    });
  }

private:
  KOKKOS_FUNCTION T transfer(int x, const int (&k)[Dim]) const {
    const double kx = x * step[0], ky = k[1] * step[1];
    if constexpr (Dim == 2) {
      return ctf.template value<T>(kx, ky);
    } else {
      const double kz = k[2] * step[2];
      return static_cast<T>(share_of(measured, double(x) / band.size[0], double(k[2]) / band.size[2])) *
             ctf.template value<T>(Kokkos::sqrt(kx * kx + ky * ky + kz * kz), 0);
    }
  }
};

/// Reads the map's spectrum at a position in its own frequencies, as it is stored (hosts) or prepared (GPUs).
template <class T, class Spectra>
struct MapReader;

template <class T, class Stored>
struct MapReader<T, StoredSpectra<Stored>> {
  HalfSpectrumLayout<3> layout;
  StoredSpectra<Stored> spectra;

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
template <class T, int Dim, class Spectra>
struct SampleTemplates {
  MatchedBand<Dim> band;
  MapReader<T, Spectra> map;
  const T* matrices; ///< [count, 3, 3] of these orientations
  T scale[Dim];      ///< frequencies of the reference to one of the micrograph (x, y[, z])
  std::int64_t count;
  const Kokkos::complex<T>* image;
  const T* power;
  Kokkos::complex<T>* correlations; ///< [count, (layers,) rows, columns/2+1]
  double* norms;                    ///< [count, layers rows]

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t item, const Member& member) const {
    const auto& grid = band.grid;
    const std::int64_t index = item / count, orientation = item - index * count;
    const MatchedRow<Dim> row(band, index);
    const std::int64_t begin = row.begin;
    const int last = row.last;
    const T* const m = matrices + 9 * orientation;
    T origin[3], along[3];
    for (int d = 0; d < 3; ++d) {
      origin[d] = m[3 * d + 1] * (scale[1] * static_cast<T>(row.k[1]));
      if constexpr (Dim == 3)
        origin[d] += m[3 * d + 2] * (scale[2] * static_cast<T>(row.k[2]));
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
    Kokkos::single(Kokkos::PerThread(member), [&] { norms[orientation * band.rows() + index] = norm; });
  }
};

/// One over the norm of templates; of one that is zero, 0.
template <class T>
struct NormaliseTemplates {
  const double* norms; ///< [count, layers rows]
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
template <class Space, class T, class Memory>
ValueRange check_range(const Space& space, const Arguments& arguments, const char* name,
                       const Array<const T, Memory>& values) {
  ValueRange range;
  Kokkos::parallel_reduce(
      "Bracewell::TemplateMatching::check",
      Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, values.size()),
      CheckedValues<T>{values.data}, range);
  arguments.require(range.refused == 0, name, "finite values of at most 1e10",
                    [&] { return number(range.refused) + " others"; });
  return range;
}

} // namespace Impl

template <class ExecutionSpace, class T, int Dim>
TemplateMatching<ExecutionSpace, T, Dim>::TemplateMatching(const ExecutionSpace& space,
                                                           const TemplateMatchingSizes& sizes,
                                                           const TemplateMatchingOptions& options)
    : sizes_(sizes), band_(band_of(sizes, options)), batch_([&] {
        const std::int64_t standard = std::int64_t(1) << (Impl::is_host<ExecutionSpace> ? 26 : 31),
                           each = band_.grid.elements() * std::int64_t(sizeof(Complex)) +
                                  pixels() * std::int64_t(sizeof(T));
        return static_cast<int>(
            std::clamp<std::int64_t>((options.bytes > 0 ? options.bytes : standard) / each, 1, 32));
      }()),
      inverse_(space, shape_of(band_.grid.size), batch_) {
  const auto& size = band_.grid.size;
  whitened_ = zeros<Grid<Complex>>(space, "whitened", size, true);
  image_ = zeros<Grid<Complex>>(space, "image", size, true);
  power_ = zeros<Grid<T>>(space, "power", size, true);
  maxima_ = zeros<Grid<T>>(space, "maxima", size, false);
  best_ = zeros<Grid<int>>(space, "best", size, false);
  sums_ = zeros<Grid<double>>(space, "sums", size, false);
  squares_ = zeros<Grid<double>>(space, "squares", size, false);
  correlations_ = zeros<Grids<T>>(space, "correlations", size, false, batch_);
  spectra_ = zeros<Grids<Complex>>(space, "spectra", size, true, batch_); // also where a last batch has none
  norms_ = Impl::device_view<double**>(space, "Bracewell::TemplateMatching::norms", batch_, band_.rows());
  factors_ = Impl::device_view<T*>(space, "Bracewell::TemplateMatching::factors", batch_);
  const auto cosine_and_sine = [](double degrees, double* pair) {
    pair[0] = std::abs(degrees) == 90 ? 0 : std::cos(degrees * Kokkos::numbers::pi / 180);
    pair[1] = std::sin(degrees * Kokkos::numbers::pi / 180);
  };
  const TiltWedge& wedge = options.wedge;
  planes_ = Impl::device_view<double*>(space, "Bracewell::TemplateMatching::planes", 2 * wedge.angles.size());
  const auto planes = Kokkos::create_mirror_view(planes_);
  for (std::size_t i = 0; i < wedge.angles.size(); ++i)
    cosine_and_sine(wedge.angles[i], planes.data() + 2 * i);
  Kokkos::deep_copy(space, planes_, planes);
  measured_ = {{},
               {},
               planes_.data(),
               wedge.angles.empty() ? -1 : static_cast<int>(wedge.angles.size()),
               wedge.thickness};
  cosine_and_sine(wedge.lowest, measured_.low);
  cosine_and_sine(wedge.highest, measured_.high);
  space.fence("Bracewell::TemplateMatching"); // the angles go
}

template <class ExecutionSpace, class T, int Dim>
std::size_t TemplateMatching<ExecutionSpace, T, Dim>::memory_bytes() const {
  return Impl::bytes_of(planes_, gains_, whitened_, image_, power_, maxima_, best_, sums_, squares_, norms_,
                        spectra_, correlations_, factors_) +
         inverse_.memory_bytes();
}

template <class ExecutionSpace, class T, int Dim>
void TemplateMatching<ExecutionSpace, T, Dim>::set_micrograph(const ExecutionSpace& space,
                                                              const Array<const T, Memory>& micrograph) {
  constexpr Impl::Arguments arguments{"TemplateMatching::set_micrograph"};
  arguments.given("micrograph", micrograph);
  require_shape(arguments, "micrograph", micrograph, band_.size);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::TemplateMatching::set_micrograph");
  arguments.require(Impl::check_range(space, arguments, "micrograph", micrograph).differ(), "micrograph",
                    "values that differ", "a constant");

  const auto spectrum = zeros<Grid<Complex>>(space, "spectrum", band_.size, true);
  const FFT<ExecutionSpace, Dim, T, Complex> forward(space, shape_of(band_.size));
  forward.execute(space, micrograph, spectrum);
  const auto power = zeros<Grid<T>>(space, "powers", band_.size, true);
  const auto means_of = [&](const Complex* of) {
    Kokkos::parallel_for("Bracewell::TemplateMatching::powers",
                         Policy(space, 0, static_cast<std::int64_t>(spectrum.size())),
                         Impl::PowerOfSpectrum<T, Dim>{band_, measured_, of, power.data()});
    return means_of_shells(space, power);
  };
  amplitudes_ = means_of(spectrum.data());
  const std::size_t count = amplitudes_.size();
  const auto shares = Dim == 3 ? means_of(nullptr) : std::vector<double>(count, 1);
  for (std::size_t s = 0; s < count; ++s)
    amplitudes_[s] = shares[s] > 0 ? std::sqrt(amplitudes_[s] / shares[s]) : 0;
  gains_ = Impl::device_view<double*>(space, "Bracewell::TemplateMatching::gains", count);
  const auto gains = Kokkos::create_mirror_view(gains_);
  for (std::size_t s = 0; s < count; ++s)
    gains(s) = amplitudes_[s] > 0 ? 1 / amplitudes_[s] : 0;
  Kokkos::deep_copy(space, gains_, gains);
  Impl::for_each_row(
      space, "Bracewell::TemplateMatching::whiten", band_.rows(),
      Impl::WhitenSpectrum<T, Dim>{band_, shells(), spectrum.data(), gains_.data(), whitened_.data()});
  Impl::fill(space, "Bracewell::TemplateMatching::maxima", maxima_.data(), pixels(),
             -std::numeric_limits<T>::infinity());
  Impl::fill(space, "Bracewell::TemplateMatching::best", best_.data(), pixels(), -1);
  Impl::clear(space, "Bracewell::TemplateMatching::sums", sums_.data(), pixels());
  Impl::clear(space, "Bracewell::TemplateMatching::squares", squares_.data(), pixels());
  orientations_ = 0;
  CTF flat; // 1 everywhere: sin(pi / 2)
  flat.offset = 0.5;
  flat.scale = 1;
  set_ctf(space, flat);
  space.fence("Bracewell::TemplateMatching::set_micrograph"); // the spectrum goes
}

template <class ExecutionSpace, class T, int Dim>
void TemplateMatching<ExecutionSpace, T, Dim>::set_ctf(const ExecutionSpace& space, const CTF& ctf) {
  Impl::Arguments{"TemplateMatching::set_ctf"}.require(gains_.size() > 0, "micrograph",
                                                       "set_micrograph before", "none");
  Impl::FilterTemplates<T, Dim> filter{band_,         shells(),         measured_,     ctf,          {},
                                       gains_.data(), whitened_.data(), image_.data(), power_.data()};
  for (int d = 0; d < Dim; ++d)
    filter.step[d] = 1 / (band_.size[d] * sizes_.pixel_size);
  Impl::for_each_row(space, "Bracewell::TemplateMatching::filter", band_.rows(), filter);
}

template <class ExecutionSpace, class T, int Dim>
void TemplateMatching<ExecutionSpace, T, Dim>::search(const ExecutionSpace& space, const Reference& reference,
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
  Impl::check_range(space, arguments, "matrices", matrices);

  const double scale = layout.size[0] * sizes_.voxel_size / sizes_.pixel_size;
  for (std::int64_t first = 0; first < count; first += batch_) {
    const auto taken = static_cast<int>(std::min<std::int64_t>(batch_, count - first));
    using Spectra = std::remove_cvref_t<decltype(source.spectra)>;
    Impl::SampleTemplates<T, Dim, Spectra> sample{band_,
                                                  {layout, source.spectra},
                                                  matrices.data + 9 * first,
                                                  {},
                                                  taken,
                                                  image_.data(),
                                                  power_.data(),
                                                  spectra_.data(),
                                                  norms_.data()};
    for (int d = 0; d < Dim; ++d)
      sample.scale[d] = static_cast<T>(scale / band_.size[d]);
    Impl::for_each_row(space, "Bracewell::TemplateMatching::sample", std::int64_t(band_.rows()) * taken,
                       sample);
    Kokkos::parallel_for(
        "Bracewell::TemplateMatching::normalise",
        Kokkos::TeamPolicy<ExecutionSpace>(space, taken, Impl::is_host<ExecutionSpace> ? 1 : 256),
        Impl::NormaliseTemplates<T>{norms_.data(), band_.rows(), factors_.data()});
    inverse_.execute(space, spectra_, correlations_);
    Kokkos::parallel_for("Bracewell::TemplateMatching::accumulate", Policy(space, 0, pixels()),
                         Impl::AccumulateMatches<T>{correlations_.data(), factors_.data(), pixels(), taken,
                                                    static_cast<int>(orientations_ + first), maxima_.data(),
                                                    best_.data(), sums_.data(), squares_.data()});
  }
  orientations_ += count;
}

template <class ExecutionSpace, class T, int Dim>
void TemplateMatching<ExecutionSpace, T, Dim>::results(const ExecutionSpace& space,
                                                       const TemplateMatches<T, Memory>& matches) const {
  constexpr Impl::Arguments arguments{"TemplateMatching::results"};
  arguments.require(orientations_ > 0, "orientations", "a search before", "none");
  std::vector<Impl::NamedMemory> memory;
  const auto take = [&](const char* name, const auto& array) {
    if (array)
      require_shape(arguments, name, array, band_.grid.size);
    memory.emplace_back(name, array);
  };
  take("matches.scores", matches.scores);
  take("matches.maxima", matches.maxima);
  take("matches.best", matches.best);
  take("matches.means", matches.means);
  take("matches.deviations", matches.deviations);
  arguments.disjoint(memory, {});
  Kokkos::parallel_for("Bracewell::TemplateMatching::results", Policy(space, 0, pixels()),
                       Impl::FinishMatches<T>{maxima_.data(), best_.data(), sums_.data(), squares_.data(),
                                              double(orientations_), matches.scores.data, matches.maxima.data,
                                              matches.means.data, matches.deviations.data,
                                              matches.best.data});
}

#define BRACEWELL_INSTANCES_TEMPLATE_MATCHING(Extern, Space, Real)                                           \
  Extern template class TemplateMatching<Space, Real>;                                                       \
  Extern template class TemplateMatching<Space, Real, 3>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_TEMPLATE_MATCHING)

} // namespace Bracewell
