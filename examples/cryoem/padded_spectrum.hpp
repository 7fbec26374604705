// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/map.hpp"
#include "cryoem/sampling.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>

namespace Bracewell::Examples {

/// The spectrum of the padded map, without the attenuation that its interpolation will bring.
inline MapSpectrum padded_spectrum(const Space& space, const CubicMap& map, const Sampling& sampling) {
  const int padded = sampling.padded(map.box);
  const Map volume = to_device(space, map);
  correct_attenuation(space, volume, sampling, padded);
  const auto padded_map = allocate<Map>("padded_map", 1, padded, padded, padded);
  pad_centre(space, volume, padded_map);
  const auto spectrum = allocate<MapSpectrum>("spectrum", 1, padded, padded, padded / 2 + 1);
  FFT<Space, 3, float, Kokkos::complex<float>>(space, {padded, padded, padded})
      .execute(space, padded_map, spectrum);
  space.fence("Bracewell::examples::padded_spectrum"); // the padded map goes
  return spectrum;
}

} // namespace Bracewell::Examples
