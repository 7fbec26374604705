// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/stripes/columns.hpp>
#include <bracewell/tomography/detail/stripes/ranks.hpp>

namespace Bracewell::Impl {

/// Differences below this part of the mean attenuation are none of a detector: what samples of a smooth object differ by.
inline constexpr double stripe_floor = 2e-3;

/// The mean attenuation of a slice, times stripe_floor.
template <class Member, class T>
KOKKOS_FUNCTION double floor_of_stripes(const Member& team, const StripeColumns<T>& columns,
                                        std::int64_t slice) {
  const T* const mean = columns.mean(slice);
  double sum = 0;
  Kokkos::parallel_reduce(
      Kokkos::TeamThreadRange(team, columns.width),
      [&](int i, double& all) { all += Kokkos::abs(double(mean[i])); }, sum);
  return stripe_floor * sum / columns.width;
}

/// Adds this floor to how much columns change. One team per slice.
template <class ExecutionSpace, class T>
struct AddFloor {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  StripeColumns<T> columns;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const T floor = T(floor_of_stripes(team, columns, team.league_rank()));
    T* const change = columns.change(team.league_rank());
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, columns.width), [&](int i) { change[i] += floor; });
  }
};

/// How many times more every column changes than the median of those around it, twice, and that median. One call per slice
/// and column.
template <class T>
struct RatioOfChanges {
  StripeColumns<T> columns; ///< the medians are written to `offsets`
  T *ratios, *copies;       ///< [slices, width]
  int window;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const int n = columns.width, i = static_cast<int>(item % n);
    const std::int64_t slice = item / n;
    const T* const change = columns.change(slice);
    T around[largest_stripe_window];
    for (int k = 0; k < window; ++k)
      around[k] = change[mirrored_column(i + k - window / 2, n)];
    const T usual = median_of(around, window);
    columns.offsets(slice)[i] = usual;
    ratios[item] = copies[item] = usual > T(0) ? change[i] / usual : T(1);
  }
};

/// What columns differ by from their medians: the mean over the ranks but for the twentieth part of them at either end,
/// twice, and the share of these ranks that differ so, by a quarter of it at least. A stripe is in all ranks, the edge of
/// an object in some. One team per column.
template <class ExecutionSpace, class T>
struct DifferenceOfMeans {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  const T* sorted;                  ///< [width, angles]
  const T* medians;                 ///< likewise
  T *differences, *copies, *shares; ///< [width]
  int angles;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int i = static_cast<int>(team.league_rank()), drop = angles / 20;
    const T *const own = sorted + std::int64_t(i) * angles, *const around =
                                                                medians + std::int64_t(i) * angles;
    const auto ranks = Kokkos::TeamThreadRange(team, drop, angles - drop);
    T sum = 0;
    Kokkos::parallel_reduce(
        ranks, [&](int r, T& all) { all += own[r] - around[r]; }, sum);
    const T mean = sum / T(angles - 2 * drop);
    int count = 0;
    Kokkos::parallel_reduce(
        ranks,
        [&](int r, int& all) {
          const T difference = own[r] - around[r];
          all += (mean > T(0) ? difference : -difference) > T(0.25) * Kokkos::abs(mean) ? 1 : 0;
        },
        count);
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      differences[i] = copies[i] = mean;
      shares[i] = T(count) / T(angles - 2 * drop);
    });
  }
};

/// What stands out of a straight line through the middle half of all values, sorted: further than half of `ratio` times
/// what the line rises over its length, where the outermost ones are further than all of it (Vo, Atwood and Drakopoulos,
/// Opt. Express 26, 2018, algorithm 4).
struct StripeLimits {
  double low, high;

  /// 1 above, -1 below, else 0.
  KOKKOS_FUNCTION int side(double value) const { return value > high ? 1 : (value < low ? -1 : 0); }

