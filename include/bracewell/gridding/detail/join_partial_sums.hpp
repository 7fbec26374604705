// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/plan.hpp>

namespace Bracewell::Impl {

/// Adds the partial sums of the tiles of which several teams had a part, in fixed order.
template <class Space, class T, int Dim>
struct JoinPartialSums {
  using Edges = TileEdges<Dim>;
  using Plan = GriddingPlan<Space, T, Dim>;
  static constexpr int lanes = gpu_gridding_tuning.tile_slices;

  SpreadingProblem<T, Dim> problem;
  TileGrid<Edges, Dim> tiles;
  const SplitTile* split;
  int slice_chunks;
  const Kokkos::complex<T>* partial;
  Kokkos::complex<T>* grid;

  static void launch(const Space& space, const Plan& plan, std::int64_t slices, Kokkos::complex<T>* grid) {
    const auto split_tiles = static_cast<std::int64_t>(plan.tiles.split.size());
    if (split_tiles == 0)
      return;
    const JoinPartialSums functor{plan.problem_of(slices),   plan.tiles.tiles,
                                  plan.tiles.split.data(),   plan.tiles.slice_chunks(slices),
                                  plan.tiles.partial.data(), grid};
    const std::int64_t threads = split_tiles * functor.slice_chunks * Edges::cells * lanes;
    Kokkos::parallel_for("Bracewell::Gridding::join_partial_sums", typename Plan::Range(space, 0, threads),
                         functor);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    const int lane = thread % lanes, cell = thread / lanes % Edges::cells;
    const std::int64_t rest = thread / lanes / Edges::cells;
    const int chunk = rest % slice_chunks;
    const SplitTile tile = split[rest / slice_chunks];
    const std::int64_t slice = std::int64_t(chunk) * lanes + lane;
    if (slice >= problem.slices)
      return;
    int at[Dim];
    tiles.origin(tile.tile, at);
    const int local[3] = {cell % Edges::x, cell / Edges::x % Edges::y, cell / Edges::x / Edges::y};
    std::int64_t index = 0;
    for (int d = Dim - 1; d >= 0; --d) {
      if (at[d] + local[d] >= problem.grid.size[d])
        return;
      index = index * problem.grid.size[d] + at[d] + local[d];
    }
    Kokkos::complex<T> sum = 0;
    for (int i = 0; i < tile.count; ++i)
      sum += partial[((std::int64_t(tile.first + i) * slice_chunks + chunk) * Edges::cells + cell) * lanes +
                     lane];
    grid[slice * problem.grid.elements() + index] = sum;
  }
};

} // namespace Bracewell::Impl
