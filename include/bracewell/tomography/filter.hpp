// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/fft/plan.hpp>
#include <bracewell/impl/row_loop.hpp>

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

enum class ProjectionPadding {
  Zero, ///< nothing beyond the detector: objects within the field of view
  Edge  ///< the outermost values go on: objects that are cut off
};

struct FilterOptions {
  TomographyFilter filter = TomographyFilter::Ramp;
  ProjectionPadding padding = ProjectionPadding::Zero;
  int upsampling = 1; ///< values per pixel of the result, 1 to 8, by trigonometric interpolation
  double shift = 0;   ///< pixels: value i of the result is that at i + shift, by trigonometric interpolation
};

/// The window of a filter at 0 <= tau <= 1.
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
  Impl::fail("filter_window", "filter", "a filter", std::to_string(int(filter)));
}

/// A filter's factors for the frequencies k / size, k = 0 ... size / 2, of rows of `size` pixels. The ramp is
/// the transform of its band-limited kernel, 1/4 at 0, -1 / (pi m)^2 at odd m, 0 at even m (Ramachandran and
/// Lakshminarayanan, PNAS 68, 1971), cut to the row: sampling |t| itself would lose the mean of the image.
inline std::vector<double> filter_multiplier(TomographyFilter filter, std::int64_t size) {
  if (size < 1)
    Impl::fail("filter_multiplier", "size", "at least 1", std::to_string(size));
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

namespace Impl {

/// Rows of `width` values in longer ones: half of the margin continues the right edge, half the left one.
template <class T>
struct PadProjections {
  const T* rows;
  T* padded;
  std::int64_t filled; ///< rows that there are; those behind them are zero
  int width, size;
  bool edge;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const bool there = row < filled;
    const T* in = rows + row * width;
    T* out = padded + row * size;
    const T left = there && edge ? in[0] : T(0), right = there && edge ? in[width - 1] : T(0);
    const int middle = width + (size - width) / 2;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, size), [&](int i) {
      out[i] = i < width ? (there ? in[i] : T(0)) : (i < middle ? right : left);
    });
  }
};

/// Spectra times the factors, in place or to longer ones, zero beyond.
template <class T>
struct MultiplyProjections {
  const Kokkos::complex<T>* spectra;
  const Kokkos::complex<T>* factors;
  Kokkos::complex<T>* products;
  int columns, product_columns;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const Kokkos::complex<T>* in = spectra + row * columns;
    Kokkos::complex<T>* out = products + row * product_columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, product_columns),
                         [&](int k) { out[k] = k < columns ? in[k] * factors[k] : Kokkos::complex<T>(0); });
  }
};

template <class T>
struct CropProjections {
  const T* padded;
  T* rows;
  int width, size;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const T* in = padded + row * size;
    T* out = rows + row * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) { out[i] = in[i]; });
  }
};

} // namespace Impl

