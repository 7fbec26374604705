// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/compiled.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/filter/filter_rows.hpp>
#include <bracewell/tomography/detail/tuning.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace Bracewell {

/// Filters of projections: the ramp |t| (cycles per pixel) times a window of tau = 2 |t|, 1 at Nyquist.
enum class TomographyFilter {
  None,    ///< no filtering, not even the ramp
  Ramp,    ///< 1
  Shepp,   ///< sin(pi tau / 2) / (pi tau / 2)
  Cosine,  ///< cos(pi tau / 2)
  Cosine2, ///< cos(pi tau / 2)^2
  Hamming, ///< 0.54 + 0.46 cos(pi tau)
  Hann,    ///< (1 + cos(pi tau)) / 2
  Parzen   ///< (1 - tau)^3
};

/// What ProjectionFilter takes to lie beyond the detector.
enum class ProjectionPadding {
  Zero, ///< nothing beyond the detector: objects within the field of view
  Edge  ///< the outermost values go on: objects that are cut off
};

/// Options of ProjectionFilter.
struct FilterOptions {
  TomographyFilter filter = TomographyFilter::Ramp;    ///< the ramp and its window
  ProjectionPadding padding = ProjectionPadding::Zero; ///< beyond the detector
  int upsampling = 1; ///< values per pixel of the result, 1 to 8, by trigonometric interpolation
  double shift = 0;   ///< pixels: value i of the result is that at i + shift, by trigonometric interpolation
};

/// The window of a filter at 0 <= tau <= 1.
/// @throws Error on a value that is no filter
inline double filter_window(TomographyFilter filter, double tau);

/// A filter's factors for the frequencies k / size, k = 0 ... size / 2, of rows of `size` pixels. The ramp is the transform
/// of its band-limited kernel, cut to the row: 1/4 at 0, -1 / (pi m)^2 at odd m, 0 at even m (Ramachandran and
/// Lakshminarayanan, PNAS 68, 1971). Samples of |t| itself would lose the mean of the image.
/// @throws Error on a size below 1
inline std::vector<double> filter_multiplier(TomographyFilter filter, std::int64_t size);

/// Filters the rows of projections, and shifts them, by FFTs of at least twice their width.
/// With Ramp, filtered back-projection (pi / P) sum_p q_p(s) returns the attenuation per pixel.
///
/// A plan: the workspace (rows are filtered in blocks: a few megabytes on hosts, 400 on GPUs) and the FFT
/// plans are made once. Movable; calls that can overlap need a plan each. On CUDA, rows of 256 to 8192 pixels
/// in float (to 6144 in double) without upsampling go through one kernel without workspace. It takes two rows
/// at a time. If one of them has a value that is no number, it spreads to the other, and so does its rounding.
template <class ExecutionSpace, class T>
class ProjectionFilter {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  template <class Value>
  using Vector = Kokkos::View<Value*, ExecutionSpace>;

public:
  /// @param rows   projections times slices, the most that are worked on at once
  /// @param width  detector pixels
  /// @throws Error on sizes below 1 and a shift that is not finite or beyond the width
  ProjectionFilter(const ExecutionSpace& space, std::int64_t rows, int width,
                   const FilterOptions& options = {});

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const {
    return Impl::bytes_of(padded_, spectra_, factors_) + (upsampling_ == 1 ? 0 : Impl::bytes_of(products_)) +
           forward_.memory_bytes() + backward_.memory_bytes() + on_chip_.memory_bytes();
  }

  /// What memory_bytes() of a plan of these arguments would be.
  /// @throws Error as the constructor
  static std::size_t bytes_needed(const ExecutionSpace& space, std::int64_t rows, int width,
                                  const FilterOptions& options = {});

  /// @param projections  View [..., width], any number of rows
  /// @param filtered     View [..., upsampling * width] of as many rows, overwritten; without upsampling it
  ///                     may be `projections` itself
  /// @throws Error on shapes that do not fit and memory shared in part
  void execute(const ExecutionSpace& space, const Array<const T, MemorySpace>& projections,
               const Array<T, MemorySpace>& filtered) const;

private:
  static int check(const Impl::Arguments& arguments, std::int64_t rows, int width,
                   const FilterOptions& options) {
    arguments.at_least("rows", rows, std::int64_t(1));
    arguments.within("width", width, 1, 1 << 26, " pixels");
    arguments.within("options.upsampling", options.upsampling, 1, 8);
    if (!(std::abs(options.shift) <= width))
      arguments.refuse("options.shift", "at most the width, found %.6g", options.shift);
    return width;
  }

