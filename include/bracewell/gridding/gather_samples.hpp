// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/locations.hpp>
#include <bracewell/impl/tiles.hpp>

namespace Bracewell::Impl {

/// Interpolation, the transpose of spreading: a thread sums the taps of one sample for a few slices. Hosts
/// take slices one by one, whose grids fit their caches better.
template <class Space, int MaxWidth, class T, int Dim>
struct GatherSamples {
  static constexpr int slices_per_thread = is_host<Space> ? 1 : 8;

  SpreadingProblem<T, Dim> problem;
  TapTable<T, MaxWidth> taps;
  const Kokkos::complex<T>* grid;
  SampleArray<Kokkos::complex<T>> samples;

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
      const Kokkos::complex<T>* const source = grid + slice * problem.grid.elements();
      T real = 0, imaginary = 0;
      for_each_tap(at, problem.grid, problem.kernel, weights, [&](std::int64_t index, T weight) {
        real += weight * source[index].real();
        imaginary += weight * source[index].imag();
      });
      samples(point, slice) = Kokkos::complex<T>(real, imaginary);
    }
  }
};

} // namespace Bracewell::Impl
