// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/tomography/detail/stripe_ranks.hpp>

#include <algorithm>

namespace Bracewell::Impl {

/// Medians over neighbouring columns, for output(column, rank, median). A thread walks along columns with the sorted
/// values of its window in scratch memory, of which it exchanges one per step: a tenth of the work of sorting 61 of
/// them anew.
template <class ExecutionSpace, class T, class Output>
struct RollingMedian {
  using Policy = Kokkos::TeamPolicy<ExecutionSpace>;
  using Member = typename Policy::member_type;
  static constexpr int threads = is_host<ExecutionSpace> ? 1 : 128, ///< ranks of a team
      columns = is_host<ExecutionSpace> ? 512 : 64;                 ///< of a team

  const T* sorted; ///< [width, angles]
  int angles, width, window;
  Output output;

  void launch(const ExecutionSpace& space, const char* label) const {
    const int teams = (angles + threads - 1) / threads * parts();
    Kokkos::parallel_for(label,
                         Policy(space, teams, threads)
                             .set_scratch_size(0, Kokkos::PerTeam(window * threads * int(sizeof(T)) + 8)),
                         *this);
  }

  KOKKOS_FUNCTION int parts() const { return (width + columns - 1) / columns; }
  KOKKOS_FUNCTION T value(int column, int rank) const {
    return sorted[std::int64_t(mirrored_column(column, width)) * angles + rank];
  }

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    auto* const scratch =
        static_cast<T*>(team.team_scratch(0).get_shmem_aligned(window * threads * sizeof(T), 8));
    const int first = static_cast<int>(team.league_rank()) / parts() * threads,
              begin = static_cast<int>(team.league_rank()) % parts() * columns;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, threads), [&](int thread) {
      if (first + thread < angles)
        walk(scratch + thread, first + thread, begin, Kokkos::min(begin + columns, width));
    });
  }

  KOKKOS_FUNCTION void walk(T* own, int rank, int begin, int end) const {
    const int reach = window / 2;
    for (int k = 0; k < window; ++k)
      put(own, k, value(begin - reach + k, rank), 0, k);
    for (int i = begin;; ++i) {
      output(i, rank, own[reach * threads]);
      if (i + 1 == end)
        return;
      const T old = value(i - reach, rank);
      int low = 0, high = window - 1; // of the first value that is not below the old one: itself
      while (low < high) {
        const int middle = (low + high) / 2;
        if (own[middle * threads] < old)
          low = middle + 1;
        else
          high = middle;
      }
      put(own, low, value(i + 1 + reach, rank), 0, window - 1);
    }
  }

  /// Puts a value in order among those from `first` to `last`, of which the one at `place` is not needed.
  KOKKOS_FUNCTION void put(T* own, int place, T value, int first, int last) const {
    for (; place < last && own[(place + 1) * threads] < value; ++place)
      own[place * threads] = own[(place + 1) * threads];
    for (; place > first && value < own[(place - 1) * threads]; --place)
      own[place * threads] = own[(place - 1) * threads];
    own[place * threads] = value;
  }
};

/// Medians as they are, [width, angles].
template <class T>
struct MediansByRank {
  T* medians;
  int angles;
  KOKKOS_FUNCTION void operator()(int column, int rank, T median) const {
    medians[std::int64_t(column) * angles + rank] = median;
  }
};

/// Medians at the angles that the values of their ranks came from.
template <class T>
struct MediansByAngle {
  SinogramOf<T> sinogram;
  const int* angles; ///< [width, angles]
  KOKKOS_FUNCTION void operator()(int column, int rank, T median) const {
    sinogram(angles[std::int64_t(column) * sinogram.angles + rank], column) = median;
  }
};

} // namespace Bracewell::Impl
