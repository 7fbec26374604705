// SPDX-License-Identifier: MIT
// Laminography against its definition and Gaussians in closed form.
#include "phantom.hpp"

#include <bracewell/optimize/least_squares.hpp>
#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/fourier_laminography.hpp>
#include <bracewell/tomography/line_laminography.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <tuple>

using namespace TomographyTest;
using namespace Bracewell;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr double pi = std::numbers::pi;

/// What a detector pixel counts at distance x in a trigonometric interpolant of n.
double interpolant(double x, int n) {
  double sum = 0;
  for (int k = -(n / 2); k <= n / 2; ++k)
    sum += (2 * std::abs(k) == n ? 0.5 : 1.) * std::cos(2 * pi * k * x / n);
  return sum / n;
}

struct Seen {
  double u, v;
};
Seen seen(const TiltedBeamGeometry& g, std::size_t p, double x, double y, double z) {
  const double c = std::cos(g.beam.angles[p]), s = std::sin(g.beam.angles[p]);
  return {x * c + y * s + g.beam.centre.value_or(g.beam.width / 2) +
              (g.beam.shifts.empty() ? 0 : g.beam.shifts[p]),
          z * std::cos(g.tilt) + (y * c - x * s) * std::sin(g.tilt) + g.row_centre.value_or(g.rows / 2)};
}

/// Back-projection as it is defined, [depth, n, n].
Values direct(const Values& q, const TiltedBeamGeometry& g, int n, int depth) {
  const int w = g.beam.width, h = g.rows, P = int(g.beam.angles.size());
  Values volume;
  for (int i = 0; i < depth * n * n; ++i) {
    double value = 0;
    for (int p = 0; p < P; ++p) {
      const Seen at = seen(g, std::size_t(p), i % n - n / 2, i / n % n - n / 2, i / n / n - depth / 2);
      double of_view = 0;
      for (int row = 0; row < h; ++row)
        for (int column = 0; column < w; ++column)
          of_view += interpolant(at.u - column, w) * interpolant(at.v - row, h) *
                     q[std::size_t((row * P + p) * w + column)];
      value += (g.beam.weights.empty() ? 1 : g.beam.weights[std::size_t(p)]) * of_view;
    }
    volume.push_back(value * pi * std::cos(g.tilt) / P);
  }
  return volume;
}

/// exp(-(x/a)^2/2 - (y/b)^2/2 - (z/c)^2/2) about a point.
struct Gaussian {
  double x, y, z, a, b, c;
};
constexpr Gaussian object[] = {{3, -2, 1.5, 2.2, 3, 2.5}, {-4, 3, -2, 2, 2, 2.3}};

Values volume_of_gaussians(int n, int depth) {
  Values volume;
  for (int i = 0; i < depth * n * n; ++i) {
    double value = 0;
    for (const Gaussian& g : object)
      value += std::exp(-0.5 * (std::pow((i % n - n / 2 - g.x) / g.a, 2) +
                                std::pow((i / n % n - n / 2 - g.y) / g.b, 2) +
                                std::pow((i / n / n - depth / 2 - g.z) / g.c, 2)));
    volume.push_back(value);
  }
  return volume;
}

/// Their line integrals, [rows, angles, width]: two-dimensional Gaussians.
Values projections_of_gaussians(const TiltedBeamGeometry& geometry) {
  Values values;
  const double sine = std::sin(geometry.tilt), cosine = std::cos(geometry.tilt);
  for (int row = 0; row < geometry.rows; ++row)
    for (std::size_t p = 0; p < geometry.beam.angles.size(); ++p)
      for (int column = 0; column < geometry.beam.width; ++column) {
        double value = 0;
        for (const Gaussian& g : object) {
          const double c = std::cos(geometry.beam.angles[p]), s = std::sin(geometry.beam.angles[p]);
          const double a = g.a * g.a, b = g.b * g.b, d = g.c * g.c;
          const double uu = c * c * a + s * s * b, uv = sine * s * c * (b - a),
                       vv = sine * sine * (s * s * a + c * c * b) + cosine * cosine * d;
          const double determinant = uu * vv - uv * uv;
          const Seen middle = seen(geometry, p, g.x, g.y, g.z);
          const double u = column - middle.u, v = row - middle.v;
          value += std::sqrt(2 * pi * a * b * d / determinant) *
                   std::exp(-0.5 * (vv * u * u - 2 * uv * u * v + uu * v * v) / determinant);
        }
        values.push_back(value);
      }
  return values;
}

TiltedBeamGeometry whole_turn(int angles, int width, int rows, double tilt) {
  return {.beam = {.angles = even_angles(angles, 2 * pi, 0.1), .width = width}, .rows = rows, .tilt = tilt};
}

} // namespace

