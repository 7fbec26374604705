// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <vector>

namespace Bracewell::Examples {

/// What the demonstration simulates.
struct TomographyDemo {
  int width = 256, rows = 16, angles = 400;
  double span = 180;     ///< degrees that the angles are even over
  double centre = 131.4; ///< pixel of the rotation axis
  double counts = 40000; ///< per pixel without object
  int flats = 10, darks = 5;
};

/// Writes the scan of an object of ellipsoids, as raw counts with noise, flat and dark frames and three
/// detector columns whose response has changed since the flat frames. Line integrals are closed forms.
void simulate_scan(const TomographyDemo& demo, const std::filesystem::path& file);

/// Attenuation of the object, mean over every pixel, [rows, width, width].
std::vector<float> true_slices(const TomographyDemo& demo);

/// Relative error (L2) of slices [rows, width, width] in the disc that the object is in.
double error_of_slices(const TomographyDemo& demo, const std::vector<float>& slices,
                       const std::vector<float>& truth);

} // namespace Bracewell::Examples
