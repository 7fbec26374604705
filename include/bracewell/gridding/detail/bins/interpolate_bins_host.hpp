// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/tap_vectors.hpp>
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/impl/host_tasks.hpp>

#include <type_traits>

namespace Bracewell::Impl {

/// GriddingInterpolation::Bins on hosts: samples in the order of bins, SIMD instructions along rows of taps.
template <class Space, int MaxWidth, class T, int Dim>
struct InterpolateBinsHost {
  using Complex = Kokkos::complex<T>;

  SpreadingProblem<T, Dim> problem;
  const std::uint32_t* order;
  const Complex* grid;
  SampleArray<Complex> samples;

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices, const Complex* grid,
                     const SampleArray<Complex>& samples) {
    const InterpolateBinsHost functor{plan.problem_of(slices), plan.sorted.order.data(), grid, samples};
    launch_kernel("Bracewell::Gridding::interpolate_bins",
                  typename Plan::Range(space, 0, functor.chunks() * slices), functor);
  }

  void operator()(std::int64_t task) const {
    const std::int64_t begin = task % chunks() * chunk, end = std::min(begin + chunk, problem.points),
                       slice = task / chunks();
    run_with_vectors(*this, begin, end, slice);
  }

  template <int bytes>
  BRACEWELL_INLINE_FOR_TARGET void run(std::int64_t begin, std::int64_t end, std::int64_t slice) const {
    // No store changes a copy, so it stays in registers. In 3D no registers are left for it.
    const std::conditional_t<Dim == 3, const InterpolateBinsHost&, InterpolateBinsHost> from = *this;
    const T* const source = reinterpret_cast<const T*>(grid + slice * problem.grid.elements());
    for (std::int64_t i = begin; i < end; ++i) {
      __builtin_prefetch(&from.samples(from.order[std::min(i + ahead, end - 1)], slice), 1);
      const Location<T, Dim> at = from.problem.locations[i];
      from.samples(from.order[i], slice) = at.first[0] + MaxWidth <= from.problem.grid.size[0]
                                               ? from.template sum<bytes, false>(at, source)
                                               : from.template sum<bytes, true>(at, source);
    }
  }

private:
  static constexpr std::int64_t chunk = 256; ///< samples of a task
  static constexpr std::int64_t ahead = 16;  ///< samples that are on their way: they lie anywhere in memory

  std::int64_t chunks() const { return (problem.points + chunk - 1) / chunk; }

  /// `wraps`: a row of MaxWidth taps ends beyond that of the grid.
  template <int bytes, bool wraps>
  BRACEWELL_INLINE_FOR_TARGET Complex sum(const Location<T, Dim>& at, const T* source) const {
    using Taps = TapVectors<T, MaxWidth, Dim, bytes, wraps>;
    using Numbers = typename Taps::Numbers;
    constexpr int pieces = Taps::pieces;
    const int size = problem.grid.size[0];
    const Taps taps(problem.kernel, at, size);
    source = Taps::start(source, at);
    Numbers sums[pieces] = {};
    const auto row = [&](std::int64_t index) { return source + 2 * index * size; };
    const auto add_all = [&](auto count) __attribute__((always_inline)) {
      if constexpr (Dim == 1) {
        taps.template sum_row<count()>(T(1), source, sums);
      } else if constexpr (Dim == 2) {
        for (int j = 0; j < problem.kernel.width; ++j)
          taps.template sum_row<count()>(taps.across[1][j], row(problem.grid.wrapped(at.first[1] + j, 1)),
                                         sums);
      } else {
        for (int k = 0; k < problem.kernel.width; ++k) {
          const std::int64_t above =
              std::int64_t(problem.grid.wrapped(at.first[2] + k, 2)) * problem.grid.size[1];
          Numbers plane[pieces] = {};
          for (int j = 0; j < problem.kernel.width; ++j)
            taps.template sum_row<count()>(taps.across[1][j],
                                           row(above + problem.grid.wrapped(at.first[1] + j, 1)), plane);
          for (int p = 0; p < pieces; ++p)
            sums[p] += taps.across[2][k] * plane[p];
        }
      }
    };
    Taps::with_pieces(problem.kernel.width, add_all);
    return taps.sum(sums);
  }
};

} // namespace Bracewell::Impl
