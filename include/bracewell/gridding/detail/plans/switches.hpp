// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/interpolate_bins_gpu.hpp>
#include <bracewell/gridding/detail/bins/interpolate_bins_host.hpp>
#include <bracewell/gridding/detail/bins/interpolate_dense_bins.hpp>
#include <bracewell/gridding/detail/bins/spread_bins_gpu.hpp>
#include <bracewell/gridding/detail/bins/spread_bins_host.hpp>
#include <bracewell/gridding/detail/boxes/spread_matrix_boxes.hpp>
#include <bracewell/gridding/detail/boxes/spread_owned_boxes.hpp>
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/plans/plan.hpp>
#include <bracewell/gridding/detail/spread_pruned.hpp>
#include <bracewell/gridding/detail/tiles/interpolate_tiles.hpp>
#include <bracewell/gridding/detail/tiles/spread_tiles.hpp>
#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/impl/host_tasks.hpp>
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
    launch_kernel("Bracewell::Gridding::spread_atomic", typename Plan::Range(space, 0, functor.threads()),
                  functor);
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

/// GriddingInterpolation::Samples, the transpose of spreading: a thread sums the taps of one sample for a few
/// slices.
template <class Space, int MaxWidth, class T, int Dim>
struct InterpolateSamples : PerSample<tuning_of<Space>.interpolated_slices_per_thread, MaxWidth, T, Dim> {

  const Kokkos::complex<T>* grid;
  SampleArray<Kokkos::complex<T>> samples;

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices,
                     const Kokkos::complex<T>* grid, const SampleArray<Kokkos::complex<T>>& samples) {
    const InterpolateSamples functor{
        {plan.problem_of(slices), plan.template taps<MaxWidth>()}, grid, samples};
    launch_kernel("Bracewell::Gridding::interpolate_samples",
                  typename Plan::Range(space, 0, functor.threads()), functor);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    this->for_each_slice(thread, [&](std::int64_t point, std::int64_t slice, const auto& for_each) {
      const Kokkos::complex<T>* const source = grid + slice * this->problem.grid.elements();
      T real = 0, imaginary = 0;
      for_each([&](std::int64_t index, T weight) {
        real += weight * source[index].real();
        imaginary += weight * source[index].imag();
      });
      samples(point, slice) = Kokkos::complex<T>(real, imaginary);
    });
  }
};

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
