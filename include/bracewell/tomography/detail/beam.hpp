// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/memory.hpp>

#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

namespace Bracewell::Impl {

/// Parallel projections of square images of `width` x `width` pixels on a detector of `width` pixels: pixel
/// (X, Y) = (column - floor(n/2), row - floor(n/2)) is seen at s = X cos(theta) + Y sin(theta) + centre.
struct ParallelBeam {
  const std::vector<double>& angles; ///< radians
  int width;
  std::optional<double> centre;       ///< detector pixel of the rotation axis; absent: floor(n/2)
  const std::vector<double>& weights; ///< of the angles, 1 on average; empty: all are 1
};

struct BeamAngle {
  double cosine, sine, weight; ///< the weight with pi / P in it
};

template <class ExecutionSpace>
struct BeamView {
  const BeamAngle* data;
  int angles, width;
  double centre;
};

/// Finite angles in radians. Degrees are found out where nothing else is possible: angles over more than a turn
/// that are all multiples of a quarter.
inline void check_angles(const Arguments& arguments, const std::vector<double>& angles) {
  bool quarters = true;
  double least = 0, most = 0;
  for (const double angle : angles) {
    arguments.within("options.angles", angle, -1e9, 1e9);
    quarters = quarters && 4 * angle == std::floor(4 * angle);
    least = std::min(least, angle);
    most = std::max(most, angle);
  }
  arguments.require(!(quarters && most - least > 2 * std::numbers::pi), "options.angles", "radians",
                    [&] { return "degrees (from " + number(least) + " to " + number(most) + ")"; });
}

/// No weights or one per angle, all finite.
inline void check_weights(const Arguments& arguments, const std::vector<double>& weights,
                          std::size_t angles) {
  arguments.require(
      weights.empty() || weights.size() == angles, "options.weights",
      [&] { return "none or " + number(angles) + ", one per angle"; },
      [&] { return number(weights.size()); });
  for (const double weight : weights)
    arguments.finite("options.weights", weight);
}

/// The number of slices of projections [S, P, row_values] and images [S, n, n], which have to fit.
template <class Projection, class Image, class MemorySpace>
int check_parallel_beam(const Arguments& arguments, int angles, int width,
                        const Array<Projection, MemorySpace>& projections,
                        const Array<Image, MemorySpace>& images, int row_values) {
  arguments.require(
      projections && projections.rank == 3 && projections.extents[1] == angles &&
          projections.extents[2] == row_values,
      "projections", [&] { return "[slices, " + number(angles) + ", " + number(row_values) + "]"; },
      [&] { return projections.shape(); });
  const std::int64_t slices = projections.extents[0];
  arguments.require(slices <= (1 << 20), "projections", "at most 2^20 slices",
                    [&] { return number(slices); });
  arguments.shape("images", images, {slices, width, width});
  return static_cast<int>(slices);
}

/// A checked ParallelBeam in the memory of the execution space.
template <class ExecutionSpace>
class Beam {
public:
  Beam(const ExecutionSpace& space, const Arguments& arguments, const ParallelBeam& beam)
      : width_(beam.width), centre_(beam.centre.value_or(beam.width / 2)) {
    check(arguments, beam);
    std::vector<BeamAngle> angles;
    angles.reserve(beam.angles.size());
    for (std::size_t p = 0; p < beam.angles.size(); ++p) {
      const double angle = beam.angles[p], weight = beam.weights.empty() ? 1 : beam.weights[p];
      angles.push_back(
          {std::cos(angle), std::sin(angle), weight * std::numbers::pi / double(beam.angles.size())});
    }
    angles_ = device_copy(space, "Bracewell::LineTomography::angles", angles);
  }

  int width() const { return width_; }
  int angles() const { return static_cast<int>(angles_.size()); }
  BeamView<ExecutionSpace> view() const { return {angles_.data(), angles(), width_, centre_}; }

  /// The number of slices.
  template <class Projection, class Image, class MemorySpace>
  int check(const Arguments& arguments, const Array<Projection, MemorySpace>& projections,
            const Array<Image, MemorySpace>& images) const {
    return check_parallel_beam(arguments, angles(), width_, projections, images, width_);
  }

private:
  void check(const Arguments& arguments, const ParallelBeam& beam) const {
    arguments.within("options.width", beam.width, 1, 1 << 20, " pixels");
    arguments.require(!beam.angles.empty() && beam.angles.size() <= (1u << 24), "options.angles",
                      "from 1 to 2^24 angles", [&] { return number(beam.angles.size()); });
    check_angles(arguments, beam.angles);
    arguments.require(std::abs(centre_) <= 4.0 * width_, "options.centre",
                      "a pixel within four widths of the detector", [&] { return number(centre_); });
    check_weights(arguments, beam.weights, beam.angles.size());
  }

  int width_;
  double centre_;
  Kokkos::View<BeamAngle*, ExecutionSpace> angles_;
};

} // namespace Bracewell::Impl
