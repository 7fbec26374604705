// SPDX-License-Identifier: MIT
#include "bracewell-classify/search_plan.hpp"

#include "cryoem/pose_columns.hpp"

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/geometry/rotation_vector.hpp>
#include <bracewell/geometry/rotations.hpp>
#include <bracewell/geometry/symmetry.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace Bracewell::Examples {
namespace {

constexpr double pi = std::numbers::pi;

/// Frequencies that a grid of this spacing resolves, periods per box: a period is 1.2 times as long as the way of a particle's
/// rim from one orientation to the next.
double resolved(int box, double spacing, double diameter) { return box / (1.2 * spacing * diameter / 2); }

/// The smallest box with these frequencies that transforms are fast for.
int box_for(double radius, int box) {
  for (int size = 2 * static_cast<int>(std::ceil(radius)) + 2; size < box; size += 2)
    if (next_fast_size(size, true) == size)
      return size;
  return box;
}

std::vector<Eigen::Vector2d> disc(double range, double step) {
  std::vector<Eigen::Vector2d> shifts;
  const int most = static_cast<int>(std::floor(range / step * (1 + 1e-9)));
  for (int y = -most; y <= most; ++y)
    for (int x = -most; x <= most; ++x)
      if (const Eigen::Vector2d shift(y * step, x * step); shift.norm() <= range * (1 + 1e-9))
        shifts.push_back(shift);
  return shifts;
}

} // namespace

SearchPlan::SearchPlan(int box, double radius, double diameter, const SearchOptions& options) {
  constexpr double least_radius = 4; // periods per box, of the first pass
  constexpr double fine = 1.5;       // what the last pass resolves, over what is compared
  constexpr int most_passes = 5;
  double spacing;
  if (options.dimensions == 2) {
    const int angles = std::max(1, static_cast<int>(std::lround(360 / options.angle_step)));
    spacing = 2 * pi / angles;
    for (int i = 0; i < angles; ++i)
      orientations.push_back(rotation_matrix(RotationVector<double>{0, 0, i * spacing}));
  } else {
    const auto whole = static_cast<std::int64_t>(72 * std::pow(8.0, options.healpix_order));
    const auto operators = symmetry_operators(options.symmetry);
    for (std::int64_t i = 0; i < whole; ++i)
      if (const auto matrix = rotation_matrix(rotation_of_grid<double>(i, whole));
          operators.size() == 1 || closest_to_identity(matrix, operators))
        orientations.push_back(matrix);
    spacing = std::cbrt(8 * pi * pi / double(whole));
  }
  const double first = std::min(radius, std::max(least_radius, resolved(box, spacing, diameter)));
  double step = options.offset_step.value_or(std::max(1.0, box / (4 * first)));
  passes.push_back({first, box_for(first, box), spacing,
                    disc(options.offset_range.value_or(std::max(3.0, box / 12.0)), step)});
  while (resolved(box, spacing, diameter) < fine * radius && int(passes.size()) < most_passes) {
    const double range = 1.2 * step;
    spacing /= 2;
    step /= 2;
    const double next = std::min(radius, std::max(first, resolved(box, spacing, diameter)));
    passes.push_back({next, box_for(next, box), spacing, disc(range, step)});
  }
  if (passes.back().radius < radius) {
    passes.back().radius = radius;
    passes.back().box = box_for(radius, box);
  }
}

std::vector<Matrix3<double>> SearchPlan::turns_of(const Pass& pass, int dimensions) {
  std::vector<Matrix3<double>> turns;
  const double angle = pass.spacing / 2;
  if (dimensions == 2) {
    for (const double z : {-angle, angle})
      turns.push_back(rotation_matrix(RotationVector<double>{0, 0, z}));
    return turns;
  }
  for (const double x : {-angle, angle})
    for (const double y : {-angle, angle})
      for (const double z : {-angle, angle})
        turns.push_back(rotation_matrix(RotationVector<double>{x, y, z}));
  return turns;
}

} // namespace Bracewell::Examples