  void check(const Array<const T, MemorySpace>& in, const Array<T, MemorySpace>& out) const {
    constexpr Impl::Arguments arguments{"ProjectionFilter::execute"};
    const int fine = upsampling_ * width_;
    if (in.rank < 1 || in.extents[in.rank - 1] != width_)
      arguments.refuse("projections", "rows of %d values, found %s", width_, in.shape_text().characters);
    if (out.rank < 1 || out.extents[out.rank - 1] != fine || out.size() != upsampling_ * in.size())
      arguments.refuse("filtered", "%lld rows of %d values, found %s",
                       static_cast<long long>(in.size() / width_), fine, out.shape_text().characters);
    if (in.data != out.data || upsampling_ > 1)
      arguments.disjoint({{"filtered", out}}, {{"projections", in}});
  }

  /// Values of a row with margins.
  static std::int64_t least_size(int width, const FilterOptions& options) {
    return 2 * std::int64_t(width) + std::int64_t(std::ceil(std::abs(options.shift)));
  }

  static int padded_size(int width, const FilterOptions& options) {
    return int(next_fast_size(least_size(width, options), true));
  }

  /// Of Impl::FilterLine; 0 where FFT plans do the work.
  static int chip_size(const ExecutionSpace& space, int width, const FilterOptions& options) {
    return options.upsampling > 1
               ? 0
               : Impl::choose_filter_line<T>(least_size(width, options), Impl::chip_memory(space));
  }

  /// Padded rows that are worked on at once.
  static std::int64_t block_rows(const ExecutionSpace& space, std::int64_t rows, int size) {
    const std::int64_t values =
        Impl::TomographyTuning<ExecutionSpace>::filter_bytes(space.concurrency()) / std::int64_t(sizeof(T));
    return std::min(rows, std::max<std::int64_t>(1, values / size));
  }

  int fine_size() const { return upsampling_ * size_; }

  /// Of the frequencies of a padded row, with the shift and the factors of both FFTs.
  std::vector<Complex> make_factors(const FilterOptions& options) const {
    std::vector<Complex> result;
    const std::vector<double> factors = filter_multiplier(options.filter, size_);
    for (int k = 0; k <= size_ / 2; ++k) {
      const double phase = 2 * std::numbers::pi * k / size_ * options.shift;
      const double scaled = factors[static_cast<std::size_t>(k)] / size_;
      // A shifted cosine there; half of it on either side of a longer spectrum.
      const bool nyquist = 2 * k == size_;
      const double share = nyquist && upsampling_ > 1 ? 0.5 : 1;
      result.emplace_back(T(share * scaled * std::cos(phase)), nyquist ? T(0) : T(scaled * std::sin(phase)));
    }
    return result;
  }

  /// A block of rows in memory that may have room for longer ones.
  template <class Value>
  Array<Value, MemorySpace> block(const Vector<Value>& values, int columns) const {
    return Impl::array_of<MemorySpace>(values.data(), block_, columns);
  }

  int width_;
  bool edge_;
  int chip_size_;      ///< of on_chip_, or 0
  int size_;           ///< of padded rows
  std::int64_t block_; ///< none where on_chip_ does the work
  int upsampling_;
  FFT<ExecutionSpace, 1, T, Complex> forward_;
  FFT<ExecutionSpace, 1, Complex, T> backward_;
  Vector<T> padded_;
  Vector<Complex> spectra_, products_, factors_; ///< products are the spectra where these are as long
  Impl::FilterLines<ExecutionSpace, T> on_chip_;
};

template <class ExecutionSpace, class T>
ProjectionFilter<ExecutionSpace, T>::ProjectionFilter(const ExecutionSpace& space, std::int64_t rows,
                                                      int width, const FilterOptions& options)
    : width_(check({"ProjectionFilter"}, rows, width, options)),
      edge_(options.padding == ProjectionPadding::Edge), chip_size_(chip_size(space, width, options)),
      size_(chip_size_ > 0 ? chip_size_ : padded_size(width, options)),
      block_(chip_size_ > 0 ? 0 : block_rows(space, rows, size_)), upsampling_(options.upsampling),
      forward_(space, {size_}, block_), backward_(space, {fine_size()}, block_),
      padded_(Impl::device_vector<T>(space, "Bracewell::ProjectionFilter::padded", block_ * fine_size())),
      spectra_(Impl::device_vector<Complex>(space, "Bracewell::ProjectionFilter::spectra",
                                            block_ * (size_ / 2 + 1))),
      products_(upsampling_ == 1
                    ? spectra_
                    : Impl::device_vector<Complex>(space, "Bracewell::ProjectionFilter::products",
                                                   block_ * (fine_size() / 2 + 1))),
      factors_(Impl::device_copy(space, "Bracewell::ProjectionFilter::factors",
                                 chip_size_ > 0 ? std::vector<Complex>() : make_factors(options))) {
  if (chip_size_ > 0)
    on_chip_ = {space, chip_size_, make_factors(options)};
}

