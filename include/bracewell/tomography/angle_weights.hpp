// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace Bracewell {

/// Weights for angles that are not evenly spread: the share of half a turn that is nearer to an angle than to
/// any other (angles half a turn apart see the same lines), 1 on average.
/// @param angles  radians, in any order; none have no weights
/// @throws Error on angles that are not finite
inline std::vector<double> angular_density_weights(const std::vector<double>& angles) {
  constexpr Impl::Arguments arguments{"angular_density_weights"};
  constexpr double pi = std::numbers::pi;
  const std::size_t count = angles.size();
  std::vector<double> folded(count), weights(count, 1.0);
  std::vector<std::size_t> order(count);
  for (std::size_t p = 0; p < count; ++p) {
    arguments.finite("angles", angles[p]);
    folded[p] = angles[p] - pi * std::floor(angles[p] / pi);
    order[p] = p;
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return folded[a] < folded[b]; });
  for (std::size_t i = 0; count > 1 && i < count; ++i) {
    const double next = i + 1 < count ? folded[order[i + 1]] : folded[order[0]] + pi;
    const double previous = i > 0 ? folded[order[i - 1]] : folded[order[count - 1]] - pi;
    weights[order[i]] = (next - previous) / 2 * double(count) / pi;
  }
  return weights;
}

} // namespace Bracewell
