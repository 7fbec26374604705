// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/interpolate_bin_tiles.hpp>
#include <bracewell/gridding/detail/bins/interpolate_bins_gpu.hpp>
#include <bracewell/gridding/detail/bins/interpolate_bins_host.hpp>
#include <bracewell/gridding/detail/bins/interpolate_dense_bins.hpp>
#include <bracewell/gridding/detail/interpolate_samples.hpp>
#include <bracewell/gridding/detail/plans/plan.hpp>
#include <bracewell/gridding/detail/tiles/interpolate_tiles.hpp>

namespace Bracewell::Impl {

/// Interpolates samples of so many slices from the grid as the plan says.
template <class Space, class T, int Dim>
void interpolate_samples(const Space& space, const GriddingPlan<Space, T, Dim>& plan, std::int64_t slices,
                         const Kokkos::complex<T>* grid, const SampleArray<Kokkos::complex<T>>& samples) {
  constexpr bool host = is_host<Space>;
  const int width = plan.problem.kernel.width;
  [[maybe_unused]] const auto from_tiles = [&]<bool wide>() {
    if constexpr (Dim == 2 && !host)
      InterpolateTiles<Space, interpolation_lanes(wide, sizeof(T)), T>::launch(space, plan, slices, grid,
                                                                               samples);
  };
  switch (plan.interpolation) {
  case GriddingInterpolation::Samples:
    return with_max_width<T>(width, [&]<int MaxWidth>() {
      InterpolateSamples<Space, MaxWidth, T, Dim>::launch(space, plan, slices, grid, samples);
    });
  case GriddingInterpolation::Tiles:
    return from_tiles.template operator()<true>();
  case GriddingInterpolation::NarrowTiles:
    return from_tiles.template operator()<false>();
  case GriddingInterpolation::DenseBins:
    if constexpr (!host)
      with_bin_width<false>(width, [&]<int MaxWidth>() {
        InterpolateDenseBins<Space, MaxWidth, T, Dim>::launch(space, plan, slices, grid, samples);
      });
    return;
  case GriddingInterpolation::BinTiles:
    if constexpr (Dim == 3 && sizeof(T) == 8 && !host)
      with_bin_width<false>(width, [&]<int MaxWidth>() {
        InterpolateBinTiles<Space, MaxWidth>::launch(space, plan, slices, grid, samples);
      });
    return;
  default: // Bins
    with_bin_width<host>(width, [&]<int MaxWidth>() {
      if constexpr (host)
        InterpolateBinsHost<Space, MaxWidth, T, Dim>::launch(space, plan, slices, grid, samples);
      else if constexpr (Dim > 1)
        InterpolateBinsGpu<Space, MaxWidth, T, Dim>::launch(space, plan, slices, grid, samples);
    });
  }
}

} // namespace Bracewell::Impl