/// Filters the rows of projections, and shifts them, by FFTs of at least twice their width.
/// With Ramp, filtered back-projection (pi / P) sum_p q_p(s) returns the attenuation per pixel.
///
/// A plan: the workspace (rows are filtered in blocks: a few megabytes on hosts, 400 on GPUs) and the FFT
/// plans are made once. Movable; calls that can overlap need a plan each.
template <class ExecutionSpace, class T>
class ProjectionFilter {
  using Complex = Kokkos::complex<T>;
  template <class Value>
  using Buffer = Kokkos::View<Value**, Kokkos::LayoutRight, typename ExecutionSpace::memory_space>;

public:
  /// @param rows   projections times slices, the most that one call filters
  /// @param width  detector pixels
  /// @throws Error on sizes below 1 and a shift that is not finite or beyond the width
  ProjectionFilter(const ExecutionSpace& space, std::int64_t rows, int width,
                   const FilterOptions& options = {})
      : width_(check(rows, width, options)), edge_(options.padding == ProjectionPadding::Edge),
        size_(int(next_fast_size(2 * std::int64_t(width) + std::int64_t(std::abs(options.shift)) + 1, true))),
        block_(std::min<std::int64_t>(rows, std::max<std::int64_t>(1, block_values(space) / size_))),
        upsampling_(options.upsampling), forward_(space, {size_}, block_),
        backward_(space, {upsampling_ * size_}, block_),
        padded_(allocate<T>(space, "Bracewell::ProjectionFilter::padded", block_, upsampling_ * size_)),
        spectra_(allocate<Complex>(space, "Bracewell::ProjectionFilter::spectra", block_, size_ / 2 + 1)),
        products_(upsampling_ == 1 ? spectra_
                                   : allocate<Complex>(space, "Bracewell::ProjectionFilter::products", block_,
                                                       upsampling_ * size_ / 2 + 1)),
        factors_(allocate<Complex>(space, "Bracewell::ProjectionFilter::factors", 1, size_ / 2 + 1)) {
    const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace(), factors_);
    const std::vector<double> factors = filter_multiplier(options.filter, size_);
    for (int k = 0; k <= size_ / 2; ++k) {
      const double phase = 2 * std::numbers::pi * k / size_ * options.shift;
      const double scaled = factors[static_cast<std::size_t>(k)] / size_;
      const bool nyquist =
          2 * k == size_; // a shifted cosine there; half of it on either side of a longer spectrum
      const double share = nyquist && upsampling_ > 1 ? 0.5 : 1;
      host(0, k) = Complex(T(share * scaled * std::cos(phase)), nyquist ? T(0) : T(scaled * std::sin(phase)));
    }
    Kokkos::deep_copy(space, factors_, host);
    space.fence("Bracewell::ProjectionFilter::factors"); // the host's copy ends here
  }

  /// @param projections  View [..., width]
  /// @param filtered     View [..., upsampling * width] of as many rows, overwritten; without upsampling it
  /// may
  ///                     be `projections` itself
  /// @throws Error on shapes that do not fit and memory shared in part
  template <class Input, class Output>
  void execute(const ExecutionSpace& space, const Input& projections, const Output& filtered) const {
    using MemorySpace = typename ExecutionSpace::memory_space;
    const Array<const T, MemorySpace> in(projections);
    const Array<T, MemorySpace> out(filtered);
    constexpr const char* function = "ProjectionFilter::execute";
    if (!in || in.rank < 1 || in.extents[in.rank - 1] != width_)
      Impl::fail(function, "projections", "rows of " + std::to_string(width_) + " values", in.shape());
    if (!out || out.rank < 1 || out.extents[out.rank - 1] != upsampling_ * width_ ||
        out.size() != upsampling_ * in.size())
      Impl::fail(function, "filtered",
                 std::to_string(in.size() / width_) + " rows of " + std::to_string(upsampling_ * width_) +
                     " values",
                 out.shape());
    if ((in.data != out.data || upsampling_ > 1) && Impl::overlap(in, out))
      Impl::fail(function, "filtered", "memory of its own or the projections themselves",
                 "memory shared with projections");
    Kokkos::Profiling::ScopedRegion region("Bracewell::ProjectionFilter::execute");
    const std::int64_t rows = in.size() / width_;
    const Kokkos::View<T**, Kokkos::LayoutRight, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> padded(
        padded_.data(), padded_.extent(0), static_cast<std::size_t>(size_));
    for (std::int64_t first = 0; first < rows; first += block_) {
      const std::int64_t count = std::min(block_, rows - first);
      Impl::for_each_row(
          space, "Bracewell::ProjectionFilter::pad", block_,
          Impl::PadProjections<T>{in.data + first * width_, padded_.data(), count, width_, size_, edge_});
      forward_.execute(space, padded, spectra_);
      Impl::for_each_row(space, "Bracewell::ProjectionFilter::multiply", count,
                         Impl::MultiplyProjections<T>{spectra_.data(), factors_.data(), products_.data(),
                                                      size_ / 2 + 1, upsampling_ * size_ / 2 + 1});
      backward_.execute(space, products_, padded_);
      Impl::for_each_row(space, "Bracewell::ProjectionFilter::crop", count,
                         Impl::CropProjections<T>{padded_.data(), out.data + first * width_ * upsampling_,
                                                  width_ * upsampling_, size_ * upsampling_});
    }
  }

private:
  static int check(std::int64_t rows, int width, const FilterOptions& options) {
    if (rows < 1)
      Impl::fail("ProjectionFilter", "rows", "at least 1", std::to_string(rows));
    if (width < 1 || width > (1 << 26))
      Impl::fail("ProjectionFilter", "width", "1 to 2^26 pixels", std::to_string(width));
    if (options.upsampling < 1 || options.upsampling > 8)
      Impl::fail("ProjectionFilter", "options.upsampling", "1 to 8", std::to_string(options.upsampling));
    if (!(std::abs(options.shift) <= width))
      Impl::fail("ProjectionFilter", "options.shift", "at most the width", std::to_string(options.shift));
    return width;
  }

  /// Blocks live in the second-level caches of a host's cores, and fill a GPU.
  static std::int64_t block_values(const ExecutionSpace& space) {
    const std::int64_t bytes =
        Impl::is_host<ExecutionSpace> ? 128 * 1024 * std::int64_t(space.concurrency()) : 192 * 1024 * 1024;
    return bytes / std::int64_t(sizeof(T));
  }

  template <class Value>
  static Buffer<Value> allocate(const ExecutionSpace& space, const char* label, std::int64_t rows,
                                int columns) {
    return Buffer<Value>(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, std::string(label)),
                         static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
  }

  int width_;
  bool edge_;
  int size_;
  std::int64_t block_;
  int upsampling_;
  FFT<ExecutionSpace, 1, T, Complex> forward_;
  FFT<ExecutionSpace, 1, Complex, T> backward_;
  Buffer<T> padded_;
  Buffer<Complex> spectra_, products_, factors_; ///< products are the spectra where these are as long
};

} // namespace Bracewell
