// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/bin_grid.hpp>
#include <bracewell/gridding/detail/bins/bin_tasks.hpp>
#include <bracewell/gridding/detail/bins/spread_bins.hpp>
#include <bracewell/gridding/detail/bins/tap_vectors.hpp>

namespace Bracewell::Impl {

/// GriddingStrategy::Bins on hosts. A thread adds the samples of a task to a tile, row by row of taps: real and
/// imaginary parts of a row's taps are neighbours, which SIMD instructions add. Then it adds the tile to the
/// grid, together with bins of its colour, or keeps it for JoinTiles.
template <class Space, int MaxWidth, class T, int Dim>
struct SpreadBinsHost : SpreadBins<Space, MaxWidth, T, Dim> {
  using Base = SpreadBins<Space, MaxWidth, T, Dim>;
  using Base::bins, Base::grid, Base::order, Base::partial, Base::problem, Base::samples, Base::taps,
      Base::tasks;
  using typename Base::Complex;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  using Base::Base;

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices,
                     const SampleArray<const Complex>& samples, Complex* grid) {
    SpreadBinsHost functor(plan, slices, samples, grid);
    for_each_colour(space, plan.sorted, slices, grid, [&](int begin, int end) {
      functor.tasks = plan.sorted.tasks.data() + begin;
      Kokkos::parallel_for("Bracewell::Gridding::spread_bins",
                           Kokkos::TeamPolicy<Space, Kokkos::Schedule<Kokkos::Dynamic>>(
                               space, (end - begin) * static_cast<int>(slices), 1)
                               .set_scratch_size(1, Kokkos::PerTeam(functor.tile_size() * sizeof(T) + 64)),
                           functor);
    });
  }

  /// Rows of taps are MaxWidth long, whatever the width: behind the last one there is room.
  std::size_t tile_size() const { return 2 * static_cast<std::size_t>(bins.tile_cells() + MaxWidth); }

  void operator()(const Team& team) const {
    const BinTask task = tasks[team.league_rank() / problem.slices];
    const std::int64_t slice = team.league_rank() % problem.slices;
    T* const tile = static_cast<T*>(team.team_scratch(1).get_shmem_aligned(tile_size() * sizeof(T), 64));
    std::fill_n(tile, tile_size(), T(0));
    const TileOnGrid<Dim> place(bins, task.bin);
    for (std::uint32_t i = task.begin; i < task.end; ++i) {
      // Samples lie anywhere in memory: without this, three quarters of the time is spent waiting for them.
      __builtin_prefetch(&samples(order[Kokkos::min(i + ahead, task.end - 1)], slice));
      add(problem.locations[i], samples(order[i], slice), place, tile);
    }
    store(task, slice, place, reinterpret_cast<const Complex*>(tile));
  }

private:
  static constexpr std::uint32_t ahead = 16; ///< samples that are on their way

  void add(const Location<T, Dim>& at, const Complex& value, const TileOnGrid<Dim>& place, T* tile) const {
    TapVectors<T, MaxWidth, Dim> row(problem.kernel, at);
    row.scale_row(value);
    const std::int64_t stride = 2 * std::int64_t(bins.stride);
    T* plane = tile + 2 * (at.first[0] - place.origin[0]);
    if constexpr (Dim == 1) {
      row.add_row(T(1), plane);
    } else {
      plane += (at.first[1] - place.origin[1]) * stride;
      if constexpr (Dim == 3)
        plane += (at.first[2] - place.origin[2]) * bins.span(1) * stride;
      for (int k = 0; k < (Dim == 3 ? problem.kernel.width : 1); ++k, plane += bins.span(1) * stride)
        for (int j = 0; j < problem.kernel.width; ++j)
          row.add_row(row.across[1][j] * (Dim == 3 ? row.across[Dim - 1][k] : T(1)), plane + j * stride);
    }
  }

  void store(const BinTask& task, std::int64_t slice, const TileOnGrid<Dim>& place,
             const Complex* tile) const {
    if (task.slot >= 0) {
      std::copy_n(tile, bins.tile_cells(),
                  partial + (task.slot * problem.slices + slice) * bins.tile_cells());
      return;
    }
    Complex* const target = grid + slice * problem.grid.elements();
    for (int r = 0; r < bins.tile_rows(); ++r) {
      const std::int64_t row = place.row(r);
      if (row < 0)
        continue;
      const int straight = Kokkos::min(place.length[0], bins.grid.size[0] - place.origin[0]);
      const Complex* const from = tile + r * bins.stride;
      for (int x = 0; x < straight; ++x)
        target[row + place.origin[0] + x] += from[x];
      for (int x = straight; x < place.length[0]; ++x)
        target[row + x - straight] += from[x];
    }
  }
};

} // namespace Bracewell::Impl
