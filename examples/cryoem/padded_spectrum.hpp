// SPDX-License-Identifier: MIT
#pragma once

#include "common/memory_limit.hpp"
#include "common/progress.hpp"
#include "cryoem/map.hpp"
#include "cryoem/sampling.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>

namespace Bracewell::Examples {

/// Throws InputError where what padded_spectrum makes of a map that is in memory, `more` bytes beside it, passes the
/// limit: the map on the device, the padded map, its spectrum and the transform's copy of that.
inline void require_memory_for_spectrum(const CubicMap& map, const Sampling& sampling, double more,
                                        double limit) {
  const int padded = sampling.padded(map.box);
  require_memory("a map of " + std::to_string(map.box) + " voxels padded to " + std::to_string(padded),
                 resident_bytes() + more + sizeof(float) * (std::pow(map.box, 3) + 3 * std::pow(padded, 3)),
                 limit);
}

/// The spectrum of the padded map, without the attenuation that its interpolation will bring.
inline MapSpectrum padded_spectrum(const Space& space, const CubicMap& map, const Sampling& sampling) {
  const int padded = sampling.padded(map.box);
  const Progress progress("transforming", "maps", 1);
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
