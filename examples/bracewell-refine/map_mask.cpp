// SPDX-License-Identifier: MIT
#include "bracewell-refine/map_mask.hpp"

#include "common/input_error.hpp"
#include "common/median.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace Bracewell::Examples {
namespace {

/// A cube of values, small enough for passes on one thread.
struct Grid {
  int edge;
  std::vector<double> values;

  explicit Grid(int n, double value = 0)
      : edge(n),
        values(static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * static_cast<std::size_t>(n),
               value) {}
  std::size_t at(int z, int y, int x) const {
    return (static_cast<std::size_t>(z) * static_cast<std::size_t>(edge) + static_cast<std::size_t>(y)) *
               static_cast<std::size_t>(edge) +
           static_cast<std::size_t>(x);
  }
};

/// Calls visit(index, distance from the centre over the radius of the sphere that fits).
template <class Visit>
void for_each_voxel(int edge, const Visit& visit) {
  const int centre = edge / 2;
  const double radius = edge / 2.0;
  std::size_t i = 0;
  for (int z = -centre; z < edge - centre; ++z)
    for (int y = -centre; y < edge - centre; ++y)
      for (int x = -centre; x < edge - centre; ++x, ++i)
        visit(i, std::sqrt(double(x) * x + double(y) * y + double(z) * z) / radius);
}

/// visit(i) for 0 <= i < count.
template <class Visit>
void in_parallel(int count, const Visit& visit) {
  Kokkos::parallel_for("Bracewell::examples::map_mask",
                       Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, count), visit);
}

/// The map smoothed by a Gaussian, at the points of a coarser grid with the same centre. Axis by axis.
Grid smoothed(std::span<const float> map, int box, int edge, double deviation) {
  const double step = double(box) / edge;
  const int reach = static_cast<int>(std::ceil(3 * deviation));
  // Rows of what is left: [edge, rest] from [box, rest].
  const auto pass = [&](const auto& in, std::size_t blocks, std::size_t rest) {
    std::vector<float> out(blocks * static_cast<std::size_t>(edge) * rest);
    in_parallel(edge, [&](int j) {
      const double position = box / 2 + (j - edge / 2) * step;
      const int first = std::max(0, static_cast<int>(std::lround(position)) - reach),
                last = std::min(box - 1, static_cast<int>(std::lround(position)) + reach);
      double sum = 0;
      for (int x = first; x <= last; ++x)
        sum += std::exp(-std::pow((x - position) / deviation, 2) / 2);
      for (int x = first; x <= last; ++x) {
        const auto weight = static_cast<float>(std::exp(-std::pow((x - position) / deviation, 2) / 2) / sum);
        for (std::size_t b = 0; b < blocks; ++b) {
          const float* const source =
              in.data() + (b * static_cast<std::size_t>(box) + static_cast<std::size_t>(x)) * rest;
          float* const target =
              out.data() + (b * static_cast<std::size_t>(edge) + static_cast<std::size_t>(j)) * rest;
          for (std::size_t i = 0; i < rest; ++i)
            target[i] += weight * source[i];
        }
      }
    });
    return out;
  };
  const auto n = static_cast<std::size_t>(box), m = static_cast<std::size_t>(edge);
  const auto values = pass(pass(pass(map, 1, n * n), m, n), m * m, 1);
  Grid grid(edge);
  std::ranges::copy(values, grid.values.begin());
  return grid;
}

/// Leaves the connected parts that have at least a tenth of the largest's voxels; the others become 0.
void keep_large_parts(Grid& inside) {
  std::vector<int> part(inside.values.size(), 0);
  std::vector<std::size_t> sizes{0}, stack;
  const auto n = static_cast<std::size_t>(inside.edge);
  for (std::size_t seed = 0; seed < part.size(); ++seed) {
    if (inside.values[seed] == 0 || part[seed] != 0)
      continue;
    const int label = static_cast<int>(sizes.size());
    sizes.push_back(0);
    stack.assign(1, seed);
    part[seed] = label;
    while (!stack.empty()) {
      const std::size_t i = stack.back();
      stack.pop_back();
      ++sizes.back();
      const std::array<std::size_t, 3> place{i / (n * n), i / n % n, i % n}, stride{n * n, n, 1};
      for (std::size_t axis = 0; axis < 3; ++axis)
        for (const bool up : {false, true}) {
          if (up ? place[axis] + 1 == n : place[axis] == 0)
            continue;
          const std::size_t next = up ? i + stride[axis] : i - stride[axis];
          if (inside.values[next] != 0 && part[next] == 0) {
            part[next] = label;
            stack.push_back(next);
          }
        }
    }
  }
  const std::size_t largest = *std::ranges::max_element(sizes);
  for (std::size_t i = 0; i < part.size(); ++i)
    if (10 * sizes[static_cast<std::size_t>(part[i])] < largest)
      inside.values[i] = 0;
}

