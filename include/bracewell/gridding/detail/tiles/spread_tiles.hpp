// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/tiles/tile_lists.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/unroll.hpp>

namespace Bracewell::Impl {

/// Adds the partial sums of the tiles of which several teams had a part, in fixed order.
template <class Space, class T, int Dim>
struct JoinPartialSums {
  using Edges = TileEdges<Dim>;
  static constexpr int lanes = gpu_gridding_tuning.tile_slices;

  SpreadingProblem<T, Dim> problem;
  TileGrid<Dim> tiles;
  const SplitTile* split;
  int slice_chunks;
  const Kokkos::complex<T>* partial;
  Kokkos::complex<T>* grid;

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices, Kokkos::complex<T>* grid) {
    const auto split_tiles = static_cast<std::int64_t>(plan.tiles.split.size());
    if (split_tiles == 0)
      return;
    const JoinPartialSums functor{plan.problem_of(slices),   plan.tiles.tiles,
                                  plan.tiles.split.data(),   plan.tiles.slice_chunks(slices),
                                  plan.tiles.partial.data(), grid};
    const std::int64_t threads = split_tiles * functor.slice_chunks * Edges::cells * lanes;
    launch_kernel("Bracewell::Gridding::join_partial_sums", typename Plan::Range(space, 0, threads), functor);
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

/// GriddingStrategy::Tiles, on GPUs. A team of 32 lanes owns a tile of the grid, a lane one slice of it, in
/// registers. Lanes compute the weights of 32 samples at a time, one sample each, which all slices share;
/// then the team goes through these samples together. Weights of all cells of a row are used, zeros too, so
/// that the registers are addressed by constants; two rows at a time are skipped where both are out of reach.
template <class Space, int MaxWidth, class T, int Dim>
struct SpreadTiles {
  using Edges = TileEdges<Dim>;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;
  using Complex = Kokkos::complex<T>;
  static constexpr int teams =
      sizeof(T) == 4 ? gpu_gridding_tuning.spread_teams_float : gpu_gridding_tuning.spread_teams_double;
  static constexpr int lanes = gpu_gridding_tuning.tile_slices, columns = Edges::columns, rows = Edges::rows;
  static constexpr int ahead = 4; ///< samples that are loaded before they are used
  /// Of the weights of one sample: an odd number of quadruples, which lanes write without bank conflicts.
  static constexpr int stride = (columns + rows) / 4 % 2 == 1 ? columns + rows : columns + rows + 4;
  static constexpr int weights_size = lanes * stride, exchange_size = lanes * (columns + 1) * 2;

  SpreadingProblem<T, Dim> problem;
  TapTable<T, MaxWidth> taps;
  TileGrid<Dim> tiles;
  const std::uint32_t* list;
  const TileTask* tasks;
  int slice_chunks;
  SampleArray<const Complex> samples;
  Complex* grid;
  Complex* partial; ///< [slots, slice chunks, cells, lanes]

  static constexpr std::size_t scratch_bytes() {
    return (weights_size > exchange_size ? weights_size : exchange_size) * sizeof(T) +
           (lanes + ahead) * sizeof(std::uint64_t) + 64;
  }

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices,
                     const SampleArray<const Complex>& samples, Complex* grid) {
    using Policy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<lanes, resident_teams<Space>(teams)>>;
    const auto& lists = plan.tiles;
    const int chunks = plan.tiles.slice_chunks(slices), tasks = static_cast<int>(lists.tasks.size());
    const SpreadTiles functor{plan.problem_of(slices),
                              plan.template taps<MaxWidth>(),
                              lists.tiles,
                              lists.list.data(),
                              lists.tasks.data(),
                              chunks,
                              samples,
                              grid,
                              plan.tiles.partial.data()};
    launch_kernel("Bracewell::Gridding::spread_tiles",
                  Policy(space, tasks * chunks, +lanes).set_scratch_size(0, Kokkos::PerTeam(scratch_bytes())),
                  functor);
    JoinPartialSums<Space, T, Dim>::launch(space, plan, slices, grid);
  }

  struct alignas(4 * sizeof(T)) Quad {
    T value[4];
  };

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const TileTask task = tasks[team.league_rank() / slice_chunks];
    const int chunk = team.league_rank() % slice_chunks, lane = team.team_rank();
    const std::int64_t slice = std::int64_t(chunk) * lanes + lane;
    const bool active = slice < problem.slices;
    auto* const weights = static_cast<T*>(team.team_scratch(0).get_shmem_aligned(
        (weights_size > exchange_size ? weights_size : exchange_size) * sizeof(T), 32));
    auto* const offsets = static_cast<std::uint64_t*>(
        team.team_scratch(0).get_shmem_aligned((lanes + ahead) * sizeof(std::uint64_t), 16));
    int origin[Dim];
    tiles.origin(task.tile, origin);

    T real[rows][columns], imaginary[rows][columns];
    BRACEWELL_UNROLL_FOR (int r = 0; r < rows; ++r) {
      BRACEWELL_UNROLL_FOR (int c = 0; c < columns; ++c)
        real[r][c] = imaginary[r][c] = 0;
    }

    const Complex* const source = samples.data + (active ? slice : 0) * samples.slice_stride;
    const auto point_stride = static_cast<std::uint32_t>(samples.point_stride);
    const auto load = [&](int i) { return source[offsets[i]]; };
    for (std::int64_t base = task.begin; base < task.end; base += lanes) {
      const int count = static_cast<int>(Kokkos::min(std::int64_t(lanes), task.end - base));
      team.team_barrier();
      // Lanes without a sample repeat the first one with weights of zero: the loop below works in whole
      // groups.
      const std::uint32_t point = list[base + (lane < count ? lane : 0)];
      const std::uint64_t offset = std::uint64_t(point) * point_stride;
      offsets[lane] = offset;
      if (lane < ahead)
        offsets[lanes + lane] = offset;
      prepare(point, origin, lane < count, weights + lane * stride);
      team.team_barrier();
      Complex value[ahead]; // of samples i .. i + ahead - 1, on their way
      BRACEWELL_UNROLL_FOR (int u = 0; u < ahead; ++u)
        value[u] = load(u);
      for (int i = 0; i < count; i += ahead) {
        BRACEWELL_UNROLL_FOR (int u = 0; u < ahead; ++u) {
          add(value[u], weights + (i + u) * stride, real, imaginary);
          value[u] = load(i + u + ahead);
        }
      }
    }
    if (task.slot >= 0)
      store_partial(task.slot, chunk, lane, real, imaginary);
    else
      store(team, origin, std::int64_t(chunk) * lanes, weights, real, imaginary);
  }

private:
  /// Weights of the tile's columns and rows for one sample.
  KOKKOS_FUNCTION void prepare(std::uint32_t point, const int (&origin)[Dim], bool used, T* target) const {
    const Location<T, Dim> at = problem.locations[point];
    T values[Dim][MaxWidth], all[columns + rows];
    evaluate_taps(taps, at, values);
    BRACEWELL_UNROLL_FOR (int d = 0; d < Dim; ++d)
      shift(values[d], tiles.relative(at.first[d], origin[d], d));
    BRACEWELL_UNROLL_FOR (int c = 0; c < columns; ++c)
      all[c] = used ? values[0][c] : T(0);
    BRACEWELL_UNROLL_FOR (int r = 0; r < rows; ++r) {
      all[columns + r] = used ? values[1][r % Edges::y] : T(0);
      if constexpr (Dim == 3)
        all[columns + r] *= values[2][r / Edges::y];
    }
    BRACEWELL_UNROLL_FOR (int i = 0; i < columns + rows; i += 4)
      *reinterpret_cast<Quad*>(target + i) = {{all[i], all[i + 1], all[i + 2], all[i + 3]}};
  }

