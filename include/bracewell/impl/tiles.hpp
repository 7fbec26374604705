// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/rfft/layout.hpp>

#include <algorithm>
#include <limits>
#include <string>

namespace Bracewell::Impl {

template <class Space>
inline constexpr bool
    is_host = bool(Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Space::memory_space>::accessible);

/// Threads of a team that shares one tile: a warp covers 8 columns x 4 rows, so that its taps stay close
/// together. One on hosts.
template <class Space>
inline constexpr int tile_team_size = is_host<Space> ? 1 : 256;

/// The stored elements of every projection in tiles of 8 columns x 32 rows (rows of all slow axes in one
/// sequence).
template <int M>
struct Tiles {
  static constexpr int columns = 8, rows = 32, elements = columns * rows;

  HalfSpectrumLayout<M> layout;
  std::int64_t first_pose = 0; ///< of batch and pose axes in one sequence

  KOKKOS_FUNCTION int across() const { return (layout.columns() + columns - 1) / columns; }
  KOKKOS_FUNCTION std::int64_t all_rows() const { return layout.elements() / layout.columns(); }
  KOKKOS_FUNCTION int per_pose() const { return across() * static_cast<int>((all_rows() + rows - 1) / rows); }

  /// Element i of a tile: its frequency and its index within the projection; false outside the projection.
  KOKKOS_INLINE_FUNCTION bool element(int tile, int i, int (&k)[M], std::int64_t& index) const {
    k[0] = tile % across() * columns + i % columns;
    const std::int64_t row = std::int64_t(tile / across()) * rows + i / columns;
    if (k[0] >= layout.columns() || row >= all_rows())
      return false;
    index = row * layout.columns() + k[0];
    if constexpr (M == 2) {
      k[1] = layout.frequency(static_cast<int>(row), layout.size[1]);
    } else {
      k[1] = layout.frequency(static_cast<int>(row % layout.size[1]), layout.size[1]);
      k[2] = layout.frequency(static_cast<int>(row / layout.size[1]), layout.size[2]);
    }
    return true;
  }
};

/// Runs functor(team) for `teams_per_pose` teams of every pose, in as few launches as a league of 2^31 teams
/// allows.
template <class Space, class Functor>
void launch_tiles(const Space& space, const std::string& label, Functor functor, std::int64_t poses,
                  int teams_per_pose) {
  const std::int64_t most = std::numeric_limits<int>::max() / teams_per_pose;
  for (std::int64_t first = 0; first < poses; first += most) {
    functor.tiles.first_pose = first;
    const int league = static_cast<int>(std::min(most, poses - first)) * teams_per_pose;
    Kokkos::parallel_for(label, Kokkos::TeamPolicy<Space>(space, league, tile_team_size<Space>), functor);
  }
}

} // namespace Bracewell::Impl
