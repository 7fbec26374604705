// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/impl/memory.hpp>

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

} // namespace Bracewell::Impl
