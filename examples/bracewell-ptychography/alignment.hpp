// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/object_file.hpp"

namespace Bracewell::Examples {

/// What of the object the data determine: exactly, with a known probe, all but a complex factor; with a probe
/// whose pixels are free, a phase ramp and a shift as well, which the probe undoes.
struct Alignment {
  std::complex<double> factor;
  std::array<double, 2> ramp, shift; ///< radians per pixel, pixels
  double error;                      ///< |object - aligned reference| / |aligned reference|
};

/// Fits factor exp(i ramp.r) reference(r - shift) to the object by least squares, the shift to first order
/// (within half a pixel), where the reference's illumination is at least a tenth of its greatest value.
/// Throws InputError for objects of other shapes.
Alignment align(const Reconstruction& result, const Reconstruction& reference, bool free_probe);

/// Median distance of positions from those of the reference, pixels, without the mean of their differences, which
/// patterns do not tell from a shift of the object.
double position_error(const Reconstruction& result, const Reconstruction& reference);

} // namespace Bracewell::Examples
