// SPDX-License-Identifier: MIT
// Shifts of views against plans of one view with another centre; slopes against differences of projections.

#include "../deep_copy.hpp"

#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/log_polar.hpp>
#include <bracewell/tomography/view_slopes.hpp>

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
using View = Kokkos::View<double***, Kokkos::LayoutRight, Space>;
using Host = Kokkos::View<double***, Kokkos::LayoutRight, Kokkos::HostSpace>;

namespace {

constexpr int views = 7, slices = 3;

Host random(int rows, int columns, unsigned seed) {
  const Host values("values", slices, rows, columns);
  std::mt19937 generator(seed);
  for (std::size_t i = 0; i < values.size(); ++i)
    values.data()[i] = generator() / 4294967296.0 - 0.4;
  return values;
}

View device(const Host& host) { return Test::on_device(host); }
Host host(const View& view) { return Test::on_host(view); }

ParallelBeamGeometry shifted(int width) {
  ParallelBeamGeometry geometry{.angles = {}, .width = width, .centre = width / 2 + 0.7};
  for (int p = 0; p < views; ++p) {
    geometry.angles.push_back(0.2 + 0.43 * p);
    geometry.weights.push_back(1 + 0.1 * p);
    geometry.shifts.push_back(1.7 * std::sin(3 * p));
  }
  return geometry;
}

double inner(const Host& a, const Host& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a.data()[i] * b.data()[i];
  return sum;
}

template <class Plan, class Options>
void check_shifts(int width, const Options& options) {
  const Space space;
  const auto geometry = shifted(width);
  const Plan plan(space, geometry, options);
  CHECK(plan.memory_bytes() == Plan::bytes_needed(space, geometry, options));
  const Host images = random(width, width, 1), rows = random(views, width, 2);
  const View projected("projected", slices, views, width), backprojected("back", slices, width, width);
  plan.project(space, device(images), projected);
  plan.backproject(space, device(rows), backprojected);
  const Host all = host(projected);
  CHECK(std::abs(inner(all, rows) / inner(images, host(backprojected)) - 1) < 1e-11);
  for (int p = 0; p < views; ++p) {
    const ParallelBeamGeometry one{.angles = {geometry.angles[std::size_t(p)]},
                                   .width = width,
                                   .centre = *geometry.centre + geometry.shifts[std::size_t(p)]};
    const View row("row", slices, 1, width);
    Plan(space, one, options).project(space, device(images), row);
    const Host expected = host(row);
    const double factor = geometry.weights[std::size_t(p)] / views;
    double worst = 0;
    for (int z = 0; z < slices; ++z)
      for (int i = 0; i < width; ++i)
        worst = std::max(worst, std::abs(all(z, p, i) - factor * expected(z, 0, i)));
    CHECK(worst < 1e-9);
  }
}

} // namespace

TEST_CASE("a shift of a view is another centre, for its projection and its transpose") {
  for (const int width : {24, 25}) {
    CAPTURE(width);
    check_shifts<FourierTomography<Space, double>>(width,
                                                   FourierTomographyOptions{.slices = 2, .tolerance = 1e-11});
    check_shifts<LineTomography<Space, double>>(width, LineTomographyOptions{});
  }
}

