// SPDX-License-Identifier: MIT
// The normal operator of the Fourier method against back-projected projections, and in least squares against the pair.

#include "../deep_copy.hpp"

#include <bracewell/optimize/least_squares.hpp>
#include <bracewell/tomography/fourier_normal.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <numbers>
#include <random>

using namespace Bracewell;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Space = Kokkos::DefaultExecutionSpace;

namespace {

template <class T>
using View = Kokkos::View<T***, Kokkos::LayoutRight, Space>;

template <class T>
View<T> random(int slices, int rows, int columns) {
  const View<T> view("values", slices, rows, columns);
  const auto host = Kokkos::create_mirror_view(view);
  std::mt19937 generator(3);
  for (std::size_t i = 0; i < host.size(); ++i)
    host.data()[i] = T(generator() / 4294967296.0 - 0.4);
  Test::deep_copy(view, host);
  return view;
}

template <class T>
double difference(const View<T>& a, const View<T>& b) {
  const auto x = Test::on_host(a), y = Test::on_host(b);
  double squares = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    squares += std::pow(double(x.data()[i]) - y.data()[i], 2);
    norm += std::pow(double(y.data()[i]), 2);
  }
  return std::sqrt(squares / norm);
}

template <class T>
double product(const View<T>& a, const View<T>& b) {
  const auto x = Test::on_host(a), y = Test::on_host(b);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += double(x.data()[i]) * y.data()[i];
  return sum;
}

ParallelBeamGeometry uneven(int angles, int width) {
  ParallelBeamGeometry geometry{.angles = {}, .width = width, .centre = width / 2 + 1.3};
  for (int p = 0; p < angles; ++p) {
    geometry.angles.push_back(0.3 + 2.5 * std::pow((p + 0.5) / angles, 1.2));
    geometry.weights.push_back(0.5 + double(p) / angles);
  }
  return geometry;
}

} // namespace

TEMPLATE_TEST_CASE("one convolution is back-projection of projections, for odd and even widths", "", float,
                   double) {
  const Space space;
  const double tolerance = sizeof(TestType) == 4 ? 1e-5 : 1e-11;
  for (const int width : {25, 24, 1, 2})
    for (const int image : {0, 17})
      for (const auto units : {ProjectionUnits::Transpose, ProjectionUnits::LineIntegrals}) {
        if (width < 3 && image)
          continue;
        CAPTURE(width, image, units == ProjectionUnits::Transpose);
        const auto geometry = uneven(13, width);
        const FourierTomographyOptions options{
            .image = image, .slices = 4, .units = units, .tolerance = tolerance};
        const FourierNormal<Space, TestType> pair(space, geometry, options);
        CHECK(pair.memory_bytes() == FourierNormal<Space, TestType>::bytes_needed(space, geometry, options));
        const int n = image ? image : width;
        for (const int slices : {3, 5}) { // beside what a pass takes
          const auto images = random<TestType>(slices, n, n);
          const View<TestType> rows("rows", slices, 13, width), twice("twice", slices, n, n),
              once("once", slices, n, n);
          pair.project(space, images, rows);
          pair.backproject(space, rows, twice);
          pair.normal(space, images, once);
          CHECK(difference(once, twice) < 5 * tolerance);
          if (units == ProjectionUnits::Transpose) {
            const auto other = random<TestType>(slices, 13, width);
            pair.backproject(space, other, twice);
            CHECK(std::abs(product(rows, other) / product(images, twice) - 1) <
                  (sizeof(TestType) == 4 ? 1e-4 : 1e-11));
          }
        }
      }
}

TEST_CASE("an odd width keeps all of FourierTomography, an even one all but rows that alternate") {
  const Space space;
  for (const int width : {24, 25}) {
    CAPTURE(width);
    const auto geometry = uneven(7, width);
    const FourierTomographyOptions options{.tolerance = 1e-11};
    const FourierNormal<Space, double> pair(space, geometry, options);
    const FourierTomography<Space, double> tomography(space, geometry, options);
    const auto images = random<double>(1, width, width);
    const View<double> rows("rows", 1, 7, width), expected("expected", 1, 7, width);
    pair.project(space, images, rows);
    tomography.project(space, images, expected);
    const auto host = Test::on_host(expected);
    for (int p = 0; width % 2 == 0 && p < 7; ++p) {
      double alternating = 0;
      for (int i = 0; i < width; ++i)
        alternating += (i % 2 ? -1 : 1) * host(0, p, i) / width;
      CHECK(std::abs(alternating) > 1e-6);
      for (int i = 0; i < width; ++i)
        host(0, p, i) -= (i % 2 ? -1 : 1) * alternating;
    }
    Test::deep_copy(expected, host);
    CHECK(difference(rows, expected) < 1e-10);
  }
}

TEST_CASE("conjugate gradients by the convolution are those by the pair") {
  const Space space;
  const int width = 24, angles = 40;
  ParallelBeamGeometry geometry{.angles = {}, .width = width};
  for (int p = 0; p < angles; ++p)
    geometry.angles.push_back(std::numbers::pi * p / angles);
  const FourierNormal<Space, double> pair(
      space, geometry, {.slices = 2, .units = ProjectionUnits::LineIntegrals, .tolerance = 1e-11});
  const auto rows = random<double>(2, angles, width);
  View<double> images[2];
  for (const bool normal : {false, true}) {
    images[normal] = View<double>("images", 2, width, width);
    const LeastSquaresSolver<Space, double> solver(
        space, {.data = {2, angles, width}, .images = {2, width, width}, .normal = normal});
    CHECK(solver.solve(space, pair, rows, images[normal], {.iterations = 8}) == 8);
  }
  CHECK(difference(images[1], images[0]) < 1e-7);
}

TEST_CASE("the normal operator is for many angles: a quarter of the pixels on hosts, as many on GPUs") {
  static_assert(normal_is_faster(128, 512, 512, true) && !normal_is_faster(127, 512, 512, true));
  static_assert(normal_is_faster(512, 512, 512, false) && !normal_is_faster(511, 512, 512, false));
  static_assert(normal_is_faster(64, 1024, 512, true) &&
                !normal_is_faster(128, 511, 512, true)); // samples count
  static_assert(normal_is_faster(1 << 24, 32768, 16384, true));
  static_assert(normal_is_faster(1, 512, 512, false, true)); // by lines on the chip
}

TEST_CASE("wrong input to FourierNormal is named") {
  const Space space;
  CHECK_THROWS_MATCHES((FourierNormal<Space, double>(space, {.angles = {0}, .width = 8}, {.slices = 0})),
                       Error, MessageMatches(ContainsSubstring("options.slices")));
  const FourierNormal<Space, double> pair(space, {.angles = {0, 1}, .width = 8});
  const View<double> wrong("wrong", 1, 7, 8);
  CHECK_THROWS_MATCHES(pair.normal(space, wrong, wrong), Error, MessageMatches(ContainsSubstring("images")));
}