TEMPLATE_TEST_CASE("back-projection about a tilted axis is the sum that defines it, projection its transpose",
                   "", float, double) {
  const Space space;
  using Plan = FourierLaminography<Space, TestType>;
  for (const auto& [width, rows, image, depth, tilt] :
       {std::tuple{9, 8, 7, 6, 0.5}, {8, 5, 0, 0, -1.1}, {6, 1, 4, 3, 0.}, {1, 4, 3, 2, 1.4}}) {
    CAPTURE(width, rows, tilt);
    const int P = 5;
    const TiltedBeamGeometry geometry{.beam = {.angles = random_values(P, -9, 9, 4),
                                               .width = width,
                                               .centre = width / 2 + 0.7,
                                               .weights = random_values(P, 0.5, 1.5, 5),
                                               .shifts = random_values(P, -2, 2, 6)},
                                      .rows = rows,
                                      .tilt = tilt,
                                      .row_centre = rows / 2 - 0.3};
    const double tolerance = sizeof(TestType) == 4 ? 1e-5 : 1e-11;
    const FourierLaminographyOptions options{.image = image, .depth = depth, .tolerance = tolerance};
    const Plan plan(space, geometry, options);
    CHECK(plan.memory_bytes() == Plan::bytes_needed(space, geometry, options));
    const int n = image ? image : width, d = depth ? depth : rows;
    const Values q = random_values(std::size_t(rows * P * width)),
                 y = random_values(std::size_t(d * n * n), -1, 1, 2);
    const auto rows_on_device = to_device<TestType>(q, P, width);
    const Volume<TestType> volume("volume", d, n, n), back("back", rows, P, width);
    plan.backproject(space, rows_on_device, volume);
    CHECK(relative_error(to_host(volume), direct(q, geometry, n, d)) < tolerance);
    plan.project(space, to_device<TestType>(y, n, n), back);
    const double left = dot(to_host(volume), y), right = dot(q, to_host(back));
    CHECK(std::abs(left - right) < (sizeof(TestType) == 4 ? 2e-5 : 1e-12) * std::abs(left));
    const FourierLaminography<Space, TestType> lines(
        space, geometry,
        {.image = image, .depth = depth, .units = ProjectionUnits::LineIntegrals, .tolerance = tolerance});
    const Volume<TestType> integrals("integrals", rows, P, width);
    lines.project(space, to_device<TestType>(y, n, n), integrals);
    Values scaled = to_host(integrals);
    for (std::size_t i = 0; i < scaled.size(); ++i)
      scaled[i] *= geometry.beam.weights[i / std::size_t(width) % P] * pi * std::cos(tilt) / P;
    CHECK(relative_error(scaled, to_host(back)) < 10 * rounding<TestType>);
  }
}

TEMPLATE_TEST_CASE("projections of Gaussians are Gaussians, by planes of spectra and along rays", "", float,
                   double) {
  const Space space;
  const int n = 26, depth = 24, rows = 28, width = 30;
  const auto volume = to_device<TestType>(volume_of_gaussians(n, depth), n, n);
  for (const double tilt : {0., 0.4, -1.2}) {
    CAPTURE(tilt);
    const TiltedBeamGeometry geometry = whole_turn(7, width, rows, tilt);
    const Values exact = projections_of_gaussians(geometry);
    const Volume<TestType> projections("projections", rows, 7, width);
    FourierLaminography<Space, TestType>(
        space, geometry,
        {.image = n, .depth = depth, .units = ProjectionUnits::LineIntegrals, .tolerance = 1e-6})
        .project(space, volume, projections);
    CHECK(relative_error(to_host(projections), exact) < 2e-4); // what lies beyond the volume and half a cycle
    LineLaminography<Space, TestType>(space, geometry,
                                      {.image = n, .depth = depth, .units = ProjectionUnits::LineIntegrals})
        .project(space, volume, projections);
    // Linear interpolation smooths by a variance of up to 1/6 along both axes of a plane, beside 4 of the Gaussians.
    CHECK(relative_error(to_host(projections), exact) < 3e-2);
  }
}