TEST_CASE("slopes are differences of projections, their sums gradients of a loss") {
  const Space space;
  for (const int width : {24, 25}) {
    CAPTURE(width);
    const FourierTomographyOptions options{
        .slices = 2, .units = ProjectionUnits::LineIntegrals, .tolerance = 1e-12};
    const auto geometry = shifted(width);
    const ViewSlopes<Space, double> plan(space, geometry, options);
    CHECK(plan.memory_bytes() == ViewSlopes<Space, double>::bytes_needed(space, geometry, options));
    const View images = device(random(width, width, 1)), data = device(random(views, width, 2));
    const View of_angles("angles", slices, views, width), of_shifts("shifts", slices, views, width);
    plan.slopes(space, images, of_angles, of_shifts);

    const auto rows_at = [&](const ParallelBeamGeometry& at) {
      const View rows("rows", slices, views, width);
      ViewSlopes<Space, double>(space, at, options).project(space, images, rows);
      return host(rows);
    };
    // L = 1/2 sum (rows - data)^2
    const auto loss = [&](const ParallelBeamGeometry& at) {
      const Host rows = rows_at(at), from = host(data);
      double sum = 0;
      for (std::size_t i = 0; i < rows.size(); ++i)
        sum += 0.5 * std::pow(rows.data()[i] - from.data()[i], 2);
      return sum;
    };
    const Host rows = rows_at(geometry), from = host(data), residual("residual", slices, views, width);
    for (std::size_t i = 0; i < rows.size(); ++i)
      residual.data()[i] = rows.data()[i] - from.data()[i];
    const Kokkos::View<double*, Space> angle_sums("sums", views), shift_sums("sums", views);
    sum_views(space, of_angles, device(residual), angle_sums);
    sum_views(space, of_shifts, device(residual), shift_sums);
    const auto angle_gradient = Test::on_host(angle_sums), shift_gradient = Test::on_host(shift_sums);

    const double step = 2e-5;
    double centre_gradient = 0;
    for (int p = 0; p < views; ++p)
      for (const bool angle : {true, false}) {
        CAPTURE(p, angle);
        auto before = geometry, after = geometry;
        (angle ? before.angles : before.shifts)[std::size_t(p)] -= step;
        (angle ? after.angles : after.shifts)[std::size_t(p)] += step;
        const Host low = rows_at(before), high = rows_at(after), slopes = host(angle ? of_angles : of_shifts);
        double worst = 0, largest = 0;
        for (int z = 0; z < slices; ++z)
          for (int i = 0; i < width; ++i) {
            const double difference = (high(z, p, i) - low(z, p, i)) / (2 * step);
            worst = std::max(worst, std::abs(slopes(z, p, i) - difference));
            largest = std::max(largest, std::abs(difference));
          }
        CHECK(worst < 1e-6 * largest);
        const double found = angle ? angle_gradient(p) : shift_gradient(p),
                     expected = (loss(after) - loss(before)) / (2 * step);
        CHECK(std::abs(found - expected) < 1e-5 * largest * largest);
        centre_gradient += angle ? 0 : found;
      }
    auto before = geometry, after = geometry;
    *before.centre -= step, *after.centre += step;
    const double expected = (loss(after) - loss(before)) / (2 * step);
    CHECK(std::abs(centre_gradient - expected) < 1e-6 * std::abs(expected));
  }
}

TEST_CASE("wrong shifts and slopes are named") {
  const Space space;
  ParallelBeamGeometry geometry{.angles = {0, 1}, .width = 8, .shifts = {1}};
  CHECK_THROWS_MATCHES(
      (FourierTomography<Space, double>(space, geometry)), Error,
      MessageMatches(ContainsSubstring("geometry.shifts: expected none or 2, one per angle, found 1")));
  geometry.shifts = {1, 99};
  CHECK_THROWS_MATCHES((LineTomography<Space, double>(space, geometry)), Error,
                       MessageMatches(ContainsSubstring("geometry.shifts")));
  ParallelBeamGeometry even{.angles = {}, .width = 16, .shifts = std::vector<double>(16)};
  for (int p = 0; p < 16; ++p)
    even.angles.push_back(std::numbers::pi * p / 16);
  CHECK_THROWS_MATCHES((LogPolarTomography<Space, double>(space, even)), Error,
                       MessageMatches(ContainsSubstring("geometry.shifts: expected none")));
  const ViewSlopes<Space, double> plan(space, {.angles = {0, 1}, .width = 8});
  const View images("images", 1, 8, 8), rows("rows", 1, 2, 8);
  CHECK_THROWS_MATCHES(plan.slopes(space, images, rows, rows), Error,
                       MessageMatches(ContainsSubstring("of_angles")));
  CHECK_THROWS_MATCHES(sum_views(space, rows, rows, Kokkos::View<double*, Space>("sums", 3)), Error,
                       MessageMatches(ContainsSubstring("result: expected [2], found [3]")));
}
