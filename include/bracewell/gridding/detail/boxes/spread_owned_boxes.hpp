// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/boxes/box_search.hpp>

namespace Bracewell::Impl {

/// GriddingStrategy::OwnedBoxes: several slices of points that do not crowd, in 3D. A team owns a box of cells, of eight slices;
/// it prepares each sample that reaches the box once for all slices and cells. Then its warps take blocks of the box:
/// their lanes are eight slices times four samples at a time, and keep the sums of all cells of the block in registers.
/// Weights are laid out along the box, zeros where a sample does not reach, so that registers are addressed by
/// constants.
template <class Space, int MaxWidth, class T>
struct SpreadOwnedBoxes : BoxSearch<SpreadOwnedBoxes<Space, MaxWidth, T>, Space, T, BoxLimits::owned_edge> {
  using Search = BoxSearch<SpreadOwnedBoxes, Space, T, BoxLimits::owned_edge>;
  using Search::chip_team_size, Search::dimensions, Search::edge, Search::problem, Search::team_scratch,
      Search::warps;
  using typename Search::Reaching;
  using Complex = Kokkos::complex<T>;
  using Pack = BoxPack<T>;
  static constexpr int columns = 4, rows = sizeof(T) == 8 ? 2 : 4, planes = 2; ///< of a block: its edges
  static constexpr int block_cells = columns * rows * planes;                  ///< in 64 registers of a lane
  static constexpr int slices_at_once = slices_of_box, groups = 32 / slices_at_once; ///< lanes of a warp
  static constexpr int box_cells = edge * edge * edge, passes = box_cells / block_cells / warps;
  static constexpr int stride = Pack::stride(3 * edge); ///< of weights
  static constexpr int tile_stride = block_cells + 1;   ///< of slices of a block on their way to the grid
  static_assert(passes * warps * block_cells == box_cells);

  TapTable<T, MaxWidth> taps;
  SampleArray<const Complex> samples;
  Complex* grid;
  int slice_chunks;

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices,
                     const SampleArray<const Complex>& samples, Complex* grid) {
    const int chunks = static_cast<int>((slices + slices_at_once - 1) / slices_at_once);
    const SpreadOwnedBoxes functor{Search(plan, slices), plan.template taps<MaxWidth>(), samples, grid,
                                   chunks};
    launch_teams(space, "Bracewell::Gridding::spread_bins_owned",
                 static_cast<int>(Search::boxes(plan.problem.grid) * chunks), team_scratch, functor);
  }

private:
  friend Search;
  using Layout = typename Search::template Layout<stride, slices_at_once,
                                                  warps * slices_at_once * tile_stride, 2 * groups>;
  static constexpr int chunk = Layout::room; ///< samples that are prepared together, at most
  using Scratch = typename Layout::template Scratch<chunk>;

#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  using typename Search::Box;

  template <class Team>
  __device__ __forceinline__ void run_on_device(const Team& team, const Scratch& scratch) const {
    const int rank = team.rank(), number = static_cast<int>(team.number() / slice_chunks);
    const std::int64_t first_slice = team.number() % slice_chunks * slices_at_once;
    const Box box = this->box(number);
    for (int i = rank; i < stride; i += chip_team_size)
      scratch.weights[chunk * stride + i] = 0;
    if (rank < slices_at_once)
      scratch.values[chunk * slices_at_once + rank] = Complex(0);

    bool written = false;
    const auto add_to_grid = [&](const Reaching* reaching, int count) {
      prepare(rank, count, reaching, box, first_slice, scratch);
      wait_for_copies();
      team.barrier();
      for (int pass = 0; pass < passes; ++pass)
        add_block(rank, pass, count, box, first_slice, written, scratch);
      written = true;
      team.barrier();
    };
    this->for_samples_of_box(team, number, box, scratch.search, true, add_to_grid);
  }

  /// Values of samples, of all slices, and their weights along the box. Slices that there are not repeat the last.
  __device__ __forceinline__ void prepare(int rank, int count, const Reaching* reaching, const Box& box,
                                          std::int64_t first_slice, const Scratch& scratch) const {
    const int slice = rank % slices_at_once;
    const Complex* const source = &samples(0, Kokkos::min(first_slice + slice, problem.slices - 1));
    for (int i = rank / slices_at_once; i < count; i += chip_team_size / slices_at_once)
      copy_ahead(scratch.values + i * slices_at_once + slice,
                 source + reaching[i].sample * samples.point_stride);
    for (int i = rank; i < count; i += chip_team_size) {
      const Location<T, dimensions> at = problem.locations[reaching[i].place];
      T* target = scratch.weights + i * stride;
      int corner[3];
      BRACEWELL_UNROLL_FOR (int d = 0; d < dimensions; ++d) {
        const int first = this->relative(at.first[d], box, d);
        corner[d] = first + problem.kernel.width - 1;
        write_weights_along_box<edge>(taps, at.offset[d], first, target);
        target += edge;
      }
      scratch.corners[i] = Search::packed(corner[0], corner[1], corner[2]);
    }
  }

  template <int count>
  __device__ __forceinline__ static void load(const T* from, T (&to)[count]) {
    if constexpr (count % Pack::size == 0) {
      BRACEWELL_UNROLL_FOR (int i = 0; i < count; i += Pack::size) {
        const Pack values = *reinterpret_cast<const Pack*>(from + i);
        BRACEWELL_UNROLL_FOR (int j = 0; j < Pack::size; ++j)
          to[i + j] = values.value[j];
      }
    } else {
      static_assert(count * sizeof(T) == 8);
      const Complex values = *reinterpret_cast<const Complex*>(from);
      to[0] = values.real(), to[1] = values.imag();
    }
  }

