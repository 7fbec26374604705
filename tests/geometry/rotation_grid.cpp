// Grids of rotations: how far any rotation is from the nearest one, and that none of the group is preferred.

#include <bracewell/geometry/rotations.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace Bracewell;

namespace {

std::vector<Quaternion<double>> grid(std::int64_t count) {
  std::vector<Quaternion<double>> rotations;
  for (std::int64_t i = 0; i < count; ++i)
    rotations.push_back(rotation_of_grid<double>(i, count));
  return rotations;
}

double inner_product(const Quaternion<double>& a, const Quaternion<double>& b) {
  return a.w * b.w + a.x * b.x + a.y * b.y + a.z * b.z;
}

} // namespace

TEST_CASE("a grid of rotations covers all of them, with none to spare", "[geometry]") {
  for (const double degrees : {50., 30., 20., 13.8, 10.}) {
    const auto rotations = grid(rotation_grid_size(degrees));
    std::mt19937 engine(1);
    double furthest = 0, sum = 0;
    constexpr int tries = 4000;
    for (int i = 0; i < tries; ++i) {
      const auto any = random_rotation<double>(engine);
      double nearest = 0;
      for (const auto& one : rotations)
        nearest = std::max(nearest, std::abs(inner_product(any, one)));
      const double distance = 2 * std::acos(std::min(1., nearest)) * 180 / Kokkos::numbers::pi;
      furthest = std::max(furthest, distance);
      sum += distance;
    }
    CAPTURE(degrees, rotations.size());
    CHECK(furthest <= degrees);
    CHECK(furthest > 0.8 * degrees);
    CHECK(sum / tries < 0.56 * degrees);
  }
}

TEST_CASE("rotations of a grid have unit length, and their mean square is that of all rotations",
          "[geometry]") {
  const auto rotations = grid(2000);
  double square[4][4] = {};
  for (const auto& q : rotations) {
    CHECK(std::abs(inner_product(q, q) - 1) < 1e-14);
    const double part[4] = {q.w, q.x, q.y, q.z};
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j)
        square[i][j] += part[i] * part[j] / 2000;
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      CHECK(std::abs(square[i][j] - (i == j ? 0.25 : 0)) < 1e-3);
}

TEST_CASE("sizes of grids of rotations", "[geometry]") {
  CHECK(rotation_grid_size(13.8) == 4630);
  CHECK_THROWS_WITH(rotation_grid_size(0),
                    "Bracewell::rotation_grid_size: degrees: expected from 0.1 to 50, found 0");
}
