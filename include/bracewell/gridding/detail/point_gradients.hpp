// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/image_on_grid.hpp>
#include <bracewell/impl/sample_array.hpp>

namespace Bracewell::Impl {

/// Images whose pixels are multiplied by their coordinate along an axis.
template <class Value>
struct SlopedImages {
  Value* data;
  int size;            ///< of the axis
  std::int64_t stride; ///< of its pixels

  KOKKOS_FUNCTION std::remove_const_t<Value> get(std::int64_t slice, std::int64_t pixel,
                                                 std::int64_t pixels) const {
    const int at = static_cast<int>(pixel / stride % size) - size / 2;
    return typename Value::value_type(at) * data[slice * pixels + pixel];
  }
};

/// gradients(j, axis) = factor sum_slices Im(conj(samples_j) slopes_j)
template <class T>
struct SumPointGradients {
  SampleArray<const Kokkos::complex<T>> samples, slopes;
  std::int64_t slices;
  T factor;
  T* gradients; ///< at the axis
  int axes;

  KOKKOS_FUNCTION void operator()(std::int64_t point) const {
    T sum = 0;
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      const Kokkos::complex<T> sample = samples(point, slice), slope = slopes(point, slice);
      sum += sample.real() * slope.imag() - sample.imag() * slope.real();
    }
    gradients[point * axes] = factor * sum;
  }
};

} // namespace Bracewell::Impl
