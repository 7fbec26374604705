// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/sorted_samples.hpp>
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/lanes.hpp>

namespace Bracewell::Impl {

/// GriddingInterpolation::DenseBins, on GPUs where points lie close together: a lane per sample. Lanes side by side
/// have neighbours in the order of bins, whose taps mostly share cache lines, so that nothing is left to be
/// summed over lanes.
template <class Space, int width, class T, int Dim>
struct InterpolateDenseBins {
  using Complex = Kokkos::complex<T>;
  using Chunks = SampleChunks<Space>;
  static constexpr int team_size = 128;
  using Policy =
      Kokkos::RangePolicy<Space,
                          Kokkos::LaunchBounds<team_size, resident_teams<Space>(sizeof(T) == 4 ? 8 : 4)>,
                          Kokkos::IndexType<std::int64_t>>;

  SpreadingProblem<T, Dim> problem;
  TapTable<T, width> taps;
  const std::uint32_t *order, *chunks;
  const Complex* grid;
  SampleArray<Complex> samples;
  std::int64_t lanes; ///< of a slice: its points, up to whole chunks

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices, const Complex* grid,
                     const SampleArray<Complex>& samples) {
    const std::int64_t lanes = Chunks::count(plan.problem.points) * Chunks::size;
    const InterpolateDenseBins functor{plan.problem_of(slices),
                                       plan.template taps<width>(),
                                       plan.sorted.order.data(),
                                       plan.sorted.chunks.order.data(),
                                       grid,
                                       samples,
                                       lanes};
    launch_kernel("Bracewell::Gridding::interpolate_dense_bins", Policy(space, 0, lanes * slices), functor);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t task) const {
    const std::int64_t slice = task / lanes, lane = task - slice * lanes;
    const std::int64_t point = std::int64_t(chunks[lane / Chunks::size]) * Chunks::size + lane % Chunks::size;
    if (point >= problem.points)
      return;
    const Location<T, Dim> at = problem.locations[point];
    const std::uint32_t sample = order[point];
    const Complex* const source = grid + slice * problem.grid.elements();
    bool wraps = false;
    for (int d = 0; d < Dim && d < 2; ++d)
      wraps = wraps || at.first[d] + width > problem.grid.size[d];
    samples(sample, slice) = any_lane(wraps) ? sum<true>(source, at) : sum<false>(source, at);
  }

private:
  /// The sum over all taps; `wraps` where some may lie beyond the end of a row or column.
  template <bool wraps>
  KOKKOS_FUNCTION Complex sum(const Complex* source, const Location<T, Dim>& at) const {
    const std::int64_t stride = problem.grid.size[0];
    T across[width], down[Dim > 1 ? width : 1] = {};
    taps.evaluate(at.offset[0], across);
    if constexpr (Dim > 1)
      taps.evaluate(at.offset[1], down);
    const int last = problem.grid.size[0] - at.first[0]; // taps before the end of a row
    Complex total(0);
    for (int k = 0; k < (Dim == 3 ? width : 1); ++k) {
      const Complex* row = source + at.first[0];
      if constexpr (Dim == 3)
        row += std::int64_t(problem.grid.wrapped(at.first[2] + k, 2)) * problem.grid.size[1] * stride;
      if constexpr (Dim > 1)
        row += at.first[1] * stride;
      Complex plane(0);
      BRACEWELL_UNROLL_FOR (int j = 0; j < (Dim > 1 ? width : 1); ++j) {
        T real = 0, imaginary = 0;
        BRACEWELL_UNROLL_FOR (int i = 0; i < width; ++i) {
          const Complex value = row[wraps && i >= last ? i - stride : i];
          real += across[i] * value.real();
          imaginary += across[i] * value.imag();
        }
        if constexpr (Dim == 1) {
          plane = Complex(real, imaginary);
        } else {
          plane = Complex(plane.real() + down[j] * real, plane.imag() + down[j] * imaginary);
          row += stride;
          if (wraps && at.first[1] + j + 1 == problem.grid.size[1])
            row -= problem.grid.size[1] * stride;
        }
      }
      if constexpr (Dim < 3) {
        total = plane;
      } else {
        const T factor = problem.kernel.evaluate_one(at.offset[2], k);
        total = Complex(total.real() + factor * plane.real(), total.imag() + factor * plane.imag());
      }
    }
    return total;
  }
};

} // namespace Bracewell::Impl
