// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/plan.hpp>

namespace Bracewell::Impl {

/// GriddingStrategy::Bins: makes the grid zero, then calls launch(begin, end) for the tasks of one colour after
/// the other (with the first colour for all that have slots) and joins the tiles of its divided bins.
template <class Space, class T, int Dim, class Launch>
void for_each_colour(const Space& space, const GriddingPlan<Space, T, Dim>& plan, std::int64_t slices,
                     Kokkos::complex<T>* grid, const Launch& launch) {
  const Bins<Space, T, Dim>& bins = plan.bins;
  fill(space, "Bracewell::Gridding::zero", grid, slices * plan.problem.grid.elements());
  for (int colour = 0; colour < BinGrid<Dim>::colours; ++colour) {
    const int begin = colour == 0 ? 0 : bins.task_end[colour];
    if (begin < bins.task_end[colour + 1])
      launch(begin, bins.task_end[colour + 1]);
    const int first = bins.split_end[colour], count = bins.split_end[colour + 1] - first;
    if (count > 0)
      Kokkos::parallel_for(
          "Bracewell::Gridding::join_tiles",
          Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
              space, 0, count * slices * bins.grid.tile_cells()),
          JoinTiles<T, Dim>{bins.grid, bins.split.data() + first, plan.partial.data(), grid, slices});
  }
}

} // namespace Bracewell::Impl
