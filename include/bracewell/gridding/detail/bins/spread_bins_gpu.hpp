// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/add_samples.hpp>
#include <bracewell/gridding/detail/bins/bin_grid.hpp>
#include <bracewell/gridding/detail/bins/bin_tasks.hpp>
#include <bracewell/gridding/detail/bins/spread_bins.hpp>
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/sample_array.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// GriddingStrategy::Bins on GPUs. A team adds the samples of a task to the tile of its bin in scratch memory,
/// one after the other, its lanes side by side on taps, so that nothing is added atomically; then it adds the
/// tile to the grid, after those bins of earlier colours whose tiles meet it, or keeps it for JoinTiles. In 1D
/// and 2D a warp is a team, and lanes keep their sums in registers from one sample to the next as long as both
/// reach the same cells; in 3D the planes of the tile are dealt out to the warps of a team, which keep sums in
/// double alone.
template <class Space, int width, class T, int Dim>
struct SpreadBinsGpu : SpreadBins<Space, width, T, Dim> {
  using Base = SpreadBins<Space, width, T, Dim>;
  using Base::bins, Base::grid, Base::order, Base::partial, Base::problem, Base::samples, Base::taps,
      Base::tasks;
  using typename Base::Complex;
  using Samples = BinSamples<width, T, Dim>;
  using LaneTaps = typename Samples::LaneTaps;
  using Prepared = typename Samples::Prepared;
  using InPlane = AddInPlane<width, T, Dim>;   ///< in 1D and 2D
  using InPlanes = AddInPlanes<width, T, Dim>; ///< in 3D
  static constexpr int chip_team_size = bin_team_size(Dim, sizeof(T)), warps = Samples::warps;
  static constexpr int chip_teams = bin_teams(Dim, sizeof(T)); ///< of a multiprocessor, by registers
  static constexpr int batch = Samples::batch, kept = Samples::kept;
  static constexpr int rows_at_once = 8; ///< of the grid, on their way

  TaskOrder task_order = {};

  using Base::Base;

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices,
                     const SampleArray<const Complex>& samples, Complex* grid) {
    SpreadBinsGpu functor(plan, slices, samples, grid);
    const auto launch_tasks = [&](int begin, int end) {
      functor.tasks = plan.sorted.tasks.data() + begin;
      launch_teams(space, "Bracewell::Gridding::spread_bins", (end - begin) * static_cast<int>(slices),
                   bin_scratch_bytes(functor.bins, sizeof(T)) + 64, functor);
    };
    if constexpr (has_chip_memory<Space>)
      functor.task_order = plan.sorted.start(space, slices);
    for_each_colour(space, plan.sorted, slices, grid, launch_tasks, has_chip_memory<Space>);
  }

  template <class Team>
  KOKKOS_FUNCTION void run(const Team& team, void* scratch) const {
    Complex* const tile = static_cast<Complex*>(scratch);
    const int rank = team.rank(), cells = bins.tile_cells();
    const std::int64_t number = take_number(team, tile);
    const BinTask task = tasks[number / problem.slices];
    const std::int64_t slice = number % problem.slices;
    const TileOnGrid<Dim> place(bins, task.bin);
    const Prepared prepared(tile + cells);
    const int axis = rank / batch, which = rank % batch;
    // Values lie anywhere in memory: their numbers set out two batches ahead, they one.
    Loaded next = load(task.begin + which, task.end, axis, slice, sample(task.begin + which, task.end, axis));
    std::uint32_t next_sample = sample(task.begin + batch + which, task.end, axis);
    for (int i = rank; i < cells; i += chip_team_size)
      tile[i] = Complex(0);

    const LaneTaps lane_taps(rank % 32, bins.stride);
    Complex sums[kept];
    BRACEWELL_UNROLL_FOR (int p = 0; p < kept; ++p)
      sums[p] = Complex(0);
    int here = -1, plane = 0; // where the sums belong
    for (std::uint32_t base = task.begin; base < task.end; base += batch) {
      const int count = static_cast<int>(Kokkos::min<std::uint32_t>(batch, task.end - base));
      if (axis < Dim)
        prepare(next, axis, which, which < count, place, prepared);
      if (base + batch < task.end) {
        next = load(base + batch + which, task.end, axis, slice, next_sample);
        next_sample = sample(base + 2 * batch + which, task.end, axis);
      }
      synchronise(team);
      if constexpr (Dim < 3)
        InPlane::add(prepared, lane_taps, tile, sums, here);
      else if constexpr (Samples::keeps_sums)
        InPlanes::add_to_kept(bins, count, rank / 32, prepared, lane_taps, tile, sums, here, plane);
      else
        InPlanes::add(bins, count, rank / 32, prepared, lane_taps, tile);
      synchronise(team);
    }
    if constexpr (Dim < 3) {
      InPlane::flush(here, lane_taps, tile, sums);
      synchronise(team);
    } else if constexpr (Samples::keeps_sums) {
      if (here >= 0)
        InPlanes::template move_planes<false>(bins, here, plane, lane_taps, tile, sums);
      synchronise(team);
    }
    if (task.slot >= 0)
      keep(rank, task, slice, tile);
    else
      add_after_others(team, task.bin, slice, place, tile);
  }

