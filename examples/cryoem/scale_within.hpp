// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <bracewell/rfft/layout.hpp>

#include <cstdint>

namespace Bracewell::Examples {

struct ScaleWithin {
  Kokkos::complex<float>* spectrum;
  HalfSpectrumLayout<3> layout;
  double squared_radius;
  float scale;

  KOKKOS_FUNCTION void operator()(std::int64_t z, std::int64_t y, std::int64_t x) const {
    const double kz = layout.frequency(static_cast<int>(z), layout.size[2]);
    const double ky = layout.frequency(static_cast<int>(y), layout.size[1]);
    const double squared = kz * kz + ky * ky + double(x) * double(x);
    spectrum[(z * layout.size[1] + y) * layout.columns() + x] *= squared > squared_radius ? 0 : scale;
  }
};

/// Scales the frequencies |k| <= radius of a spectrum of even size, and sets those beyond to zero.
inline void scale_within(const Space& space, const MapSpectrum& spectrum, double radius, double scale) {
  const auto size = static_cast<int>(spectrum.extent(1));
  const ScaleWithin functor{
      spectrum.data(), {{size, size, size}}, radius * radius, static_cast<float>(scale)};
  using Order = Kokkos::Rank<3, Kokkos::Iterate::Right, Kokkos::Iterate::Right>; // as the spectrum is stored
  Kokkos::parallel_for("Bracewell::examples::scale_within",
                       Kokkos::MDRangePolicy<Space, Order, Kokkos::IndexType<std::int64_t>>(
                           space, {0, 0, 0}, {size, size, functor.layout.columns()}),
                       functor);
}

} // namespace Bracewell::Examples
