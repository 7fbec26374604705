// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/symmetry.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// How many there are without symmetry, nearly.
inline double orientations_about(double step, double in_plane_step) {
  constexpr double sphere = 360 * 360 / std::numbers::pi; // square degrees
  return (sphere / (step * step) + 360 / step) * (360 / in_plane_step + 1);
}

/// Orientations with steps in degrees: viewing directions in rings of tilt, each with all rotations in the plane. Of
/// directions that a symmetry makes alike those nearest to a general direction stay, and half a step of others around
/// them, so that nothing is further from the grid at the border.
inline std::vector<EulerAngles<double>> orientation_grid(double step, double in_plane_step,
                                                         const std::string& symmetry) {
  constexpr double radians = std::numbers::pi / 180;
  const auto operators = symmetry_operators(symmetry);
  const double general[3] = {0.8017837257372732, 0.2672612419124244, 0.5345224838248488}; // (3, 1, 2)
  const auto stays = [&](double rot, double tilt) {
    const double x = std::sin(tilt * radians) * std::cos(rot * radians),
                 y = std::sin(tilt * radians) * std::sin(rot * radians), z = std::cos(tilt * radians);
    const double own = x * general[0] + y * general[1] + z * general[2];
    return std::ranges::all_of(operators, [&](const auto& s) {
      double moved = 0;
      for (int row = 0; row < 3; ++row)
        moved += general[row] * (s(row, 0) * x + s(row, 1) * y + s(row, 2) * z);
      return own >= moved - 0.5 * step * radians;
    });
  };
  std::vector<EulerAngles<double>> grid;
  const int rings = std::max(1, static_cast<int>(std::ceil(180 / step - 1e-9))),
            turns = std::max(1, static_cast<int>(std::ceil(360 / in_plane_step - 1e-9)));
  for (int ring = 0; ring <= rings; ++ring) {
    const double tilt = 180.0 * ring / rings;
    const int around = std::max(1, static_cast<int>(std::ceil(360 * std::sin(tilt * radians) / step - 1e-9)));
    for (int i = 0; i < around; ++i) {
      const double rot = 360.0 * i / around;
      if (!stays(rot, tilt))
        continue;
      for (int turn = 0; turn < turns; ++turn)
        grid.push_back({rot, tilt, 360.0 * turn / turns});
    }
  }
  return grid;
}

} // namespace Bracewell::Examples
