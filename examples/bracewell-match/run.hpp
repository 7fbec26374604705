// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-match/micrographs.hpp"
#include "common/timings.hpp"
#include "common/views.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// Shades of particles in micrographs.
enum class ParticleContrast { Dark, White };

/// What the maximum of the correlation is counted in: standard deviations of noise near the pixel, of noise in the whole
/// micrograph, or of all templates at the pixel, from their mean on.
enum class ScoreKind { OfLocalNoise, OfNoise, OfTemplates };

struct MatchOptions {
  std::filesystem::path map, out;
  std::vector<std::filesystem::path> micrographs;
  std::optional<std::filesystem::path> star;
  std::vector<std::filesystem::path> tomograms;
  std::optional<double> tilt_min, tilt_max;         ///< degrees; absent: -60 and 60
  std::optional<std::filesystem::path> tilt_angles; ///< of single views
  int block_size = 256;                             ///< voxels a side of tomograms that are searched together
  OpticsOptions optics;
  ParticleContrast contrast = ParticleContrast::Dark;
  std::optional<double> voxel_size; ///< Angstrom, of the map
  double angular_step = 2.5, in_plane_step = 1.5;
  std::string symmetry = "C1";
  std::vector<double> defocus_search; ///< range and step in Angstrom; empty: none
  std::optional<double> resolution;   ///< Angstrom
  ScoreKind score = ScoreKind::OfLocalNoise;
  double false_positives = 1;     ///< in a micrograph
  std::optional<double> distance; ///< of peaks, Angstrom
  std::optional<double> memory_limit;
  std::string picture_ending = ".png";
};

/// Searches all micrographs, or all tomograms, and writes peaks, maps and pictures. Returns a line about it.
std::string match(const Space& space, const MatchOptions& options, Provenance& provenance, Timings& timings);

} // namespace Bracewell::Examples
