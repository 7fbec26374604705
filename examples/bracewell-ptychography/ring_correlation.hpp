// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/object_file.hpp"
#include "common/views.hpp"

#include <array>
#include <filesystem>
#include <vector>

namespace Bracewell::Examples {

/// Fourier ring correlation of two objects from halves of a scan, and the half-bit threshold (van Heel and Schatz, J. Struct. Biol.
/// 151, 250 (2005)).
struct RingCorrelation {
  std::vector<double> frequencies; ///< cycles per pixel
  std::vector<double> values, thresholds;
  double resolution =
      2; ///< pixels: the period where the values first fall below the threshold; 2 where they do not
};

/// Where there was light, after the second object has been aligned to the first; of several slices, of their product.
/// @param free_probe  as align() takes it
RingCorrelation ring_correlation(const Space& space, const Reconstruction& first,
                                 const Reconstruction& second, bool free_probe);

/// OUT_frc.txt and its picture.
std::array<std::filesystem::path, 2> ring_correlation_paths(const std::filesystem::path& out,
                                                            const std::string& picture_ending);
/// Writes columns of frequency, period, correlation and threshold, and their curves.
/// @param pixel_size  metres; 0: not known, frequencies are per pixel
void write_ring_correlation(const std::array<std::filesystem::path, 2>& paths,
                            const RingCorrelation& correlation, double pixel_size);

} // namespace Bracewell::Examples