template <class ExecutionSpace, class T>
std::size_t ProjectionFilter<ExecutionSpace, T>::bytes_needed(const ExecutionSpace& space, std::int64_t rows,
                                                              int width, const FilterOptions& options) {
  check({"ProjectionFilter::bytes_needed"}, rows, width, options);
  if (const int size = chip_size(space, width, options); size > 0)
    return Impl::FilterLines<ExecutionSpace, T>::bytes_needed(size);
  const int size = padded_size(width, options), fine = options.upsampling * size;
  const std::int64_t block = block_rows(space, rows, size),
                     products = options.upsampling == 1 ? 0 : fine / 2 + 1;
  return std::size_t(block * fine) * sizeof(T) +
         std::size_t(block * (size / 2 + 1 + products) + size / 2 + 1) * sizeof(Complex) +
         FFT<ExecutionSpace, 1, T, Complex>::bytes_needed(space, {size}, block) +
         FFT<ExecutionSpace, 1, Complex, T>::bytes_needed(space, {fine}, block);
}

template <class ExecutionSpace, class T>
void ProjectionFilter<ExecutionSpace, T>::execute(const ExecutionSpace& space,
                                                  const Array<const T, MemorySpace>& projections,
                                                  const Array<T, MemorySpace>& filtered) const {
  check(projections, filtered);
  const std::int64_t rows = projections.size() / width_;
  if (rows == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::ProjectionFilter::execute");
  if (chip_size_ > 0)
    return on_chip_.execute(space, projections.data, filtered.data, rows, width_, edge_);
  const auto padded = block(padded_, size_), finer = block(padded_, fine_size());
  const auto spectra = block(spectra_, size_ / 2 + 1), products = block(products_, fine_size() / 2 + 1);
  for (std::int64_t first = 0; first < rows; first += block_) {
    const std::int64_t count = std::min(block_, rows - first);
    Impl::for_each_row(space, "Bracewell::ProjectionFilter::pad", block_,
                       Impl::PadProjections<T>{projections.data + first * width_, padded_.data(), count,
                                               width_, size_, edge_});
    forward_.execute(space, padded, spectra);
    Impl::for_each_row(space, "Bracewell::ProjectionFilter::multiply", count,
                       Impl::MultiplyProjections<T>{spectra_.data(), factors_.data(), products_.data(),
                                                    size_ / 2 + 1, fine_size() / 2 + 1});
    backward_.execute(space, products, finer);
    Impl::for_each_row(space, "Bracewell::ProjectionFilter::crop", count,
                       Impl::CropProjections<T>{padded_.data(), filtered.data + first * width_ * upsampling_,
                                                width_ * upsampling_, fine_size()});
  }
}

inline double filter_window(TomographyFilter filter, double tau) {
  constexpr double pi = std::numbers::pi;
  switch (filter) {
  case TomographyFilter::None:
  case TomographyFilter::Ramp:
    return 1;
  case TomographyFilter::Shepp:
    return tau > 0 ? std::sin(pi * tau / 2) / (pi * tau / 2) : 1;
  case TomographyFilter::Cosine:
    return std::cos(pi * tau / 2);
  case TomographyFilter::Cosine2:
    return std::pow(std::cos(pi * tau / 2), 2);
  case TomographyFilter::Hamming:
    return 0.54 + 0.46 * std::cos(pi * tau);
  case TomographyFilter::Hann:
    return 0.5 + 0.5 * std::cos(pi * tau);
  case TomographyFilter::Parzen:
    return std::pow(1 - tau, 3);
  }
  Impl::fail("filter_window", "filter", "a filter", Impl::number(int(filter)));
}

inline std::vector<double> filter_multiplier(TomographyFilter filter, std::int64_t size) {
  Impl::Arguments{"filter_multiplier"}.at_least("size", size, std::int64_t(1));
  constexpr double pi = std::numbers::pi;
  std::vector<double> cosines(static_cast<std::size_t>(size)),
      factors(static_cast<std::size_t>(size / 2 + 1));
  for (std::int64_t j = 0; j < size; ++j)
    cosines[static_cast<std::size_t>(j)] = std::cos(2 * pi * double(j) / double(size));
  for (std::int64_t k = 0; k <= size / 2; ++k) {
    double ramp = 1;
    if (filter != TomographyFilter::None) {
      ramp = 0.25;
      for (std::int64_t m = 1; 2 * m <= size; m += 2) {
        const double both_sides = 2 * m == size ? 1 : 2;
        ramp -=
            both_sides * cosines[static_cast<std::size_t>(k * m % size)] / (pi * pi * double(m) * double(m));
      }
    }
    factors[static_cast<std::size_t>(k)] = ramp * filter_window(filter, 2 * double(k) / double(size));
  }
  return factors;
}

#define BRACEWELL_INSTANCES_PROJECTION_FILTER(Extern, Space, Real)                                           \
  Extern template class ProjectionFilter<Space, Real>;
BRACEWELL_DECLARE(BRACEWELL_INSTANCES_PROJECTION_FILTER)

} // namespace Bracewell
