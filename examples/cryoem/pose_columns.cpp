// SPDX-License-Identifier: MIT
#include "cryoem/pose_columns.hpp"

#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/rotation_vector.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace Bracewell::Examples {

void add_poses(Particles& particles) {
  for (auto* const column :
       {&particles.rot, &particles.tilt, &particles.psi, &particles.origin_x, &particles.origin_y})
    column->values.resize(particles.count);
}

PoseOfParticle pose_of(const Particles& particles, std::size_t row) {
  return {projection_matrix(EulerAngles<double>{particles.rot[row], particles.tilt[row], particles.psi[row]}),
          {-particles.origin_y[row], -particles.origin_x[row]}};
}

void set_pose(Particles& particles, std::size_t row, const PoseOfParticle& pose) {
  const auto angles = euler_angles(transpose(pose.matrix));
  particles.rot.values[row] = angles.rot;
  particles.tilt.values[row] = angles.tilt;
  particles.psi.values[row] = angles.psi;
  particles.origin_x.values[row] = -pose.shift[1];
  particles.origin_y.values[row] = -pose.shift[0];
}

void set_pose_columns(Particles& particles) {
  auto& table = particles.particle_table();
  // RELION 3.1 and later: Angstrom; before, without a table of optics groups: pixels.
  const bool angstrom = table.find("rlnOriginXAngst") ||
                        (!table.find("rlnOriginX") && particles.document.find("optics") != nullptr &&
                         particles.pixel_size.present());
  const auto text = [&](const ParticleColumn<double>& column, bool length) {
    std::vector<std::string> values;
    for (std::size_t row = 0; row < particles.count; ++row)
      values.push_back(fixed(column[row] * (length && angstrom ? particles.pixel_size[row] : 1)));
    return values;
  };
  table.set_column("rlnAngleRot", text(particles.rot, false));
  table.set_column("rlnAngleTilt", text(particles.tilt, false));
  table.set_column("rlnAnglePsi", text(particles.psi, false));
  table.set_column(angstrom ? "rlnOriginXAngst" : "rlnOriginX", text(particles.origin_x, true));
  table.set_column(angstrom ? "rlnOriginYAngst" : "rlnOriginY", text(particles.origin_y, true));
}

double angle_between(const Matrix3<double>& a, const Matrix3<double>& b,
                     const std::vector<Matrix3<double>>& symmetry) {
  double least = 360;
  for (const auto& rotation : symmetry) {
    const auto v = rotation_vector(transpose(rotation * a) * b);
    least = std::min(least, std::hypot(v.x, v.y, v.z) * 180 / std::numbers::pi);
  }
  return least;
}

bool closest_to_identity(const Matrix3<double>& matrix, const std::vector<Matrix3<double>>& symmetry) {
  const auto trace = [](const Matrix3<double>& m) { return m(0, 0) + m(1, 1) + m(2, 2); };
  return std::ranges::all_of(
      symmetry, [&](const Matrix3<double>& one) { return trace(one * matrix) <= trace(matrix) + 1e-9; });
}

} // namespace Bracewell::Examples