private:
  /// What a lane knows of its sample before it is prepared.
  struct Loaded {
    T offset;
    int first[Dim];
    Complex value;
  };

  /// The number of a task and slice: the next one, where teams wait for those before them.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t take_number(const Team& team, Complex* tile) const {
    std::int64_t number = team.number();
    if constexpr (has_chip_memory<Space>) {
      if (team.rank() == 0)
        *reinterpret_cast<std::uint32_t*>(tile) = task_order.next();
      synchronise(team);
      number = *reinterpret_cast<std::uint32_t*>(tile);
      synchronise(team);
    }
    return number;
  }

  /// Orders what the lanes of a team read and write in scratch memory.
  template <class Team>
  KOKKOS_FUNCTION static void synchronise(const Team& team) {
    if constexpr (Dim < 3)
      synchronise_lanes();
    else
      team.barrier();
  }

  /// The number of a sample, for the lane that loads its value.
  KOKKOS_FUNCTION std::uint32_t sample(std::uint32_t i, std::uint32_t end, int axis) const {
    return axis == 0 && i < end ? order[i] : 0u;
  }

  KOKKOS_FUNCTION Loaded load(std::uint32_t i, std::uint32_t end, int axis, std::int64_t slice,
                              std::uint32_t number) const {
    Loaded result = {};
    if (axis >= Dim || i >= end)
      return result;
    const Location<T, Dim>& at = problem.locations[i];
    result.offset = at.offset[axis];
    if (axis == 0) {
      BRACEWELL_UNROLL_FOR (int d = 0; d < Dim; ++d)
        result.first[d] = at.first[d];
      result.value = samples(number, slice);
    }
    return result;
  }

  /// Weights of the taps along one axis of one sample, or of none, whose value is zero.
  KOKKOS_FUNCTION void prepare(const Loaded& loaded, int axis, int which, bool is_sample,
                               const TileOnGrid<Dim>& place, const Prepared& prepared) const {
    T weights[width];
    taps.evaluate(loaded.offset, weights);
    T* const target = prepared.weights + which * prepared.stride + axis * width;
    BRACEWELL_UNROLL_FOR (int tap = 0; tap < width; ++tap)
      target[tap] = weights[tap];
    if (axis == 0) {
      int row = 0, stride = 1;
      BRACEWELL_UNROLL_FOR (int d = 1; d < Dim; ++d) {
        row += stride * (loaded.first[d] - place.origin[d]);
        stride *= bins.span(d);
      }
      prepared.values[which] = loaded.value;
      prepared.first[which] = is_sample ? row * bins.stride + loaded.first[0] - place.origin[0] : 0;
      prepared.z[which] = loaded.first[Dim - 1] - place.origin[Dim - 1]; // of use in 3D
    }
  }

  /// Waits until bins of earlier colours whose tiles meet this one's are on the grid.
  KOKKOS_FUNCTION void wait_for_others(int rank, std::uint32_t bin, std::int64_t slice) const {
    const int colour = bins.colour(bin), neighbours = bins.neighbours();
    for (int i = rank; i < neighbours; i += chip_team_size) {
      const std::uint32_t other = bins.neighbour(bin, i);
      if (bins.colour(other) < colour && task_order.has_no_slots(other))
        task_order.wait_for(other * problem.slices + slice);
    }
  }

  KOKKOS_FUNCTION void keep(int rank, const BinTask& task, std::int64_t slice, const Complex* tile) const {
    const int cells = bins.tile_cells();
    Complex* const target = partial + (task.slot * problem.slices + slice) * cells;
    for (int i = rank; i < cells; i += chip_team_size)
      target[i] = tile[i];
  }

  /// Adds the tile to the grid after those of others.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_after_others(const Team& team, std::uint32_t bin, std::int64_t slice,
                                                    const TileOnGrid<Dim>& place, const Complex* tile) const {
    if constexpr (has_chip_memory<Space>) {
      wait_for_others(team.rank(), bin, slice);
      synchronise(team);
    }
    add_to_grid(team.rank(), slice, place, tile);
    if constexpr (has_chip_memory<Space>) {
      synchronise(team);
      if (team.rank() == 0)
        task_order.finish(bin * problem.slices + slice);
    }
  }

  KOKKOS_FUNCTION void add_to_grid(int rank, std::int64_t slice, const TileOnGrid<Dim>& place,
                                   const Complex* tile) const {
    Complex* const target = grid + slice * problem.grid.elements();
    for (int x = rank % 32; x < place.length[0]; x += 32) {
      const int column = bins.grid.wrapped(place.origin[0] + x, 0);
      for (int first = rank / 32; first < bins.tile_rows(); first += rows_at_once * warps) {
        Complex sums[rows_at_once];
        std::int64_t rows[rows_at_once];
        BRACEWELL_UNROLL_FOR (int i = 0; i < rows_at_once; ++i) {
          rows[i] = first + i * warps < bins.tile_rows() ? place.row(first + i * warps) : -1;
          if (rows[i] >= 0)
            sums[i] = target[rows[i] + column];
        }
        BRACEWELL_UNROLL_FOR (int i = 0; i < rows_at_once; ++i)
          if (rows[i] >= 0)
            target[rows[i] + column] = sums[i] + tile[(first + i * warps) * bins.stride + x];
      }
    }
  }
};

} // namespace Bracewell::Impl
