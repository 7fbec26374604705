// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-refine/refinement.hpp"
#include "common/checkpoint.hpp"
#include "common/provenance.hpp"
#include "common/timings.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

struct RunOptions {
  std::filesystem::path star, out;
  std::vector<std::filesystem::path> maps; ///< of the half sets, or one for both; none: of the particles
  RefinementOptions refinement;
  std::optional<int> rounds;    ///< absent: one with maps given, else until half maps agree no better
  std::optional<double> radius; ///< periods per box; absent: where the half maps' correlation ends
  std::optional<double> helical_rise, helical_twist; ///< Angstrom, degrees; both or none
  std::optional<double> mask_diameter;               ///< Angstrom; absent: a mask from the maps
  std::optional<std::filesystem::path> mask;
  bool normalise = false;                   ///< subtract the background of images before they are inserted
  std::optional<double> pixel_size;         ///< Angstrom, instead of what the STAR file says
  std::optional<std::int64_t> class_number; ///< only the particles of this class
  BFactorSign b_factor_sign = BFactorSign::Automatic;
  std::optional<double> memory_limit; ///< megabytes, see memory_limit()
  std::string picture_ending = ".png";
  CheckpointOptions checkpoint;
};

/// Refines the poses of the particles of a STAR file, every half set against its own map, and writes the
/// particles, the half maps and their correlation; returns the summary, one line. Of all rounds, and the poses as they
/// were, those whose half maps agree best are written. Throws InputError for bad
/// input, with nothing written.
std::string refine(const Space& space, const RunOptions& options, Provenance& provenance, Timings& timings);

} // namespace Bracewell::Examples
