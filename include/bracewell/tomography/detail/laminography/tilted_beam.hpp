// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/beam.hpp>
#include <bracewell/tomography/options.hpp>

#include <array>

namespace Bracewell::Impl {

/// The sizes of laminography.
struct TiltedSizes {
  int angles, rows, width, image, depth;

  template <class Options>
  TiltedSizes(const TiltedBeamGeometry& geometry, const Options& options)
      : angles(static_cast<int>(geometry.beam.angles.size())), rows(geometry.rows),
        width(geometry.beam.width), image(options.image ? options.image : width),
        depth(options.depth ? options.depth : rows) {}

  /// Checks projections [rows, angles, width] and a volume [depth, image, image].
  void check(const Arguments& arguments, const ArrayShape& projections, const ArrayShape& volume) const {
    arguments.shape("projections", projections, {rows, angles, width});
    arguments.shape("volume", volume, {depth, image, image});
  }
};

template <class Options>
const TiltedBeamGeometry& check_tilted(const Arguments& arguments, const TiltedBeamGeometry& geometry,
                                       const Options& options) {
  check_geometry(arguments, geometry.beam, options.image, 1, 16384, 1, 1 << 24);
  arguments.within("geometry.rows", geometry.rows, 1, 16384, " pixels");
  if (options.depth != 0)
    arguments.within("options.depth", options.depth, 1, 16384, " slices");
  arguments.within("geometry.tilt", geometry.tilt, -1.5, 1.5, " radians");
  if (geometry.row_centre)
    arguments.within("geometry.row_centre", *geometry.row_centre, -4.0 * geometry.rows, 4.0 * geometry.rows,
                     " pixels");
  return geometry;
}

inline double row_centre_of(const TiltedBeamGeometry& geometry) {
  return geometry.row_centre.value_or(geometry.rows / 2);
}

/// The beam with weights that make back-projection of rows filtered by the ramp the attenuation: with (ku, kv, theta) as
/// coordinates of its spectrum a volume element is |ku| cos(tilt).
inline ParallelBeamGeometry with_cosine(const TiltedBeamGeometry& geometry) {
  ParallelBeamGeometry beam = geometry.beam;
  if (beam.weights.empty())
    beam.weights.assign(beam.angles.size(), 1);
  for (double& weight : beam.weights)
    weight *= std::cos(geometry.tilt);
  return beam;
}

/// The directions of the detector's columns and rows in the frame (X, Y, Z) of the volume.
struct DetectorAxes {
  std::array<double, 3> u, v;

  DetectorAxes(double angle, double tilt)
      : u{std::cos(angle), std::sin(angle), 0}, v{-std::sin(tilt) * u[1], std::sin(tilt) * u[0],
                                                  std::cos(tilt)} {}
};

} // namespace Bracewell::Impl
