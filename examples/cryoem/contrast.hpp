// SPDX-License-Identifier: MIT
#pragma once

#include "common/input_error.hpp"
#include "common/star.hpp"
#include "cryoem/views.hpp"

#include <bracewell/geometry/ctf.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// Whether the file says how the images were modulated.
inline bool has_ctf(const Particles& particles) {
  return particles.defocus_u.present() && particles.voltage.present();
}

/// The pixel size that all particles share, in Angstrom; throws InputError where it is missing or they do
/// not.
inline double common_pixel_size(const Particles& particles) {
  const auto& sizes = particles.require(particles.pixel_size);
  for (std::size_t row = 0; row < sizes.size(); ++row)
    if (!(std::abs(sizes[row] - sizes[0]) <= 1e-4 * sizes[0]))
      throw InputError(particles.file.string() + ": row " + std::to_string(row + 1) +
                       ": expected pixel size " + std::to_string(sizes[0]) + " as in row 1, found " +
                       std::to_string(sizes[row]));
  return sizes[0];
}

/// The contrast transfer functions of all particles. Throws InputError, with the row, where they cannot be
/// computed; adds warnings to `particles` for what is taken as zero.
inline std::vector<CTF> contrast_transfer(Particles& particles) {
  const auto& defocus_u = particles.require(particles.defocus_u);
  const auto& voltage = particles.require(particles.voltage);
  const auto& spherical_aberration = particles.require(particles.spherical_aberration);
  const auto& amplitude_contrast = particles.require(particles.amplitude_contrast);
  if (!particles.defocus_v.present())
    particles.warnings.push_back(particles.file.string() + ": has no rlnDefocusV: taken as rlnDefocusU");
  else if (!particles.defocus_angle.present())
    particles.warnings.push_back(particles.file.string() + ": has no rlnDefocusAngle: taken as 0");
  const auto value = [](const ParticleColumn<double>& column, std::size_t row, double otherwise) {
    return column.present() ? column[row] : otherwise;
  };
  std::vector<CTF> ctfs(particles.count);
  for (std::size_t row = 0; row < particles.count; ++row)
    try {
      ctfs[row] = CTF({.defocus_u = defocus_u[row],
                       .defocus_v = value(particles.defocus_v, row, defocus_u[row]),
                       .defocus_angle = value(particles.defocus_angle, row, 0),
                       .voltage = voltage[row],
                       .spherical_aberration = spherical_aberration[row],
                       .amplitude_contrast = amplitude_contrast[row],
                       .phase_shift = value(particles.phase_shift, row, 0),
                       .b_factor = value(particles.ctf_b_factor, row, 0),
                       .scale = value(particles.ctf_scale, row, 1)});
    } catch (const Error& error) {
      throw InputError(particles.file.string() + ": row " + std::to_string(row + 1) + ": " + error.what());
    }
  return ctfs;
}

/// Enters the functions of `rows` into ctfs [rows or more].
inline void set_ctfs(const Space& space, const Owned<CTF*>& ctfs, const std::vector<CTF>& all,
                     std::span<const std::size_t> rows) {
  const auto mirror = Kokkos::create_mirror_view(ctfs);
  for (std::size_t i = 0; i < rows.size(); ++i)
    mirror(i) = all[rows[i]];
  Kokkos::deep_copy(space, ctfs, mirror);
  space.fence("Bracewell::examples::set_ctfs"); // the mirror goes
}

} // namespace Bracewell::Examples
