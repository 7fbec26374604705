// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/tiles/tile_lists.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/unroll.hpp>

namespace Bracewell::Impl {

/// GriddingInterpolation::Tiles and NarrowTiles: many slices on GPUs, from 2D grids. A team copies a tile of
/// the grid, as far as the taps of its samples reach, to scratch memory, where `lanes` slices are neighbours;
/// then its groups of as many lanes go through the samples whose first tap lies in the tile, a lane for each
/// slice. Threads that take samples of their own from the grid itself meet in banks of the L1 cache.
template <class Space, int lanes, class T>
struct InterpolateTiles {
  static constexpr int most_width = gpu_gridding_tuning.interpolate_width;
  static constexpr int team_size = gpu_gridding_tuning.interpolate_team, groups = team_size / lanes;
  static constexpr int at_once =
      gpu_gridding_tuning.interpolate_at_once; ///< samples that are prepared together
  static constexpr int stride = lanes + 1;     ///< values from one cell to the next
  static constexpr int teams = sizeof(T) == 4 ? gpu_gridding_tuning.interpolate_teams_float
                                              : gpu_gridding_tuning.interpolate_teams_double;
  using Edges = TileEdges<2>;
  using Policy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<team_size, resident_teams<Space>(teams)>>;
  using Team = typename Policy::member_type;
  using Complex = Kokkos::complex<T>;

  SpreadingProblem<T, 2> problem;
  TapTable<T, most_width> taps;
  TileGrid<2> tiles;
  const std::uint32_t* list;
  const TileTask* tasks;
  const Complex* grid;
  SampleArray<Complex> samples;

  /// Of a sample, for the lanes of a group.
  struct alignas(16) Prepared {
    T weights[2][most_width];
    std::uint32_t point;
    int cell; ///< of the first tap; negative where it lies in another tile
  };

  static constexpr std::size_t scratch_bytes(int width) {
    static_assert(interpolation_scratch_bytes(2, lanes, sizeof(T)) ==
                  (Edges::x + 1) * (Edges::y + 1) * stride * sizeof(Complex) + at_once * sizeof(Prepared) +
                      64);
    return interpolation_scratch_bytes(width, lanes, sizeof(T));
  }

  KOKKOS_FUNCTION int slice_chunks() const { return static_cast<int>((problem.slices + lanes - 1) / lanes); }

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices, const Complex* grid,
                     const SampleArray<Complex>& samples) {
    const auto& lists = plan.tiles;
    const InterpolateTiles functor{plan.problem_of(slices),
                                   plan.template taps<most_width>(),
                                   lists.tiles,
                                   lists.list.data(),
                                   lists.tasks.data(),
                                   grid,
                                   samples};
    launch_kernel(lanes == interpolation_lanes(true, sizeof(T))
                      ? "Bracewell::Gridding::interpolate_tiles"
                      : "Bracewell::Gridding::interpolate_narrow_tiles",
                  Policy(space, static_cast<int>(lists.tasks.size()) * functor.slice_chunks(), +team_size)
                      .set_scratch_size(0, Kokkos::PerTeam(scratch_bytes(plan.problem.kernel.width))),
                  functor);
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const { of_width<2>(team); }

private:
  /// So that loops over taps have fixed lengths.
  template <int width>
  KOKKOS_FUNCTION void of_width(const Team& team) const {
    if constexpr (width < most_width)
      if (problem.kernel.width != width)
        return of_width<width + 1>(team);
    interpolate<width>(team);
  }

  template <int width>
  KOKKOS_FUNCTION void interpolate(const Team& team) const {
    constexpr int across = Edges::x + width - 1, cells = across * (Edges::y + width - 1);
    const TileTask task = tasks[team.league_rank() / slice_chunks()];
    if (task.begin == task.end)
      return;
    const std::int64_t first_slice = std::int64_t(team.league_rank() % slice_chunks()) * lanes;
    const int lane = team.team_rank() % lanes, group = team.team_rank() / lanes;
    auto* const values =
        static_cast<Complex*>(team.team_scratch(0).get_shmem_aligned(cells * stride * sizeof(Complex), 16));
    auto* const prepared =
        static_cast<Prepared*>(team.team_scratch(0).get_shmem_aligned(at_once * sizeof(Prepared), 16));
    int origin[2];
    tiles.origin(task.tile, origin);
    copy<across, cells>(origin, first_slice, lane, group, values);

    const std::int64_t slice = first_slice + lane;
    for (std::int64_t base = task.begin; base < task.end; base += at_once) {
      const int rank = team.team_rank();
      if (rank < at_once)
        prepared[rank] =
            base + rank < task.end ? prepare(list[base + rank], origin, across) : Prepared{.cell = -1};
      team.team_barrier();
      for (int i = group; i < at_once; i += groups) {
        const Prepared& sample = prepared[i];
        if (sample.cell < 0)
          continue;
        const Complex* const from = values + sample.cell * stride + lane;
        Complex sum(0);
        BRACEWELL_UNROLL_FOR (int y = 0; y < width; ++y) {
          Complex row(0);
          BRACEWELL_UNROLL_FOR (int x = 0; x < width; ++x)
            row += sample.weights[0][x] * from[(y * across + x) * stride];
          sum += sample.weights[1][y] * row;
        }
        if (slice < problem.slices)
          samples(sample.point, slice) = sum;
      }
      team.team_barrier();
    }
  }

  /// Cells of the tile and beyond, of slices from `first_slice` on; lanes side by side take neighbours of the
  /// grid.
  template <int across, int cells>
  KOKKOS_FUNCTION void copy(const int (&origin)[2], std::int64_t first_slice, int lane, int group,
                            Complex* values) const {
    const GridShape<2>& shape = problem.grid;
    for (int cell = lane; cell < cells; cell += lanes) {
      const int x = shape.wrapped(origin[0] + cell % across, 0);
      const int y = shape.wrapped(origin[1] + cell / across, 1);
      const Complex* const source = grid + std::int64_t(y) * shape.size[0] + x;
      BRACEWELL_UNROLL_FOR (int s = group; s < lanes; s += groups)
        if (first_slice + s < problem.slices)
          values[cell * stride + s] = source[(first_slice + s) * shape.elements()];
    }
  }

  KOKKOS_FUNCTION Prepared prepare(std::uint32_t point, const int (&origin)[2], int across) const {
    const Location<T, 2> at = problem.locations[point];
    const int x = tiles.relative(at.first[0], origin[0], 0), y = tiles.relative(at.first[1], origin[1], 1);
    Prepared result;
    result.point = point;
    result.cell = x >= 0 && y >= 0 ? y * across + x : -1;
    if (result.cell >= 0)
      evaluate_taps(taps, at, result.weights);
    return result;
  }
};

} // namespace Bracewell::Impl
