// SPDX-License-Identifier: MIT
#pragma once

#include "common/provenance.hpp"
#include "common/timings.hpp"
#include "cryoem/reconstruction.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace Bracewell::Examples {

struct RunOptions {
  std::filesystem::path star, out;
  std::optional<std::filesystem::path> reference;
  ReconstructionOptions reconstruction;
  std::optional<double> mask_diameter;      ///< Angstrom; absent: that of the sphere that fits the box
  std::optional<double> pixel_size;         ///< Angstrom, instead of what the STAR file says
  std::optional<std::int64_t> class_number; ///< only the particles of this class
  BFactorSign b_factor_sign = BFactorSign::Automatic;
  std::optional<double> memory_limit; ///< megabytes; absent: half of the machine's
  std::optional<double> b_factor;     ///< square Angstrom, of the sharpened map; absent: fitted
  std::optional<double> window;       ///< Angstrom, of local resolution; absent: by the resolution; 0: none
  std::optional<double> helical_rise, helical_twist;      ///< Angstrom and degrees
  double helical_rise_range = 0, helical_twist_range = 0; ///< where they are looked for
  std::optional<int> helical_asu; ///< subunits that a segment shows; absent: what the box's middle holds
  std::string picture_ending = ".png";
};

/// Reconstructs the particles of a STAR file and writes the map and all that goes with it; returns the
/// summary, one line. Throws InputError for bad input, with nothing written.
std::string reconstruct(const Space& space, const RunOptions& options, Provenance& provenance,
                        Timings& timings);

} // namespace Bracewell::Examples