/// Squared distances from what is not 0, axis by axis (Felzenszwalb & Huttenlocher, Theory of Computing 8 (2012) 415;
/// here by comparing all pairs of a line, of which a grid has few).
Grid squared_distances(const Grid& inside) {
  constexpr double far = 1e12;
  const int n = inside.edge;
  Grid result(n);
  for (std::size_t i = 0; i < inside.values.size(); ++i)
    result.values[i] = inside.values[i] != 0 ? 0 : far;
  std::vector<double> line(static_cast<std::size_t>(n));
  for (int axis = 0; axis < 3; ++axis)
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < n; ++b) {
        const auto at = [&](int i) {
          return axis == 0 ? result.at(i, a, b) : axis == 1 ? result.at(a, i, b) : result.at(a, b, i);
        };
        for (int i = 0; i < n; ++i)
          line[static_cast<std::size_t>(i)] = result.values[at(i)];
        for (int i = 0; i < n; ++i) {
          double least = far;
          for (int j = 0; j < n; ++j)
            least = std::min(least, line[static_cast<std::size_t>(j)] + double(i - j) * (i - j));
          result.values[at(i)] = least;
        }
      }
  return result;
}

double soft_edge(double distance, double width) {
  return distance <= 0       ? 1
         : distance >= width ? 0
                             : 0.5 + 0.5 * std::cos(std::numbers::pi * distance / width);
}

/// Values of a grid between its points, in the box that it stands for.
std::vector<float> enlarged(const Grid& grid, int box) {
  struct Place {
    int first;
    double part;
  };
  const int n = grid.edge;
  std::vector<Place> places;
  for (int x = 0; x < box; ++x) {
    const double position = std::clamp(n / 2 + double(x - box / 2) * n / box, 0.0, n - 1.0);
    const int first = std::min(static_cast<int>(position), n - 2);
    places.push_back({first, position - first});
  }
  std::vector<float> values(static_cast<std::size_t>(box) * static_cast<std::size_t>(box) *
                            static_cast<std::size_t>(box));
  in_parallel(box, [&](int z) {
    std::vector<double> line(static_cast<std::size_t>(n));
    float* out = values.data() +
                 static_cast<std::size_t>(z) * static_cast<std::size_t>(box) * static_cast<std::size_t>(box);
    const auto [z0, c] = places[static_cast<std::size_t>(z)];
    for (const auto [y0, b] : places) {
      for (int x = 0; x < n; ++x)
        line[static_cast<std::size_t>(x)] =
            (1 - c) * ((1 - b) * grid.values[grid.at(z0, y0, x)] + b * grid.values[grid.at(z0, y0 + 1, x)]) +
            c * ((1 - b) * grid.values[grid.at(z0 + 1, y0, x)] + b * grid.values[grid.at(z0 + 1, y0 + 1, x)]);
      for (const auto [x0, a] : places)
        *out++ = static_cast<float>((1 - a) * line[static_cast<std::size_t>(x0)] +
                                    a * line[static_cast<std::size_t>(x0) + 1]);
    }
  });
  return values;
}

} // namespace

MapMask::MapMask(int box, std::vector<float> values) : box_(box), values_(std::move(values)) {}

MapMask::MapMask(int box, const SoftSphere& sphere)
    : box_(box),
      values_(static_cast<std::size_t>(box) * static_cast<std::size_t>(box) * static_cast<std::size_t>(box)) {
  for_each_voxel(
      box, [&](std::size_t i, double part) { values_[i] = static_cast<float>(sphere(part * box / 2)); });
}

