// SPDX-License-Identifier: MIT
#include "phantom.hpp"

#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/line.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

using namespace TomographyTest;
using Bracewell::LineTomography;
using Geometry = Bracewell::ParallelBeamGeometry;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// The area that a square of the given edge about the origin has in common with the strip |x cos + y sin - s| <
/// 1/2: the square, cut at both edges of the strip (Sutherland and Hodgman, Comm. ACM 17, 1974).
double area_in_strip(double edge, double cosine, double sine, double s) {
  struct Point {
    double x, y;
  };
  const double h = edge / 2;
  std::vector<Point> polygon{{-h, -h}, {h, -h}, {h, h}, {-h, h}};
  for (const double side : {-1., 1.}) {
    const auto inside = [&](const Point& point) {
      return 0.5 - side * (point.x * cosine + point.y * sine - s);
    };
    std::vector<Point> cut;
    for (std::size_t i = 0; i < polygon.size(); ++i) {
      const Point &from = polygon[i], &to = polygon[(i + 1) % polygon.size()];
      const double a = inside(from), b = inside(to);
      if (a >= 0)
        cut.push_back(from);
      if ((a >= 0) != (b >= 0))
        cut.push_back({from.x + (to.x - from.x) * a / (a - b), from.y + (to.y - from.y) * a / (a - b)});
    }
    polygon = std::move(cut);
  }
  double twice = 0;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point &from = polygon[i], &to = polygon[(i + 1) % polygon.size()];
    twice += from.x * to.y - to.x * from.y;
  }
  return twice / 2;
}

/// The definition, pixel by pixel.
Values direct(const Values& q, const Geometry& beam, int size = 0) {
  const int n = beam.width, image = size ? size : n;
  const std::size_t P = beam.angles.size(), slices = q.size() / (P * static_cast<std::size_t>(n));
  const auto pixels = static_cast<std::size_t>(image * image);
  Values f(slices * pixels);
  for (std::size_t pixel = 0; pixel < pixels; ++pixel)
    for (std::size_t p = 0; p < P; ++p) {
      const double cosine = std::cos(beam.angles[p]), sine = std::sin(beam.angles[p]);
      const double s = (int(pixel) % image - image / 2) * cosine + (int(pixel) / image - image / 2) * sine +
                       beam.centre.value_or(n / 2);
      const double weight = (beam.weights.empty() ? 1 : beam.weights[p]) * std::numbers::pi / double(P);
      for (int i = std::max(0, int(std::floor(s)) - 1); i <= std::min(n - 1., std::floor(s) + 2); ++i) {
        const double area = area_in_strip(1, cosine, sine, i - s);
        for (std::size_t z = 0; z < slices; ++z)
          f[z * pixels + pixel] +=
              weight * area * q[(z * P + p) * static_cast<std::size_t>(n) + static_cast<std::size_t>(i)];
      }
    }
  return f;
}

Geometry random_beam(int n, int angles, double centre) {
  const auto count = static_cast<std::size_t>(angles);
  return {.angles = random_values(count, -7, 7, 2),
          .width = n,
          .centre = centre,
          .weights = random_values(count, 0.5, 1.5, 3)};
}

} // namespace

TEMPLATE_TEST_CASE("back-projection is the sum that defines it", "", float, double) {
  const Space space;
  for (const auto& [n, size, slices, centre] : {std::tuple{50, 0, 1, 24.3},
                                                {33, 0, 9, 16.0},
                                                {1, 6, 2, 0.0},
                                                {70, 41, 5, -12.5},
                                                {29, 60, 2, 13.0}}) {
    CAPTURE(n, size);
    Geometry beam = random_beam(n, 37, centre);
    beam.angles[0] = 0, beam.angles[1] = std::numbers::pi / 2, beam.angles[2] = std::numbers::pi;
    const int edge = size ? size : n;
    const Values q = random_values(static_cast<std::size_t>(slices * 37 * n));
    const LineTomography<Space, TestType> plan(space, beam, {.image = size});
    const auto image =
        to_device<TestType>(Values(static_cast<std::size_t>(slices * edge * edge), NAN), edge, edge);
    plan.backproject(space, to_device<TestType>(q, 37, n), image);
    CHECK(relative_error(to_host(image), direct(q, beam, size)) < 10 * rounding<TestType>);
  }
}

