// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/options.hpp>
#include <bracewell/version.hpp>

#include <cstdint>
#include <optional>
#include <ranges>
#include <type_traits>
#include <vector>

namespace Bracewell {

/// Angles in radians, from numbers of any type.
struct Angles : std::vector<double> {
  using std::vector<double>::vector;

  /// From a std::vector<float>, for instance.
  template <std::ranges::input_range Range>
  requires(std::is_arithmetic_v<std::ranges::range_value_t<Range>>) Angles(const Range& range)
      : std::vector<double>(std::ranges::begin(range), std::ranges::end(range)) {}
};

/// Parallel projections of slices, for every method of tomography: pixel (X, Y) = (column - floor(n/2), row -
/// floor(n/2)) of an image of n x n pixels is seen by angle theta at detector coordinate
///   s = X cos(theta) + Y sin(theta) + centre (and the shift of this view, where there are shifts),
/// 0 at the middle of the first detector pixel.
struct ParallelBeamGeometry {
  /// Radians, any number, order and span (LogPolarTomography: even ones over half a turn). Multiples of 1/4
  /// over more than a turn are degrees, and refused.
  Angles angles = {};
  int width = 0; ///< pixels of the detector
  std::optional<double> centre =
      std::nullopt; ///< detector coordinate of the axis, within four widths; by default floor(width / 2)
  std::vector<double> weights =
      {}; ///< of the angles, 1 on average (angular_density_weights); empty: all are 1
  std::vector<double> shifts =
      {}; ///< pixels by which the axis of a view is beside the centre; empty: none is. Not of LogPolarTomography
};

/// What `project` computes. Line integrals are sums of pixels along a ray, in pixels: of the attenuation per
/// pixel, minus the logarithm of the transmission.
enum class ProjectionUnits {
  Transpose, ///< the exact transpose of `backproject`: line integrals times pi / P and weight of the angle
  /// Line integrals: what is measured. In rows of LogPolarTomography that are finer than pixels frequencies
  /// beyond half a cycle per pixel say nothing.
  LineIntegrals
};

/// Laminography: parallel projections about an axis that is tilted out of the plane across the beam. Voxel (X, Y, Z) =
/// (column - floor(n/2), row - floor(n/2), slice - floor(d/2)) of a volume [d, n, n] is seen by angle theta at detector
/// coordinates
///   u = X cos(theta) + Y sin(theta) + centre (and the shift of this view),
///   v = Z cos(tilt) + (Y cos(theta) - X sin(theta)) sin(tilt) + row_centre,
/// 0 at the middle of the first column and row. Tilt 0 is ParallelBeamGeometry for every row. Other tilts do not see the
/// frequencies of the volume within a double cone about the axis, of half angle |tilt|. They see all others if the angles go
/// over a whole turn.
struct TiltedBeamGeometry {
  ParallelBeamGeometry beam = {}; ///< angles, columns of the detector, weights and shifts of views
  int rows = 0;                   ///< of the detector
  double tilt = 0;                ///< radians, -1.5 to 1.5
  /// Detector coordinate of slice floor(d/2) on the axis, within four times the rows; by default floor(rows / 2). Another
  /// value only moves the volume along the axis
  std::optional<double> row_centre = std::nullopt;
};

/// How FourierTomography is planned.
struct FourierTomographyOptions {
  int image = 0; ///< pixels along both axes of images; 0: the detector's width
  /// The most that a pass works on; calls take any number. Memory grows with it, and a pass of fewer has
  /// FFTs of as many: 64 is good on GPUs. Two real slices are transformed as one complex slice.
  std::int64_t slices = 1;
  ProjectionUnits units = ProjectionUnits::Transpose;      ///< of `project`
  double tolerance = 1e-4;                                 ///< relative error (L2)
  GriddingStrategy strategy = GriddingStrategy::Automatic; ///< of the gridding, see GriddingOptions
  std::optional<double> oversampling = std::nullopt;       ///< of the grid, see GriddingOptions
};

/// How FourierLaminography is planned.
struct FourierLaminographyOptions {
  int image = 0; ///< columns and rows of the volume's slices; 0: the detector's width
  int depth = 0; ///< slices of the volume; 0: as many as the detector has rows
  ProjectionUnits units = ProjectionUnits::Transpose;      ///< of `project`
  double tolerance = 1e-4;                                 ///< relative error (L2)
  GriddingStrategy strategy = GriddingStrategy::Automatic; ///< of the gridding, see GriddingOptions
  std::optional<double> oversampling = std::nullopt;       ///< of the grid, see GriddingOptions
};

/// How LineLaminography is planned.
struct LineLaminographyOptions {
  int image = 0; ///< columns and rows of the volume's slices; 0: the detector's width
  int depth = 0; ///< slices of the volume; 0: as many as the detector has rows
  ProjectionUnits units = ProjectionUnits::Transpose; ///< of `project`
};

/// How LineTomography is planned. Calls take any number of slices, at no cost in memory.
struct LineTomographyOptions {
  int image = 0; ///< pixels along both axes of images; 0: the detector's width
  ProjectionUnits units = ProjectionUnits::Transpose; ///< of `project`
  bool projection = true; ///< project() will be called: it needs room for 2 images of 4 to 8 slices
};

/// How LogPolarTomography is planned.
struct LogPolarTomographyOptions {
  int image = 0; ///< pixels along both axes of images; 0: the detector's width
  /// The most slices that a pass works on, fewer if they take gigabytes. Calls take any number.
  std::int64_t slices = 1;
  ProjectionUnits units = ProjectionUnits::Transpose; ///< of `project`
  /// Values per pixel of the rows, 1 to 8: 2 (see FilterOptions) leaves little of the interpolation's error
  /// at high frequencies.
  int row_upsampling = 1;
  double oversampling = 1.1; ///< of the log-polar grid, 1 to 4: more is more accurate
  int spans = 0; ///< into which half a turn is divided, 4 or more; 0: as many as take the least time
};

} // namespace Bracewell
