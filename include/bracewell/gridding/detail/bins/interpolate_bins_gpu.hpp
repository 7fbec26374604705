// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/unroll.hpp>

namespace Bracewell::Impl {

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
    constexpr int powers = width + 5;
    const int lane = team.team_rank() % lanes;
    const std::int64_t chunk = team.league_rank() / problem.slices,
                       slice = team.league_rank() % problem.slices;
    T polynomial[powers]; // its last degree + 1 elements
    BRACEWELL_UNROLL_FOR (int power = 0; power < powers; ++power) {
      const int row = power - (powers - 1 - problem.kernel.degree);
      polynomial[power] =
          row >= 0 && lane < width ? problem.kernel.table[row * problem.kernel.stride + lane] : T(0);
    }
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
      BRACEWELL_UNROLL_FOR (int d = 0; d < Dim; ++d) {
        const T u = 2 * at.offset[d] - T(width - 1);
        weights[d] = polynomial[0];
        BRACEWELL_UNROLL_FOR (int power = 1; power < powers; ++power)
          weights[d] = weights[d] * u + polynomial[power];
      }
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
    source += wrapped(at.first[0] + Kokkos::min(lane, width - 1), 0);
    T down[width];
    BRACEWELL_UNROLL_FOR (int j = 0; j < width; ++j)
      down[j] = from_lane<lanes>(weights[1], j);
    Complex sum(0);
    for (int k = 0; k < (Dim == 3 ? width : 1); ++k) {
      const Complex* row = source;
      if constexpr (Dim == 3)
        row += std::int64_t(wrapped(at.first[2] + k, 2)) * problem.grid.size[1] * stride;
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

  __device__ __forceinline__ int wrapped(int cell, int axis) const {
    return cell < problem.grid.size[axis] ? cell : cell - problem.grid.size[axis];
  }
#endif
};

} // namespace Bracewell::Impl
