// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/bin_grid.hpp>
#include <bracewell/gridding/detail/bins/bin_tasks.hpp>
#include <bracewell/gridding/detail/bins/spread_bins.hpp>
#include <bracewell/gridding/detail/bins/tap_vectors.hpp>
#include <bracewell/impl/host_tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

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
      launch_kernel("Bracewell::Gridding::spread_bins",
                    Kokkos::TeamPolicy<Space, Kokkos::Schedule<Kokkos::Dynamic>>(
                        space, (end - begin) * static_cast<int>(slices), 1)
                        .set_scratch_size(1, Kokkos::PerTeam(functor.scratch_bytes())),
                    functor);
    });
  }

  /// Rows of taps are MaxWidth long, whatever the width: behind the last one there is room.
  std::size_t tile_size() const { return 2 * static_cast<std::size_t>(bins.tile_cells() + MaxWidth); }

  /// In float, sums of many samples go on in double: a tile of these lies behind that in float.
  static constexpr bool in_blocks = sizeof(T) < sizeof(double);
  std::size_t scratch_bytes() const {
    return tile_size() * (sizeof(T) + (in_blocks ? sizeof(double) : 0)) + 128;
  }

  void operator()(const Team& team) const {
    const BinTask task = tasks[team.league_rank() / problem.slices];
    const std::int64_t slice = team.league_rank() % problem.slices;
    T* const tile = static_cast<T*>(team.team_scratch(1).get_shmem_aligned(tile_size() * sizeof(T), 64));
    std::fill_n(tile, tile_size(), T(0));
    const TileOnGrid<Dim> place(bins, task.bin);
    if constexpr (in_blocks)
      if (crowds(task)) {
        add_in_blocks(team, task, slice, place, tile);
        return store(task, slice, place, reinterpret_cast<const Complex*>(tile));
      }
    add_samples(task, task.begin, task.end, slice, place, tile);
    store(task, slice, place, reinterpret_cast<const Complex*>(tile));
  }

