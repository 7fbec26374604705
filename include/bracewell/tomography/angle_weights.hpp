// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace Bracewell {

/// Weights for angles that are not evenly spread. The weight of an angle is the share of half a turn that is nearest
/// to it; the mean is 1. (Angles half a turn apart see the same rays.) A gap of more than five median gaps is a
/// missing wedge, which belongs to no angle. An angle at its end gets the same share on its side as on the other side.
/// So even steps over less than half a turn have the weight 1. Projections at the same angle have equal parts of its
/// share.
/// @param angles  radians, in any order; none have no weights
/// @throws Error on angles that are not finite
inline std::vector<double> angular_density_weights(const std::vector<double>& angles) {
  constexpr Impl::Arguments arguments{"angular_density_weights"};
  constexpr double pi = std::numbers::pi, same = 1e-9, wedge = 5;
  const std::size_t count = angles.size();
  std::vector<double> folded(count), weights(count, 1.0);
  for (std::size_t p = 0; p < count; ++p) {
    arguments.finite("angles", angles[p]);
    folded[p] = angles[p] - pi * std::floor(angles[p] / pi);
    if (folded[p] > pi - same)
      folded[p] = 0;
  }
  // The different angles, and the gap after each of them.
  std::vector<double> places = folded;
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end(), [](double a, double b) { return b - a < same; }),
               places.end());
  const std::size_t size = places.size();
  if (size < 2)
    return weights;
  std::vector<double> gaps(size), shares(size);
  for (std::size_t i = 0; i < size; ++i)
    gaps[i] = i + 1 < size ? places[i + 1] - places[i] : places[0] + pi - places[i];
  std::vector<double> sorted = gaps;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[(size - 1) / 2];
  const auto missing = [&](double gap) { return gap > wedge * median; };
  double total = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double before = gaps[i > 0 ? i - 1 : size - 1], after = gaps[i];
    const double left = missing(before) ? (missing(after) ? median : after) : before;
    const double right = missing(after) ? (missing(before) ? median : before) : after;
    total += shares[i] = (left + right) / 2;
  }

  std::vector<std::size_t> place(count), occupants(size);
  for (std::size_t p = 0; p < count; ++p) {
    const auto next = std::upper_bound(places.begin(), places.end(), folded[p]);
    place[p] = static_cast<std::size_t>(next - places.begin()) - 1;
    ++occupants[place[p]];
  }
  for (std::size_t p = 0; p < count; ++p)
    weights[p] = shares[place[p]] / total * double(count) / double(occupants[place[p]]);
  return weights;
}

} // namespace Bracewell
