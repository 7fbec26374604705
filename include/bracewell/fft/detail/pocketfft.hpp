// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#ifdef BRACEWELL_HOST_FFT_POCKETFFT

#include <pocketfft_hdronly.h>

#include <complex>
#include <cstddef>
#include <cstdlib>

namespace Bracewell::Impl {

/// A transform of pocketfft: sizes and strides in bytes. The library keeps the factors of the lengths that were used last
/// (POCKETFFT_CACHE_SIZE).
template <class T>
struct PocketFFTPlan {
  pocketfft::shape_t shape, axes;
  pocketfft::stride_t complex_strides, half_strides, real_strides;
  bool forward;

  /// Rows without gaps; all axes.
  PocketFFTPlan(int rank, const int* sizes, bool forward_)
      : shape(sizes, sizes + rank), complex_strides(shape.size()), half_strides(shape.size()),
        real_strides(shape.size()), forward(forward_) {
    std::ptrdiff_t elements = 1, stored = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      complex_strides[axis] = elements * std::ptrdiff_t(sizeof(std::complex<T>));
      real_strides[axis] = elements * std::ptrdiff_t(sizeof(T));
      half_strides[axis] = stored * std::ptrdiff_t(sizeof(std::complex<T>));
      elements *= std::ptrdiff_t(shape[axis]);
      stored *= std::ptrdiff_t(axis + 1 == shape.size() ? shape[axis] / 2 + 1 : shape[axis]);
    }
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      axes.push_back(axis);
  }
};

/// pocketfft behind the names that hosts' plans call FFTW by, where BRACEWELL_HOST_FFT is POCKETFFT.
template <class T>
struct FFTW {
  using Plan = const PocketFFTPlan<T>*;
  using Complex = std::complex<T>;
  static constexpr int forward = -1, backward = 1;
  static constexpr unsigned measure = 0, estimate = 0; ///< there is one code for a length

  static Plan plan_c2c(int rank, const int* sizes, Complex*, Complex*, int sign, unsigned) {
    return new PocketFFTPlan<T>(rank, sizes, sign == forward);
  }
  static Plan plan_r2c(int rank, const int* sizes, T*, Complex*, unsigned) {
    return new PocketFFTPlan<T>(rank, sizes, true);
  }
  static Plan plan_c2r(int rank, const int* sizes, Complex*, T*, unsigned) {
    return new PocketFFTPlan<T>(rank, sizes, false);
  }
  /// Of columns that lie side by side.
  static Plan plan_many(int, const int* size, int lanes, Complex*, const int*, int, int, Complex*, const int*,
                        int, int, int sign, unsigned) {
    const int sizes[2] = {*size, lanes};
    auto* const plan = new PocketFFTPlan<T>(2, sizes, sign == forward);
    plan->axes = {0};
    return plan;
  }
  static void execute_c2c(Plan plan, const Complex* in, Complex* out) {
    pocketfft::c2c(plan->shape, plan->complex_strides, plan->complex_strides, plan->axes, plan->forward, in,
                   out, T(1));
  }
  static void execute_r2c(Plan plan, const T* in, Complex* out) {
    pocketfft::r2c(plan->shape, plan->real_strides, plan->half_strides, plan->axes, true, in, out, T(1));
  }
  static void execute_c2r(Plan plan, const Complex* in, T* out) {
    pocketfft::c2r(plan->shape, plan->half_strides, plan->real_strides, plan->axes, false, in, out, T(1));
  }
  static void destroy(Plan plan) { delete plan; }
  static void* allocate(std::size_t bytes) { return std::malloc(bytes); }
  static void release(void* memory) { std::free(memory); }
};

} // namespace Bracewell::Impl

#endif
