// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/spread_bins_gpu.hpp>
#include <bracewell/gridding/detail/bins/spread_bins_host.hpp>
#include <bracewell/gridding/detail/boxes/spread_matrix_boxes.hpp>
#include <bracewell/gridding/detail/boxes/spread_owned_boxes.hpp>
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/plans/plan.hpp>
#include <bracewell/gridding/detail/spread_pruned.hpp>
#include <bracewell/gridding/detail/tiles/spread_tiles.hpp>
#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/impl/memory.hpp>

#include <type_traits>

namespace Bracewell::Impl {

/// GriddingStrategy::Atomic: a thread adds the taps of one sample, for a few slices, to a grid that is zero.
template <class Space, int MaxWidth, class T, int Dim>
struct SpreadAtomic : PerSample<tuning_of<Space>.slices_per_thread, MaxWidth, T, Dim> {

  SampleArray<const Kokkos::complex<T>> samples;
  Kokkos::complex<T>* grid;

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices,
                     const SampleArray<const Kokkos::complex<T>>& samples, Kokkos::complex<T>* grid) {
    fill(space, "Bracewell::Gridding::zero", grid, slices * plan.problem.grid.elements());
    const SpreadAtomic functor{{plan.problem_of(slices), plan.template taps<MaxWidth>()}, samples, grid};
    Kokkos::parallel_for("Bracewell::Gridding::spread_atomic",
                         typename Plan::Range(space, 0, functor.threads()), functor);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    this->for_each_slice(thread, [&](std::int64_t point, std::int64_t slice, const auto& for_each) {
      const Kokkos::complex<T> value = samples(point, slice);
      T* const target = reinterpret_cast<T*>(grid + slice * this->problem.grid.elements());
      for_each([&](std::int64_t index, T weight) {
        Kokkos::atomic_add(target + 2 * index, weight * value.real());
        Kokkos::atomic_add(target + 2 * index + 1, weight * value.imag());
      });
    });
  }
};

/// Spreads samples of so many slices to the grid by the plan's strategy.
template <class Space, class T, int Dim>
void spread_samples(const Space& space, const GriddingPlan<Space, T, Dim>& plan, std::int64_t slices,
                    const SampleArray<const Kokkos::complex<T>>& samples, Kokkos::complex<T>* grid) {
  constexpr bool host = is_host<Space>;
  const int width = plan.problem.kernel.width;
  switch (plan.strategy) {
  case GriddingStrategy::Atomic:
    return with_max_width<T>(width, [&]<int MaxWidth>() {
      SpreadAtomic<Space, MaxWidth, T, Dim>::launch(space, plan, slices, samples, grid);
    });
  case GriddingStrategy::PrunedGather:
    if constexpr (Dim == 2)
      SpreadPruned<Space, T>::launch(space, plan, slices, samples, grid);
    return;
  case GriddingStrategy::OwnedBoxes:
    if constexpr (Dim == 3 && !host)
      with_bin_width<true>(width, [&]<int MaxWidth>() {
        SpreadOwnedBoxes<Space, MaxWidth, T>::launch(space, plan, slices, samples, grid);
      });
    return;
  case GriddingStrategy::MatrixBoxes:
    if constexpr (Dim == 3 && !host && matrix_units)
      with_bin_width<true>(width, [&]<int MaxWidth>() {
        SpreadMatrixBoxes<Space, MaxWidth, T>::launch(space, plan, slices, samples, grid);
      });
    return;
  case GriddingStrategy::Tiles:
    if constexpr (GriddingPlan<Space, T, Dim>::has_tiles)
      with_max_width<T>(width, [&]<int MaxWidth>() {
        SpreadTiles<Space, MaxWidth, T, Dim>::launch(space, plan, slices, samples, grid);
      });
    return;
  default: // Bins
    with_bin_width<host>(width, [&]<int MaxWidth>() {
      using Spread = std::conditional_t<host, SpreadBinsHost<Space, MaxWidth, T, Dim>,
                                        SpreadBinsGpu<Space, MaxWidth, T, Dim>>;
      Spread::launch(space, plan, slices, samples, grid);
    });
  }
}

} // namespace Bracewell::Impl
