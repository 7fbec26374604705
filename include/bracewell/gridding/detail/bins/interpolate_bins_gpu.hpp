// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/bin_grid.hpp>
#include <bracewell/gridding/detail/bins/bin_tasks.hpp>
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/unroll.hpp>

namespace Bracewell::Impl {

/// The polynomial of a lane's tap in registers: its last degree + 1 elements.
template <int width, class T>
struct LaneTap {
  T polynomial[width + 5];

  KOKKOS_FORCEINLINE_FUNCTION LaneTap(const TapWeights<T>& kernel, int tap) {
    BRACEWELL_UNROLL_FOR (int power = 0; power < width + 5; ++power) {
      const int row = power - (width + 4 - kernel.degree);
      polynomial[power] = row >= 0 && tap < width ? kernel.table[row * kernel.stride + tap] : T(0);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION T weight(T offset) const {
    const T u = 2 * offset - T(width - 1);
    T result = polynomial[0];
    BRACEWELL_UNROLL_FOR (int power = 1; power < width + 5; ++power)
      result = result * u + polynomial[power];
    return result;
  }
};

/// GriddingInterpolation::Bins on GPUs in 2D and 3D, the transpose of SpreadBinsGpu: samples in the order of bins, `lanes` neighbours for each, which take
/// the taps of a row. A lane evaluates one tap along every axis, with the polynomial of this tap in registers.
template <class Space, int width, class T, int Dim>
struct InterpolateBinsGpu {
  using Complex = Kokkos::complex<T>;
  static constexpr int lanes = width <= 4 ? 4 : width <= 8 ? 8 : 16;
  static constexpr int team_size = 128, together = team_size / lanes;
  using Policy =
      Kokkos::TeamPolicy<Space,
                         Kokkos::LaunchBounds<team_size, resident_teams<Space>(sizeof(T) == 4 ? 6 : 4)>>;
  using Team = typename Policy::member_type;

  SpreadingProblem<T, Dim> problem;
  const std::uint32_t* order;
  const Complex* grid;
  SampleArray<Complex> samples;
  std::int64_t rounds; ///< of a team

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices, const Complex* grid,
                     const SampleArray<Complex>& samples) {
    const std::int64_t rounds = 16, chunk = together * rounds;
    const InterpolateBinsGpu functor{plan.problem_of(slices), plan.sorted.order.data(), grid, samples,
                                     rounds};
    Kokkos::parallel_for(
        "Bracewell::Gridding::interpolate_bins",
        Policy(space, static_cast<int>((plan.problem.points + chunk - 1) / chunk * slices), +team_size),
        functor);
  }

  KOKKOS_FUNCTION void operator()([[maybe_unused]] const Team& team) const {
    KOKKOS_IF_ON_DEVICE((interpolate(team);))
  }

private:
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  __device__ __forceinline__ void interpolate(const Team& team) const {
    const int lane = team.team_rank() % lanes;
    const std::int64_t chunk = team.league_rank() / problem.slices,
                       slice = team.league_rank() % problem.slices;
    const LaneTap<width, T> tap(problem.kernel, lane);
    const Complex* const source = grid + slice * problem.grid.elements();
    const std::int64_t begin = chunk * rounds * together, last = problem.points - 1;
    const std::int64_t end = Kokkos::min(begin + rounds * together, problem.points);
    const int group = team.team_rank() / lanes;
    Location<T, Dim> next = problem.locations[Kokkos::min(begin + group, last)];
    std::uint32_t next_sample = order[Kokkos::min(begin + group, last)];
    for (std::int64_t base = begin; base < end; base += together) { // the whole team
      const Location<T, Dim> at = next;
      const std::uint32_t sample = next_sample;
      next = problem.locations[Kokkos::min(base + together + group, last)];
      next_sample = order[Kokkos::min(base + together + group, last)];
      T weights[Dim];
      BRACEWELL_UNROLL_FOR (int d = 0; d < Dim; ++d)
        weights[d] = tap.weight(at.offset[d]);
      const Complex sum = any_lane(at.first[1] + width > problem.grid.size[1])
                              ? column<true>(source, at, lane, weights)
                              : column<false>(source, at, lane, weights);
      T real = weights[0] * sum.real(), imaginary = weights[0] * sum.imag();
      BRACEWELL_UNROLL_FOR (int bit = 1; bit < lanes; bit *= 2) {
        real += from_opposite_lane(real, bit);
        imaginary += from_opposite_lane(imaginary, bit);
      }
      if (lane == 0 && base + group <= last)
        samples(sample, slice) = Complex(real, imaginary);
    }
  }

  /// The sum over a column of taps, one plane after the other in 3D; `wraps` where rows may lie beyond the grid.
  template <bool wraps>
  __device__ __forceinline__ Complex column(const Complex* source, const Location<T, Dim>& at, int lane,
                                            const T (&weights)[Dim]) const {
    const std::int64_t stride = problem.grid.size[0];
    source += problem.grid.wrapped(at.first[0] + Kokkos::min(lane, width - 1), 0);
    T down[width];
    BRACEWELL_UNROLL_FOR (int j = 0; j < width; ++j)
      down[j] = from_lane<lanes>(weights[1], j);
    Complex sum(0);
    for (int k = 0; k < (Dim == 3 ? width : 1); ++k) {
      const Complex* row = source;
      if constexpr (Dim == 3)
        row += std::int64_t(problem.grid.wrapped(at.first[2] + k, 2)) * problem.grid.size[1] * stride;
      row += at.first[1] * stride;
      Complex plane(0);
      BRACEWELL_UNROLL_FOR (int j = 0; j < width; ++j) {
        const Complex value = *row;
        plane = Complex(plane.real() + down[j] * value.real(), plane.imag() + down[j] * value.imag());
        row += stride;
        if (wraps && at.first[1] + j + 1 == problem.grid.size[1])
          row -= problem.grid.size[1] * stride;
      }
      if constexpr (Dim == 2) {
        sum = plane;
      } else {
        const T factor = from_lane<lanes>(weights[Dim - 1], k);
        sum = Complex(sum.real() + factor * plane.real(), sum.imag() + factor * plane.imag());
      }
    }
    return sum;
  }
#endif
};

/// GriddingInterpolation::BinTiles, in 3D in double on GPUs where bins hold samples enough to pay for copying: a
/// team copies the tile of a task to scratch memory, where rows of taps begin anywhere at no cost, and its
/// warps take a sample each, their lanes side by side on the taps of a plane.
template <class Space, int width>
struct InterpolateBinTiles {
  using T = double;
  using Complex = Kokkos::complex<T>;
  static constexpr int chip_team_size = 512, warps = chip_team_size / 32;
  static constexpr int chip_teams = 1;                     ///< of a multiprocessor, by registers
  static constexpr int passes = (width * width + 31) / 32; ///< over the taps of a plane
  static constexpr int rows_at_once = 8;                   ///< of the grid, on their way

