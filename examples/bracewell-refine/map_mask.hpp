// SPDX-License-Identifier: MIT
#pragma once

#include "common/input_error.hpp"
#include "cryoem/map.hpp"

#include <bracewell/reconstruct/mask.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace Bracewell::Examples {

/// What of a map is the molecule, voxel by voxel, with a soft edge.
class MapMask {
public:
  MapMask() = default;
  /// From values in [0, 1], [box, box, box].
  MapMask(int box, std::vector<float> values);
  MapMask(int box, const SoftSphere& sphere);

  /// Of a map file. Throws InputError for another box, and values that are none of a mask.
  static MapMask read(const std::filesystem::path& path, int box, Provenance& provenance, double limit);

  /// Around the density of a map of any scale and background: smoothed to about six periods per box, what rises above a
  /// tenth of the highest density and four standard deviations of what surrounds it, a thirty-second of the box wider (two
  /// voxels at least), with an edge of a sixteenth (four at least). Parts smaller than a tenth of the largest are left out. None where nothing rises, or what does
  /// fills the sphere that fits the box.
  /// @param map [box, box, box]
  static std::optional<MapMask> around(std::span<const float> map, int box);

  /// Part of the sphere that fits the box which it leaves.
  double part_of_sphere() const;
  const std::vector<float>& values() const { return values_; }

  /// The constant around the molecule is subtracted from a map, and the rest multiplied by the mask: a map with a
  /// constant added is the same map.
  void apply(std::span<float> map) const;

private:
  double background(std::span<const float> map) const;

  int box_ = 0;
  std::vector<float> values_;
};

} // namespace Bracewell::Examples
