// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bin_grid.hpp>
#include <bracewell/gridding/detail/bin_tasks.hpp>
#include <bracewell/gridding/detail/join_many_tiles.hpp>
#include <bracewell/gridding/detail/join_tiles.hpp>
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
      : problem(plan.problem_of(slices)), taps(plan.template taps<MaxWidth>()), bins(plan.sorted.bins),
        tasks(plan.sorted.tasks.data()), order(plan.sorted.order.data()), samples(samples_), grid(grid_),
        partial(plan.sorted.partial.data()) {}
};

/// Adds the tiles of the divided bins of one colour.
template <class Space, class T, int Dim>
void join_tiles(const Space& space, const GriddingPlan<Space, T, Dim>& plan, std::int64_t slices,
                Kokkos::complex<T>* grid, int colour) {
  const SortedSamples<Space, T, Dim>& sorted = plan.sorted;
  const int first = sorted.split_end[colour], count = sorted.split_end[colour + 1] - first;
  if (count == 0)
    return;
  const JoinTiles<T, Dim> functor{sorted.bins, sorted.split.data() + first, sorted.partial.data(), grid,
                                  slices};
  if constexpr (!is_host<Space>) {
    using Teams = JoinManyTiles<Space, T, Dim>;
    if (sorted.slots >= Teams::least_tiles * static_cast<std::int64_t>(sorted.split.size()))
      return Teams::launch(space, functor, count);
  }
  Kokkos::parallel_for("Bracewell::Gridding::join_tiles",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                           space, 0, count * slices * sorted.bins.tile_cells()),
                       functor);
}

/// GriddingStrategy::Bins: makes the grid zero, then calls launch(begin, end) for the tasks of one colour after
/// the other (with the first colour for all that have slots) and joins the tiles of its divided bins.
template <class Space, class T, int Dim, class Launch>
void for_each_colour(const Space& space, const GriddingPlan<Space, T, Dim>& plan, std::int64_t slices,
                     Kokkos::complex<T>* grid, const Launch& launch) {
  const SortedSamples<Space, T, Dim>& sorted = plan.sorted;
  clear(space, "Bracewell::Gridding::zero", grid, slices * plan.problem.grid.elements());
  for (int colour = 0; colour < BinGrid<Dim>::most_colours; ++colour) {
    const int begin = colour == 0 ? 0 : sorted.task_end[colour];
    if (begin < sorted.task_end[colour + 1])
      launch(begin, sorted.task_end[colour + 1]);
    join_tiles(space, plan, slices, grid, colour);
  }
}

/// The same with one launch for all tasks, which wait for each other (TaskOrder): no colour waits for the last
/// task of the one before it.
template <class Space, class T, int Dim, class Launch>
void in_one_launch(const Space& space, const GriddingPlan<Space, T, Dim>& plan, std::int64_t slices,
                   Kokkos::complex<T>* grid, const Launch& launch) {
  clear(space, "Bracewell::Gridding::zero", grid, slices * plan.problem.grid.elements());
  launch(0, static_cast<int>(plan.sorted.tasks.size()));
  for (int colour = 0; colour < BinGrid<Dim>::most_colours; ++colour)
    join_tiles(space, plan, slices, grid, colour);
}

} // namespace Bracewell::Impl