  BinGrid<3> bins;
  SpreadingProblem<T, 3> problem;
  const BinTask* tasks;
  const std::uint32_t* order;
  const Complex* grid;
  SampleArray<Complex> samples;

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices, const Complex* grid,
                     const SampleArray<Complex>& samples) {
    const InterpolateBinTiles functor{
        plan.sorted.bins, plan.problem_of(slices), plan.sorted.tasks.data(), plan.sorted.order.data(), grid,
        samples};
    const int teams = static_cast<int>(plan.sorted.tasks.size()) * static_cast<int>(slices);
    launch_teams(space, "Bracewell::Gridding::interpolate_bin_tiles", teams,
                 plan.sorted.bins.tile_cells() * sizeof(Complex) + 64, functor);
  }

  template <class Team>
  KOKKOS_FUNCTION void run([[maybe_unused]] const Team& team, [[maybe_unused]] void* scratch) const {
    KOKKOS_IF_ON_DEVICE((run_on_device(team, static_cast<Complex*>(scratch));))
  }

private:
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  template <class Team>
  __device__ __forceinline__ void run_on_device(const Team& team, Complex* tile) const {
    const BinTask task = tasks[team.number() / problem.slices];
    const std::int64_t slice = team.number() % problem.slices;
    const int lane = team.rank() % 32, tap = lane % 16, half = lane / 16;
    const TileOnGrid<3> place(bins, task.bin);
    copy(team.rank(), place, grid + slice * problem.grid.elements(), tile);
    const LaneTap<width, T> of_lane(problem.kernel, tap);
    // The tap of a lane in a pass over a plane; lanes beyond the last one repeat the first.
    int across[passes], down[passes];
    BRACEWELL_UNROLL_FOR (int p = 0; p < passes; ++p) {
      const int at = p * 32 + lane;
      across[p] = at < width * width ? at % width : 0;
      down[p] = at < width * width ? at / width : 0;
    }
    const std::uint32_t last = task.end - 1;
    std::uint32_t point = Kokkos::min(task.begin + team.rank() / 32, last);
    Location<T, 3> next = problem.locations[point];
    std::uint32_t next_sample = order[point];
    team.barrier();
    for (std::uint32_t i = task.begin + team.rank() / 32; i < task.end; i += warps) {
      const Location<T, 3> at = next;
      const std::uint32_t sample = next_sample;
      point = Kokkos::min(i + warps, last);
      next = problem.locations[point];
      next_sample = order[point];
      // Weights of axis 0 in the first 16 lanes and of axis 1 in the others; of axis 2 in both.
      const T in_plane = of_lane.weight(half == 0 ? at.offset[0] : at.offset[1]);
      const T through = of_lane.weight(at.offset[2]);
      int first[3];
      BRACEWELL_UNROLL_FOR (int d = 0; d < 3; ++d)
        first[d] = at.first[d] - place.origin[d];
      const int plane = bins.span(1) * bins.stride;
      const Complex* source = tile + (first[2] * bins.span(1) + first[1]) * bins.stride + first[0];
      Complex sums[passes];
      BRACEWELL_UNROLL_FOR (int p = 0; p < passes; ++p)
        sums[p] = Complex(0);
      BRACEWELL_UNROLL_FOR (int k = 0; k < width; ++k) {
        const T factor = from_lane<32>(through, k);
        BRACEWELL_UNROLL_FOR (int p = 0; p < passes; ++p) {
          const Complex value = source[down[p] * bins.stride + across[p]];
          sums[p] = Complex(sums[p].real() + factor * value.real(), sums[p].imag() + factor * value.imag());
        }
        source += plane;
      }
      T real = 0, imaginary = 0;
      BRACEWELL_UNROLL_FOR (int p = 0; p < passes; ++p) {
        T factor = from_lane<32>(in_plane, across[p]) * from_lane<32>(in_plane, 16 + down[p]);
        if (p * 32 + lane >= width * width)
          factor = 0;
        real += factor * sums[p].real();
        imaginary += factor * sums[p].imag();
      }
      // The first 16 lanes add up real parts, the others imaginary ones.
      T sum = (half == 0 ? real : imaginary) + from_opposite_lane(half == 0 ? imaginary : real, 16);
      BRACEWELL_UNROLL_FOR (int bit = 8; bit > 0; bit /= 2)
        sum += from_opposite_lane(sum, bit);
      if (tap == 0)
        reinterpret_cast<T*>(&samples(sample, slice))[half] = sum;
    }
  }

  /// The cells of a tile from the grid, rows by warps.
  __device__ __forceinline__ void copy(int rank, const TileOnGrid<3>& place, const Complex* source,
                                       Complex* tile) const {
    for (int x = rank % 32; x < place.length[0]; x += 32) {
      const int column = bins.grid.wrapped(place.origin[0] + x, 0);
      for (int first = rank / 32; first < bins.tile_rows(); first += rows_at_once * warps) {
        Complex values[rows_at_once];
        BRACEWELL_UNROLL_FOR (int i = 0; i < rows_at_once; ++i) {
          const int row = first + i * warps;
          const std::int64_t begin = row < bins.tile_rows() ? place.row(row) : -1;
          values[i] = begin >= 0 ? source[begin + column] : Complex(0);
        }
        BRACEWELL_UNROLL_FOR (int i = 0; i < rows_at_once; ++i)
          if (first + i * warps < bins.tile_rows())
            tile[(first + i * warps) * bins.stride + x] = values[i];
      }
    }
  }
#endif
};

} // namespace Bracewell::Impl
