// SPDX-License-Identifier: MIT
#pragma once

#include "common/star.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// A look at particles and maps before they are used: what seldom is meant so. A finding is one sentence that begins
/// with the file, and says what the numbers are and what to do. docs/what-is-read.md lists them.
namespace Bracewell::Examples {

/// Magnitude of pixels and voxels that is refused: their sums and squares would leave single precision.
inline constexpr double largest_value = 1e15;

/// Of the columns: origins beyond the images, units and signs of the contrast transfer. Throws InputError for magnifications that
/// are singular or far from 1.
std::vector<std::string> findings_in_columns(const Particles& particles, bool uses_ctf);

/// Of the names of images: the same one twice, and in both half sets. `halves` [particles]: 0 or 1. One that every image
/// repeats equally often, in one half set and with other poses, is no finding: symmetry expansion.
std::vector<std::string> findings_in_names(const Particles& particles, const std::vector<int>& halves);

/// What was seen in an image.
struct LookAtImage {
  double background = 0;         ///< mean outside of the disc that fits it
  double inside = 0;             ///< mean within
  double deviation = 0;          ///< standard deviation; less than 0: the image was not seen
  double mixed = 0, squares = 0; ///< sums over pixels (ImageStatistics), alike in images that are the same
  double hot = 0;                ///< standard deviations by which one pixel stands out alone; 0: none does
  double hot_pixel = 0;          ///< its index, row by row

  /// Whether all of its pixels are alike, or one of so many weighs more than all others together: maps are made without it.
  bool is_useless(std::int64_t pixels) const { return deviation == 0 || hot * hot > double(pixels); }
};

/// Of the pixels. `images` [particles]. Throws InputError where too many images are useless.
/// @param left_out  whether maps are made without images that are useless
std::vector<std::string> findings_in_images(const Particles& particles, const std::vector<int>& halves,
                                            const std::vector<LookAtImage>& images, bool left_out = false);

/// "row 3", or "rows 3, 8, 11 and 20 more": indices from 0 as rows from 1.
std::string rows_text(const std::vector<std::size_t>& rows);

/// Of the voxels of a map [box, box, box]: nothing in it, or a pedestal. Sentences without the file.
std::vector<std::string> findings_in_map(const std::vector<float>& values, int box);

} // namespace Bracewell::Examples
