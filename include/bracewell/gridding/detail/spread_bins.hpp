// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/plan.hpp>

namespace Bracewell::Impl {

/// What adding the samples of tasks takes, on GPUs and hosts.
template <class Space, int MaxWidth, class T, int Dim>
struct SpreadBins {
  using Plan = GriddingPlan<Space, T, Dim>;
  using Complex = Kokkos::complex<T>;

  SpreadingProblem<T, Dim> problem;
  TapTable<T, MaxWidth> taps;
  BinGrid<Dim> bins;
  const BinTask* tasks;
  const std::uint32_t* order;
  SampleArray<const Complex> samples;
  Complex* grid;
  Complex* partial; ///< [slots, slices, tile]

  SpreadBins(const Plan& plan, std::int64_t slices, const SampleArray<const Complex>& samples_,
             Complex* grid_)
      : problem(plan.problem_of(slices)), taps(plan.template taps<MaxWidth>()), bins(plan.bins.grid),
        tasks(plan.bins.tasks.data()), order(plan.bins.order.data()), samples(samples_), grid(grid_),
        partial(plan.partial.data()) {}
};

/// GriddingStrategy::Bins: makes the grid zero, then calls launch(begin, end) for the tasks of one colour after
/// the other (with the first colour for all that have slots) and joins the tiles of its divided bins.
template <class Space, class T, int Dim, class Launch>
void for_each_colour(const Space& space, const GriddingPlan<Space, T, Dim>& plan, std::int64_t slices,
                     Kokkos::complex<T>* grid, const Launch& launch) {
  const Bins<Space, T, Dim>& bins = plan.bins;
  fill(space, "Bracewell::Gridding::zero", grid, slices * plan.problem.grid.elements());
  for (int colour = 0; colour < BinGrid<Dim>::most_colours; ++colour) {
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
