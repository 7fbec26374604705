// SPDX-License-Identifier: MIT
// Total variation against closed forms, and against plain steps on the dual in double.

#include <bracewell/optimize/total_variation.hpp>

#include "../deep_copy.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace Bracewell;
using Catch::Matchers::ContainsSubstring;
using Space = Kokkos::DefaultExecutionSpace;

namespace {

template <class T>
using Images = Kokkos::View<T***, Kokkos::LayoutRight, Space>;

/// The images after `iterations`, of values in double.
template <class T>
std::vector<double> smoothed(const std::vector<double>& values, int images, int rows, int columns,
                             double weight, int iterations) {
  const Space space;
  const Images<T> view("images", images, rows, columns);
  const auto host = Kokkos::create_mirror_view(view);
  std::ranges::transform(values, host.data(), [](double value) { return static_cast<T>(value); });
  Test::deep_copy(view, host);
  TotalVariation<Space, T>(space, {images, rows, columns}).smooth(space, view, weight, iterations);
  space.fence();
  Test::deep_copy(host, view);
  return {host.data(), host.data() + host.size()};
}

/// The same by steps of 1/8 on the dual, so many that they stand still (Chambolle, J. Math. Imaging Vis. 20, 89 (2004)).
std::vector<double> by_plain_steps(const std::vector<double>& z, int rows, int columns, double weight) {
  const auto at = [&](int y, int x) { return std::size_t(y * columns + x); };
  std::vector<double> p(z.size()), q(z.size()), x(z.size()); // right and down
  for (int step = 0; step < 20000; ++step) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        x[at(r, c)] = z[at(r, c)] - weight * ((c > 0 ? p[at(r, c - 1)] : 0) - p[at(r, c)] +
                                              (r > 0 ? q[at(r - 1, c)] : 0) - q[at(r, c)]);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) {
        const double right = c + 1 < columns ? x[at(r, c + 1)] - x[at(r, c)] : 0,
                     down = r + 1 < rows ? x[at(r + 1, c)] - x[at(r, c)] : 0;
        double &own_p = p[at(r, c)], &own_q = q[at(r, c)];
        own_p += right / (8 * weight), own_q += down / (8 * weight);
        const double norm = std::max(1.0, std::hypot(own_p, own_q));
        own_p /= norm, own_q /= norm;
      }
  }
  return x;
}

double furthest(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

} // namespace

TEMPLATE_TEST_CASE("total variation of an edge: both sides come nearer by weight over width", "", float,
                   double) {
  // Of rows that are alike each is a step of one dimension: a side of w pixels moves by weight / w, until both meet.
  const int rows = 5, left = 4, right = 7, columns = left + right;
  std::vector<double> edge, expected;
  const double weight = 0.6, tolerance = sizeof(TestType) == 4 ? 2e-5 : 1e-6;
  for (int i = 0; i < rows * columns; ++i) {
    const bool first = i % columns < left;
    edge.push_back(first ? 1 : 2.5);
    expected.push_back(first ? 1 + weight / left : 2.5 - weight / right);
  }
  CHECK(furthest(smoothed<TestType>(edge, 1, rows, columns, weight, 2000), expected) < tolerance);
  // Columns that are alike: the same, turned.
  std::vector<double> turned, turned_expected;
  for (int i = 0; i < rows * columns; ++i) {
    turned.push_back(edge[std::size_t(i % rows * columns + i / rows)]);
    turned_expected.push_back(expected[std::size_t(i % rows * columns + i / rows)]);
  }
  CHECK(furthest(smoothed<TestType>(turned, 1, columns, rows, weight, 2000), turned_expected) < tolerance);
  // A weight beyond jump left right / (left + right) leaves the mean.
  const double mean = (left * 1 + right * 2.5) / columns;
  const auto flat = smoothed<TestType>(edge, 1, rows, columns, 10, 2000);
  for (const double value : flat)
    CHECK(std::abs(value - mean) < 1e-4);
}

