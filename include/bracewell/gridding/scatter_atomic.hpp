// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/locations.hpp>

namespace Bracewell::Impl {

template <class Value>
struct SetZero {
  Value* values;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { values[i] = Value(0); }
};

/// GriddingStrategy::Atomic: a thread adds the taps of one sample, for a few slices, to a grid that is zero.
template <int MaxWidth, class T, int Dim>
struct ScatterSamples {
  static constexpr int slices_per_thread = 8;

  SpreadingProblem<T, Dim> problem;
  TapTable<T, MaxWidth> taps;
  SampleArray<const Kokkos::complex<T>> samples;
  Kokkos::complex<T>* grid;

  std::int64_t threads() const {
    return problem.points * ((problem.slices + slices_per_thread - 1) / slices_per_thread);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    const std::int64_t point = thread % problem.points, first = thread / problem.points * slices_per_thread;
    const std::int64_t end = Kokkos::min(first + slices_per_thread, problem.slices);
    const Location<T, Dim> at = problem.locations[point];
    T weights[Dim][MaxWidth];
    evaluate_taps(taps, at, weights);
    for (std::int64_t slice = first; slice < end; ++slice) {
      const Kokkos::complex<T> value = samples(point, slice);
      T* const target = reinterpret_cast<T*>(grid + slice * problem.grid.elements());
      for_each_tap(at, problem.grid, problem.kernel, weights, [&](std::int64_t index, T weight) {
        Kokkos::atomic_add(target + 2 * index, weight * value.real());
        Kokkos::atomic_add(target + 2 * index + 1, weight * value.imag());
      });
    }
  }
};

} // namespace Bracewell::Impl
