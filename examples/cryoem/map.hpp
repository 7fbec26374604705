// SPDX-License-Identifier: MIT
#pragma once

#include "common/input_error.hpp"
#include "common/memory_limit.hpp"
#include "common/mrc.hpp"
#include "common/provenance.hpp"
#include "common/slots.hpp"
#include "cryoem/findings.hpp"
#include "cryoem/views.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// A map in a cubic box, centre at voxel floor(box / 2) of every axis.
struct CubicMap {
  int box = 0;
  std::vector<float> values;        ///< [box, box, box]: z, y, x
  std::optional<double> voxel_size; ///< Angstrom
};

/// Reads a map; one that is not cubic is put into the middle of the smallest cube around it. Throws
/// InputError as MrcReader, and for a map that is too small, or too large for `limit` (memory_limit). Assumes what
/// findings_in_map says.
inline CubicMap read_map(Provenance& provenance, const std::filesystem::path& path, double limit);

/// The same without a look at its values.
inline CubicMap read_cube(Provenance& provenance, const std::filesystem::path& path, double limit) {
  const MrcReader reader(path);
  for (const auto& warning : reader.warnings())
    provenance.assume(path.string() + ": " + warning);
  for (const double angle : reader.header().cell_angles) {
    constexpr double right = 90, skewed = 10;
    if (angle > 1 && angle < 179 && std::abs(angle - right) > skewed)
      throw InputError(path.string() + ": expected a cell with right angles, found one of " +
                       shortest(angle) +
                       " degrees: voxels of a crystal are no cubes; bring the map to a cubic grid first");
    if (angle > 1 && angle < 179 && std::abs(angle - right) > 0.5)
      provenance.assume(path.string() + ": its cell has an angle of " + shortest(angle) +
                        " degrees; its voxels are taken as cubes");
  }
  const auto& size = reader.header().size;
  const auto& voxel_size = reader.header().voxel_size;
  const std::int64_t box = std::ranges::max(size);
  if (box < 2 || box > 8192)
    throw InputError(path.string() + ": expected a map of 2 to 8192 voxels along its longest axis, found " +
                     std::to_string(box));
  require_memory(path.string() + ", in a cube of " + std::to_string(box) + " voxels,",
                 resident_bytes() + sizeof(float) * (std::pow(box, 3) + double(size[0] * size[1] * size[2])),
                 limit);
  std::vector<float> stored = reader.read_volume();
  for (std::size_t axis = 1; axis < 3; ++axis)
    if (voxel_size[0] && voxel_size[axis] &&
        std::abs(*voxel_size[axis] - *voxel_size[0]) > 0.01 * *voxel_size[0])
      provenance.assume(path.string() + ": its voxels are not cubes (edges of " +
                        std::to_string(*voxel_size[0]) + " and " + std::to_string(*voxel_size[axis]) +
                        " Angstrom); taken as cubes of the first");
  provenance.took(path, "a map of " + std::to_string(size[0]) + " x " + std::to_string(size[1]) + " x " +
                            std::to_string(size[2]) + " voxels" +
                            (voxel_size[0] ? " of " + shortest(*voxel_size[0]) + " Angstrom" : ""));
  CubicMap map{static_cast<int>(box), {}, voxel_size[0]};
  if (size[0] == box && size[1] == box && size[2] == box) {
    map.values = std::move(stored);
    return map;
  }
  provenance.assume(path.string() + ": is not cubic: put into the middle of a cube of " +
                    std::to_string(box) + " voxels");
  const auto edge = static_cast<std::size_t>(box);
  map.values.resize(edge * edge * edge);
  const auto offset = [&](std::size_t axis) { return static_cast<std::size_t>(box / 2 - size[axis] / 2); };
  const auto columns = static_cast<std::size_t>(size[0]);
  for (std::int64_t z = 0; z < size[2]; ++z)
    for (std::int64_t y = 0; y < size[1]; ++y) {
      const std::size_t from = static_cast<std::size_t>(z * size[1] + y) * columns;
      const std::size_t to =
          ((static_cast<std::size_t>(z) + offset(2)) * edge + static_cast<std::size_t>(y) + offset(1)) *
              edge +
          offset(0);
      std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(from), columns,
                  map.values.begin() + static_cast<std::ptrdiff_t>(to));
    }
  return map;
}

inline CubicMap read_map(Provenance& provenance, const std::filesystem::path& path, double limit) {
  CubicMap map = read_cube(provenance, path, limit);
  const auto [least, most] = std::ranges::minmax(map.values);
  if (const double largest = std::max(std::abs(double(least)), std::abs(double(most)));
      largest > largest_value)
    throw InputError(path.string() + ": has values of " + shortest(largest) + ", expected " +
                     shortest(largest_value) + " at most: damaged, or of another type than its header says?");
  for (const std::string& finding : findings_in_map(map.values, map.box))
    provenance.assume(path.string() + ": " + finding);
  return map;
}

/// The values as a Map [1, box, box, box].
inline Map to_device(const Space& space, const CubicMap& map) {
  const auto volume = allocate<Map>("map", 1, map.box, map.box, map.box);
  const Kokkos::View<const float****, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> values(
      map.values.data(), 1, volume.extent(1), volume.extent(2), volume.extent(3));
  copy_values(space, volume, values);
  space.fence("Bracewell::examples::map");
  return volume;
}

/// A map where the host reads it: itself where kernels run there, else a copy.
class MapOnHost {
public:
  MapOnHost() = default;
  MapOnHost(const Space& space, const Map& map) : map_(map) {
    if constexpr (!kernels_run_on_host) {
      copy_ = std::make_unique<CopyMemory>(map.size() * sizeof(float));
      const Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> target(
          reinterpret_cast<float*>(copy_->data()), map.size());
      copy_values(space, target, Part<const float*>(map.data(), map.size()));
      map_ = {};
    }
    space.fence("Bracewell::examples::map");
    values_ = {copy_ ? reinterpret_cast<const float*>(copy_->data()) : map_.data(), map.size()};
  }

  std::span<const float> values() const { return values_; } ///< [box, box, box]: z, y, x

private:
  Map map_;
  std::unique_ptr<CopyMemory> copy_;
  std::span<const float> values_;
};

/// The same as values of its own.
inline std::vector<float> to_host(const Space& space, const Map& map) {
  const MapOnHost on_host(space, map);
  return {on_host.values().begin(), on_host.values().end()};
}

} // namespace Bracewell::Examples