TEMPLATE_TEST_CASE("two by two pixels have their areas in common with the cells around their corner", "",
                   float, double) {
  double worst = 0;
  Values angles = even_angles(90, std::numbers::pi / 4, 0);
  angles.insert(angles.end(),
                {1e-9, std::numbers::pi / 6, std::numbers::pi / 4 - 1e-9, std::numbers::pi / 4});
  for (const double angle : angles)
    for (int k = -50; k <= 50; ++k) {
      const double wide = std::cos(angle), narrow = std::sin(angle), x = k / 100.;
      const auto shadows = Bracewell::Impl::CornerShares<TestType>::make(wide, narrow);
      const auto check = [&](double side,
                             const auto& found) { // the first and the third pixel, from either side
        for (int cell = 0; cell < 4; ++cell) {
          const double from_corner = cell - 1.5 - side * x;
          const double first = area_in_strip(1, wide, narrow, from_corner + (wide + narrow) / 2),
                       third = area_in_strip(1, wide, narrow, from_corner - (wide - narrow) / 2);
          worst = std::max(worst, std::abs((cell < 3 ? double(found.first[cell]) : 0.) - first));
          worst = std::max(worst, std::abs(double(found.third[cell ? cell - 1 : 3]) - third));
        }
      };
      for (const double side : {1., -1.})
        if (narrow > 0.5)
          check(side, shadows.template at<true>(TestType(side * x)));
        else
          check(side, shadows.template at<false>(TestType(side * x)));
    }
  CHECK(worst < 4 * rounding<TestType>);
}

TEMPLATE_TEST_CASE("projection is the transpose of back-projection", "", float, double) {
  const Space space;
  for (const auto& [n, size, slices, centre] : {std::tuple{50, 0, 1, 24.3},
                                                {33, 0, 9, 16.0},
                                                {1, 6, 2, 0.0},
                                                {70, 41, 5, -12.5},
                                                {29, 60, 2, 13.0}}) {
    CAPTURE(n, size);
    Geometry beam = random_beam(n, 37, centre);
    const int edge = size ? size : n;
    beam.angles[0] = 0, beam.angles[1] = std::numbers::pi / 2, beam.angles[2] = std::numbers::pi / 4;
    const Values q = random_values(static_cast<std::size_t>(slices * 37 * n));
    const Values f = random_values(static_cast<std::size_t>(slices * edge * edge), -1, 1, 7);
    const LineTomography<Space, TestType> plan(space, beam, {.image = size});
    const auto projections = to_device<TestType>(Values(q.size(), NAN), 37, n);
    plan.project(space, to_device<TestType>(f, edge, edge), projections);
    const Values g = to_host(projections);
    // One number for the whole operator, and every slice and angle: random weights leave no element out.
    CHECK(std::abs(dot(g, q) - dot(f, direct(q, beam, size))) <
          20 * rounding<TestType> * std::sqrt(dot(g, g) * dot(q, q)));
    for (const std::size_t p : {0, 1, 2, 20}) {
      Values one(q.size());
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
        one[p * static_cast<std::size_t>(n) + i] = q[p * static_cast<std::size_t>(n) + i];
      CHECK(std::abs(dot(g, one) - dot(f, direct(one, beam, size))) <
            20 * rounding<TestType> * std::sqrt(dot(g, g) * dot(one, one)));
    }
  }
}

TEST_CASE("a uniform square has the areas of strips, without ripple, at every angle") {
  const Space space;
  for (const int size : {48, 31}) {
    // Turned within itself, all octants, next to multiples of an eighth turn and at them.
    Values angles = even_angles(60, 2 * std::numbers::pi, 0.003);
    for (int octant = 0; octant < 8; ++octant)
      for (const double beside : {-1e-7, 0., 1e-7})
        angles.push_back(octant * std::numbers::pi / 4 + beside);
    const int n = 75, P = static_cast<int>(angles.size());
    const double centre = 36.2, middle = size % 2 ? 0 : -0.5; // of the square, from the pixel floor(n/2)
    Values expected;
    for (const double angle : angles)
      for (int i = 0; i < n; ++i)
        expected.push_back(area_in_strip(size, std::cos(angle), std::sin(angle),
                                         i - centre - middle * (std::cos(angle) + std::sin(angle))));
    const auto check = [&]<class T>(T) {
      const auto projections = to_device<T>(Values(expected.size(), NAN), P, n);
      const auto image = to_device<T>(Values(static_cast<std::size_t>(size * size), 1), size, size);
      LineTomography<Space, T>(space, {.angles = angles, .width = n, .centre = centre},
                               {.image = size, .units = Bracewell::ProjectionUnits::LineIntegrals})
          .project(space, image, projections);
      const Values found = to_host(projections);
      double worst = 0;
      for (std::size_t i = 0; i < found.size(); ++i)
        worst = std::max(worst, std::abs(found[i] - expected[i]));
      CHECK(worst < 20 * rounding<T> * size);
    };
    check(float()), check(double());
  }
}

