// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bin_grid.hpp>
#include <bracewell/gridding/detail/join_tiles.hpp>
#include <bracewell/impl/chip_teams.hpp>

namespace Bracewell::Impl {

/// JoinTiles for bins with many tiles, on GPUs: each group of lanes of a team takes every groups-th tile of a bin for
/// neighbouring cells, and the first adds their sums in fixed order.
template <class Space, class T, int Dim>
struct JoinManyTiles {
  using Complex = Kokkos::complex<T>;
  static constexpr int chip_team_size = 512, chip_teams = 2;
  static constexpr int cells_at_once = 32, groups = chip_team_size / cells_at_once;
  static constexpr int least_tiles = groups; ///< of a bin, on average: with fewer, groups have nothing to do

  JoinTiles<T, Dim> tiles;

  /// @param split  number of bins
  static void launch(const Space& space, const JoinTiles<T, Dim>& tiles, int split) {
    launch_teams(space, "Bracewell::Gridding::join_many_tiles",
                 split * static_cast<int>(tiles.slices) * parts(tiles.bins),
                 chip_team_size * sizeof(Complex) + 64, JoinManyTiles{tiles});
  }

  template <class Team>
  KOKKOS_FUNCTION void run(const Team& team, void* scratch) const {
    Complex* const sums = static_cast<Complex*>(scratch);
    const int lane = team.rank() % cells_at_once, group = team.rank() / cells_at_once;
    const std::int64_t bin = team.number() / parts(tiles.bins);
    const int cell = static_cast<int>(team.number() % parts(tiles.bins)) * cells_at_once + lane;
    sums[group * cells_at_once + lane] = tiles.sum(bin, cell, group, groups);
    team.barrier();
    if (group > 0)
      return;
    Complex sum(0);
    for (int i = 0; i < groups; ++i)
      sum += sums[i * cells_at_once + lane];
    tiles.add_to_grid(bin, cell, sum);
  }

private:
  KOKKOS_FUNCTION static int parts(const BinGrid<Dim>& bins) {
    return (bins.tile_cells() + cells_at_once - 1) / cells_at_once;
  }
};

} // namespace Bracewell::Impl
