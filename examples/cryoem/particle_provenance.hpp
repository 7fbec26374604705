// SPDX-License-Identifier: MIT
#pragma once

#include "common/provenance.hpp"
#include "common/star.hpp"
#include "cryoem/findings.hpp"
#include "cryoem/map.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

namespace Bracewell::Examples {

/// Reads a map that particles are compared with, in the box of their images. Throws InputError as read_map, and for another
/// box. Voxels of another size than pixels (0: unknown) are a warning of the particles.
inline CubicMap read_map_for(Particles& particles, int box, double pixel_size, Provenance& provenance,
                             const std::filesystem::path& path, double limit) {
  CubicMap map = read_map(provenance, path, limit);
  if (map.box != box)
    throw InputError(particles.stacks[0].path.string() + ": expected images of " + std::to_string(map.box) +
                     " x " + std::to_string(map.box) + " pixels as the map's box, found " +
                     std::to_string(box) + " x " + std::to_string(box));
  if (map.voxel_size && pixel_size > 0 && std::abs(*map.voxel_size - pixel_size) > 0.01 * *map.voxel_size)
    particles.warnings.push_back(particles.file.string() + ": has pixels of " + std::to_string(pixel_size) +
                                 " Angstrom, the map has voxels of " + std::to_string(*map.voxel_size) +
                                 ": pixels are taken as voxels");
  return map;
}

/// Says what the particles' file and stacks gave, and what was assumed in reading them.
inline void note_particles(Provenance& provenance, const Particles& particles, bool uses_ctf) {
  const auto note = [&](const std::string& what) { provenance.took(particles.file, what); };
  if (particles.in_tilt_series > 0)
    note(std::to_string(particles.count) + (particles.count == 1 ? " tilt of " : " tilts of ") +
         std::to_string(particles.in_tilt_series) +
         (particles.in_tilt_series == 1 ? " particle" : " particles") +
         " in tilt series; rows are counted over tilts");
  else
    note(std::to_string(particles.count) +
         (particles.subtomograms ? (particles.count == 1 ? " subtomogram" : " subtomograms")
                                 : (particles.count == 1 ? " particle" : " particles")) +
         (!particles.rot.present() ? ""
          : particles.count == 1   ? " with a pose"
                                   : " with poses"));
  for (const auto& file : particles.passthroughs)
    provenance.took(file, (particles.in_tilt_series > 0 ? "the geometry of " : "fields that ") +
                              particles.file.filename().string() +
                              (particles.in_tilt_series > 0 ? "" : " lacks"));
  if (particles.origin_x.present())
    note("origins");
  if (particles.pixel_size.present())
    note("pixels of " + shortest(particles.pixel_size[0]) + " Angstrom");
  if (uses_ctf) {
    const auto [least, most] = std::ranges::minmax(particles.defocus_u.values);
    note("contrast transfer at " + shortest(particles.voltage[0]) + " kV with defoci of " + shortest(least) +
         " to " + shortest(most) + " Angstrom");
    if (particles.exposure.present())
      note("exposures of " + shortest(std::ranges::min(particles.exposure.values)) + " to " +
           shortest(std::ranges::max(particles.exposure.values)) +
           " e/A^2 (rlnMicrographPreExposure), by whose damage images are weighed");
    if (particles.premultiplied.present() && std::ranges::max(particles.premultiplied.values) != 0)
      note("images that were multiplied by it");
    if (particles.beam_tilt_x.present() || particles.beam_tilt_y.present())
      note("beam tilt");
    if (particles.odd_zernike.present() || particles.even_zernike.present())
      note("Zernike terms");
  }
  if (std::ranges::any_of(particles.magnification, [](const auto& column) { return column.present(); }))
    note("magnification");
  if (particles.random_subset.present())
    note("half sets");
  for (const auto& stack : particles.stacks)
    if (&stack == &particles.stacks.front())
      provenance.took(
          stack.path,
          (particles.subtomograms
               ? "a volume of " + std::to_string(particles.image_width) + " voxels along each axis"
               : "images of " + std::to_string(particles.image_width) + " x " +
                     std::to_string(particles.image_height) + " pixels") +
              (particles.stacks.size() > 1 ? ", and " + std::to_string(particles.stacks.size() - 1) +
                                                 (particles.subtomograms ? " more" : " more stacks")
                                           : ""));
  if (!particles.measured.empty())
    provenance.took(particles.measured.front(),
                    particles.premultiplied.present() && particles.premultiplied[0] != 0
                        ? "the CTF^2 of the first subtomogram (rlnCtfImage)"
                        : "the CTF of the first subtomogram (rlnCtfImage)");
  if (uses_ctf && particles.detector.present())
    for (const auto& detector : particles.detectors)
      provenance.took(detector.file, "the response of the detector, which images are divided by");
  provenance.assume(particles.warnings);
  provenance.assume(findings_in_columns(particles, uses_ctf));
}

} // namespace Bracewell::Examples