  /// Adds the samples that reach a block of the box, the warp's in a pass, and writes its cells, or adds to what
  /// is `written`.
  __device__ __forceinline__ void add_block(int rank, int pass, int count, const Box& box,
                                            std::int64_t first_slice, bool written,
                                            const Scratch& scratch) const {
    constexpr int across = edge / columns, down = edge / rows;
    const int lane = rank % 32, warp = rank / 32, number = pass * warps + warp;
    const int block[3] = {number % across * columns, number / across % down * rows,
                          number / across / down * planes};
    if (block[0] >= box.length[0] || block[1] >= box.length[1] || block[2] >= box.length[2])
      return;
    std::uint16_t* const list = scratch.lists + warp * (chunk + 2 * groups);
    const int found = this->template select<columns, rows, planes>(lane, count, block, scratch.corners, list,
                                                                   2 * groups, chunk);
    Complex sums[block_cells];
    BRACEWELL_UNROLL_FOR (int i = 0; i < block_cells; ++i)
      sums[i] = Complex(0);
    add(lane, found, block, list, scratch, sums);
    const int first = add_groups<slices_at_once, block_cells / 2>(lane, sums);
    Complex* const tile = scratch.tiles + warp * slices_at_once * tile_stride;
    BRACEWELL_UNROLL_FOR (int c = 0; c < block_cells / groups; ++c)
      tile[lane % slices_at_once * tile_stride + first + c] = sums[c];
    synchronise_lanes();
    store(lane, block, box, first_slice, written, tile);
    synchronise_lanes(); // before list and tile are written again
  }

  /// Adds the listed samples, one of every group of lanes at a time, to its sums of a block.
  __device__ __forceinline__ void add(int lane, int found, const int (&block)[3], const std::uint16_t* list,
                                      const Scratch& scratch, Complex (&sums)[block_cells]) const {
    const int group = lane / slices_at_once;
    const Complex* const values = scratch.values + lane % slices_at_once;
    const T* const weights = scratch.weights + block[0];
    const int to_rows = edge - block[0] + block[1], to_planes = 2 * edge - block[0] + block[2];
    int next = list[group];
    for (int i = 0; i < found; i += groups) {
      const int sample = next;
      next = list[i + groups + group];
      const T* const from = weights + sample * stride;
      const Complex value = values[sample * slices_at_once];
      T x[columns], y[rows], z[planes];
      load(from, x);
      load(from + to_rows, y);
      load(from + to_planes, z);
      BRACEWELL_UNROLL_FOR (int k = 0; k < planes; ++k) {
        const Complex of_plane(z[k] * value.real(), z[k] * value.imag());
        BRACEWELL_UNROLL_FOR (int j = 0; j < rows; ++j) {
          const T real = y[j] * of_plane.real(), imaginary = y[j] * of_plane.imag();
          BRACEWELL_UNROLL_FOR (int c = 0; c < columns; ++c) {
            Complex& sum = sums[(k * rows + j) * columns + c];
            sum = Complex(sum.real() + x[c] * real, sum.imag() + x[c] * imaginary);
          }
        }
      }
    }
  }

  /// Adds the sums of the groups of lanes, which keep a part of the block each; returns where it begins.
  template <int bit, int half>
  __device__ __forceinline__ static int add_groups(int lane, Complex (&sums)[block_cells]) {
    if constexpr (bit == 32) {
      return 0;
    } else {
      const bool upper = lane & bit;
      BRACEWELL_UNROLL_FOR (int c = 0; c < half; ++c) {
        const Complex kept = upper ? sums[c + half] : sums[c], sent = upper ? sums[c] : sums[c + half];
        sums[c] = Complex(kept.real() + from_opposite_lane(sent.real(), bit),
                          kept.imag() + from_opposite_lane(sent.imag(), bit));
      }
      return (upper ? half : 0) + add_groups<2 * bit, half / 2>(lane, sums);
    }
  }

  /// A block from scratch memory to the grid, lanes side by side on its rows.
  __device__ __forceinline__ void store(int lane, const int (&block)[3], const Box& box,
                                        std::int64_t first_slice, bool written, const Complex* tile) const {
    constexpr int together = 32 / block_cells; // slices
    const int cell = lane % block_cells;
    const int local[3] = {block[0] + cell % columns, block[1] + cell / columns % rows,
                          block[2] + cell / columns / rows};
    bool on_grid = true;
    std::int64_t index = 0;
    BRACEWELL_UNROLL_FOR (int d = dimensions - 1; d >= 0; --d) {
      on_grid = on_grid && local[d] < box.length[d];
      index = index * problem.grid.size[d] + box.origin[d] + local[d];
    }
    if (!on_grid)
      return;
    const int slices =
        static_cast<int>(Kokkos::min<std::int64_t>(slices_at_once, problem.slices - first_slice));
    const std::int64_t elements = problem.grid.elements();
    Complex* const target = grid + first_slice * elements + index;
    BRACEWELL_UNROLL_FOR (int base = 0; base < slices_at_once; base += together) {
      const int slice = base + lane / block_cells;
      if (slice < slices) {
        Complex sum = tile[slice * tile_stride + cell];
        if (written)
          sum += target[slice * elements];
        target[slice * elements] = sum;
      }
    }
  }
#endif
};

} // namespace Bracewell::Impl