TEMPLATE_TEST_CASE("total variation of noise: the minimum, each image by itself", "", float, double) {
  std::mt19937 engine(5);
  std::normal_distribution<double> normal;
  const int rows = 7, columns = 9;
  std::vector<double> both;
  std::vector<std::vector<double>> each(2);
  for (auto& image : each) {
    for (int i = 0; i < rows * columns; ++i)
      image.push_back(3 * (&image == &each[1]) + normal(engine));
    both.insert(both.end(), image.begin(), image.end());
  }
  const double weight = 0.4;
  auto expected = by_plain_steps(each[0], rows, columns, weight);
  const auto second = by_plain_steps(each[1], rows, columns, weight);
  expected.insert(expected.end(), second.begin(), second.end());
  CHECK(furthest(smoothed<TestType>(both, 2, rows, columns, weight, 4000), expected) < 2e-4);
  CHECK(furthest(both, expected) > 0.3);
  // One row, one column, one pixel; no weight.
  CHECK(furthest(smoothed<TestType>(each[0], 1, 1, rows * columns, weight, 4000),
                 by_plain_steps(each[0], 1, rows * columns, weight)) < 2e-4);
  CHECK(furthest(smoothed<TestType>(each[0], 1, rows * columns, 1, weight, 4000),
                 by_plain_steps(each[0], rows * columns, 1, weight)) < 2e-4);
  CHECK(smoothed<TestType>({4}, 1, 1, 1, weight, 3) == std::vector<double>{4});
  std::vector<double> rounded;
  for (const double value : both)
    rounded.push_back(static_cast<TestType>(value));
  CHECK(smoothed<TestType>(both, 2, rows, columns, 0, 3) == rounded);
}

TEST_CASE("total variation goes on from the fields of the call before, and says what it holds") {
  const Space space;
  std::mt19937 engine(6);
  std::normal_distribution<double> normal;
  const int rows = 6, columns = 5;
  const Images<double> image("image", 1, rows, columns);
  const auto noise = Kokkos::create_mirror(Kokkos::HostSpace(), image); // never the View itself
  for (std::size_t i = 0; i < noise.size(); ++i)
    noise.data()[i] = normal(engine);
  const std::vector<double> values(noise.data(), noise.data() + noise.size());
  const auto expected = by_plain_steps(values, rows, columns, 0.3);
  TotalVariation<Space, double> variation(space, {1, rows, columns});
  double last = 1e30;
  for (int call = 0; call < 40; ++call) {
    Test::deep_copy(image, noise);
    variation.smooth(space, image, 0.3, 20);
    space.fence();
    if (call == 0 || call == 39) {
      const auto found = Test::on_host(image);
      const double error = furthest({found.data(), found.data() + found.size()}, expected);
      CHECK(error < last / 10);
      last = error;
    }
  }
  CHECK(last < 1e-5);
  // From zero again: as a new one.
  const auto once = smoothed<double>(values, 1, rows, columns, 0.3, 20);
  variation.reset(space);
  Test::deep_copy(image, noise);
  variation.smooth(space, image, 0.3, 20);
  space.fence();
  const auto again = Test::on_host(image);
  CHECK(std::vector<double>(again.data(), again.data() + again.size()) == once);
  CHECK(variation.memory_bytes() >= 5 * sizeof(double) * rows * columns);
  CHECK(variation.memory_bytes() == TotalVariation<Space, double>::bytes_needed({1, rows, columns}));
}

TEST_CASE("total variation refuses other shapes and weights") {
  const Space space;
  using Variation = TotalVariation<Space, float>;
  CHECK_THROWS_WITH(Variation(space, {1, 0, 4}), ContainsSubstring("TotalVariation: shape: expected from 1"));
  Variation variation(space, {2, 3, 4});
  const Images<float> image("image", 2, 3, 4), other("image", 2, 4, 3);
  CHECK_THROWS_WITH(variation.smooth(space, other, 1.0),
                    ContainsSubstring("TotalVariation::smooth: images: expected [2, 3, 4], found [2, 4, 3]"));
  CHECK_THROWS_WITH(variation.smooth(space, image, -1.0), ContainsSubstring("weight: expected"));
  CHECK_THROWS_WITH(variation.smooth(space, image, NAN), ContainsSubstring("weight: expected"));
  CHECK_THROWS_WITH(variation.smooth(space, image, 1.0, 0),
                    ContainsSubstring("iterations: expected at least 1"));
}
