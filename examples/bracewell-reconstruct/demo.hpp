// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <filesystem>

namespace Bracewell::Examples {

/// What the demonstration simulates.
struct Demo {
  int box = 64;
  double pixel_size = 2; ///< Angstrom
  std::size_t particles = 5000;
  double signal_to_noise = 0.2;
  std::string picture_ending = ".png";
};

/// Simulates particles of a molecule of Gaussian blobs, projected in closed form: `folder`/particles.mrcs and
/// .star, truth.mrc and a picture of some particles.
void simulate(const Space& space, const Demo& demo, const std::filesystem::path& folder);

} // namespace Bracewell::Examples
