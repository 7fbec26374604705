// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/tomography/detail/stripes/ranks.hpp>
#include <bracewell/tomography/detail/tuning.hpp>

namespace Bracewell::Impl {

/// Medians over neighbouring columns of values of equal rank, back at the angles that they came from.
template <class T, int Window>
struct MedianOfRanks {
  SinogramOf<T> first;     ///< the slices lie one behind the other
  RankedColumns<T> ranked; ///< [slices, width, angles]

  /// One team per column.
  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int P = first.angles, n = first.width, i = static_cast<int>(team.league_rank() % n);
    const std::int64_t slice = team.league_rank() / n;
    const SinogramOf<T> sinogram = first.next(slice);
    const T* neighbours[Window];
    for (int k = 0; k < Window; ++k)
      neighbours[k] = ranked.values + (slice * n + mirrored_column(i + k - Window / 2, n)) * P;
    const int* const angles = ranked.angles + (slice * n + i) * P;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, P), [&](int rank) {
      T values[Window];
      for (int k = 0; k < Window; ++k)
        values[k] = neighbours[k][rank];
      sinogram(angles[rank], i) = median_in_registers(values);
    });
  }
};

/// Values of a column of MediansOnChip, and some more: the values that a warp writes at once lie in different banks.
KOKKOS_INLINE_FUNCTION int median_stride(int columns, int angles) {
  const int apart = 32 / columns;
  return (angles + 31 - apart) / 32 * 32 + apart;
}
template <class T>
std::size_t median_bytes(int columns, int angles) {
  return std::size_t(columns) * std::size_t(median_stride(columns, angles)) * sizeof(T);
}

/// The same on NVIDIA GPUs: a team puts the medians of some neighbouring columns to their angles on the chip, and writes rows
/// of them.
template <class T, int Window, int columns_of_team, int threads, int teams>
struct MediansOnChip {
  static constexpr int chip_team_size = threads, chip_teams = teams, columns = columns_of_team;

  SinogramOf<T> first;     ///< the slices lie one behind the other
  RankedColumns<T> ranked; ///< [slices, width, angles]

  static std::size_t bytes(int angles) { return median_bytes<T>(columns, angles); }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, void* scratch) const {
    T* const medians = static_cast<T*>(scratch);
    const int P = first.angles, n = first.width, blocks = (n - 1) / columns + 1,
              apart = median_stride(columns, P), begin = static_cast<int>(team.number() % blocks) * columns;
    const std::int64_t slice = team.number() / blocks;
    const RankedColumns<T> own = ranked.from(slice * n * P);
    const T* neighbours[columns + Window - 1];
    BRACEWELL_UNROLL_FOR (int k = 0; k < columns + Window - 1; ++k)
      neighbours[k] = own.values + std::int64_t(mirrored_column(begin + k - Window / 2, n)) * P;
    for (int rank = team.rank(); rank < P; rank += threads) {
      T seen[columns + Window - 1];
      BRACEWELL_UNROLL_FOR (int k = 0; k < columns + Window - 1; ++k)
        seen[k] = neighbours[k][rank];
      BRACEWELL_UNROLL_FOR (int c = 0; c < columns; ++c) {
        T values[Window];
        BRACEWELL_UNROLL_FOR (int k = 0; k < Window; ++k)
          values[k] = seen[c + k];
        if (begin + c < n)
          medians[c * apart + own.angles[std::int64_t(begin + c) * P + rank]] = median_in_registers(values);
      }
    }
    team.barrier();
    const SinogramOf<T> sinogram = first.next(slice);
    for (int k = team.rank(); k < columns * P; k += threads) {
      const int c = k % columns, p = k / columns;
      if (begin + c < n)
        sinogram(p, begin + c) = medians[c * apart + p];
    }
  }
};

/// Medians over neighbouring columns, for output(column, rank, median). A thread walks along columns with the sorted
/// values of its window in scratch memory, of which it exchanges one per step: a tenth of the work of sorting 61 of
/// them anew.
template <class ExecutionSpace, class T, class Output>
struct RollingMedian {
  using Policy = Kokkos::TeamPolicy<ExecutionSpace>;
  using Member = typename Policy::member_type;
  using Tuning = StripeTuning<ExecutionSpace, T>;
  static constexpr int threads = Tuning::rolling_threads, ///< ranks of a team
      columns = Tuning::rolling_columns;                  ///< of a team

