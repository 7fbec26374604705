// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/spread_bins_gpu.hpp>
#include <bracewell/gridding/detail/bins/spread_bins_host.hpp>
#include <bracewell/gridding/detail/boxes/spread_matrix_boxes.hpp>
#include <bracewell/gridding/detail/boxes/spread_owned_boxes.hpp>
#include <bracewell/gridding/detail/plans/plan.hpp>
#include <bracewell/gridding/detail/spread_atomic.hpp>
#include <bracewell/gridding/detail/spread_pruned.hpp>
#include <bracewell/gridding/detail/tiles/spread_tiles.hpp>

#include <type_traits>

namespace Bracewell::Impl {

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
