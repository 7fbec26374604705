// SPDX-License-Identifier: MIT
#pragma once

#include "star.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// RELION 5's particles in tilt series as tables of RELION 3.1 with a row per image: of every particle its visible tilts,
/// one after the other.
struct TiltSeriesParticles {
  StarDocument document;                       ///< data_optics and data_particles
  std::filesystem::path particles_file;        ///< the one that an optimisation set names, or the one given
  std::vector<std::filesystem::path> geometry; ///< the tables of tomograms, and of their tilts
  std::size_t count = 0;                       ///< of particles
  std::vector<std::string> warnings;           ///< sentences that begin with the file
};

/// Whether tables are particles in stacks of tilts, or an optimisation set that names such.
bool is_tilt_series(const StarDocument& document);

/// The images of the particles, with `document` read from `path`: orientation is the tilt's geometry times
/// rlnTomoSubtomogram angles times rlnAngle ones, the origin that of the particle as the tilt shows it, the defocus that at the
/// particle's depth, rlnMicrographPreExposure its exposure. The geometry is what an optimisation set names, or one beside
/// the particles' file, or tomograms.star there. With `images` stacks are looked at for how many tilts they have.
/// Throws InputError for what is missing or does not fit.
TiltSeriesParticles read_tilt_series(const std::filesystem::path& path, StarDocument document, bool images);

} // namespace Bracewell::Examples
