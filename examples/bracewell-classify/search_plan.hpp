// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/matrix3.hpp>

#include <Eigen/Core>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

struct SearchOptions {
  int dimensions = 3; ///< of orientations: 2 in the plane
  std::string symmetry = "C1";
  int healpix_order = 2;  ///< of the grid of orientations: 72 8^order of them, as many as RELION's grids have
  double angle_step = 10; ///< degrees, of the first pass in the plane
  std::optional<double> offset_range; ///< pixels, of the first pass
  std::optional<double> offset_step;  ///< pixels, of the first pass
};

/// Which poses images are compared with: a grid of all orientations, or of angles in the plane, at low frequencies, then passes of half the spacing, each
/// about the best poses of the pass before, at higher ones.
struct SearchPlan {
  /// Frequencies, steps and shifts of one pass.
  struct Pass {
    double radius;                       ///< largest frequency, periods per box
    int box;                             ///< pixels of images that hold these frequencies
    double spacing;                      ///< of orientations, radians
    std::vector<Eigen::Vector2d> shifts; ///< pixels (row, column)
  };
  std::vector<Matrix3<double>> orientations; ///< of the first pass
  std::vector<Pass> passes;                  ///< one at least

  /// @param radius    largest frequency of the last pass, periods per box
  /// @param diameter  of the particle, pixels
  SearchPlan(int box, double radius, double diameter, const SearchOptions& options);

  /// Rotations about a pose of the pass before, for a pass.
  static std::vector<Matrix3<double>> turns_of(const Pass& pass, int dimensions);
};

} // namespace Bracewell::Examples
