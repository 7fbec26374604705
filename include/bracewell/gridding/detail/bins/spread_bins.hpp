// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/bin_grid.hpp>
#include <bracewell/gridding/detail/bins/bin_tasks.hpp>
#include <bracewell/gridding/detail/bins/sorted_samples.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Adds the tiles of bins that several teams had a part of, in fixed order.
template <class T, int Dim>
struct JoinTiles {
  BinGrid<Dim> bins;
  const SplitBin* split;
  const Kokkos::complex<T>* partial; ///< [slots, slices, tile]
  Kokkos::complex<T>* grid;
  std::int64_t slices;

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    const std::int64_t cells = bins.tile_cells(), bin = thread / cells;
    const auto cell = static_cast<int>(thread % cells);
    add_to_grid(bin, cell, sum(bin, cell, 0, 1));
  }

  /// The sum over tiles begin, begin + step .. for a cell of bin `bin` of all split bins and slices.
  KOKKOS_FUNCTION Kokkos::complex<T> sum(std::int64_t bin, int cell, int begin, int step) const {
    const std::int64_t cells = bins.tile_cells(), slice = bin % slices;
    Kokkos::complex<double> sums[4] = {}; // of any number of tiles: in float their error would grow with it
    if (cell >= cells)
      return {};
    const SplitBin& from_bin = split[bin / slices];
    const Kokkos::complex<T>* const from = partial + (from_bin.first * slices + slice) * cells + cell;
    for (int i = begin; i < from_bin.count; i += 4 * step) { // four loads on their way
      BRACEWELL_UNROLL_FOR (int u = 0; u < 4; ++u)
        if (i + u * step < from_bin.count)
          sums[u] += Kokkos::complex<double>(from[(i + u * step) * slices * cells]);
    }
    return Kokkos::complex<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }

  KOKKOS_FUNCTION void add_to_grid(std::int64_t bin, int cell, const Kokkos::complex<T>& sum) const {
    const TileOnGrid<Dim> tile(bins, split[bin / slices].bin);
    const int x = cell % bins.stride;
    if (cell >= bins.tile_cells() || x >= tile.length[0])
      return;
    const std::int64_t row = tile.row(cell / bins.stride);
    if (row >= 0)
      grid[bin % slices * bins.grid.elements() + row + bins.grid.wrapped(tile.origin[0] + x, 0)] += sum;
  }
};

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

/// What adding the samples of tasks takes, on GPUs and hosts.
template <class Space, int MaxWidth, class T, int Dim>
struct SpreadBins {
  using Complex = Kokkos::complex<T>;

  SpreadingProblem<T, Dim> problem;
  TapTable<T, MaxWidth> taps;
  BinGrid<Dim> bins;
  const BinTask* tasks;
  const std::uint32_t* order;
  SampleArray<const Complex> samples;
  Complex* grid;
  Complex* partial; ///< [slots, slices, tile]

  template <class Plan>
  SpreadBins(const Plan& plan, std::int64_t slices, const SampleArray<const Complex>& samples_,
             Complex* grid_)
      : problem(plan.problem_of(slices)), taps(plan.template taps<MaxWidth>()), bins(plan.sorted.bins),
        tasks(plan.sorted.tasks.data()), order(plan.sorted.order.data()), samples(samples_), grid(grid_),
        partial(plan.sorted.partial.data()) {}
};

/// Adds the tiles of the divided bins of one colour.
template <class Space, class T, int Dim>
void join_tiles(const Space& space, const SortedSamples<Space, T, Dim>& sorted, std::int64_t slices,
                Kokkos::complex<T>* grid, int colour) {
  const int first = sorted.split_end[std::size_t(colour)],
            count = sorted.split_end[std::size_t(colour + 1)] - first;
  if (count == 0)
    return;
  const JoinTiles<T, Dim> functor{sorted.bins, sorted.split.data() + first, sorted.partial.data(), grid,
                                  slices};
  if constexpr (!is_host<Space>) {
    using Teams = JoinManyTiles<Space, T, Dim>;
    if (sorted.slots >= Teams::least_tiles * static_cast<std::int64_t>(sorted.split.size()))
      return Teams::launch(space, functor, count);
  }
  launch_kernel("Bracewell::Gridding::join_tiles",
                Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                    space, 0, count * slices * sorted.bins.tile_cells()),
                functor);
}

/// GriddingStrategy::Bins: makes the grid zero, then calls launch(begin, end) for the tasks of one colour after
/// the other (with the first colour for all that have slots) and joins the tiles of its divided bins. A host's only thread
/// takes all tasks in this order. So does a GPU where tasks wait for each other (TaskOrder), `in_one_launch`: no colour waits
/// for the last task of the one before it.
template <class Space, class T, int Dim, class Launch>
void for_each_colour(const Space& space, const SortedSamples<Space, T, Dim>& sorted, std::int64_t slices,
                     Kokkos::complex<T>* grid, const Launch& launch, bool in_one_launch = false) {
  in_one_launch = in_one_launch || space.concurrency() == 1;
  clear(space, "Bracewell::Gridding::zero", grid, slices * sorted.bins.grid.elements());
  if (in_one_launch)
    launch(0, static_cast<int>(sorted.tasks.size()));
  for (int colour = 0; colour < BinGrid<Dim>::most_colours; ++colour) {
    const int* const end = sorted.task_end.data() + colour;
    if (const int begin = colour == 0 ? 0 : end[0]; !in_one_launch && begin < end[1])
      launch(begin, end[1]);
    join_tiles(space, sorted, slices, grid, colour);
  }
}

} // namespace Bracewell::Impl
