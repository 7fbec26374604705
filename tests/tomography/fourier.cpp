// SPDX-License-Identifier: MIT
#include "../deep_copy.hpp"
#include "phantom.hpp"

#include <bracewell/tomography/angle_weights.hpp>
#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/fourier.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <complex>
#include <tuple>

using namespace TomographyTest;
using Bracewell::FourierTomography;
using Bracewell::GriddingStrategy;
using Geometry = Bracewell::ParallelBeamGeometry;
using Options = Bracewell::FourierTomographyOptions;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr double pi = std::numbers::pi;

/// The definition: every row's trigonometric interpolant at s = X cos + Y sin + centre, its frequencies
/// multiplied by `filter` where there is one.
Values direct(const Values& q, const Geometry& beam, int image_size, const Values& filter = {}) {
  const int n = beam.width, size = image_size ? image_size : n;
  const std::size_t P = beam.angles.size(), slices = q.size() / (P * static_cast<std::size_t>(n));
  Values image(slices * static_cast<std::size_t>(size * size));
  for (std::size_t row = 0; row < slices * P; ++row) {
    const double theta = beam.angles[row % P];
    std::vector<std::complex<double>> spectrum;
    for (int k = 0; k <= n / 2; ++k) {
      std::complex<double> sum = 0;
      for (int i = 0; i < n; ++i)
        sum += q[row * static_cast<std::size_t>(n) + static_cast<std::size_t>(i)] *
               std::polar(1., -2 * pi * k * i / n);
      const bool alone = k == 0 || 2 * k == n; // the others have a conjugate
      spectrum.push_back(sum * (alone ? 1. : 2.) / double(n) *
                         (filter.empty() ? 1 : filter[static_cast<std::size_t>(k)]));
    }
    if (n % 2 == 0)
      spectrum.back() = spectrum.back().real(); // what the samples determine at Nyquist
    const double weight = (beam.weights.empty() ? 1 : beam.weights[row % P]) * pi / double(P);
    for (int pixel = 0; pixel < size * size; ++pixel) {
      const double s = (pixel % size - size / 2) * std::cos(theta) +
                       (pixel / size - size / 2) * std::sin(theta) + beam.centre.value_or(n / 2);
      double value = 0;
      for (int k = 0; k <= n / 2; ++k)
        value += (spectrum[static_cast<std::size_t>(k)] * std::polar(1., 2 * pi * k * s / n)).real();
      image[row / P * static_cast<std::size_t>(size * size) + static_cast<std::size_t>(pixel)] +=
          weight * value;
    }
  }
  return image;
}

template <class T>
using Filter = Kokkos::View<T*, Kokkos::LayoutRight, Space>;

template <class T>
Filter<T> filter_view(const Values& values) {
  const Filter<T> view("filter", values.size());
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t k = 0; k < values.size(); ++k)
    host(k) = static_cast<T>(values[k]);
  Test::deep_copy(view, host);
  return view;
}

/// Filtered back-projection of exact line integrals, from rows padded to twice the width.
Values reconstruct(const std::vector<Ellipse>& object, int n, const Values& angles, double centre,
                   Bracewell::TomographyFilter window = Bracewell::TomographyFilter::Ramp,
                   const Values& weights = {}) {
  const Space space;
  const auto projections = to_device<float>(sinogram(object, n, angles, centre), int(angles.size()), n);
  const Volume<float> image("image", 1, n, n);
  const Bracewell::ProjectionFilter<Space, float> filter(space, std::int64_t(angles.size()), n,
                                                         {.filter = window});
  filter.execute(space, projections, projections);
  const FourierTomography<Space, float> tomography(
      space, {.angles = angles, .width = n, .centre = centre, .weights = weights});
  tomography.backproject(space, projections, image);
  return to_host(image);
}

} // namespace

