// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/tuning.hpp>

namespace Bracewell::Impl {

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
    Kokkos::parallel_for("Bracewell::Gridding::interpolate_samples",
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

} // namespace Bracewell::Impl