  const T* sorted; ///< [width, angles]
  int angles, width, window;
  Output output;

  void launch(const ExecutionSpace& space, const char* label) const {
    const int teams = (angles + threads - 1) / threads * parts();
    launch_kernel(
        label, Policy(space, teams, threads).set_scratch_size(0, Kokkos::PerTeam(window_bytes() + 8)), *this);
  }

  KOKKOS_FUNCTION int parts() const { return (width + columns - 1) / columns; }
  KOKKOS_FUNCTION std::size_t window_bytes() const { return std::size_t(window * threads) * sizeof(T); }
  KOKKOS_FUNCTION T value(int column, int rank) const {
    return sorted[std::int64_t(mirrored_column(column, width)) * angles + rank];
  }

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    auto* const scratch = static_cast<T*>(team.team_scratch(0).get_shmem_aligned(window_bytes(), 8));
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

/// Which kernel takes the medians of StripeRemoval.
enum class StripeMedians {
  OnChip,      ///< MediansOnChip, some teams on a multiprocessor
  OnChipAlone, ///< likewise, one team
  ByRank,      ///< MedianOfRanks
  Rolling      ///< RollingMedian
};

/// The one place that chooses. On hosts and HIP there is no memory on the chip: `chip` is 0 (chip_memory).
/// @param window  columns
/// @param angles  values of a column
template <class T>
StripeMedians choose_stripe_medians(int window, int angles, std::size_t chip) {
  using Tuning = GPUStripeTuning<T>;
  if (window < 3 || window > 9)
    return StripeMedians::Rolling;
  const std::size_t bytes = median_bytes<T>(Tuning::median_columns, angles);
  if (Tuning::median_teams * bytes <= chip)
    return StripeMedians::OnChip;
  return bytes <= chip ? StripeMedians::OnChipAlone : StripeMedians::ByRank;
}

/// Smooths slices by medians over neighbouring columns of sorted values.
template <class Space, class T>
class ColumnMedians {
public:
  ColumnMedians(const Space& space, int window, int angles)
      : window_(window), choice_(choose_stripe_medians<T>(window, angles, chip_memory(space))) {}

  void execute(const Space& space, const SinogramOf<T>& first, const RankedColumns<T>& ranked,
               std::int64_t slices) const {
    switch (window_) {
    case 3:
      return execute<3>(space, first, ranked, slices);
    case 5:
      return execute<5>(space, first, ranked, slices);
    case 7:
      return execute<7>(space, first, ranked, slices);
    case 9:
      return execute<9>(space, first, ranked, slices);
    default:
      for (std::int64_t slice = 0; slice < slices; ++slice) {
        using Medians = MediansByAngle<T>;
        const auto own = ranked.from(slice * first.angles * first.width);
        RollingMedian<Space, T, Medians>{own.values, first.angles, first.width, window_,
                                         Medians{first.next(slice), own.angles}}
            .launch(space, label);
      }
    }
  }

private:
  static constexpr const char* label = "Bracewell::StripeRemoval::median";

  template <int Window>
  void execute(const Space& space, const SinogramOf<T>& first, const RankedColumns<T>& ranked,
               std::int64_t slices) const {
    if constexpr (has_chip_memory<Space>) {
      using Tuning = GPUStripeTuning<T>;
      if (choice_ == StripeMedians::OnChip)
        return on_chip<
            MediansOnChip<T, Window, Tuning::median_columns, Tuning::median_threads, Tuning::median_teams>>(
            space, first, ranked, slices);
      if (choice_ == StripeMedians::OnChipAlone)
        return on_chip<MediansOnChip<T, Window, Tuning::median_columns, Tuning::large_median_threads, 1>>(
            space, first, ranked, slices);
    }
    launch_kernel(
        label,
        Kokkos::TeamPolicy<Space>(space, int(slices) * first.width, +StripeTuning<Space, T>::part_threads),
        MedianOfRanks<T, Window>{first, ranked});
  }

  template <class Medians>
  static void on_chip(const Space& space, const SinogramOf<T>& first, const RankedColumns<T>& ranked,
                      std::int64_t slices) {
    launch_on_chip(space, label, int(slices) * ((first.width - 1) / Medians::columns + 1),
                   Medians::bytes(first.angles), Medians{first, ranked});
  }

  int window_;
  StripeMedians choice_;
};

} // namespace Bracewell::Impl
