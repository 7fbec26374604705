// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/boxes/box_search.hpp>
#include <bracewell/impl/matrix_units.hpp>

namespace Bracewell::Impl {

/// GriddingStrategy::MatrixBoxes: volumes of points that do not crowd, by matrix units. Spreading is a sum of outer
/// products: of a column of weights along x and y with a row of weights along z times the sample. A team owns a box of
/// cells of one slice, and each of its warps blocks of it, whose sums its lanes keep while they multiply matrices of
/// the samples that reach a block, `depth` at a time (zeros where these do not).
template <class Space, int MaxWidth, class T>
struct SpreadMatrixBoxes : BoxSearch<SpreadMatrixBoxes<Space, MaxWidth, T>, Space, T, matrix_box_edge> {
  using Search = BoxSearch<SpreadMatrixBoxes, Space, T, matrix_box_edge>;
  using Search::chip_team_size, Search::dimensions, Search::edge, Search::problem, Search::team_scratch,
      Search::warps;
  using typename Search::Reaching;
  using Complex = Kokkos::complex<T>;
  using Pack = BoxPack<T>;
  static constexpr int block_rows = sizeof(T) == 4 ? 8 : 4, passes = 8 / block_rows; ///< blocks of a warp
  static constexpr int steps = sizeof(T) == 4 ? 2 : 1, depth = 4 * steps; ///< a lane has every fourth sample
  static constexpr int stride = Pack::stride(3 * edge), padding = 2 * depth;

  TapTable<T, MaxWidth> taps;
  SampleArray<const Complex> samples;
  Complex* grid;

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices,
                     const SampleArray<const Complex>& samples, Complex* grid) {
    const SpreadMatrixBoxes functor{Search(plan, slices), plan.template taps<MaxWidth>(), samples, grid};
    launch_teams(space, "Bracewell::Gridding::spread_bins_matrices",
                 static_cast<int>(Search::boxes(plan.problem.grid) * slices), team_scratch, functor);
  }

private:
  friend Search;
  using Layout = typename Search::template Layout<stride, 1, 0, padding>;
  static constexpr int room = Layout::room;
  /// Samples that are prepared together, at most: so many that few lanes, of which each has an axis of one at a time,
  /// are idle.
  static constexpr int rounds = room * dimensions / chip_team_size,
                       chunk = room * dimensions % chip_team_size < chip_team_size / 2
                                   ? rounds * chip_team_size / dimensions
                                   : room;
  static_assert(rounds > 0);

  using Scratch = typename Layout::template Scratch<chunk>;

#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  using typename Search::Box;
  using Sums = T[passes][block_rows][2][2]; ///< real and imaginary, of two planes

  template <class Team>
  __device__ __forceinline__ void run_on_device(const Team& team, const Scratch& scratch) const {
    const int rank = team.rank(), lane = rank % 32, warp = rank / 32;
    const int number = static_cast<int>(team.number() / problem.slices);
    const std::int64_t slice = team.number() % problem.slices;
    const Box box = this->box(number);
    for (int i = rank; i < stride; i += chip_team_size)
      scratch.weights[chunk * stride + i] = 0;
    if (rank == 0)
      scratch.values[chunk] = Complex(0);
    // Blocks of eight cells along every axis.
    const int block[3] = {warp % 2 * 8, warp / 2 % 2 * 8, warp / 4 * 8};
    const bool on_grid = block[0] < box.length[0] && block[1] < box.length[1] && block[2] < box.length[2];
    Sums sums = {};
    this->for_samples_of_box(team, number, box, scratch.search, false,
                             [&](const Reaching* reaching, int count) {
                               prepare(rank, count, reaching, box, slice, scratch);
                               wait_for_copies();
                               team.barrier();
                               if (on_grid)
                                 add(lane, warp, count, block, scratch, sums);
                               team.barrier();
                             });
    if (on_grid)
      store(lane, block, box, slice, sums);
  }

  /// Values of samples, and their weights along the box.
  __device__ __forceinline__ void prepare(int rank, int count, const Reaching* reaching, const Box& box,
                                          std::int64_t slice, const Scratch& scratch) const {
    for (int i = rank; i < count; i += chip_team_size)
      copy_ahead(scratch.values + i, &samples(reaching[i].sample, slice));
    auto* const corners = reinterpret_cast<unsigned char*>(scratch.corners);
    for (int i = rank; i < dimensions * count; i += chip_team_size) { // a lane has an axis of a sample
      const int axis = i / count, sample = i - axis * count;
      const Location<T, dimensions>& at = problem.locations[reaching[sample].place];
      int first = 0;
      BRACEWELL_UNROLL_FOR (int d = 0; d < dimensions; ++d) // registers have no index
        first = d == axis ? this->relative(at.first[d], box, d) : first;
      corners[sizeof(int) * sample + axis] = static_cast<unsigned char>(first + problem.kernel.width - 1);
      write_weights_along_box<edge>(taps, at.offset[axis], first,
                                    scratch.weights + sample * stride + axis * edge);
    }
  }

