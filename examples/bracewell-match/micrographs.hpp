// SPDX-License-Identifier: MIT
#pragma once

#include "common/provenance.hpp"

#include <bracewell/geometry/ctf.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// Contrast transfer as options give it; what is absent a STAR file says, or standard values.
struct OpticsOptions {
  std::vector<double> defocus; ///< Angstrom: one, or two and the angle of the first in degrees
  std::optional<double> voltage, spherical_aberration, amplitude_contrast, phase_shift;
  std::optional<double> pixel_size; ///< Angstrom
  double b_factor = 0;              ///< square Angstrom
};

/// One micrograph or tomogram that is searched.
struct MicrographSource {
  std::filesystem::path path;
  std::string name; ///< as the STAR file has it, or the path
  CTFParameters ctf;
  std::optional<double> pixel_size; ///< Angstrom; absent: as the image's header says
  bool tomogram = false;
};

/// The micrographs of a STAR file (rlnMicrographName in data_micrographs, or in its only table), joined with data_optics, or
/// files alone. Throws InputError where a defocus is missing, or a value makes no sense.
std::vector<MicrographSource> list_micrographs(const std::vector<std::filesystem::path>& files,
                                               const std::optional<std::filesystem::path>& star,
                                               const OpticsOptions& options, Provenance& provenance);

/// Tomograms. Without a defocus their CTF is 1.
std::vector<MicrographSource> list_tomograms(const std::vector<std::filesystem::path>& files,
                                             const OpticsOptions& options);

/// Pixels of a micrograph, or voxels of a tomogram, as they are searched: mean 0, variance 1.
struct Micrograph {
  int depth = 1, height = 0, width = 0;
  std::vector<float> pixels; ///< [depth, height, width]
  double pixel_size = 0;     ///< Angstrom
};

/// The sizes of one, without pixels.
Micrograph sizes_of(const MicrographSource& source);

/// Reads one. Pixels that are not finite, saturated, or far from all others get the mean and are counted as unusable.
/// Throws InputError for stacks where a micrograph is expected, for images without a pixel size, and for constant ones.
Micrograph read_micrograph(const MicrographSource& source, Provenance& provenance);

} // namespace Bracewell::Examples
