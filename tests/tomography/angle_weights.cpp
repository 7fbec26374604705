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
  Values angles = TomographyTest::random_values(40, -0.9, 0.9);
  for (std::size_t p = 0; p < angles.size(); ++p)
    angles[p] = (double(p * 17 % 40) + angles[p] / 2) * pi / 40 - 3 * pi * double(p % 3);
  const Values weights = angular_density_weights(angles), expected = counted(angles);
  for (std::size_t p = 0; p < angles.size(); ++p)
    CHECK(std::abs(weights[p] - expected[p]) < 2e-3); // two of 100000 points, times 40
  CHECK(std::abs(std::accumulate(weights.begin(), weights.end(), 0.0) - 40) < 1e-10);

  // A second and a third projection at the same angle share its weight.
  angles.insert(angles.begin() + 7, 2, angles[20]);
  const Values shared = angular_density_weights(angles);
  for (const std::size_t p : {7, 8, 22})
    CHECK(std::abs(shared[p] - weights[20] * 42 / 40 / 3) < 1e-10);
  CHECK(std::abs(shared[3] - weights[3] * 42 / 40) < 1e-10);
}

TEST_CASE("missing wedges belong to no angle") {
  check_even(even_angles(61, 2 * pi / 3, -1)); // steps of 2 degrees; the wedge is 31 of them wide
  check_even(even_angles(13, pi / 2, 3));      // 7.5 degrees; 13
  check_even({0.1, 0.12});
  check_even({0.1, 0.12, 1.7, 1.72}); // two wedges

  // Over half of the range in steps of 1, over the other in steps of 2: weights in proportion.
  Values angles;
  for (int i = 0; i < 20; ++i)
    angles.push_back(0.01 * i);
  for (int i = 0; i <= 10; ++i)
    angles.push_back(0.2 + 0.02 * i);
  const Values weights = angular_density_weights(angles);
  const double unit = 31 / (20 + 1.5 + 2 * 10); // 20 angles of 1, one of 1.5 between, 10 of 2
  for (std::size_t p = 0; p < 31; ++p)
    CHECK(std::abs(weights[p] - unit * (p < 20 ? 1 : p == 20 ? 1.5 : 2)) < 1e-9);

  // An angle of its own between two wedges has the median step.
  Values alone = even_angles(50, pi / 4);
  alone.push_back(2);
  check_even(alone);
}

TEST_CASE("angles that are not finite have no weight") {
  CHECK_THROWS_AS(angular_density_weights({0, INFINITY}), Bracewell::Error);
}
