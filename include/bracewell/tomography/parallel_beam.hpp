// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

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

} // namespace Bracewell
