// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-classify/search_plan.hpp"
#include "common/checkpoint.hpp"
#include "common/provenance.hpp"
#include "common/star.hpp"
#include "common/timings.hpp"
#include "cryoem/views.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

struct ClassifyOptions {
  std::filesystem::path star, out;
  std::vector<std::filesystem::path>
      references; ///< one for all classes, or one for each; none: of the particles' poses
  int classes = 1;
  int starts = 3;            ///< splits by chance that are tried where all classes begin with one reference
  bool halves_apart = false; ///< compares half sets with maps of their own, which one class always does
  std::optional<int> iterations; ///< exactly; absent: until the classes stay as they are
  SearchOptions search;
  std::optional<double> particle_diameter; ///< Angstrom
  std::optional<double> initial_low_pass;  ///< Angstrom
  double tau = 1;                          ///< factor on the power of the signal
  double share = 0.999;                    ///< of the posterior that sums have
  bool no_ctf = false;
  std::optional<double> pixel_size; ///< Angstrom, instead of what the STAR file says
  BFactorSign b_factor_sign = BFactorSign::Automatic;
  std::size_t batch = 0; ///< images at a time; 0: by their size
  bool reproducible = false;
  std::optional<double> memory_limit; ///< megabytes, see memory_limit()
  std::string picture_ending = ".png";
  CheckpointOptions checkpoint;
};

/// Most iterations where their number is not given.
inline constexpr int most_iterations = 30;

/// Sorts the particles of a STAR file into classes, and makes a map of each; writes the particles, the maps, a table of the
/// classes and a picture of every iteration. Returns the summary, one line. Throws InputError for bad input, with nothing
/// written.
std::string classify(const Space& space, const ClassifyOptions& options, Provenance& provenance,
                     Timings& timings);

} // namespace Bracewell::Examples
