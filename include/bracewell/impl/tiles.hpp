// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/rfft/layout.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

namespace Bracewell::Impl {

template <class Space>
inline constexpr bool
    is_host = bool(Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Space::memory_space>::accessible);

/// Threads of a team that shares one tile: a warp covers 8 columns x 4 rows, so that its taps stay close
/// together. One on hosts.
template <class Space>
inline constexpr int tile_team_size = is_host<Space> ? 1 : 256;

/// The stored elements of every projection in tiles of 8 columns (rows of all slow axes in one sequence).
template <int M>
struct Tiles {
  static constexpr int columns = 8;

  HalfSpectrumLayout<M> layout;
  int rows = 32, across = 0, per_pose = 0, elements = 0;
  std::int64_t first_pose = 0; ///< of batch and pose axes in one sequence

  /// Tiles of 32 rows, and higher where poses are many: what a team loads once then serves more samples.
  template <class Space>
  static Tiles make(const Space& space, const HalfSpectrumLayout<M>& layout, std::int64_t poses) {
    const std::int64_t all_rows = layout.elements() / layout.columns();
    const std::int64_t enough_teams = 16 * (space.concurrency() / tile_team_size<Space>);
    Tiles tiles{.layout = layout};
    tiles.across = (layout.columns() + columns - 1) / columns;
    while (tiles.rows < 256 && tiles.rows < all_rows &&
           poses * tiles.across * (all_rows / tiles.rows / 2) >= enough_teams)
      tiles.rows *= 2;
    tiles.per_pose = tiles.across * static_cast<int>((all_rows + tiles.rows - 1) / tiles.rows);
    tiles.elements = columns * tiles.rows;
    return tiles;
  }

  struct Tile {
    int column, row;
  };
  KOKKOS_INLINE_FUNCTION Tile tile(int index) const {
    const int down = index / across;
    return {(index - down * across) * columns, down * rows};
  }

  /// Element i of a tile: its frequency and its index within the projection; false outside the projection.
  KOKKOS_INLINE_FUNCTION bool element(const Tile& tile, int i, int (&k)[M], std::int64_t& index) const {
    k[0] = tile.column + i % columns;
    int row = tile.row + i / columns;
    index = std::int64_t(row) * layout.columns() + k[0];
    for (int c = 1; c < M - 1; ++c) {
      k[c] = layout.frequency(row % layout.size[c], layout.size[c]);
      row /= layout.size[c];
    }
    k[M - 1] = layout.frequency(row, layout.size[M - 1]);
    return k[0] < layout.columns() && row < layout.size[M - 1];
  }
};

/// Runs functor(team) for `teams_per_pose` teams of every pose, in as few launches as a league of 2^31 teams
/// allows. `resident`: teams that a multiprocessor should hold at least (0: as many as registers allow).
template <int resident = 0, class Space, class Functor>
void launch_tiles(const Space& space, const std::string& label, Functor functor, std::int64_t poses,
                  int teams_per_pose) {
  const std::int64_t most = std::numeric_limits<int>::max() / teams_per_pose;
  for (std::int64_t first = 0; first < poses; first += most) {
    functor.tiles.first_pose = first;
    const int league = static_cast<int>(std::min(most, poses - first)) * teams_per_pose;
    using Bounds = std::conditional_t<resident == 0, Kokkos::LaunchBounds<>,
                                      Kokkos::LaunchBounds<tile_team_size<Space>, resident>>;
    using Policy = Kokkos::TeamPolicy<Space, Bounds, Kokkos::Schedule<Kokkos::Dynamic>>; // corners: no work
    Kokkos::parallel_for(label, Policy(space, league, tile_team_size<Space>), functor);
  }
}

} // namespace Bracewell::Impl