TEMPLATE_TEST_CASE("back-projection is the sum that defines it, projection its transpose", "", float,
                   double) {
  const Space space;
  for (const auto& [n, size, slices, centre] : {std::tuple{24, 0, 1, 11.7},
                                                {31, 0, 5, 15.0},
                                                {23, 17, 2, 40.25},
                                                {20, 33, 3, -3.0},
                                                {1, 2, 1, 0.0}}) {
    CAPTURE(n, size, slices);
    const Geometry beam{.angles = random_values(14, -9, 9, 4),
                        .width = n,
                        .centre = centre,
                        .weights = random_values(14, 0.5, 1.5, 5)};
    Options options{.image = size, .slices = slices, .tolerance = sizeof(TestType) == 4 ? 1e-5 : 1e-11};
    const int edge = size ? size : n;
    const Values q = random_values(static_cast<std::size_t>(slices * 14 * n)),
                 y = random_values(static_cast<std::size_t>(slices * edge * edge), -1, 1, 2),
                 factors = random_values(static_cast<std::size_t>(n / 2 + 1), -1, 1, 3);
    const auto filter = filter_view<TestType>(factors);
    for (const auto strategy :
         {GriddingStrategy::Automatic, GriddingStrategy::Atomic, GriddingStrategy::PrunedGather,
          Bracewell::Impl::is_host<Space> ? GriddingStrategy::Bins : GriddingStrategy::Tiles}) {
      options.strategy = strategy;
      const FourierTomography<Space, TestType> tomography(space, beam, options);
      const auto projections = to_device<TestType>(q, 14, n);
      const Volume<TestType> image("image", slices, edge, edge), back("back", slices, 14, n);
      tomography.backproject(space, projections, image);
      CHECK(relative_error(to_host(image), direct(q, beam, size)) < options.tolerance);
      tomography.backproject(space, projections, image, filter);
      CHECK(relative_error(to_host(image), direct(q, beam, size, factors)) < options.tolerance);
      tomography.project(space, to_device<TestType>(y, edge, edge), back, filter);
      const double left = dot(to_host(image), y), right = dot(q, to_host(back));
      CHECK(std::abs(left - right) < (sizeof(TestType) == 4 ? 2e-5 : 1e-12) * std::abs(left));
    }
  }
}

TEMPLATE_TEST_CASE("any number of slices, in passes", "", float, double) {
  const Space space;
  const Geometry beam{.angles = random_values(11, -3, 3, 4), .width = 17, .centre = 7.4};
  const int slices = 7;
  const Values q = random_values(slices * 11 * 17), y = random_values(slices * 20 * 20, -1, 1, 2);
  const auto exact = direct(q, beam, 20);
  for (const std::int64_t pass : {1, 2, 3, 4, 7, 12}) {
    CAPTURE(pass);
    const double tolerance = sizeof(TestType) == 4 ? 1e-5 : 1e-11;
    const FourierTomography<Space, TestType> tomography(
        space, beam, {.image = 20, .slices = pass, .tolerance = tolerance});
    const auto projections = to_device<TestType>(q, 11, 17);
    const auto image = to_device<TestType>(Values(slices * 20 * 20, NAN), 20, 20),
               back = to_device<TestType>(Values(slices * 11 * 17, NAN), 11, 17);
    for (int call = 0; call < 2; ++call) { // the second finds what the first left
      tomography.backproject(space, projections, image);
      CHECK(relative_error(to_host(image), exact) < tolerance);
      tomography.project(space, to_device<TestType>(y, 20, 20), back);
      CHECK(std::abs(dot(exact, y) - dot(q, to_host(back))) <
            tolerance * std::sqrt(dot(exact, exact) * dot(y, y)));
    }
  }
}

TEST_CASE("projections in units of line integrals, whatever the weights") {
  const Space space;
  const int n = 41, angles = 9;
  const double deviation = 2.5, x0 = 5, y0 = -3, centre = 19.3;
  const Geometry beam{.angles = random_values(angles, -4, 4),
                      .width = n,
                      .centre = centre,
                      .weights = random_values(angles, 0.5, 1.5)};
  Values image, integrals; // of a Gaussian
  for (int pixel = 0; pixel < n * n; ++pixel)
    image.push_back(std::exp((std::pow(pixel % n - n / 2 - x0, 2) + std::pow(pixel / n - n / 2 - y0, 2)) /
                             (-2 * deviation * deviation)));
  for (const double theta : beam.angles)
    for (int i = 0; i < n; ++i)
      integrals.push_back(deviation * std::sqrt(2 * pi) *
                          std::exp(std::pow(i - centre - x0 * std::cos(theta) - y0 * std::sin(theta), 2) /
                                   (-2 * deviation * deviation)));
  const auto projections = to_device<double>(Values(integrals.size(), NAN), angles, n);
  const FourierTomography<Space, double> tomography(
      space, beam, {.units = Bracewell::ProjectionUnits::LineIntegrals, .tolerance = 1e-9});
  tomography.project(space, to_device<double>(image, n, n), projections);
  CHECK(relative_error(to_host(projections), integrals) < 1e-8);
}