TEST_CASE("line integrals of a Gaussian are those of its closed form") {
  const Space space;
  const int n = 96, P = 45;
  const double width = 4, x0 = 3.3, y0 = -5.8, centre = 47.3;
  const Values angles = even_angles(P, std::numbers::pi, 0.01);
  Values image, expected; // at points: pixels, and the middles of cells
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column)
      image.push_back(std::exp(-(std::pow(column - n / 2 - x0, 2) + std::pow(row - n / 2 - y0, 2)) /
                               (2 * width * width)));
  for (const double angle : angles)
    for (int i = 0; i < n; ++i)
      expected.push_back(width * std::sqrt(2 * std::numbers::pi) *
                         std::exp(-std::pow(i - centre - x0 * std::cos(angle) - y0 * std::sin(angle), 2) /
                                  (2 * width * width)));
  const auto projections = to_device<double>(Values(expected.size(), NAN), P, n);
  LineTomography<Space, double>(space, {.angles = angles, .width = n, .centre = centre},
                                {.units = Bracewell::ProjectionUnits::LineIntegrals})
      .project(space, to_device<double>(image, n, n), projections);
  // Pixels and cells are one wide, boxes of variance 1/12 each: the Gaussian is that much wider, which makes a relative
  // error of 1 / (12 width^2) sqrt(3) / 2 to first order.
  CHECK(relative_error(to_host(projections), expected) < 1.02 * std::sqrt(3.) / 24 / (width * width));
}

TEST_CASE("line integrals of an image add up to its sum at every angle, whatever the weights") {
  const Space space;
  const int n = 57, size = 30, angles = 13; // the detector sees all corners
  const Geometry beam = random_beam(n, angles, 27.6);
  const Values f = random_values(3 * size * size, 0, 1, 6);
  const auto projections = to_device<double>(Values(3 * angles * n, NAN), angles, n);
  LineTomography<Space, double>(space, beam,
                                {.image = size, .units = Bracewell::ProjectionUnits::LineIntegrals})
      .project(space, to_device<double>(f, size, size), projections);
  const Values g = to_host(projections);
  for (std::size_t z = 0; z < 3; ++z) {
    const auto slice = f.begin() + std::ptrdiff_t(z * size * size);
    const double all = std::accumulate(slice, slice + size * size, 0.);
    for (std::size_t p = 0; p < angles; ++p) {
      const auto row = g.begin() + std::ptrdiff_t((z * angles + p) * n);
      CHECK(std::abs(std::accumulate(row, row + n, 0.) - all) < 1e-12 * all);
    }
  }
}

TEST_CASE("a uniform disc of attenuation 1 comes back as 1, wherever the centre is") {
  const Space space;
  for (const auto& [n, centre] : {std::pair{128, 64.0}, {127, 60.25}}) {
    const std::vector<Ellipse> disc{{3, -5, 40, 40, 0, 1}};
    const Geometry beam{.angles = even_angles(240), .width = n, .centre = centre};
    const auto projections = to_device<float>(sinogram(disc, n, beam.angles, centre), 240, n);
    const Bracewell::ProjectionFilter<Space, float> filter(space, 240, n);
    filter.execute(space, projections, projections);
    const auto image = to_device<float>(Values(static_cast<std::size_t>(n * n)), n, n);
    LineTomography<Space, float>(space, beam, {.projection = false}).backproject(space, projections, image);
    const Values f = to_host(image);
    double sum = 0, worst = 0;
    int count = 0;
    for (int row = 0; row < n; ++row)
      for (int column = 0; column < n; ++column)
        if (std::hypot(column - n / 2 - 3, row - n / 2 + 5) < 36) {
          const double value = f[static_cast<std::size_t>(row * n + column)];
          sum += value, worst = std::max(worst, std::abs(value - 1)), ++count;
        }
    CHECK(std::abs(sum / count - 1) < 2e-3);
    CHECK(worst < 1e-2);
  }
}