  /// Moves the taps of a sample to the cells of the tile, from its first tap on, by powers of two: registers
  /// cannot be addressed otherwise.
  KOKKOS_FUNCTION static void shift(T (&values)[MaxWidth], int first) {
    static_assert(MaxWidth >= columns && MaxWidth >= rows);
    BRACEWELL_UNROLL_FOR (int step = 1; step < MaxWidth; step *= 2) {
      const bool forward = first > 0 && (first & step), backward = first < 0 && (-first & step);
      T moved[MaxWidth];
      BRACEWELL_UNROLL_FOR (int i = 0; i < MaxWidth; ++i) {
        const T before = i >= step ? values[(i + MaxWidth - step) % MaxWidth] : T(0);
        const T behind = i + step < MaxWidth ? values[(i + step) % MaxWidth] : T(0);
        moved[i] = forward ? before : backward ? behind : values[i];
      }
      BRACEWELL_UNROLL_FOR (int i = 0; i < MaxWidth; ++i)
        values[i] = moved[i];
    }
  }

  KOKKOS_FUNCTION static void add(const Complex& value, const T* weights, T (&real)[rows][columns],
                                  T (&imaginary)[rows][columns]) {
    T across[columns], down[rows];
    BRACEWELL_UNROLL_FOR (int c = 0; c < columns; c += 4)
      *reinterpret_cast<Quad*>(across + c) = *reinterpret_cast<const Quad*>(weights + c);
    BRACEWELL_UNROLL_FOR (int r = 0; r < rows; r += 4)
      *reinterpret_cast<Quad*>(down + r) = *reinterpret_cast<const Quad*>(weights + columns + r);
    BRACEWELL_UNROLL_FOR (int first = 0; first < rows;
                          first += 2) { // two rows: a branch costs as much as a few additions
      if (down[first] == 0 && down[first + 1] == 0)
        continue;
      BRACEWELL_UNROLL_FOR (int r = first; r < first + 2; ++r) {
        const T re = down[r] * value.real(), im = down[r] * value.imag();
        BRACEWELL_UNROLL_FOR (int c = 0; c < columns; ++c) {
          real[r][c] += across[c] * re;
          imaginary[r][c] += across[c] * im;
        }
      }
    }
  }

