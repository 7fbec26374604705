// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/tomography/detail/stripes/columns.hpp>
#include <bracewell/tomography/detail/tuning.hpp>

#include <algorithm>
#include <vector>

namespace Bracewell::Impl {

inline constexpr int largest_stripe_window = 63;

/// Column that stands for one beyond the ends, where columns are mirrored.
KOKKOS_INLINE_FUNCTION int mirrored_column(int column, int width) {
  column = column < 0 ? -column : column;
  column = column >= width ? 2 * (width - 1) - column : column;
  return Kokkos::clamp(column, 0, width - 1);
}

/// A value of a column and the angle that it came from.
template <class T>
struct RankedValue {
  T value;
  int angle;

  /// What is not a number is ranked as infinity: there is an order of all values.
  KOKKOS_FUNCTION static RankedValue of(T value, int angle) {
    return {is_nan(value) ? Kokkos::Experimental::infinity_v<T> : value, angle};
  }
  /// Equal values are in the order of their angles.
  KOKKOS_FUNCTION bool less(const RankedValue& other) const {
    return value < other.value || (value == other.value && angle < other.angle);
  }
};

/// Values of columns, and the angles that they came from.
template <class T>
struct RankedColumns {
  T* values;   ///< [columns, angles]
  int* angles; ///< likewise

  KOKKOS_FUNCTION RankedColumns from(std::int64_t offset) const { return {values + offset, angles + offset}; }
  KOKKOS_FUNCTION RankedValue<T> operator[](int rank) const { return {values[rank], angles[rank]}; }
  KOKKOS_FUNCTION void put(int rank, const RankedValue<T>& value) const {
    values[rank] = value.value;
    angles[rank] = value.angle;
  }
};

/// Copies sinograms column by column: the values of a column lie side by side then. Those of dead ones are bridged. A team
/// per tile.
template <class ExecutionSpace, class T>
struct CopyColumns {
  using Policy = Kokkos::TeamPolicy<ExecutionSpace>;
  using Member = typename Policy::member_type;
  using Tuning = StripeTuning<ExecutionSpace, T>;
  static constexpr int tile_columns = Tuning::copied_columns, tile_angles = Tuning::copied_angles,
                       row = tile_angles + 1; ///< without bank conflicts
  static constexpr int threads = Tuning::copy_threads;

  SinogramOf<T> first; ///< the slices lie one behind the other
  const T* dead;       ///< of a slice, which lie `dead_stride` apart: StripeColumns; or none are
  std::int64_t dead_stride;
  T* values; ///< [slices, width, angles]

  void launch(const ExecutionSpace& space, std::int64_t slices) const {
    const auto tiles =
        slices * ((first.width - 1) / tile_columns + 1) * ((first.angles - 1) / tile_angles + 1);
    launch_kernel("Bracewell::StripeRemoval::columns",
                  Policy(space, static_cast<int>(tiles), threads)
                      .set_scratch_size(0, Kokkos::PerTeam(tile_columns * row * int(sizeof(T)) + 8)),
                  *this);
  }

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    auto* const tile =
        static_cast<T*>(team.team_scratch(0).get_shmem_aligned(tile_columns * row * sizeof(T), 8));
    const int n = first.width, P = first.angles, across = (n - 1) / tile_columns + 1,
              along = (P - 1) / tile_angles + 1, number = static_cast<int>(team.league_rank()),
              first_column = number % across * tile_columns,
              first_angle = number / across % along * tile_angles;
    const std::int64_t slice = number / across / along;
    const SinogramOf<T> sinogram = first.next(slice);
    constexpr int side_by_side = threads < tile_columns ? threads : tile_columns,
                  at_once = threads / side_by_side, each = tile_angles / at_once;
    for (int column = team.team_rank() % side_by_side; column < tile_columns; column += side_by_side) {
      const int i = first_column + column, angle = team.team_rank() / side_by_side;
      if (i >= n)
        break;
      const T* const of_slice = dead ? dead + slice * dead_stride : nullptr;
      const bool is_dead = of_slice && of_slice[i] != T(0);
      const auto bridge =
          is_dead ? BridgeDeadColumns<T>::bridge(of_slice, n, i) : typename BridgeDeadColumns<T>::Bridge{};
      T seen[each]; // all of them are on their way at once
      BRACEWELL_UNROLL_FOR (int k = 0; k < each; ++k) {
        const int p = Kokkos::min(first_angle + angle + k * at_once, P - 1);
        seen[k] = is_dead ? bridge(sinogram, p) : sinogram(p, i);
      }
      BRACEWELL_UNROLL_FOR (int k = 0; k < each; ++k)
        tile[column * row + angle + k * at_once] = seen[k];
    }
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tile_columns * tile_angles), [&](int k) {
      const int column = k / tile_angles, angle = k % tile_angles, i = first_column + column,
                p = first_angle + angle;
      if (i < n && p < P)
        values[(slice * n + i) * P + p] = tile[column * row + angle];
    });
  }
};

/// Sorts a column on a thread of a host.
template <class T>
struct SortColumn {
  RankedColumns<T> ranked;
  int length;

  void operator()(std::int64_t column) const {
    const RankedColumns<T> own = ranked.from(column * length);
    std::vector<RankedValue<T>> sorted(static_cast<std::size_t>(length)); // in one piece
    for (int p = 0; p < length; ++p)
      sorted[static_cast<std::size_t>(p)] = RankedValue<T>::of(own.values[p], p);
    std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.less(b); });
    for (int rank = 0; rank < length; ++rank)
      own.put(rank, sorted[static_cast<std::size_t>(rank)]);
  }
};

} // namespace Bracewell::Impl
