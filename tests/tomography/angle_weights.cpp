// SPDX-License-Identifier: MIT
#include "phantom.hpp"

#include <bracewell/tomography/angle_weights.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <numeric>

using Bracewell::angular_density_weights;
using TomographyTest::even_angles;
using TomographyTest::Values;

namespace {

constexpr double pi = std::numbers::pi;

double distance(double a, double b) { return std::abs(std::remainder(a - b, pi)); }

/// The definition: how much of half a turn is nearer to an angle than to any other, by counting. Angles in
/// the same place have it together.
Values counted(const Values& angles, int points = 100000) {
  Values shares(angles.size());
  for (int i = 0; i < points; ++i) {
    const double at = pi * (i + 0.5) / points;
    const auto nearest =
        std::ranges::min_element(angles, {}, [&](double angle) { return distance(angle, at); });
    shares[static_cast<std::size_t>(nearest - angles.begin())] += double(angles.size()) / points;
  }
  return shares;
}

void check_even(const Values& angles) {
  for (const double weight : angular_density_weights(angles))
    CHECK(std::abs(weight - 1) < 1e-10);
}

} // namespace

TEST_CASE("even angles have the weight 1: over half a turn, a whole turn, in any order") {
  check_even({0.7});
  check_even(even_angles(50));
  check_even(even_angles(50, -pi, 2));
  check_even(even_angles(50, 2 * pi)); // each twice, half a turn apart
  check_even(even_angles(51, 2 * pi)); // 51 different ones over half a turn
  Values shuffled = even_angles(77, pi, -40);
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(1));
  check_even(shuffled);
}

TEST_CASE("the weight of an angle is what is nearest to it") {
  Values angles = TomographyTest::random_values(40, -5, 5);
  const Values weights = angular_density_weights(angles), expected = counted(angles);
  for (std::size_t p = 0; p < angles.size(); ++p)
    CHECK(std::abs(weights[p] - expected[p]) < 2e-3); // two of 100000 points, times 40
  CHECK(std::abs(std::accumulate(weights.begin(), weights.end(), 0.0) - 40) < 1e-10);

  // A second and a third projection at the same angle share its weight.
  angles.insert(angles.begin() + 7, 2, angles[20]);
  const Values shared = angular_density_weights(angles);
  CHECK(std::abs(shared[7] + shared[8] + shared[22] - weights[20] * 42 / 40) < 1e-10);
  CHECK(std::abs(shared[3] - weights[3] * 42 / 40) < 1e-10);
}

TEST_CASE("angles that are not finite have no weight") {
  CHECK_THROWS_AS(angular_density_weights({0, INFINITY}), Bracewell::Error);
}
