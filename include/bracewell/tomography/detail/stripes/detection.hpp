// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/stripes/columns.hpp>
#include <bracewell/tomography/detail/stripes/ranks.hpp>

namespace Bracewell::Impl {

/// How many times more every column changes than the median of those around it, twice. One call per slice and column.
template <class T>
struct RatioOfChanges {
  StripeColumns<T> columns;
  T *ratios, *copies; ///< [slices, width]
  int window;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const int n = columns.width, i = static_cast<int>(item % n);
    const std::int64_t slice = item / n;
    const T* const change = columns.change(slice);
    T around[largest_stripe_window];
    for (int k = 0; k < window; ++k)
      around[k] = change[mirrored_column(i + k - window / 2, n)];
    const T usual = median_of(around, window);
    ratios[item] = copies[item] = usual > T(0) ? change[i] / usual : T(1);
  }
};

/// Means over the ranks of columns, but for the twentieth part of them at either end, over those of their medians. One
/// team per column.
template <class ExecutionSpace, class T>
struct RatioOfMeans {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  const T* sorted;    ///< [width, angles]
  const T* medians;   ///< likewise
  T *ratios, *copies; ///< [width]
  int angles;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::int64_t first = std::int64_t(team.league_rank()) * angles;
    const int drop = angles / 20;
    const auto ranks = Kokkos::TeamThreadRange(team, drop, angles - drop);
    T own = 0, around = 0;
    Kokkos::parallel_reduce(
        ranks, [&](int r, T& sum) { sum += sorted[first + r]; }, own);
    Kokkos::parallel_reduce(
        ranks, [&](int r, T& sum) { sum += medians[first + r]; }, around);
    const int i = static_cast<int>(team.league_rank());
    Kokkos::single(Kokkos::PerTeam(team),
                   [&] { ratios[i] = copies[i] = around != T(0) ? own / around : T(1); });
  }
};

/// Marks columns whose ratio stands out of a straight line through the middle half of all ratios, sorted: further than
/// half of `ratio` times what the line rises over its length, where the outermost ones are further than all of it
/// (Vo, Atwood and Drakopoulos, Opt. Express 26, 2018, algorithm 4); and the columns next to them. One team per slice.
template <class ExecutionSpace, class T>
struct MarkStripes {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  const T* ratios;          ///< [slices, width]
  const T* sorted;          ///< likewise, in order
  StripeColumns<T> columns; ///< `dead` is written
  T ratio;
  int margin; ///< columns at either end that stay as they are

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int n = columns.width, slice = static_cast<int>(team.league_rank()), drop = n / 4, last = n - 1;
    const T *const own = ratios + std::int64_t(slice) * n, *const values = sorted + std::int64_t(slice) * n;
    // The line y = level + slope (k - middle) over ranks from `drop` to n - drop - 1.
    const double middle = 0.5 * last;
    const auto ranks = Kokkos::TeamThreadRange(team, drop, n - drop);
    double level = 0, slope = 0, scale = 0;
    Kokkos::parallel_reduce(
        ranks, [&](int k, double& sum) { sum += values[k]; }, level);
    Kokkos::parallel_reduce(
        ranks, [&](int k, double& sum) { sum += (k - middle) * values[k]; }, slope);
    Kokkos::parallel_reduce(
        ranks, [&](int k, double& sum) { sum += (k - middle) * (k - middle); }, scale);
    level /= n - 2 * drop;
    slope = scale > 0 ? slope / scale : 0;
    const double low = level - slope * middle, high = level + slope * middle,
                 noise = Kokkos::max(high - low, 1e-6);
    const bool above = values[last] - high >= ratio * noise, below = low - values[0] >= ratio * noise;
    const auto stands_out = [&](int i) {
      if (i < 0 || i >= n)
        return false;
      const double value = own[i];
      return (above && value > high + 0.5 * ratio * noise) || (below && value < low - 0.5 * ratio * noise);
    };
    T* const marks = columns.dead(slice);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), [&](int i) {
      const bool mark = stands_out(i - 1) || stands_out(i) || stands_out(i + 1);
      marks[i] = mark && i >= margin && i < n - margin ? T(1) : T(0);
    });
  }
};

/// Medians instead of the values of marked columns.
template <class T>
struct TakeMedians {
  T* sorted;        ///< [width, angles]
  const T* medians; ///< likewise
  const T* marks;
  int angles;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    if (marks[item / angles] != T(0))
      sorted[item] = medians[item];
  }
};

} // namespace Bracewell::Impl