TEST_CASE("a uniform disc of attenuation 1 reconstructs to 1") {
  for (const auto& [n, span, centre] : {std::tuple{128, pi, 64.0}, {129, pi, 60.3}, {96, 2 * pi, 48.5}}) {
    const std::vector<Ellipse> disc{{0, 0, 0.35 * n, 0.35 * n, 0, 1}};
    // Without a window the rings of the disc's edge (Gibbs) meet in its centre: only the mean tells the
    // units.
    for (const auto window : {Bracewell::TomographyFilter::Ramp, Bracewell::TomographyFilter::Hann}) {
      const Values image = reconstruct(disc, n, even_angles(2 * n, span), centre, window);
      double sum = 0, worst = 0;
      int count = 0;
      for (int pixel = 0; pixel < n * n; ++pixel)
        if (std::hypot(pixel % n - n / 2, pixel / n - n / 2) < 0.28 * n) {
          sum += image[static_cast<std::size_t>(pixel)];
          worst = std::max(worst, std::abs(image[static_cast<std::size_t>(pixel)] - 1));
          ++count;
        }
      CHECK(std::abs(sum / count - 1) < 0.002);
      if (window == Bracewell::TomographyFilter::Hann)
        CHECK(worst < 0.01);
    }
  }
}

TEST_CASE("the Shepp-Logan phantom, from angles in order and shuffled") {
  const int n = 128;
  const auto object = shepp_logan(0.45 * n);
  const Values exact = image(object, n);
  Values angles = even_angles(201);
  const Values regular = reconstruct(object, n, angles, 63.2);
  // Edges overshoot (Gibbs): the error is theirs, as it is for the line method.
  CHECK(error_in_disc(regular, exact, n, 0.48 * n) < 0.2);
  std::shuffle(angles.begin(), angles.end(), std::mt19937(3));
  CHECK(relative_error(reconstruct(object, n, angles, 63.2), regular) < 1e-5);
}

TEST_CASE("density weights make up for uneven angles") {
  // Angles u + 0.3 sin(2u) at P even values of u: up to 1.6 pi / P apart, which with P = 320 still resolves
  // what lies within 58 pixels (pi / (2 * 58) would do for half a cycle per pixel). Differences of neighbours
  // are the derivative 1 + 0.6 cos(2u) but for 0.6 (2 pi / P)^2 / 6 = 4e-5: by so much the sum differs from
  // that of even angles, where rows hold no frequencies beyond half a cycle per pixel.
  const Space space;
  const int n = 128, count = 320;
  Values uneven = even_angles(count);
  for (double& angle : uneven)
    angle += 0.3 * std::sin(2 * angle);
  std::shuffle(uneven.begin(), uneven.end(), std::mt19937(5));
  const Values weights = Bracewell::angular_density_weights(uneven);

  const auto blobs = [&](const Values& angles, const Values& angle_weights) {
    Values rows;
    for (const double theta : angles)
      for (int i = 0; i < n; ++i) { // Gaussians of deviation 2.5
        double sum = 0;
        for (const auto& [x, y, height] : {std::tuple{0., 0., 1.}, {30., -20., 0.7}, {-10., 40., -0.4}})
          sum += height * std::exp(-std::pow(i - 63.2 - x * std::cos(theta) - y * std::sin(theta), 2) / 12.5);
        rows.push_back(sum);
      }
    const FourierTomography<Space, double> tomography(
        space, {.angles = angles, .width = n, .centre = 63.2, .weights = angle_weights}, {.tolerance = 1e-8});
    const Volume<double> result("image", 1, n, n);
    tomography.backproject(space, to_device<double>(rows, count, n), result);
    return to_host(result);
  };
  const Values even = blobs(even_angles(count), {});
  CHECK(error_in_disc(blobs(uneven, weights), even, n, 58) < 1e-4);
  CHECK(error_in_disc(blobs(uneven, {}), even, n, 58) > 0.1);

  // An object with edges, whose rows do hold such frequencies, after filtering.
  const auto hann = Bracewell::TomographyFilter::Hann;
  const auto head = shepp_logan(0.45 * n);
  const Values regular = reconstruct(head, n, even_angles(count), 63.2, hann);
  CHECK(error_in_disc(reconstruct(head, n, uneven, 63.2, hann, weights), regular, n, 58) < 5e-3);
  CHECK(error_in_disc(reconstruct(head, n, uneven, 63.2, hann), regular, n, 58) > 0.2);
}