TEST_CASE("the head phantom is reconstructed from its line integrals") {
  const Space space;
  const int n = 200;
  const auto phantom = shepp_logan(90);
  // A whole turn, shuffled: order and span do not matter.
  Values angles = even_angles(500, 2 * std::numbers::pi, 0.3);
  std::shuffle(angles.begin(), angles.end(), std::mt19937(4));
  const auto projections = to_device<float>(sinogram(phantom, n, angles, 98.4), 500, n);
  const Bracewell::ProjectionFilter<Space, float> filter(space, 500, n,
                                                         {.filter = Bracewell::TomographyFilter::Shepp});
  filter.execute(space, projections, projections);
  const auto result = to_device<float>(Values(n * n), n, n);
  LineTomography<Space, float>(space, {.angles = angles, .width = n, .centre = 98.4})
      .backproject(space, projections, result);
  CHECK(error_in_disc(to_host(result), image(phantom, n), n, 60) < 0.06);
  CHECK(error_in_disc(to_host(result), image(phantom, n), n, 98) < 0.15); // all edges in it
}

TEST_CASE("wrong input to LineTomography is named") {
  const Space space;
  const auto message = [&](const Geometry& beam) {
    try {
      const LineTomography<Space, float> plan(space, beam);
    } catch (const Bracewell::Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK_THAT(message({.angles = {1}, .width = 0}), ContainsSubstring("LineTomography: geometry.width: "));
  CHECK_THAT(message({.width = 8}), ContainsSubstring("geometry.angles: expected from 1 to"));
  CHECK_THAT(message({.angles = {1, NAN}, .width = 8}),
             ContainsSubstring("geometry.angles: expected from -1e+09 to 1e+09, found nan"));
  CHECK_THAT(
      message({.angles = {1}, .width = 8, .centre = NAN}),
      ContainsSubstring("geometry.centre: expected a pixel within four widths of the detector, found nan"));
  CHECK_THAT(message({.angles = {1}, .width = 8, .weights = {1, 2}}),
             ContainsSubstring("geometry.weights: expected none or 1, one per angle, found 2"));
  const LineTomography<Space, float> plan(space, {.angles = {1, 2}, .width = 8}, {.projection = false});
  const auto q = to_device<float>(Values(48), 2, 8), f = to_device<float>(Values(192), 8, 8);
  CHECK_THROWS_MATCHES(
      plan.backproject(space, f, f), Bracewell::Error,
      MessageMatches(ContainsSubstring("projections: expected [slices, 2, 8], found [3, 8, 8]")));
  CHECK_THROWS_MATCHES(plan.backproject(space, q, to_device<float>(Values(64), 8, 8)), Bracewell::Error,
                       MessageMatches(ContainsSubstring("images: expected [3, 8, 8], found [1, 8, 8]")));
  CHECK_THROWS_MATCHES(plan.project(space, f, q), Bracewell::Error,
                       MessageMatches(ContainsSubstring("options.projection")));
  const Kokkos::View<float***, Kokkos::LayoutRight, Space> memory("memory", 3, 8, 8),
      rows(memory.data(), 3, 2, 8);
  CHECK_THROWS_MATCHES(
      plan.backproject(space, rows, memory), Bracewell::Error,
      MessageMatches(ContainsSubstring(
          "backproject: images: expected memory of its own, found memory shared with projections")));
  const LineTomography<Space, float> both(space, {.angles = {1, 2}, .width = 8});
  CHECK_THROWS_MATCHES(
      both.project(space, memory, rows), Bracewell::Error,
      MessageMatches(ContainsSubstring(
          "project: projections: expected memory of its own, found memory shared with images")));
}

TEST_CASE("no slices are no work for LineTomography") {
  const Space space;
  const LineTomography<Space, float> plan(space, {.angles = {1, 2}, .width = 8});
  const auto projections = to_device<float>({}, 2, 8), images = to_device<float>({}, 8, 8);
  CHECK_NOTHROW(plan.backproject(space, projections, images));
  CHECK_NOTHROW(plan.project(space, images, projections));
}
