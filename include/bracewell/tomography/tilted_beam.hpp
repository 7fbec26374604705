// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/parallel_beam.hpp>

#include <optional>

namespace Bracewell {

/// Laminography: parallel projections about an axis that is tilted out of the plane across the beam. Voxel (X, Y, Z) =
/// (column - floor(n/2), row - floor(n/2), slice - floor(d/2)) of a volume [d, n, n] is seen by angle theta at detector
/// coordinates
///   u = X cos(theta) + Y sin(theta) + centre (and the shift of this view),
///   v = Z cos(tilt) + (Y cos(theta) - X sin(theta)) sin(tilt) + row_centre,
/// 0 at the middle of the first column and row. Tilt 0 is ParallelBeamGeometry for every row. What other tilts see of the
/// spectrum of a volume are all frequencies but those within a double cone about the axis of half angle |tilt|; for that
/// the angles have to go over a whole turn.
struct TiltedBeamGeometry {
  ParallelBeamGeometry beam = {}; ///< angles, columns of the detector, weights and shifts of views
  int rows = 0;                   ///< of the detector
  double tilt = 0;                ///< radians, -1.5 to 1.5
  /// Detector coordinate of slice floor(d/2) on the axis, within four times the rows; by default floor(rows / 2). Another
  /// one moves the volume along the axis, nothing else
  std::optional<double> row_centre = std::nullopt;
};

} // namespace Bracewell
