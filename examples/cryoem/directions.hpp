// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

struct Picture;

/// Directions of equal solid angle on the upper half of the sphere, in rings about z: a frequency and its mate have one.
class DirectionGrid {
public:
  static constexpr int rings = 12;

  DirectionGrid();
  int count() const { return begins_[rings]; }
  double tilt(int direction) const; ///< degrees from z
  double rot(int direction) const;  ///< degrees from x towards y
  /// Cosine of the angle between two directions, or their opposites.
  double cosine(int one, int other) const;

  /// Of a frequency other than 0.
  KOKKOS_FUNCTION int find(double x, double y, double z) const {
    const bool below = z < 0 || (z == 0 && (y < 0 || (y == 0 && x < 0)));
    const double sign = below ? -1 : 1;
    const double norm = Kokkos::sqrt(x * x + y * y + z * z), pi = Kokkos::numbers::pi;
    const double angle = Kokkos::acos(Kokkos::min(1.0, sign * z / norm));
    const int ring = Kokkos::min(static_cast<int>(angle / (pi / 2) * rings), rings - 1);
    const int length = begins_[ring + 1] - begins_[ring];
    double turn = Kokkos::atan2(sign * y, sign * x) / (2 * pi);
    turn -= Kokkos::floor(turn);
    return begins_[ring] + Kokkos::min(static_cast<int>(turn * length), length - 1);
  }

private:
  int begins_[rings + 1];
};

/// What was measured in a direction.
struct Direction {
  double tilt = 0, rot = 0; ///< degrees
  double weight = 0;        ///< over the mean of all
  /// Of the half maps in a cone of 20 degrees, correlation 0.143, in Angstrom (pixels without a pixel size); infinity: none.
  std::optional<double> resolution;
};

struct Directions {
  std::vector<Direction> all;
  double least = 0, median = 0, mean = 0; ///< weight, as it is

  /// The sentence of a warning: a direction has less than a tenth of the median, or of the mean. Empty: none has.
  std::string warning() const;
};

/// Weights of two half sets [1, N, N, N/2+1] by direction, between a quarter and nine tenths of the Nyquist limit.
Directions weights_by_direction(const Space& space, const MapWeight& first, const MapWeight& second);

/// Enters resolutions: those of masked half maps in cones.
void add_resolutions(const Space& space, Directions& directions, const Map& first, const Map& second,
                     double pixel_size);

/// A table of all, and a picture of the upper half of the sphere: cos(tilt) from 1 (top) to 0 by rot.
void write_directions(const std::filesystem::path& text, const std::filesystem::path& picture,
                      const Directions& directions, double pixel_size);
Picture picture_of(const Directions& directions, double pixel_size);

} // namespace Bracewell::Examples
