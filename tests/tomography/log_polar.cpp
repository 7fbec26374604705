// SPDX-License-Identifier: MIT
#include "phantom.hpp"

#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/log_polar.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace TomographyTest;
using Bracewell::LogPolarTomography;
using Bracewell::ParallelBeamGeometry;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The definition with Gaussian projections: exp(-(s - shift)^2 / (2 deviation^2)) at every angle is known
/// everywhere, without interpolation.
struct Wave {
  double deviation, amplitude, phase;
  double operator()(double s, double theta) const {
    const double at = s - amplitude * std::cos(2 * theta + phase);
    return std::exp(-at * at / (2 * deviation * deviation)) * (1.5 + std::sin(3 * theta));
  }
};

Values rows(const Wave& wave, int n, const Values& angles, double centre) {
  Values values;
  for (const double theta : angles)
    for (int i = 0; i < n; ++i)
      values.push_back(wave(i - centre, theta));
  return values;
}

Values backprojection(const Wave& wave, int n, const Values& angles) {
  Values values;
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      double sum = 0;
      for (const double theta : angles)
        sum += wave((column - n / 2) * std::cos(theta) + (row - n / 2) * std::sin(theta), theta);
      values.push_back(sum * std::numbers::pi / double(angles.size()));
    }
  return values;
}

} // namespace

TEMPLATE_TEST_CASE("log-polar back-projection is the sum that defines it", "", float, double) {
  const Space space;
  for (const auto& [n, angles, centre, first] :
       {std::tuple{64, 96, 32.0, 0.0}, {65, 101, 30.4, -1.5}, {61, 37, 33.7, 290.0}, {48, 200, 24.0, 2.0}}) {
    CAPTURE(n, angles);
    const Values theta = even_angles(angles, std::numbers::pi, first);
    const Wave one{2.5, 0.15 * n, 0.3}, two{4, 0.2 * n, 2};
    Values q = rows(one, n, theta, centre), expected = backprojection(one, n, theta);
    const Values more = rows(two, n, theta, centre), more_expected = backprojection(two, n, theta);
    q.insert(q.end(), more.begin(), more.end());
    expected.insert(expected.end(), more_expected.begin(), more_expected.end());
    const LogPolarTomography<Space, TestType> plan(space, {.angles = theta, .width = n, .centre = centre},
                                                   {.slices = 1}); // one at a time
    const auto images = to_device<TestType>(Values(expected.size(), NAN), n, n);
    plan.backproject(space, to_device<TestType>(q, angles, n), images);
    CHECK(error_in_disc(to_host(images), expected, n, n / 2 - 2) < 1e-3);
    // Finer grids come closer, down to what the cubic interpolation of the rows leaves.
    const LogPolarTomography<Space, TestType> fine(space, {.angles = theta, .width = n, .centre = centre},
                                                   {.slices = 2, .oversampling = 2});
    fine.backproject(space, to_device<TestType>(q, angles, n), images);
    CHECK(error_in_disc(to_host(images), expected, n, n / 2 - 2) < 2e-4);
    CHECK(to_host(images)[0] == 0); // outside of the disc
  }
}

TEST_CASE("finer rows leave no error of interpolation") {
  const Space space;
  const int n = 64, angles = 130;
  const Values theta = even_angles(angles);
  const Wave sharp{0.8, 12, 0.3}; // cubic interpolation of these rows alone is 1 % off
  const auto error = [&](int upsampling) {
    Values fine;
    for (const double angle : theta)
      for (int i = 0; i < upsampling * n; ++i)
        fine.push_back(sharp(double(i) / upsampling - 31.5, angle));
    const auto image = to_device<double>(Values(n * n), n, n);
    LogPolarTomography<Space, double>(space, {.angles = theta, .width = n, .centre = 31.5},
                                      {.row_upsampling = upsampling, .oversampling = 2})
        .backproject(space, to_device<double>(fine, angles, upsampling * n), image);
    return error_in_disc(to_host(image), backprojection(sharp, n, theta), n, n / 2 - 2);
  };
  const double coarse = error(1);
  CHECK(error(2) < coarse / 4);
  CHECK(error(2) < 2e-3);
}