private:
  static constexpr std::uint32_t ahead = 16; ///< samples that are on their way
  static constexpr std::uint32_t block = 64; ///< samples after which sums may go on in double
  static constexpr std::uint32_t many =
      1024; ///< samples of a task whose sums do so without a look at where they lie
  static constexpr int additions_of_cell = 64; ///< in float, on average, before that is worth its time

  /// Equal samples on one spot, 64 of them, miss their sum by half of 1e-6: all are rounded alike.
  bool crowds(const BinTask& task) const {
    const std::uint32_t count = task.end - task.begin;
    if (count <= block || count > many)
      return count > many;
    Region region;
    for (std::uint32_t i = task.begin; i < task.end; ++i)
      region.reach(problem.locations[i]);
    return count * window() >= additions_of_cell * region.cells(problem.kernel.width);
  }
  std::int64_t window() const { // cells
    std::int64_t product = 1;
    for (int d = 0; d < Dim; ++d)
      product *= problem.kernel.width;
    return product;
  }

  void add_samples(const BinTask& task, std::uint32_t begin, std::uint32_t end, std::int64_t slice,
                   const TileOnGrid<Dim>& place, T* tile) const {
    run_with_vectors(SamplesOfTile{*this, task.end, place, tile}, begin, end, slice);
  }

  struct SamplesOfTile {
    const SpreadBinsHost& from;
    std::uint32_t last;
    const TileOnGrid<Dim>& place;
    T* tile;

    template <int bytes>
    BRACEWELL_INLINE_FOR_TARGET void run(std::uint32_t begin, std::uint32_t end, std::int64_t slice) const {
      from.template add_all<bytes>(begin, end, last, slice, place, tile);
    }
  };

  template <int bytes>
  BRACEWELL_INLINE_FOR_TARGET void add_all(std::uint32_t begin, std::uint32_t end, std::uint32_t last,
                                           std::int64_t slice, const TileOnGrid<Dim>& place, T* tile) const {
    // No store changes these: they stay in registers. The next location is ready before it is needed.
    const TapWeights<T> kernel = problem.kernel;
    const auto locations = problem.locations;
    const SampleArray<const Complex> values = samples;
    const std::uint32_t* const numbers = order;
    Location<T, Dim> next = locations[begin];
    for (std::uint32_t i = begin; i < end; ++i) {
      // Samples lie anywhere in memory: without this, three quarters of the time is spent waiting for them.
      __builtin_prefetch(&values(numbers[Kokkos::min(i + ahead, last - 1)], slice));
      __builtin_prefetch(locations.values + i + ahead);
      const Location<T, Dim> at = next;
      next = locations[Kokkos::min(i + 1, last - 1)];
      add<bytes>(kernel, at, values(numbers[i], slice), place, tile);
    }
  }

  /// Adds a block of samples after the other to the tile. What they reach of it goes on to sums in double as soon as
  /// its cells have got many: after every block where points crowd on one spot. The error does not grow with the
  /// number of samples.
  [[gnu::noinline]] void add_in_blocks(const Team& team, const BinTask& task, std::int64_t slice,
                                       const TileOnGrid<Dim>& place, T* tile) const {
    auto* const total =
        static_cast<double*>(team.team_scratch(1).get_shmem_aligned(tile_size() * sizeof(double), 64));
    std::fill_n(total, tile_size(), 0.0);
    std::int64_t waiting = 0; // samples
    Region region;
    for (std::uint32_t begin = task.begin; begin < task.end; begin += block) {
      const std::uint32_t end = task.end - begin > block ? begin + block : task.end;
      add_samples(task, begin, end, slice, place, tile);
      for (std::uint32_t i = begin; i < end; ++i)
        region.reach(problem.locations[i]);
      waiting += end - begin;
      if (end < task.end && waiting * window() < additions_of_cell * region.cells(problem.kernel.width))
        continue;
      move(region, place, tile, total);
      region = {};
      waiting = 0;
    }
    for (std::size_t i = 0; i < tile_size(); ++i)
      tile[i] = static_cast<T>(total[i]);
  }

  /// First cells of samples.
  struct Region {
    int low[Dim], high[Dim];

    Region() {
      std::fill_n(low, Dim, std::numeric_limits<int>::max());
      std::fill_n(high, Dim, std::numeric_limits<int>::lowest());
    }
    void reach(const Location<T, Dim>& at) {
      for (int d = 0; d < Dim; ++d) {
        low[d] = std::min<int>(low[d], at.first[d]);
        high[d] = std::max<int>(high[d], at.first[d]);
      }
    }
    std::int64_t cells(int width) const {
      std::int64_t product = 1;
      for (int d = 0; d < Dim; ++d)
        product *= high[d] - low[d] + width;
      return product;
    }
  };

  /// Adds what samples of a region have added to the tile to its sums in double, and makes it zero.
  void move(const Region& region, const TileOnGrid<Dim>& place, T* tile, double* total) const {
    int from[3] = {}, to[3] = {1, 1, 1};
    for (int d = 0; d < Dim; ++d) {
      from[d] = region.low[d] - place.origin[d];
      to[d] = region.high[d] - place.origin[d] + problem.kernel.width;
    }
    const int rows = Dim == 3 ? bins.span(1) : 1;
    for (int z = from[2]; z < to[2]; ++z)
      for (int y = from[1]; y < to[1]; ++y) {
        const std::int64_t row = 2 * (std::int64_t(z) * rows + y) * bins.stride;
        T* const sums = tile + row;
        double* const in_double = total + row;
        for (int i = 2 * from[0]; i < 2 * to[0]; ++i) {
          in_double[i] += double(sums[i]);
          sums[i] = 0;
        }
      }
  }

  template <int bytes>
  BRACEWELL_INLINE_FOR_TARGET void add(const TapWeights<T>& kernel, const Location<T, Dim>& at,
                                       const Complex& value, const TileOnGrid<Dim>& place, T* tile) const {
    using Taps = TapVectors<T, MaxWidth, Dim, bytes>;
    Taps row(kernel, at);
    row.scale_row(value);
    std::int64_t first = at.first[0] - place.origin[0];
    if constexpr (Dim > 1)
      first += (at.first[1] - place.origin[1]) * std::int64_t(bins.stride);
    if constexpr (Dim == 3)
      first += (at.first[2] - place.origin[2]) * std::int64_t(bins.span(1)) * bins.stride;
    const auto add_rows = [&](auto count) __attribute__((always_inline)) {
      // No store changes what is not behind a reference: it stays in registers.
      [[maybe_unused]] const int width = kernel.width; // not in one dimension
      [[maybe_unused]] const std::int64_t stride = 2 * std::int64_t(bins.stride),
                                          next = Dim == 3 ? bins.span(1) * stride : 0;
      T* plane = tile + 2 * first;
      if constexpr (Dim == 1)
        row.template add_row<count()>(T(1), plane);
      else
        for (int k = 0; k < (Dim == 3 ? width : 1); ++k, plane += next)
          for (int j = 0; j < width; ++j)
            row.template add_row<count()>(row.across[1][j] * (Dim == 3 ? row.across[Dim - 1][k] : T(1)),
                                          plane + j * stride);
    };
    Taps::with_pieces(kernel.width, add_rows);
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
