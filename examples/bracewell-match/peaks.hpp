// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace Bracewell::Examples {

/// A maximum of a map of scores.
struct Peak {
  double row, column; ///< of the map, between its pixels
  double score;
  std::size_t pixel; ///< the highest
};

/// Where the parabola through three neighbours has its top, from the middle one on.
inline double top_of(double before, double middle, double after) {
  const double curvature = before - 2 * middle + after;
  return curvature < 0 ? std::clamp(0.5 * (before - after) / curvature, -0.5, 0.5) : 0;
}

/// Maxima of scores [rows, columns] above the threshold, from the highest on, each at least `distance` pixels (rows,
/// columns) from those before.
inline std::vector<Peak> find_peaks(std::span<const float> scores, int rows, int columns, double threshold,
                                    const double (&distance)[2]) {
  std::vector<std::size_t> above;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (double(scores[i]) > threshold)
      above.push_back(i);
  std::ranges::stable_sort(above, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<Peak> peaks;
  std::vector<bool> taken(scores.size());
  const auto width = static_cast<std::size_t>(columns);
  for (const std::size_t pixel : above) {
    if (taken[pixel])
      continue;
    const int row = static_cast<int>(pixel / width), column = static_cast<int>(pixel % width);
    const auto at = [&](int r, int c) {
      return double(scores[std::size_t(std::clamp(r, 0, rows - 1)) * width +
                           std::size_t(std::clamp(c, 0, columns - 1))]);
    };
    const double here = at(row, column);
    peaks.push_back({row + top_of(at(row - 1, column), here, at(row + 1, column)),
                     column + top_of(at(row, column - 1), here, at(row, column + 1)), here, pixel});
    const int reach[2] = {static_cast<int>(std::min(distance[0], double(rows))),
                          static_cast<int>(std::min(distance[1], double(columns)))};
    for (int r = std::max(0, row - reach[0]); r <= std::min(rows - 1, row + reach[0]); ++r)
      for (int c = std::max(0, column - reach[1]); c <= std::min(columns - 1, column + reach[1]); ++c)
        if (std::hypot((r - row) / std::max(1e-9, distance[0]), (c - column) / std::max(1e-9, distance[1])) <=
            1)
          taken[std::size_t(r) * width + std::size_t(c)] = true;
  }
  return peaks;
}

} // namespace Bracewell::Examples
