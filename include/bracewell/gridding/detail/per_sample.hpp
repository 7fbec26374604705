// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/plan.hpp>

namespace Bracewell::Impl {

/// What spreading and interpolating sample by sample have in common: a thread has one sample of a few slices,
/// whose taps have the same weights.
template <int slices_per_thread, int MaxWidth, class T, int Dim>
struct PerSample {
  SpreadingProblem<T, Dim> problem;
  TapTable<T, MaxWidth> taps;

  std::int64_t threads() const {
    return problem.points * ((problem.slices + slices_per_thread - 1) / slices_per_thread);
  }

  /// visit(point, slice, for_each): for_each(tap) calls tap(index in a grid, weight).
  template <class Visit>
  KOKKOS_INLINE_FUNCTION void for_each_slice(std::int64_t thread, const Visit& visit) const {
    const std::int64_t point = thread % problem.points, first = thread / problem.points * slices_per_thread;
    const std::int64_t end = Kokkos::min(first + slices_per_thread, problem.slices);
    const Location<T, Dim> at = problem.locations[point];
    T weights[Dim][MaxWidth];
    evaluate_taps(taps, at, weights);
    for (std::int64_t slice = first; slice < end; ++slice)
      visit(point, slice,
            [&](const auto& tap) { for_each_tap(at, problem.grid, problem.kernel, weights, tap); });
  }
};

} // namespace Bracewell::Impl
