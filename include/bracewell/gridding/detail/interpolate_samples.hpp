// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/per_sample.hpp>
#include <bracewell/impl/execution.hpp>

namespace Bracewell::Impl {

/// Interpolation, the transpose of spreading: a thread sums the taps of one sample for a few slices. Hosts
/// take slices one by one, whose grids fit their caches better.
template <class Space, int MaxWidth, class T, int Dim>
struct GatherSamples : PerSample<is_host<Space> ? 1 : 8, MaxWidth, T, Dim> {
  const Kokkos::complex<T>* grid;
  SampleArray<Kokkos::complex<T>> samples;

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