  KOKKOS_FUNCTION void store_partial(int slot, int chunk, int lane, const T (&real)[rows][columns],
                                     const T (&imaginary)[rows][columns]) const {
    Complex* const target =
        partial + (std::int64_t(slot) * slice_chunks + chunk) * Edges::cells * lanes + lane;
    BRACEWELL_UNROLL_FOR (int r = 0; r < rows; ++r) {
      BRACEWELL_UNROLL_FOR (int c = 0; c < columns; ++c)
        target[(r * columns + c) * lanes] = Kokkos::complex<T>(real[r][c], imaginary[r][c]);
    }
  }

  /// Rows go through scratch memory, so that neighbouring lanes write neighbouring cells.
  KOKKOS_FUNCTION void store(const Team& team, const int (&origin)[Dim], std::int64_t first_slice,
                             T* exchange, const T (&real)[rows][columns],
                             const T (&imaginary)[rows][columns]) const {
    const int lane = team.team_rank();
    auto* const row = reinterpret_cast<Complex*>(exchange);
    BRACEWELL_UNROLL_FOR (int r = 0; r < rows; ++r) {
      team.team_barrier();
      BRACEWELL_UNROLL_FOR (int c = 0; c < columns; ++c)
        row[lane * (columns + 1) + c] = Kokkos::complex<T>(real[r][c], imaginary[r][c]);
      team.team_barrier();
      int y = origin[1] + r;
      std::int64_t above = 0;
      if constexpr (Dim == 3) {
        y = origin[1] + r % Edges::y;
        const int z = origin[2] + r / Edges::y;
        if (z >= problem.grid.size[2])
          continue;
        above = std::int64_t(z) * problem.grid.size[1];
      }
      if (y >= problem.grid.size[1])
        continue;
      const std::int64_t at = (above + y) * problem.grid.size[0] + origin[0];
      for (int i = lane; i < lanes * columns; i += lanes) {
        const int c = i % columns;
        const std::int64_t slice = first_slice + i / columns;
        if (slice < problem.slices && origin[0] + c < problem.grid.size[0])
          grid[slice * problem.grid.elements() + at + c] = row[i / columns * (columns + 1) + c];
      }
    }
  }
};

} // namespace Bracewell::Impl
