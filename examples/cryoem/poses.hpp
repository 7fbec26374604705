// SPDX-License-Identifier: MIT
#pragma once

#include "common/star.hpp"
#include "cryoem/pixel_sizes.hpp"
#include "cryoem/views.hpp"

#include <bracewell/geometry/euler.hpp>
#include <bracewell/project/options.hpp>

#include <cstddef>
#include <span>

namespace Bracewell::Examples {

/// Poses of a batch of particles, as the operators take them.
struct ParticlePoses {
  DeviceView<float** [3][3]> matrices; ///< [1, count, 3, 3]
  DeviceView<float** [2]> shifts;      ///< [1, count, 2], pixels (row, column)
  DeviceView<float** [3][3]>::host_mirror_type host_matrices;
  DeviceView<float** [2]>::host_mirror_type host_shifts;

  explicit ParticlePoses(std::size_t count)
      : matrices(allocate<DeviceView<float** [3][3]>>("matrices", 1, count)),
        shifts(allocate<DeviceView<float** [2]>>("shifts", 1, count)),
        host_matrices(Kokkos::create_mirror_view(matrices)), host_shifts(Kokkos::create_mirror_view(shifts)) {
  }

  /// Those of elements [first, last) of the batch.
  Poses<float, Memory> part(std::size_t first, std::size_t last) const {
    return {range(matrices, first, last), range(shifts, first, last)};
  }
};

/// Maps frequencies of a distorted image to those of a projection.
inline Matrix3<double> magnification(const Particles& particles, std::size_t row) {
  auto matrix = Matrix3<double>::identity();
  for (std::size_t i = 0; i < 4; ++i)
    if (particles.magnification[i].present())
      matrix(static_cast<int>(i / 2), static_cast<int>(i % 2)) = particles.magnification[i][row];
  return matrix;
}

/// Enters the poses of `rows` of the particles, on the grid of the first one's pixels. `symmetry` maps the reconstruction onto itself; the origin of
/// an image is its pixel floor(box / 2), as RELION has it, and the particle lies at minus rlnOrigin from
/// there. A fence has to stand between two calls.
inline void set_poses(const Space& space, const ParticlePoses& poses, const Particles& particles,
                      std::span<const std::size_t> rows, int box,
                      const Matrix3<double>& symmetry = Matrix3<double>::identity()) {
  const auto origin = [](const ParticleColumn<double>& column, std::size_t row) {
    return column.present() ? column[row] : 0;
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t row = rows[i];
    const Matrix3<double> matrix =
        symmetry *
        projection_matrix(EulerAngles<double>{particles.rot[row], particles.tilt[row], particles.psi[row]}) *
        magnification(particles, row);
    const double pixel = relative_pixel_size(particles, row);
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c)
        poses.host_matrices(0, i, r, c) = static_cast<float>(matrix(r, c) / pixel);
    poses.host_shifts(0, i, 0) = static_cast<float>(box / 2 - origin(particles.origin_y, row));
    poses.host_shifts(0, i, 1) = static_cast<float>(box / 2 - origin(particles.origin_x, row));
  }
  copy_values(space, poses.matrices, poses.host_matrices);
  copy_values(space, poses.shifts, poses.host_shifts);
}

/// Throws InputError where angles are missing; adds a warning to `particles` where origins are.
inline void require_poses(Particles& particles) {
  particles.require(particles.rot);
  particles.require(particles.tilt);
  particles.require(particles.psi);
  if (!particles.origin_x.present() || !particles.origin_y.present())
    particles.warnings.push_back(particles.file.string() +
                                 ": has no origins (rlnOriginXAngst, rlnOriginYAngst): taken as 0");
}

} // namespace Bracewell::Examples
