// SPDX-License-Identifier: MIT
#pragma once

#include "common/star.hpp"
#include "cryoem/views.hpp"

#include <bracewell/reconstruct/mask.hpp>

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

struct Picture;

/// The soft sphere around maps of the particles: of a diameter in Angstrom, or that of the sphere that fits the
/// box, beyond which images say nothing. Throws InputError for a diameter without a pixel size (0: not known).
SoftSphere mask_of(const Particles& particles, const std::optional<double>& diameter, double pixel_size);
/// A copy of a map times a mask.
Map masked(const Space& space, const Map& map, const SoftSphere& mask);

/// Correlation of two maps in the shells that images fill, up to |k| = box/2: those from 0 to (box - 1) / 2.
std::vector<double> correlation(const Space& space, const Map& first, const Map& second);

/// Where a correlation falls below the threshold if it is off by two standard errors, as shells: at least, at most. The last
/// shell where it does not.
std::array<double, 2> uncertain_shells(const std::vector<double>& correlation,
                                       const std::vector<double>& error, double threshold);

struct Difference {
  double scale; ///< factor on the map that brings it closest to the reference
  double error; ///< |scale map - reference| / |reference|
};

/// Within the sphere that fits the box.
Difference compare(std::span<const float> map, std::span<const float> reference, int box);

/// "12.3 A", "12.3 px" without a pixel size, or "none": where a correlation falls below the threshold.
std::string resolution_text(const std::vector<double>& correlation, double threshold, int box,
                            double pixel_size);

struct Correlations {
  std::optional<std::vector<double>> halves = {}, reference = {}; ///< per shell
  /// Half maps without a mask, with random phases under it, and corrected for what the mask adds.
  std::optional<std::vector<double>> unmasked = {}, randomised = {}, corrected = {};
  std::optional<std::vector<double>> calibrated = {}; ///< `halves` as trials say (calibration)
  std::optional<std::vector<double>> error = {};      ///< standard error of `halves`; no curve of the picture
};

/// A table of correlations by shell, and a picture of it.
void write_correlations(const std::filesystem::path& text, const std::filesystem::path& picture,
                        const Correlations& correlations, int box, double pixel_size);
Picture picture_of(const Correlations& correlations, int box, double pixel_size);

/// One row of a picture of central slices.
struct SlicedMap {
  std::string caption;
  std::span<const float> values; ///< [box, box, box]
};

Picture central_slices(const SlicedMap& map, int box, double pixel_size);

/// Three orthogonal slices through the centre of every map, then three projections, a row each in a grey
/// range of its own. `pixel_size` in Angstrom; 0: not known.
void write_slices(const std::filesystem::path& path, std::span<const SlicedMap> maps, int box,
                  double pixel_size);

} // namespace Bracewell::Examples
