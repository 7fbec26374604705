// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/tiles.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace Bracewell::Examples {
namespace {

using Position = std::array<double, 2>;

struct Cut {
  std::span<const Position> positions;
  std::array<std::int64_t, 2> object;
  int probe, margin;
  std::vector<Tile> tiles = {};

  double position(std::int64_t pattern, std::size_t axis) const {
    return positions[static_cast<std::size_t>(pattern)][axis];
  }

  double side(std::span<const std::int64_t> patterns, std::size_t axis) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double least = infinity, most = -infinity;
    for (const std::int64_t pattern : patterns) {
      least = std::min(least, position(pattern, axis));
      most = std::max(most, position(pattern, axis));
    }
    return most - least;
  }

  void cut(std::span<std::int64_t> patterns, const Rectangle& cell, int count) {
    if (count == 1)
      return add(patterns, cell);
    const std::size_t axis = side(patterns, 0) >= side(patterns, 1) ? 0 : 1;
    std::ranges::sort(patterns, {},
                      [&](std::int64_t pattern) { return std::tuple(position(pattern, axis), pattern); });
    const int half = count / 2;
    const auto first = static_cast<std::size_t>(std::ssize(patterns) * half / count);
    // Through the middle of the last window on this side and the first one on that.
    Rectangle low = cell, high = cell;
    std::int64_t at = first == 0 ? cell.begin[axis] : cell.end[axis];
    if (first > 0 && first < patterns.size())
      at = std::clamp<std::int64_t>(
          std::lround((position(patterns[first - 1], axis) + position(patterns[first], axis) + probe) / 2),
          cell.begin[axis], cell.end[axis]);
    low.end[axis] = high.begin[axis] = at;
    cut(patterns.first(first), low, half);
    cut(patterns.subspan(first), high, count - half);
  }

  void add(std::span<std::int64_t> patterns, const Rectangle& cell) {
    Rectangle reached = cell;
    for (const std::size_t axis : {0, 1}) {
      const auto reach = [&](std::int64_t first) {
        reached.begin[axis] = std::min(reached.begin[axis], first - margin);
        reached.end[axis] = std::max(reached.end[axis], first + probe + margin);
      };
      for (const std::int64_t pattern : patterns)
        reach(std::int64_t(std::floor(position(pattern, axis) + 0.5)));
      if (patterns.empty()) // a solver wants one
        reach(std::clamp<std::int64_t>(cell.begin[axis], margin, object[axis] - probe - margin));
    }
    std::ranges::sort(patterns);
    tiles.push_back({{patterns.begin(), patterns.end()}, cell, reached});
  }
};

} // namespace

std::vector<Tile> cut_into_tiles(std::span<const Position> positions,
                                 const std::array<std::int64_t, 2>& object, int probe, int margin,
                                 int tiles) {
  std::vector<std::int64_t> patterns(positions.size());
  std::iota(patterns.begin(), patterns.end(), 0);
  Cut cut{positions, object, probe, margin};
  cut.cut(patterns, {{0, 0}, object}, tiles);
  return cut.tiles;
}

} // namespace Bracewell::Examples
