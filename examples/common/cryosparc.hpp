// SPDX-License-Identifier: MIT
#pragma once

#include "star.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// Particles of cryoSPARC as tables of RELION 3.1.
struct CryosparcParticles {
  StarDocument document;                           ///< data_optics and data_particles
  std::vector<std::filesystem::path> passthroughs; ///< further files that fields were taken from
  std::vector<std::string> warnings;               ///< sentences that begin with the file
};

/// Whether a text begins as cryoSPARC's datasets do, NumPy arrays of records.
bool is_cryosparc(std::string_view beginning);

/// Reads a .cs file. Fields that it lacks are taken from files *passthrough*.cs beside it that have all of its particles
/// (uid). What becomes what is in docs/what-is-read.md. Throws InputError for what is no dataset of particles.
CryosparcParticles read_cryosparc(const std::filesystem::path& path);

} // namespace Bracewell::Examples
