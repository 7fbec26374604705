// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/tomography/detail/stripe_ranks.hpp>

namespace Bracewell::Impl {

/// The middle one of an odd number of values, in registers: odd and even neighbours in turn, as often as there are values.
template <int count, class T>
KOKKOS_FORCEINLINE_FUNCTION T median_in_registers(T (&values)[count]) {
  BRACEWELL_UNROLL
  for (int pass = 0; pass < count; ++pass) {
    BRACEWELL_UNROLL
    for (int k = pass % 2; k + 1 < count; k += 2) {
      const T low = Kokkos::min(values[k], values[k + 1]);
      values[k + 1] = Kokkos::max(values[k], values[k + 1]);
      values[k] = low;
    }
  }
  return values[count / 2];
}

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

/// The same on NVIDIA GPUs: a team puts the medians of some neighbouring columns to their angles on the chip, and writes rows
/// of them.
template <class T, int Window, int columns_of_team, int threads, int teams>
struct MediansOnChip {
  static constexpr int chip_team_size = threads, chip_teams = teams, columns = columns_of_team;

  SinogramOf<T> first;     ///< the slices lie one behind the other
  RankedColumns<T> ranked; ///< [slices, width, angles]

  /// Values of a column on the chip, and some more: those that a warp writes at once lie in different banks.
  KOKKOS_FUNCTION static int stride(int angles) {
    constexpr int apart = 32 / columns;
    return (angles + 31 - apart) / 32 * 32 + apart;
  }
  static std::size_t bytes(int angles) { return std::size_t(columns) * stride(angles) * sizeof(T); }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, void* scratch) const {
    T* const medians = static_cast<T*>(scratch);
    const int P = first.angles, n = first.width, blocks = (n - 1) / columns + 1, apart = stride(P),
              begin = static_cast<int>(team.number() % blocks) * columns;
    const std::int64_t slice = team.number() / blocks;
    const RankedColumns<T> own = ranked.from(slice * n * P);
    const T* neighbours[columns + Window - 1];
    BRACEWELL_UNROLL
    for (int k = 0; k < columns + Window - 1; ++k)
      neighbours[k] = own.values + std::int64_t(mirrored_column(begin + k - Window / 2, n)) * P;
    for (int rank = team.rank(); rank < P; rank += threads) {
      T seen[columns + Window - 1];
      BRACEWELL_UNROLL
      for (int k = 0; k < columns + Window - 1; ++k)
        seen[k] = neighbours[k][rank];
      BRACEWELL_UNROLL
      for (int c = 0; c < columns; ++c) {
        T values[Window];
        BRACEWELL_UNROLL
        for (int k = 0; k < Window; ++k)
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

} // namespace Bracewell::Impl
