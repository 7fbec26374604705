// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/plan.hpp>

#include <algorithm>

namespace Bracewell::Impl {

/// Adds the copies of a grid, in their order.
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

/// GriddingStrategy::Duplicated, on hosts: a thread adds its share of the samples of one slice to a grid of
/// its own.
template <class Space, int MaxWidth, class T, int Dim>
struct SpreadDuplicated {
  using Plan = GriddingPlan<Space, T, Dim>;

  SpreadingProblem<T, Dim> problem;
  TapTable<T, MaxWidth> taps;
  SampleArray<const Kokkos::complex<T>> samples;
  Kokkos::complex<T>* copies; ///< [count, grid]
  std::int64_t slice;
  int count;

  static void launch(const Space& space, const Plan& plan, std::int64_t slices,
                     const SampleArray<const Kokkos::complex<T>>& samples, Kokkos::complex<T>* grid) {
    const std::int64_t elements = plan.problem.grid.elements();
    Kokkos::complex<T>* const copies = plan.partial.data();
    const int count = static_cast<int>(std::int64_t(plan.partial.size()) / elements);
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      Kokkos::parallel_for(
          "Bracewell::Gridding::spread_duplicated",
          Kokkos::RangePolicy<Space>(space, 0, count, Kokkos::ChunkSize(1)),
          SpreadDuplicated{plan.problem, plan.template taps<MaxWidth>(), samples, copies, slice, count});
      Kokkos::parallel_for("Bracewell::Gridding::join_duplicates", typename Plan::Range(space, 0, elements),
                           JoinDuplicates<T>{copies, grid + slice * elements, elements, count});
    }
  }

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

} // namespace Bracewell::Impl
