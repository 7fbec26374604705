// SPDX-License-Identifier: MIT
#pragma once

#include "common/input_error.hpp"
#include "cryoem/map.hpp"
#include "cryoem/padded_spectrum.hpp"
#include "cryoem/sampling.hpp"

#include <Eigen/Core>

#include <cmath>

namespace Bracewell::Examples {

/// The map that particles are matched with.
struct Reference {
  int box;
  PreparedMap map; ///< padded, without the attenuation that its interpolation will bring
  Eigen::Vector3d
      levers; ///< root mean square distance of the density from x, y and z axes of any image, pixels
};

/// Root mean square distance of the density from the centre of the box, weighted by its square, in pixels.
inline double radius_of_gyration(const CubicMap& map) {
  double power = 0, moment = 0;
  std::size_t voxel = 0;
  const int centre = map.box / 2;
  for (int z = -centre; z < map.box - centre; ++z)
    for (int y = -centre; y < map.box - centre; ++y)
      for (int x = -centre; x < map.box - centre; ++x, ++voxel) {
        const double squared = static_cast<double>(map.values[voxel]) * map.values[voxel];
        power += squared;
        moment += squared * (double(x) * x + double(y) * y + double(z) * z);
      }
  return power > 0 ? std::max(1.0, std::sqrt(moment / power)) : 1;
}

/// What a tilt about x or y moves is seen along one axis only (its distance in depth); about z along both.
inline Eigen::Vector3d levers_of(const CubicMap& map) {
  return radius_of_gyration(map) * Eigen::Vector3d(1.0 / 3, 1.0 / 3, 2.0 / 3).cwiseSqrt();
}

inline Reference make_reference(const Space& space, const CubicMap& map, const Sampling& sampling) {
  return {map.box, prepared(space, padded_spectrum(space, map, sampling), map.box, sampling.kernel),
          levers_of(map)};
}

} // namespace Bracewell::Examples
