// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/sampling.hpp"
#include "cryoem/views.hpp"

#include <bracewell/rfft/layout.hpp>

#include <cstdint>

/// What the expectation step and the maps of classes have in common.
namespace Bracewell::Examples {

/// How projections are sampled and sums are made: weights of other kernels may be negative.
inline constexpr Sampling class_sampling{.kernel = KernelChoice::Linear, .oversampling = 2};

/// The spectrum of a volume in another box with the same field of view: frequencies that both have, the rest is zero.
struct ResizeVolume {
  HalfSpectrumLayout<3> from, to;
  const Kokkos::complex<float>* source;
  Kokkos::complex<float>* target;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    int k[3];
    to.frequency(i, k);
    target[i] = 0;
    for (int axis = 0; axis < 3; ++axis)
      if (2 * Kokkos::abs(k[axis]) >= Kokkos::min(from.size[axis], to.size[axis]))
        return;
    const std::int64_t row =
        std::int64_t(from.wrap(k[2], from.size[2])) * from.size[1] + from.wrap(k[1], from.size[1]);
    target[i] = source[row * from.columns() + k[0]];
  }
};

template <class Functor>
void for_each_element(const Space& space, const char* name, std::int64_t count, const Functor& functor) {
  Kokkos::parallel_for(name, Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count),
                       functor);
}

/// Between cubic boxes of half spectra.
inline void resize_volume(const Space& space, const Kokkos::complex<float>* source, int from,
                          Kokkos::complex<float>* target, int to) {
  const HalfSpectrumLayout<3> layout{{to, to, to}};
  for_each_element(space, "Bracewell::examples::resize_volume", layout.elements(),
                   ResizeVolume{{{from, from, from}}, layout, source, target});
}

} // namespace Bracewell::Examples
