// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/plan.hpp>

namespace Bracewell::Impl {

/// GriddingStrategy::Tiles on hosts. A thread owns a tile of the grid and adds the taps of the samples that
/// reach it to a buffer in which `Lanes` slices are innermost, for SIMD instructions.
template <class Space, int Lanes, int MaxWidth, class T, int Dim>
struct SpreadTilesHost {
  using Plan = GriddingPlan<Space, T, Dim>;
  using Edges = TileEdges<Space, T, Dim>;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;
  static constexpr int parts = 2 * Lanes; ///< of a cell: real and imaginary parts of the slices

  SpreadingProblem<T, Dim> problem;
  TapTable<T, MaxWidth> taps;
  TileGrid<Edges, Dim> tiles;
  const std::uint32_t* list;
  const TileTask* tasks;
  SampleArray<const Kokkos::complex<T>> samples;
  Kokkos::complex<T>* grid;

  static constexpr std::size_t scratch_bytes() { return Edges::cells * parts * sizeof(T) + 64; }

  static void launch(const Space& space, const Plan& plan, std::int64_t slices,
                     const SampleArray<const Kokkos::complex<T>>& samples, Kokkos::complex<T>* grid) {
    using Policy = Kokkos::TeamPolicy<Space, Kokkos::Schedule<Kokkos::Dynamic>>;
    const auto& lists = plan.tiles;
    Kokkos::parallel_for("Bracewell::Gridding::spread_tiles",
                         Policy(space, static_cast<int>(lists.tasks.size()), 1)
                             .set_scratch_size(1, Kokkos::PerTeam(scratch_bytes())),
                         SpreadTilesHost{plan.problem_of(slices), plan.template taps<MaxWidth>(), lists.tiles,
                                         lists.list.data(), lists.tasks.data(), samples, grid});
  }

  void operator()(const Team& team) const {
    const TileTask task = tasks[team.league_rank()];
    T* const sums =
        static_cast<T*>(team.team_scratch(1).get_shmem_aligned(Edges::cells * parts * sizeof(T), 64));
    int origin[Dim];
    tiles.origin(task.tile, origin);
    for (std::int64_t slice = 0; slice < problem.slices; slice += Lanes) {
      const int lanes = static_cast<int>(Kokkos::min(std::int64_t(Lanes), problem.slices - slice));
      for (int i = 0; i < Edges::cells * parts; ++i)
        sums[i] = 0;
      for (std::int64_t i = task.begin; i < task.end; ++i)
        add(list[i], slice, lanes, origin, sums);
      store(origin, slice, lanes, sums);
    }
  }

private:
  void add(std::uint32_t point, std::int64_t slice, int lanes, const int (&origin)[Dim], T* sums) const {
    const Location<T, Dim> at = problem.locations[point];
    T weights[Dim][MaxWidth];
    evaluate_taps(taps, at, weights);
    T value[parts] = {};
    for (int i = 0; i < lanes; ++i) {
      const Kokkos::complex<T> sample = samples(point, slice + i);
      value[2 * i] = sample.real();
      value[2 * i + 1] = sample.imag();
    }
    int first[3] = {}, from[3] = {}, to[3] = {1, 1, 1};
    for (int d = 0; d < Dim; ++d) {
      first[d] = tiles.relative(at.first[d], origin[d], d);
      from[d] = Kokkos::max(0, -first[d]);
      to[d] = Kokkos::min(problem.kernel.width, Edges::edge(d) - first[d]);
    }
    for (int k = from[2]; k < to[2]; ++k)
      for (int j = from[1]; j < to[1]; ++j) {
        T down = weights[1][j];
        if constexpr (Dim == 3)
          down *= weights[2][k];
        T* target = sums + ((first[2] + k) * Edges::y + first[1] + j) * Edges::x * parts +
                    (first[0] + from[0]) * parts;
        for (int i = from[0]; i < to[0]; ++i, target += parts) {
          const T weight = down * weights[0][i];
          for (int s = 0; s < parts; ++s)
            target[s] += weight * value[s];
        }
      }
  }

  void store(const int (&origin)[Dim], std::int64_t slice, int lanes, const T* sums) const {
    for (int lane = 0; lane < lanes; ++lane)
      for (int r = 0; r < Edges::rows; ++r) {
        const int y = origin[1] + r % Edges::y;
        std::int64_t row = y;
        if constexpr (Dim == 3) {
          const int z = origin[2] + r / Edges::y;
          if (z >= problem.grid.size[2])
            continue;
          row += std::int64_t(z) * problem.grid.size[1];
        }
        if (y >= problem.grid.size[1])
          continue;
        Kokkos::complex<T>* const target =
            grid + (slice + lane) * problem.grid.elements() + row * problem.grid.size[0] + origin[0];
        const T* const source = sums + r * Edges::x * parts + 2 * lane;
        for (int c = 0; c < Edges::x && origin[0] + c < problem.grid.size[0]; ++c)
          target[c] = Kokkos::complex<T>(source[c * parts], source[c * parts + 1]);
      }
  }
};

} // namespace Bracewell::Impl