TEST_CASE("wrong arguments are refused with a sentence") {
  const Space space;
  using Tomography = FourierTomography<Space, float>;
  const auto refuses = [&](const Geometry& beam, const std::string& text, const Options& options = {}) {
    CHECK_THROWS_MATCHES(Tomography(space, beam, options), Bracewell::Error,
                         MessageMatches(ContainsSubstring(text)));
  };
  refuses({.angles = {0}}, "FourierTomography: geometry.width: expected from 1 to 32768 pixels, found 0");
  refuses({.width = 8}, "FourierTomography: geometry.angles: expected from 1 to 477218588 angles, found 0");
  refuses({.angles = {0}, .width = 8}, "options.slices: expected at least 1, found 0", {.slices = 0});
  refuses({.angles = {0}, .width = 8, .weights = {1, 2}},
          "geometry.weights: expected none or 1, one per angle, found 2");
  refuses({.angles = {0}, .width = 8, .weights = {NAN}},
          "geometry.weights: expected a finite value, found nan");
  refuses({.angles = {NAN}, .width = 8},
          "FourierTomography: geometry.angles: expected from -1e+09 to 1e+09, found nan");
  refuses({.angles = {0}, .width = 8, .centre = INFINITY},
          "geometry.centre: expected a pixel within four widths of the detector, found inf");
  refuses({.angles = {0}, .width = 8},
          "FourierTomography: options.tolerance: expected at least 1e-7, below 1, found 1e-09",
          {.tolerance = 1e-9});
  refuses({.angles = {0}, .width = 8},
          "FourierTomography: options.oversampling: expected from 1.2 to 8, found 1", {.oversampling = 1});
  refuses({.angles = {0}, .width = 8}, "options.image: expected from 1 to 32768 pixels, found -1",
          {.image = -1});

  CHECK_THROWS_MATCHES(
      Tomography::bytes_needed(space, {.angles = {0}}), Bracewell::Error,
      MessageMatches(ContainsSubstring("FourierTomography::bytes_needed: geometry.width: ")));

  // Degrees: more than a turn of multiples of a quarter.
  refuses({.angles = {0, 3, 7.25}, .width = 8},
          "FourierTomography: geometry.angles: expected radians, found degrees (from 0 to 7.25)");
  CHECK_NOTHROW(Tomography(space, {.angles = {0, 3, 6.25}, .width = 8}));
  CHECK_NOTHROW(Tomography(space, {.angles = std::vector<float>{0, 3, 7.3f}, .width = 8})); // of any type

  const Tomography tomography(space, {.angles = {0, 1}, .width = 8});
  const Volume<float> projections("projections", 1, 2, 8), images("images", 1, 8, 8), wrong("wrong", 2, 3, 8);
  CHECK_THROWS_MATCHES(tomography.backproject(space, wrong, images), Bracewell::Error,
                       MessageMatches(ContainsSubstring(
                           "backproject: projections: expected [slices, 2, 8], found [2, 3, 8]")));
  CHECK_THROWS_MATCHES(
      tomography.project(space, wrong, projections), Bracewell::Error,
      MessageMatches(ContainsSubstring("project: images: expected [1, 8, 8], found [2, 3, 8]")));
  CHECK_THROWS_MATCHES(tomography.backproject(space, projections, images, Filter<float>("filter", 4)),
                       Bracewell::Error,
                       MessageMatches(ContainsSubstring("filter: expected [5], found [4]")));
  const Volume<float> inside(images.data(), 1, 2, 8);
  CHECK_THROWS_MATCHES(
      tomography.backproject(space, inside, images), Bracewell::Error,
      MessageMatches(ContainsSubstring("images: expected memory of its own, found memory shared "
                                       "with projections")));
  CHECK_THROWS_MATCHES(
      tomography.project(space, images, inside), Bracewell::Error,
      MessageMatches(ContainsSubstring("project: projections: expected memory of its own, found "
                                       "memory shared with images")));
  CHECK_THROWS_MATCHES(tomography.backproject(space, projections, images, Filter<float>(images.data(), 5)),
                       Bracewell::Error, MessageMatches(ContainsSubstring("memory shared with filter")));
}

TEST_CASE("no slices are no work for FourierTomography") {
  const Space space;
  const FourierTomography<Space, float> plan(space, {.angles = {1, 2}, .width = 8}, {.slices = 3});
  const Volume<float> projections("projections", 0, 2, 8), images("images", 0, 8, 8);
  CHECK_NOTHROW(plan.backproject(space, projections, images));
  CHECK_NOTHROW(plan.project(space, images, projections));
}