TEMPLATE_TEST_CASE("log-polar projection is the transpose", "", float, double) {
  const Space space;
  for (const auto& [n, size, angles, slices, upsampling, centre, spans] :
       {std::tuple{32, 0, 48, 3, 1, 16.0, 0},
        {33, 20, 40, 2, 2, 15.3, 5},
        {24, 31, 13, 1, 3, 40.2, 0},
        {64, 0, 1030, 2, 1, 31.5, 4}}) {
    CAPTURE(n, size, angles, spans);
    const int edge = size ? size : n;
    const LogPolarTomography<Space, TestType> plan(
        space, {.angles = even_angles(angles, std::numbers::pi, 0.3), .width = n, .centre = centre},
        {.image = size, .slices = 2, .row_upsampling = upsampling, .spans = spans});
    const Values q = random_values(static_cast<std::size_t>(slices * angles * upsampling * n), -1, 1, 3),
                 y = random_values(static_cast<std::size_t>(slices * edge * edge), -1, 1, 4);
    const Volume<TestType> image("image", slices, edge, edge),
        projections("projections", slices, angles, upsampling * n);
    plan.backproject(space, to_device<TestType>(q, angles, upsampling * n), image);
    plan.project(space, to_device<TestType>(y, edge, edge), projections);
    const Values f = to_host(image);
    CHECK(std::abs(dot(f, y) - dot(q, to_host(projections))) <
          (sizeof(TestType) == 4 ? 1e-5 : 1e-13) * std::sqrt(dot(f, f) * dot(y, y)));
  }
}

TEST_CASE("log-polar projections of Gaussians are known") {
  // The back-projection weighs angles with pi / P; a Gaussian of deviation d projects to one of height d
  // sqrt(2 pi).
  const Space space;
  const int n = 64, angles = 150;
  const Values theta = even_angles(angles, std::numbers::pi, -0.4);
  Values image, expected;
  const double deviation = 2, x0 = 12, y0 = -9, centre = 30.25;
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x)
      image.push_back(std::exp((std::pow(x - n / 2 - x0, 2) + std::pow(y - n / 2 - y0, 2)) /
                               (-2 * deviation * deviation)));
  for (const double angle : theta)
    for (int i = 0; i < n; ++i) {
      const double s = i - centre - x0 * std::cos(angle) - y0 * std::sin(angle);
      expected.push_back(std::numbers::pi / angles * deviation * std::sqrt(2 * std::numbers::pi) *
                         std::exp(s * s / (-2 * deviation * deviation)));
    }
  const auto projections = to_device<double>(Values(expected.size(), NAN), angles, n);
  for (const int upsampling : {1, 2}) { // line integrals at every pixel, or every half of one
    const auto fine =
        to_device<double>(Values(expected.size() * std::size_t(upsampling), NAN), angles, upsampling * n);
    LogPolarTomography<Space, double>(
        space, {.angles = theta, .width = n, .centre = centre},
        {.units = Bracewell::ProjectionUnits::LineIntegrals, .row_upsampling = upsampling, .oversampling = 2})
        .project(space, to_device<double>(image, n, n), fine);
    const Values found = to_host(fine);
    Values scaled, coarse;
    for (const double value : expected)
      scaled.push_back(value * angles / std::numbers::pi);
    for (std::size_t i = 0; i < expected.size(); ++i) { // without frequencies beyond the image's own
      const auto j = std::ptrdiff_t(upsampling * i);
      const auto at = [&](std::ptrdiff_t k) {
        return k < 0 || k >= std::ptrdiff_t(found.size()) ? 0 : found[std::size_t(k)];
      };
      coarse.push_back(upsampling == 1 ? at(j) : (at(j - 1) + 2 * at(j) + at(j + 1)) / 4);
    }
    CHECK(relative_error(coarse, scaled) < (upsampling == 1 ? 3e-3 : 3e-2));
  }
  for (const auto& [oversampling, tolerance] : {std::pair{1.1, 2e-2}, {2.0, 3e-3}}) {
    LogPolarTomography<Space, double>(space, {.angles = theta, .width = n, .centre = centre},
                                      {.oversampling = oversampling})
        .project(space, to_device<double>(image, n, n), projections);
    CHECK(relative_error(to_host(projections), expected) < tolerance);
  }
}

TEST_CASE("the number of spans changes nothing") {
  const Space space;
  const int n = 64, angles = 130;
  const Wave wave{2.5, 10, 0.3};
  const Values theta = even_angles(angles), expected = backprojection(wave, n, theta);
  for (const int spans : {4, 5, 7, 12}) {
    CAPTURE(spans);
    const auto image = to_device<double>(Values(n * n), n, n);
    LogPolarTomography<Space, double>(space, {.angles = theta, .width = n}, {.spans = spans})
        .backproject(space, to_device<double>(rows(wave, n, theta, 32), angles, n), image);
    CHECK(error_in_disc(to_host(image), expected, n, n / 2 - 2) < 1e-3);
  }
}

