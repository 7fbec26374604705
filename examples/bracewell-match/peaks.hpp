// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace Bracewell::Examples {

/// A maximum of a map of scores.
struct Peak {
  std::array<double, 3> place; ///< layer, row and column of the map, between its pixels
  double score;
  std::size_t pixel; ///< the highest
};

/// Where the parabola through three neighbours has its top, from the middle one on.
inline double top_of(double before, double middle, double after) {
  const double curvature = before - 2 * middle + after;
  return curvature < 0 ? std::clamp(0.5 * (before - after) / curvature, -0.5, 0.5) : 0;
}

/// Maxima of scores [layers, rows, columns] above the threshold, from the highest on: no neighbour along an axis is higher, and
/// each is at least `distance` pixels (in the same order) from those before.
inline std::vector<Peak> find_peaks(std::span<const float> scores, const std::array<int, 3>& size,
                                    double threshold, const std::array<double, 3>& distance) {
  std::vector<std::size_t> above;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (double(scores[i]) > threshold)
      above.push_back(i);
  std::ranges::stable_sort(above, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<Peak> peaks;
  std::vector<bool> taken(scores.size());
  const auto pixel_of = [&](const std::array<int, 3>& index) {
    return (std::size_t(index[0]) * std::size_t(size[1]) + std::size_t(index[1])) * std::size_t(size[2]) +
           std::size_t(index[2]);
  };
  for (const std::size_t pixel : above) {
    if (taken[pixel])
      continue;
    const auto columns = std::size_t(size[2]), rows = std::size_t(size[1]);
    const std::array<int, 3> here{static_cast<int>(pixel / columns / rows),
                                  static_cast<int>(pixel / columns % rows),
                                  static_cast<int>(pixel % columns)};
    Peak peak{{}, double(scores[pixel]), pixel};
    std::array<int, 3> low, high;
    bool highest = true;
    for (std::size_t d = 0; d < 3; ++d) {
      auto before = here, after = here;
      before[d] = std::max(here[d] - 1, 0);
      after[d] = std::min(here[d] + 1, size[d] - 1);
      const double below = double(scores[pixel_of(before)]), beyond = double(scores[pixel_of(after)]);
      highest = highest && std::max(below, beyond) <= peak.score;
      peak.place[d] = here[d] + top_of(below, peak.score, beyond);
      const int reach = static_cast<int>(std::min(distance[d], double(size[d])));
      low[d] = std::max(0, here[d] - reach);
      high[d] = std::min(size[d] - 1, here[d] + reach);
    }
    if (!highest) // the flank of another
      continue;
    peaks.push_back(peak);
    const auto share = [&](int index, std::size_t d) {
      return (index - here[d]) / std::max(1e-9, distance[d]);
    };
    for (int z = low[0]; z <= high[0]; ++z)
      for (int y = low[1]; y <= high[1]; ++y)
        for (int x = low[2]; x <= high[2]; ++x)
          if (std::hypot(share(z, 0), share(y, 1), share(x, 2)) <= 1)
            taken[pixel_of({z, y, x})] = true;
  }
  return peaks;
}

} // namespace Bracewell::Examples
