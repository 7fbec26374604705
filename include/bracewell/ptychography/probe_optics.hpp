// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

namespace Bracewell {

/// The lens that forms a probe. One unit for all lengths.
struct ProbeOptics {
  double wavelength;         ///< of the electrons or X-rays
  double pixel_size;         ///< of object and probe
  double convergence_angle;  ///< half angle of the aperture, radians: k_max = angle / wavelength
  double cs_to_length = 1e6; ///< the unit of Cs in the unit of the other lengths (mm in nm)
};

/// The five parameters of an aberrated probe, in the order in which they are stored.
enum ProbeParameter : int {
  Defocus,             ///< length
  SphericalAberration, ///< Cs, in its own unit
  Astigmatism,         ///< magnitude, length
  AstigmatismAngle,    ///< radians, from the row axis
  ApertureSmoothness ///< width of the aperture's edge, as a fraction of k_max; 0.01 is added to its absolute
                     ///< value
};
/// How many they are.
inline constexpr int probe_parameter_count = ApertureSmoothness + 1;

} // namespace Bracewell