MapMask MapMask::read(const std::filesystem::path& path, int box, Provenance& provenance, double limit) {
  CubicMap map = read_map(provenance, path, limit);
  if (map.box != box)
    throw InputError(path.string() + ": --mask: expected a box of " + std::to_string(box) +
                     " voxels as the images have, found " + std::to_string(map.box));
  const auto [least, most] = std::ranges::minmax(map.values);
  if (!(least >= -1e-4f && most <= 1 + 1e-4f && most > 0))
    throw InputError(path.string() + ": --mask: expected values from 0 to 1, not all of them 0, found " +
                     shortest(least) + " to " + shortest(most));
  for (float& value : map.values)
    value = std::clamp(value, 0.0f, 1.0f);
  return {box, std::move(map.values)};
}

std::optional<MapMask> MapMask::around(std::span<const float> map, int box) {
  constexpr double periods = 6, part_of_highest = 0.1, deviations = 4;
  constexpr int most_edge = 64;
  const int edge = std::min(box, most_edge);
  const Grid smooth = smoothed(map, box, edge, box / (2 * std::numbers::pi * periods));
  // Beside the molecule, where images still say something.
  std::vector<double> around;
  for_each_voxel(edge, [&](std::size_t i, double part) {
    if (part > 0.8 && part < 0.97)
      around.push_back(smooth.values[i]);
  });
  const double level = median(around);
  for (double& value : around)
    value = std::abs(value - level);
  const double deviation = 1.4826 * median(around);
  double highest = 0;
  for_each_voxel(edge, [&](std::size_t i, double part) {
    if (part < 0.97)
      highest = std::max(highest, smooth.values[i] - level);
  });
  const double threshold = std::max(part_of_highest * highest, deviations * deviation);
  if (!(highest > 2 * deviations * deviation)) // nothing rises
    return {};
  Grid inside(edge);
  for_each_voxel(edge, [&](std::size_t i, double part) {
    inside.values[i] = part < 0.97 && smooth.values[i] - level > threshold ? 1 : 0;
  });
  keep_large_parts(inside);
  // Both in points of the grid; in small boxes at least as wide as their voxels blur.
  const double wider = std::max(2.0, edge / 32.0), width = std::max(4.0, edge / 16.0);
  Grid soft = squared_distances(inside);
  for_each_voxel(edge, [&](std::size_t i, double part) {
    soft.values[i] = soft_edge(std::sqrt(soft.values[i]) - wider, width) *
                     soft_edge((part - 1) * edge / 2 + width / 2, width);
  });
  MapMask mask(box, enlarged(soft, box));
  if (mask.part_of_sphere() > 0.9)
    return {};
  return mask;
}

double MapMask::part_of_sphere() const {
  double inside = 0, count = 0;
  for_each_voxel(box_, [&](std::size_t i, double part) {
    if (part < 1) {
      inside += values_[i];
      ++count;
    }
  });
  return inside / count;
}

/// The mean of what the mask takes away within the sphere that fits the box; of the outermost tenth where that is
/// nothing. Of large boxes every so many voxels are looked at.
double MapMask::background(std::span<const float> map) const {
  const int step = std::max(1, box_ / 64), centre = box_ / 2;
  double sum = 0, count = 0, edge_sum = 0, edge_count = 0, all = 0;
  for (int z = 0; z < box_; z += step)
    for (int y = 0; y < box_; y += step)
      for (int x = 0; x < box_; x += step) {
        const double squared = std::pow(z - centre, 2) + std::pow(y - centre, 2) + std::pow(x - centre, 2),
                     part = std::sqrt(squared) / (box_ / 2.0);
        if (part >= 1)
          continue;
        const auto n = static_cast<std::size_t>(box_),
                   i = (static_cast<std::size_t>(z) * n + static_cast<std::size_t>(y)) * n +
                       static_cast<std::size_t>(x);
        ++all;
        if (values_[i] < 1e-3f)
          sum += map[i], ++count;
        if (part >= 0.9)
          edge_sum += map[i], ++edge_count;
      }
  return count > 0.02 * all ? sum / count : edge_count > 0 ? edge_sum / edge_count : 0;
}

void MapMask::apply(std::span<float> map) const {
  const auto level = static_cast<float>(background(map));
  for (std::size_t i = 0; i < values_.size(); ++i)
    map[i] = (map[i] - level) * values_[i];
}

} // namespace Bracewell::Examples