  __device__ __forceinline__ void add(int lane, int warp, int count, const int (&block)[3],
                                      const Scratch& scratch, Sums& sums) const {
    std::uint16_t* const list = scratch.lists + warp * (chunk + padding);
    BRACEWELL_UNROLL_FOR (int pass = 0; pass < passes; ++pass) {
      const int here[3] = {block[0], block[1] + pass * block_rows, block[2]};
      const int found =
          this->template select<8, block_rows, 8>(lane, count, here, scratch.corners, list, padding, chunk);
      add_listed(lane, found, here, list, scratch, sums[pass]);
      synchronise_lanes(); // before the list is written again
    }
  }

  /// Adds the listed samples, a lane the products of row `lane` / 4 of the cells along x.
  __device__ __forceinline__ void add_listed(int lane, int found, const int (&block)[3],
                                             const std::uint16_t* list, const Scratch& scratch,
                                             T (&sums)[block_rows][2][2]) const {
    const T* const weights_x = scratch.weights + block[0] + lane / 4;
    const T* const weights_y = scratch.weights + edge + block[1];
    const T* const weights_z = scratch.weights + 2 * edge + block[2] + lane / 4;
    list += lane % 4;
    int next[steps];
    BRACEWELL_UNROLL_FOR (int s = 0; s < steps; ++s)
      next[s] = list[4 * s];
    for (int i = 0; i < found; i += depth) {
      T columns[block_rows][steps], rows[2][steps];
      BRACEWELL_UNROLL_FOR (int s = 0; s < steps; ++s) {
        const int sample = next[s];
        next[s] = list[i + depth + 4 * s];
        const T x = weights_x[sample * stride], z = weights_z[sample * stride];
        const Complex value = scratch.values[sample];
        rows[0][s] = z * value.real();
        rows[1][s] = z * value.imag();
        BRACEWELL_UNROLL_FOR (int y = 0; y < block_rows; y += Pack::size) {
          const Pack pack = *reinterpret_cast<const Pack*>(weights_y + sample * stride + y);
          BRACEWELL_UNROLL_FOR (int j = 0; j < Pack::size; ++j)
            columns[y + j][s] = x * pack.value[j];
        }
      }
      multiply(columns, rows, sums);
    }
  }

  /// sums += columns rows: lane 4 x + k has weights of cells x, y and planes x of samples k + 4 s, and sums of cells
  /// x, y, planes 2 k and 2 k + 1.
  __device__ __forceinline__ static void multiply(const double (&columns)[block_rows][steps],
                                                  const double (&rows)[2][steps],
                                                  double (&sums)[block_rows][2][2]) {
    BRACEWELL_UNROLL_FOR (int y = 0; y < block_rows; ++y) {
      BRACEWELL_UNROLL_FOR (int part = 0; part < 2; ++part)
        multiply_by_warp(sums[y][part], columns[y][0], rows[part][0]);
    }
  }

  /// Of the four products of split floats the least is left out, 2^-21 of the whole at most; it has either sign where
  /// one of the two is rounded. Matrix units round sums towards zero, so that those of eight samples are added by other
  /// means.
  __device__ __forceinline__ static void multiply(const float (&columns)[block_rows][steps],
                                                  const float (&rows)[2][steps],
                                                  float (&sums)[block_rows][2][2]) {
    SplitFloats<steps> b[2];
    BRACEWELL_UNROLL_FOR (int part = 0; part < 2; ++part) {
      BRACEWELL_UNROLL_FOR (int s = 0; s < steps; ++s)
        b[part].set_rounded(s, rows[part][s]);
    }
    BRACEWELL_UNROLL_FOR (int y = 0; y < block_rows;
                          y += 2) { // two rows of eight cells are the sixteen of a matrix
      SplitFloats<4> a;
      BRACEWELL_UNROLL_FOR (int i = 0; i < 4; ++i)
        a.set(i, columns[y + i % 2][i / 2]);
      BRACEWELL_UNROLL_FOR (int part = 0; part < 2; ++part) {
        float products[4] = {};
        multiply_by_warp(products, a.low, b[part].high);
        multiply_by_warp(products, a.high, b[part].low);
        multiply_by_warp(products, a.high, b[part].high);
        BRACEWELL_UNROLL_FOR (int i = 0; i < 4; ++i)
          sums[y + i / 2][part][i % 2] += products[i];
      }
    }
  }

  /// To the grid, lanes side by side on rows of eight cells.
  __device__ __forceinline__ void store(int lane, const int (&block)[3], const Box& box, std::int64_t slice,
                                        const Sums& sums) const {
    const int x = block[0] + lane / 4;
    if (x >= box.length[0])
      return;
    Complex* const target = grid + slice * problem.grid.elements() + box.origin[0] + x;
    BRACEWELL_UNROLL_FOR (int pass = 0; pass < passes; ++pass) {
      BRACEWELL_UNROLL_FOR (int row = 0; row < block_rows; ++row) {
        BRACEWELL_UNROLL_FOR (int j = 0; j < 2; ++j) {
          const int y = block[1] + pass * block_rows + row, z = block[2] + lane % 4 * 2 + j;
          if (y < box.length[1] && z < box.length[2])
            target[(std::int64_t(box.origin[2] + z) * problem.grid.size[1] + box.origin[1] + y) *
                   problem.grid.size[0]] = Complex(sums[pass][row][0][j], sums[pass][row][1][j]);
        }
      }
    }
  }
#endif
};

} // namespace Bracewell::Impl
