// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <cstdint>
#include <vector>

namespace Bracewell {

/// Points on rays through the origin: sample j of ray p lies at frequency (j - samples / 2) step (cos, sin)
/// (angle p) in cycles per pixel, samples / 2 rounded down; axis 0 (x) is the last axis of images. Points are
/// numbered [rays, samples].
struct PolarPoints {
  std::vector<double> angles = {}; ///< radians: any number, order and span
  int samples = 0;                 ///< on each ray
  double step = 0;                 ///< cycles per pixel; 1 / samples where it is 0

  /// How many points there are.
  std::int64_t count() const { return static_cast<std::int64_t>(angles.size()) * samples; }
};

} // namespace Bracewell