TEST_CASE("images of any size show the same disc") {
  const Space space;
  const int n = 48, angles = 80, slices = 3;
  const Values q = random_values(slices * angles * n);
  const ParallelBeamGeometry geometry{.angles = even_angles(angles), .width = n, .centre = 23.3};
  const auto image = [&](int size) {
    const auto result = to_device<double>(Values(std::size_t(slices * size * size), NAN), size, size);
    LogPolarTomography<Space, double>(space, geometry, {.image = size, .slices = 2, .spans = 5})
        .backproject(space, to_device<double>(q, angles, n), result);
    return to_host(result);
  };
  const Values own = image(n);
  for (const int size : {31, 60}) {
    const Values other = image(size);
    for (int z = 0; z < slices; ++z)
      for (int y = 0; y < size; ++y)
        for (int x = 0; x < size; ++x) {
          const int row = y - size / 2 + n / 2, column = x - size / 2 + n / 2;
          const bool there = row >= 0 && row < n && column >= 0 && column < n;
          const double expected = there ? own[std::size_t((z * n + row) * n + column)] : 0;
          if (there || std::hypot(y - size / 2, x - size / 2) > n / 2) // not the edge of the disc, at -n / 2
            CHECK(std::abs(other[std::size_t((z * size + y) * size + x)] - expected) < 1e-12);
        }
  }
}

TEST_CASE("a disc of attenuation 1 comes back as 1 by convolution too") {
  const Space space;
  const int n = 128;
  const Values angles = even_angles(200, std::numbers::pi, 0.7);
  const auto q = to_device<float>(sinogram({{3, -5, 40, 40, 0, 1}}, n, angles, 60.25), 200, n);
  Bracewell::ProjectionFilter<Space, float>(space, 200, n, {.filter = Bracewell::TomographyFilter::Hann})
      .execute(space, q, q);
  const auto image = to_device<float>(Values(n * n), n, n);
  LogPolarTomography<Space, float>(space, {.angles = angles, .width = n, .centre = 60.25})
      .backproject(space, q, image);
  const Values f = to_host(image);
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column)
      if (std::hypot(column - n / 2 - 3, row - n / 2 + 5) < 35)
        CHECK(std::abs(f[static_cast<std::size_t>(row * n + column)] - 1) < 1e-2);
}

TEST_CASE("angles that are not even over half a turn are refused") {
  const Space space;
  const auto message = [&](const Values& angles, int width = 32, double oversampling = 1,
                           const Values& weights = {}) {
    try {
      const LogPolarTomography<Space, float> plan(
          space, {.angles = angles, .width = width, .weights = weights}, {.oversampling = oversampling});
    } catch (const Bracewell::Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  Values one_off = even_angles(40), reversed(one_off.rbegin(), one_off.rend());
  one_off[17] += 0.01;
  CHECK(message(even_angles(40)) == "none");
  CHECK_THAT(message(one_off),
             ContainsSubstring("LogPolarTomography: geometry.angles: expected even steps") &&
                 ContainsSubstring("at angle 17"));
  CHECK_THAT(message(reversed), ContainsSubstring("even steps"));
  CHECK_THAT(message(even_angles(40, 2 * std::numbers::pi)), ContainsSubstring("even steps"));
  CHECK_THAT(message({0, 1}), ContainsSubstring("geometry.angles: expected from 12"));
  CHECK_THAT(message(even_angles(40), 32, 1, Values(40, 1)),
             ContainsSubstring("geometry.weights: expected none, as the angles are even, found 40"));
  CHECK_THAT(message(even_angles(40), 2), ContainsSubstring("geometry.width: "));
  CHECK_THAT(message(even_angles(40), 32, NAN),
             ContainsSubstring("options.oversampling: expected from 1 to 4, found nan"));
}

TEST_CASE("wrong calls of LogPolarTomography are named, no slices are no work") {
  const Space space;
  const LogPolarTomography<Space, float> plan(space, {.angles = even_angles(12), .width = 8});
  using Slices = Kokkos::View<float***, Kokkos::LayoutRight, Space>;
  const Slices memory("memory", 2, 12, 8), images(memory.data() + 32, 2, 8, 8), wrong("wrong", 2, 8, 9);
  const auto message = [](const auto& call) {
    try {
      call();
    } catch (const Bracewell::Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK_THAT(
      message([&] { plan.backproject(space, memory, wrong); }),
      ContainsSubstring("LogPolarTomography::backproject: images: expected [2, 8, 8], found [2, 8, 9]"));
  CHECK_THAT(message([&] { plan.project(space, images, wrong); }),
             ContainsSubstring("LogPolarTomography::project: projections: expected [slices, 12, 8]"));
  CHECK_THAT(message([&] { plan.backproject(space, memory, images); }),
             ContainsSubstring("images: expected memory of its own, found memory shared with projections"));
  CHECK_THAT(message([&] { plan.project(space, images, memory); }),
             ContainsSubstring("projections: expected memory of its own, found memory shared with images"));
  const Slices none("none", 0, 12, 8), no_images("no images", 0, 8, 8);
  CHECK(message([&] { plan.backproject(space, none, no_images); }) == "none");
  CHECK(message([&] { plan.project(space, no_images, none); }) == "none");
}
