// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <bracewell/rfft/layout.hpp>

#include <algorithm>
#include <cstdint>

namespace Bracewell::Examples {

struct ScaleWithin {
  Kokkos::complex<float>* spectrum;
  HalfSpectrumLayout<3> layout;
  double squared_radius;
  float scale;

  KOKKOS_FUNCTION void operator()(std::int64_t element) const {
    int k[3];
    layout.frequency(element, k);
    const double squared = double(k[0]) * k[0] + double(k[1]) * k[1] + double(k[2]) * k[2];
    spectrum[element] *= squared > squared_radius ? 0 : scale;
  }
};

/// Scales the frequencies |k| <= radius of a spectrum of even size, and sets those beyond to zero.
inline void scale_within(const Space& space, const MapSpectrum& spectrum, double radius, double scale) {
  const auto size = static_cast<int>(spectrum.extent(1));
  const ScaleWithin functor{
      spectrum.data(), {{size, size, size}}, radius * radius, static_cast<float>(scale)};
  Kokkos::parallel_for(
      "Bracewell::examples::scale_within",
      Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, functor.layout.elements()),
      functor);
}

} // namespace Bracewell::Examples
