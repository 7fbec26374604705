// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>

#include <algorithm>

namespace Bracewell::Impl {

/// GriddingStrategy::Duplicated, on hosts: a thread adds its share of the samples of one slice to a grid of
/// its own.
template <int MaxWidth, class T, int Dim>
struct ScatterCopies {
  SpreadingProblem<T, Dim> problem;
  TapTable<T, MaxWidth> taps;
  SampleArray<const Kokkos::complex<T>> samples;
  Kokkos::complex<T>* copies; ///< [count, grid]
  std::int64_t slice;
  int count;

  void operator()(int copy) const {
    T* const target = reinterpret_cast<T*>(copies + copy * problem.grid.elements());
    std::fill_n(target, 2 * problem.grid.elements(), T(0));
    const std::int64_t begin = problem.points * copy / count, end = problem.points * (copy + 1) / count;
    for (std::int64_t point = begin; point < end; ++point) {
      const Location<T, Dim> at = problem.locations[point];
      const Kokkos::complex<T> value = samples(point, slice);
      T weights[Dim][MaxWidth];
      evaluate_taps(taps, at, weights);
      for_each_tap(at, problem.grid, problem.kernel, weights, [&](std::int64_t index, T weight) {
        target[2 * index] += weight * value.real();
        target[2 * index + 1] += weight * value.imag();
      });
    }
  }
};

/// Their sum, in the order of the copies.
template <class T>
struct JoinDuplicates {
  const Kokkos::complex<T>* copies;
  Kokkos::complex<T>* grid; ///< of the slice
  std::int64_t elements;
  int count;

  void operator()(std::int64_t i) const {
    Kokkos::complex<T> sum = copies[i];
    for (int copy = 1; copy < count; ++copy)
      sum += copies[copy * elements + i];
    grid[i] = sum;
  }
};

} // namespace Bracewell::Impl
