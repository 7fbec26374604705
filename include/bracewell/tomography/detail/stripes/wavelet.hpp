// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/tomography/detail/frame_margins.hpp>
#include <bracewell/tomography/detail/stripes/waves.hpp>

#include <cmath>
#include <numbers>
#include <vector>

namespace Bracewell::Impl {

/// The low-pass filter of Daubechies' orthonormal wavelets with five vanishing moments (Ten Lectures on Wavelets, 1992,
/// table 6.1).
struct Daubechies5 {
  static constexpr int taps = 10;
  KOKKOS_FUNCTION static double tap(int i) {
    constexpr double values[taps] = {0.16010239797419291448, 0.60382926979718967054,  0.72430852843777292773,
                                     0.13842814590132073150, -0.24229488706638203186, -0.03224486958463837465,
                                     0.07757149384004571353, -0.00624149021279827427, -0.01258075199908199946,
                                     0.00333572528547377128};
    return values[i];
  }
};

/// What is beyond the columns: the values at the edges go on, as of PadFrames; or zeros.
template <class T>
struct ContinueRows {
  T* rows;
  int width, padded;
  bool zeros;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    T* const values = rows + row * padded;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, padded - width), [&](int i) {
      values[width + i] = zeros ? T(0) : values[repeated_index(width + i, width, padded)];
    });
  }
};

/// The transpose of continuing edges. One call per row.
template <class T>
struct FoldRows {
  T* rows;
  int width, padded;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    T* const values = rows + row * padded;
    for (int i = width; i < padded; ++i)
      values[repeated_index(i, width, padded)] += values[i];
  }
};

/// Half as many values by the low-pass filter, periodically. One call per value.
template <class T>
struct HalveRows {
  const T* fine;
  T* coarse;
  int half;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const T* const values = fine + item / half * 2 * half;
    T sum = 0;
    for (int t = 0; t < Daubechies5::taps; ++t)
      sum += T(Daubechies5::tap(t)) * values[(2 * (item % half) + t) % (2 * half)];
    coarse[item] = sum;
  }
};

/// The transpose; `take_from` leaves what the fine values are beside it. One call per fine value.
template <class T>
struct DoubleRows {
  const T* coarse;
  T* fine;
  int half;
  bool take_from;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const T* const values = coarse + item / (2 * half) * half;
    const int i = static_cast<int>(item % (2 * half));
    T sum = 0;
    for (int t = i % 2; t < Daubechies5::taps; t += 2) {
      const int at = (i - t) / 2 % half; // i - t is even
      sum += T(Daubechies5::tap(t)) * values[at < 0 ? at + half : at];
    }
    fine[item] = take_from ? fine[item] - sum : sum;
  }
};

/// The machine of StripeMethod::Wavelet for some slices at a time: with s a sinogram, G its low frequencies along the
/// angles times exp(-k^2 / (2 width^2)), A the projection of rows, whose edges go on, to the coarse half of `levels`
/// wavelet levels,
///   s - (1 - A) G s.
template <class Space, class T>
class WaveletStripes {
public:
  WaveletStripes() = default;
  WaveletStripes(const Space& space, int slices, int angles, int width, int levels, double damping)
      : levels_(levels), padded_(padded(width, levels)) {
    std::vector<Kokkos::complex<T>> roots;
    std::vector<T> shares;
    for (int j = 0; j < angles; ++j) {
      const double angle = 2 * std::numbers::pi * j / angles;
      roots.emplace_back(T(std::cos(angle)), T(std::sin(angle)));
    }
    const int most = frequencies(angles, damping);
    for (int row = 0; row <= 2 * most; ++row) {
      const int k = (row + 1) / 2;
      shares.push_back(
          T((k == 0 || 2 * k == angles ? 1. : 2.) / angles * std::exp(-0.5 * k * k / (damping * damping))));
    }
    roots_ = device_copy(space, "Bracewell::StripeRemoval::waves", roots);
    shares_ = device_copy(space, "Bracewell::StripeRemoval::shares", shares);
    rows_ = device_vector<T>(space, "Bracewell::StripeRemoval::rows",
                             std::int64_t(slices) * row_values(most, width, levels));
    waves_ = {roots_.data(), angles, most};
  }

  std::size_t memory_bytes() const { return bytes_of(roots_, shares_, rows_); }
  static std::size_t bytes_needed(int slices, int angles, int width, int levels, double damping) {
    const int most = frequencies(angles, damping);
    return std::size_t(2 * std::int64_t(angles) + 2 * most + 1 + slices * row_values(most, width, levels)) *
           sizeof(T);
  }

  void execute(const Space& space, const SinogramOf<T>& first, std::int64_t slices, bool transpose) const {
    const std::int64_t rows = slices * waves_.rows();
    SumWaves<Space, T>::launch(space, {first, waves_, rows_.data(), padded_}, slices);
    for_each_row(space, "Bracewell::StripeRemoval::extend", rows,
                 ContinueRows<T>{rows_.data(), first.width, padded_, transpose});
    // Every level lies behind the finer one.
    T* fine = rows_.data();
    int size = padded_;
    for (int level = 0; level < levels_; ++level, size /= 2) {
      T* const coarse = fine + rows * size;
      launch_kernel("Bracewell::StripeRemoval::halve", Range(space, 0, rows * (size / 2)),
                    HalveRows<T>{fine, coarse, size / 2});
      fine = coarse;
    }
    for (int level = levels_; level-- > 0; size *= 2) {
      T* const coarse = fine;
      fine -= rows * 2 * size;
      launch_kernel("Bracewell::StripeRemoval::double", Range(space, 0, rows * 2 * size),
                    DoubleRows<T>{coarse, fine, size, level == 0});
    }
    if (transpose)
      launch_kernel("Bracewell::StripeRemoval::fold", Range(space, 0, rows),
                    FoldRows<T>{rows_.data(), first.width, padded_});
    SubtractWaves<Space, T>::launch(space, {first, waves_, rows_.data(), shares_.data(), padded_}, slices);
  }

private:
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;

  /// Columns with a margin that the filters of all levels do not reach across.
  static int padded(int width, int levels) {
    const int unit = 1 << levels;
    return (width + Daubechies5::taps * unit + unit - 1) / unit * unit;
  }
  /// Of a slice: the columns and all levels.
  static std::int64_t row_values(int most, int width, int levels) {
    return std::int64_t(2 * most + 1) * 2 * padded(width, levels);
  }
  /// The largest frequency that is not damped by less than rounding.
  static int frequencies(int angles, double damping) {
    const double reach = damping * std::sqrt(-2 * std::log(sizeof(T) == 4 ? 1e-8 : 1e-17));
    return static_cast<int>(std::min(std::ceil(reach), angles / 2.));
  }

  int levels_ = 0, padded_ = 0;
  Kokkos::View<Kokkos::complex<T>*, Space> roots_;
  Kokkos::View<T*, Space> shares_, rows_;
  AngleWaves<T> waves_ = {};
};

} // namespace Bracewell::Impl