  /// @param floor  the line rises so much at least
  template <class Member, class T>
  KOKKOS_FUNCTION StripeLimits(const Member& team, const T* sorted, int n, double ratio, double floor) {
    // The line y = level + slope (k - middle) over ranks from `drop` to n - drop - 1.
    const int drop = n / 4, last = n - 1;
    const double middle = 0.5 * last;
    const auto ranks = Kokkos::TeamThreadRange(team, drop, n - drop);
    double level = 0, slope = 0, scale = 0;
    Kokkos::parallel_reduce(
        ranks, [&](int k, double& sum) { sum += sorted[k]; }, level);
    Kokkos::parallel_reduce(
        ranks, [&](int k, double& sum) { sum += (k - middle) * sorted[k]; }, slope);
    Kokkos::parallel_reduce(
        ranks, [&](int k, double& sum) { sum += (k - middle) * (k - middle); }, scale);
    level /= n - 2 * drop;
    slope = scale > 0 ? slope / scale : 0;
    const double begin = level - slope * middle, end = level + slope * middle,
                 noise = Kokkos::max(end - begin, floor), none = Kokkos::Experimental::infinity_v<double>;
    high = sorted[last] - end >= ratio * noise ? end + 0.5 * ratio * noise : none;
    low = begin - sorted[0] >= ratio * noise ? begin - 0.5 * ratio * noise : -none;
  }
};

/// Marks columns whose ratio of changes stands out, which also change twice as much as the columns on either side of them,
/// or half as much: where an object ends, columns change more than others, too, but so do those beside them. Columns next
/// to them are marked, too. One team per slice.
template <class ExecutionSpace, class T>
struct MarkFluctuating {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  static constexpr int margin = 2; ///< columns at either end that stay as they are

  const T* ratios;          ///< [slices, width]
  const T* sorted;          ///< likewise, in order
  StripeColumns<T> columns; ///< `dead` is written
  T ratio;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int n = columns.width, slice = static_cast<int>(team.league_rank());
    const T* const own = ratios + std::int64_t(slice) * n;
    const StripeLimits limits(team, sorted + std::int64_t(slice) * n, n, ratio, 1e-6);
    const T* const change = columns.change(slice);
    const auto stands_out = [&](int i) {
      return i >= 0 && i < n && limits.side(own[i]) != 0 &&
             ChangesBeside<T>(change, i, n).stands_out(change[i], T(2));
    };
    T* const marks = columns.dead(slice);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), [&](int i) {
      const bool mark = stands_out(i - 1) || stands_out(i) || stands_out(i + 1);
      marks[i] = mark && i >= margin && i < n - margin ? T(1) : T(0);
    });
  }
};

/// Marks large stripes: neighbouring columns, no more than half of the window, whose differences stand out, in most of the
/// ranks, and with half of their height or more within three columns at both sides: what the mean of an object over the
/// angles has is smooth. Columns next to them are marked, too. One team.
template <class ExecutionSpace, class T>
struct MarkLarge {
  using Member = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  const T *differences, *sorted, *shares; ///< [width]; the second in order
  StripeColumns<T> columns;               ///< `dead` of slice 0 is written
  std::int64_t slice;                     ///< whose statistics these are
  T ratio;
  int window;

  KOKKOS_FUNCTION bool is_stripe(const StripeLimits& limits, int i) const {
    const int n = columns.width, side = i >= 0 && i < n ? limits.side(differences[i]) : 0;
    if (side == 0)
      return false;
    int begin = i, end = i;
    while (begin > 0 && 2 * (end - begin) < window && limits.side(differences[begin - 1]) == side)
      --begin;
    while (end + 1 < n && 2 * (end - begin) < window && limits.side(differences[end + 1]) == side)
      ++end;
    if (begin < 2 || end > n - 3 || 2 * (end - begin + 1) > window)
      return false;
    T height = 0, share = 0;
    for (int k = begin; k <= end; ++k) {
      height = Kokkos::max(height, T(side) * differences[k]);
      share += shares[k] / T(end - begin + 1);
    }
    const T left = T(side) * (differences[Kokkos::min(begin + 1, end)] - differences[begin - 2]),
            right = T(side) * (differences[Kokkos::max(end - 1, begin)] - differences[end + 2]);
    return share >= T(0.7) && left >= T(0.5) * height && right >= T(0.5) * height;
  }

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int n = columns.width;
    const T* const usual = columns.offsets(slice);
    double noise = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n), [&](int i, double& sum) { sum += usual[i]; }, noise);
    // Means over the angles differ by 1.4 of what values change over their root.
    noise = 4 * 1.4 * noise / (n * Kokkos::sqrt(double(columns.angles)));
    const StripeLimits limits(team, sorted, n, ratio,
                              Kokkos::max(noise, floor_of_stripes(team, columns, slice)));
    T* const marks = columns.dead(0);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), [&](int i) {
      marks[i] = is_stripe(limits, i - 1) || is_stripe(limits, i) || is_stripe(limits, i + 1) ? T(1) : T(0);
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
