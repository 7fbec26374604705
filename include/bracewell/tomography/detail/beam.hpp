// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/tomography/options.hpp>

#include <cmath>
#include <numbers>
#include <vector>

namespace Bracewell::Impl {

struct BeamAngle {
  double cosine, sine, weight; ///< see angle_factors
  double centre;               ///< detector coordinate of the axis
};

template <class ExecutionSpace>
struct BeamView {
  const BeamAngle* data;
  int angles, width, image; ///< pixels of the detector, and of images along both axes
};

/// Finite angles in radians. Degrees are found out where nothing else is possible: angles over more than a
/// turn that are all multiples of a quarter.
inline void check_angles(const Arguments& arguments, const std::vector<double>& angles) {
  bool quarters = true;
  double least = 0, most = 0;
  for (const double angle : angles) {
    arguments.within("geometry.angles", angle, -1e9, 1e9);
    quarters = quarters && 4 * angle == std::floor(4 * angle);
    least = std::min(least, angle);
    most = std::max(most, angle);
  }
  if (quarters && most - least > 2 * std::numbers::pi)
    arguments.refuse("geometry.angles", "radians, found degrees (from %.6g to %.6g)", least, most);
}

/// No weights or one per angle, all finite.
inline void check_weights(const Arguments& arguments, const std::vector<double>& weights,
                          std::size_t angles) {
  if (!weights.empty() && weights.size() != angles)
    arguments.refuse("geometry.weights", "none or %zu, one per angle, found %zu", angles, weights.size());
  for (const double weight : weights)
    arguments.finite("geometry.weights", weight);
}

/// No shifts or one per angle, within four widths.
inline void check_shifts(const Arguments& arguments, const ParallelBeamGeometry& geometry) {
  const std::size_t shifts = geometry.shifts.size(), angles = geometry.angles.size();
  if (shifts != 0 && shifts != angles)
    arguments.refuse("geometry.shifts", "none or %zu, one per angle, found %zu", angles, shifts);
  for (const double shift : geometry.shifts)
    arguments.within("geometry.shifts", shift, -4.0 * geometry.width, 4.0 * geometry.width, " pixels");
}

/// Sizes from `least_width` to `most_width`, angles from `least_angles` to `most_angles`; images may be asked
/// for as 0.
inline void check_geometry(const Arguments& arguments, const ParallelBeamGeometry& geometry, int image,
                           int least_width, int most_width, std::int64_t least_angles,
                           std::int64_t most_angles) {
  arguments.within("geometry.width", geometry.width, least_width, most_width, " pixels");
  if (image != 0)
    arguments.within("options.image", image, 1, most_width, " pixels");
  arguments.within("geometry.angles", std::int64_t(geometry.angles.size()), least_angles, most_angles,
                   " angles");
  check_angles(arguments, geometry.angles);
  check_weights(arguments, geometry.weights, geometry.angles.size());
  check_shifts(arguments, geometry);
  if (geometry.centre && !(std::abs(*geometry.centre) <= 4.0 * geometry.width))
    arguments.refuse("geometry.centre", "a pixel within four widths of the detector, found %.6g",
                     *geometry.centre);
}

/// Detector coordinate of the axis, but for the shifts of views.
inline double centre_of(const ParallelBeamGeometry& geometry) {
  return geometry.centre.value_or(geometry.width / 2);
}
/// The same in a view.
inline double centre_of(const ParallelBeamGeometry& geometry, std::size_t view) {
  return centre_of(geometry) + (geometry.shifts.empty() ? 0 : geometry.shifts[view]);
}

/// What back-projection multiplies an angle with, pi / P and its weight, or what projection does.
inline std::vector<double> angle_factors(const ParallelBeamGeometry& geometry,
                                         ProjectionUnits units = ProjectionUnits::Transpose) {
  if (units == ProjectionUnits::LineIntegrals)
    return std::vector<double>(geometry.angles.size(), 1);
  const double scale = std::numbers::pi / static_cast<double>(geometry.angles.size());
  std::vector<double> factors(geometry.angles.size(), scale);
  for (std::size_t p = 0; p < geometry.weights.size(); ++p)
    factors[p] = scale * geometry.weights[p];
  return factors;
}

/// The number of slices of projections [S, P, row_values] and images [S, n, n], which have to fit.
inline int check_parallel_beam(const Arguments& arguments, std::int64_t angles, int row_values, int image,
                               const ArrayShape& projections, const ArrayShape& images) {
  if (!projections || projections.rank != 3 || projections.extents[1] != angles ||
      projections.extents[2] != row_values)
    arguments.refuse("projections", "[slices, %lld, %d], found %s", static_cast<long long>(angles),
                     row_values, projections.shape_text().characters);
  const std::int64_t slices = projections.extents[0];
  if (slices > 1 << 20)
    arguments.refuse("projections", "at most 2^20 slices, found %lld", static_cast<long long>(slices));
  arguments.shape("images", images, {slices, image, image});
  return static_cast<int>(slices);
}

/// A checked geometry in the memory of the execution space.
template <class ExecutionSpace>
class Beam {
public:
  Beam(const ExecutionSpace& space, const ParallelBeamGeometry& geometry, int image, ProjectionUnits units)
      : width_(geometry.width), image_(image),
        backprojected_(copy(space, geometry, ProjectionUnits::Transpose)),
        projected_(units == ProjectionUnits::Transpose ? backprojected_ : copy(space, geometry, units)) {}

  int width() const { return width_; }
  int image() const { return image_; }
  int angles() const { return static_cast<int>(backprojected_.size()); }

  /// With the factors of back-projection, and those of projection.
  BeamView<ExecutionSpace> backprojected() const { return view(backprojected_.data()); }
  BeamView<ExecutionSpace> projected() const { return view(projected_.data()); }

  static std::size_t bytes_needed(const ParallelBeamGeometry& geometry, ProjectionUnits units) {
    return (units == ProjectionUnits::Transpose ? 1 : 2) * geometry.angles.size() * sizeof(BeamAngle);
  }
  std::size_t memory_bytes() const {
    return bytes_of(backprojected_) + (projected_.data() == backprojected_.data() ? 0 : bytes_of(projected_));
  }

private:
  using Vector = Kokkos::View<BeamAngle*, ExecutionSpace>;

  static Vector copy(const ExecutionSpace& space, const ParallelBeamGeometry& geometry,
                     ProjectionUnits units) {
    const std::vector<double> factors = angle_factors(geometry, units);
    std::vector<BeamAngle> angles;
    angles.reserve(factors.size());
    for (std::size_t p = 0; p < factors.size(); ++p)
      angles.push_back(
          {std::cos(geometry.angles[p]), std::sin(geometry.angles[p]), factors[p], centre_of(geometry, p)});
    return device_copy(space, "Bracewell::LineTomography::angles", angles);
  }

  BeamView<ExecutionSpace> view(const BeamAngle* data) const { return {data, angles(), width_, image_}; }

  int width_, image_;
  Vector backprojected_, projected_; ///< one where the factors are the same
};

} // namespace Bracewell::Impl