TEMPLATE_TEST_CASE("back-projection along rays is the transpose of projection, at any tilt", "", float,
                   double) {
  const Space space;
  for (const double tilt : {0., 0.6, 1.3, -0.9}) {
    CAPTURE(tilt);
    const TiltedBeamGeometry geometry{.beam = {.angles = random_values(9, -9, 9, 4),
                                               .width = 13,
                                               .centre = 6.2,
                                               .weights = random_values(9, 0.5, 1.5, 5)},
                                      .rows = 10,
                                      .tilt = tilt};
    const LineLaminographyOptions options{.image = 11, .depth = 7};
    const LineLaminography<Space, TestType> plan(space, geometry, options);
    CHECK(plan.memory_bytes() == LineLaminography<Space, TestType>::bytes_needed(space, geometry, options));
    const Values q = random_values(10 * 9 * 13), y = random_values(7 * 11 * 11, -1, 1, 2);
    const Volume<TestType> volume("volume", 7, 11, 11), projections("projections", 10, 9, 13);
    plan.project(space, to_device<TestType>(y, 11, 11), projections);
    plan.backproject(space, to_device<TestType>(q, 9, 13), volume);
    const double left = dot(to_host(volume), y), right = dot(q, to_host(projections));
    CHECK(std::abs(left - right) < (sizeof(TestType) == 4 ? 2e-6 : 1e-13) * std::sqrt(dot(q, q) * dot(y, y)));
  }
}

TEST_CASE("filtered rows give all that is seen of an object, from a whole turn") {
  // Of the spectrum of a Gaussian that is the same in all directions a double cone is missing, whose solid angle is
  // 1 - cos(tilt) of all: so much is missing in its middle.
  const Space space;
  const int n = 48, P = 90;
  const double sigma = 2;
  for (const double tilt : {0., 0.5}) {
    CAPTURE(tilt);
    const TiltedBeamGeometry geometry = whole_turn(P, n, n, tilt);
    Values sinograms;
    for (int row = 0; row < n; ++row)
      for (int i = 0; i < P * n; ++i)
        sinograms.push_back(
            std::sqrt(2 * pi) * sigma *
            std::exp(-0.5 * (std::pow(i % n - n / 2, 2) + std::pow(row - n / 2, 2)) / (sigma * sigma)));
    const auto rows = to_device<double>(sinograms, P, n);
    ProjectionFilter<Space, double>(space, n * P, n, {.filter = TomographyFilter::Ramp})
        .execute(space, rows, rows);
    const Volume<double> volume("volume", 3, n, n);
    FourierLaminography<Space, double>(space, geometry, {.depth = 3}).backproject(space, rows, volume);
    const auto middle = std::size_t(n * n + n / 2 * n + n / 2);
    CHECK(std::abs(to_host(volume)[middle] - std::cos(tilt)) < 3e-3);
  }
}

TEST_CASE("least squares solve for a volume as a whole") {
  const Space space;
  const int n = 16, depth = 9, rows = 18, P = 24;
  const TiltedBeamGeometry geometry = whole_turn(P, n, rows, 0.6);
  const auto truth = to_device<double>(volume_of_gaussians(n, depth), n, n);
  const LeastSquaresSolver<Space, double> solver(
      space, {.data = {rows, P, n}, .images = {depth, n, n}, .independent = false});
  const auto residual = [&](const auto& pair) {
    const Volume<double> volume("volume", depth, n, n), projections("projections", rows, P, n),
        again("again", rows, P, n);
    pair.project(space, truth, projections);
    solver.solve(space, pair, projections, volume, {.iterations = 12});
    pair.project(space, volume, again);
    return relative_error(to_host(again), to_host(projections));
  };
  CHECK(residual(FourierLaminography<Space, double>(
            space, geometry, {.depth = depth, .units = ProjectionUnits::LineIntegrals})) < 0.01);
  CHECK(residual(LineLaminography<Space, double>(
            space, geometry, {.depth = depth, .units = ProjectionUnits::LineIntegrals})) < 0.01);
}

TEST_CASE("wrong input to laminography is named") {
  const Space space;
  const TiltedBeamGeometry good = whole_turn(4, 8, 6, 0.3);
  TiltedBeamGeometry geometry = good;
  geometry.tilt = 30;
  CHECK_THROWS_MATCHES((FourierLaminography<Space, double>(space, geometry)), Error,
                       MessageMatches(ContainsSubstring("geometry.tilt: expected from -1.5 to 1.5 radians")));
  geometry.tilt = 0.3, geometry.rows = 0;
  CHECK_THROWS_MATCHES((LineLaminography<Space, double>(space, geometry)), Error,
                       MessageMatches(ContainsSubstring("LineLaminography: geometry.rows")));
  const LineLaminography<Space, double> plan(space, good);
  const Volume<double> volume("volume", 6, 8, 8), wrong("wrong", 6, 3, 8);
  CHECK_THROWS_MATCHES(plan.backproject(space, wrong, volume), Error,
                       MessageMatches(ContainsSubstring("projections")));
}
