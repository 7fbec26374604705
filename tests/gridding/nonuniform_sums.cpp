// SPDX-License-Identifier: MIT
// Sums between points and targets against direct sums.
#include "../deep_copy.hpp"
#include "support.hpp"

#include <bracewell/gridding/nonuniform_sums.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace GriddingTest;
using Bracewell::GriddingOptions;
using Bracewell::NonuniformSums;

namespace {

/// exp(2 pi i sign targets_k . points_j) times values of points (or, conjugate, of targets), summed for every slice.
template <int Dim>
Values direct_sums(const Points<Dim>& points, const Points<Dim>& targets, const Values& values, int sign) {
  const std::size_t slices = values.size() / points.list.size();
  Values sums(slices * targets.list.size());
  for (std::size_t k = 0; k < targets.list.size(); ++k)
    for (std::size_t j = 0; j < points.list.size(); ++j) {
      double turns = 0;
      for (std::size_t d = 0; d < Dim; ++d)
        turns += targets.list[k][d] * points.list[j][d];
      const auto phase = std::polar(1., sign * 2 * std::numbers::pi * (turns - std::round(turns)));
      for (std::size_t slice = 0; slice < slices; ++slice)
        sums[slice * targets.list.size() + k] += values[slice * points.list.size() + j] * phase;
    }
  return sums;
}

template <int Dim>
Points<Dim> box(std::size_t count, double middle, double reach, unsigned seed) {
  auto points = Points<Dim>::random(count, reach, seed);
  for (auto& point : points.list)
    for (double& x : point)
      x += middle;
  return points;
}

/// Both directions against direct sums, and against each other.
template <class T, int Dim>
void check(const NonuniformSums<Space, Dim, T>& plan, const Points<Dim>& points, const Points<Dim>& targets,
           const GriddingOptions& options) {
  CAPTURE(Dim, options.tolerance, int(options.strategy), options.oversampling.value_or(0), options.sign);
  const Space space;
  const auto slices = static_cast<std::size_t>(options.slices);
  const bool last = options.order == SampleOrder::SlicesLast;
  const Values values = random_values(slices * points.list.size(), 1),
               sums = random_values(slices * targets.list.size(), 2);
  const auto device = [&](const Values& host) {
    return last ? to_device<T>(transposed(host, slices), std::int64_t(host.size() / slices))
                : to_device<T>(host, options.slices);
  };
  const auto host = [&](const auto& view) {
    return last ? transposed(to_host(view), view.extent(0)) : to_host(view);
  };
  const auto found_sums = device(sums), found_values = device(values); // overwritten
  plan.forward(space, device(values), found_sums);
  plan.adjoint(space, device(sums), found_values);
  CHECK(relative_error(host(found_sums), direct_sums(points, targets, values, options.sign)) <=
        options.tolerance);
  CHECK(relative_error(host(found_values), direct_sums(targets, points, sums, -options.sign)) <=
        options.tolerance);
  const auto there = dot(sums, host(found_sums)), back = dot(host(found_values), values);
  const double norm = std::sqrt(dot(sums, sums).real() * dot(host(found_sums), host(found_sums)).real());
  CHECK(std::abs(there - back) <= (sizeof(T) == 4 ? 1e-5 : 1e-12) * norm);
}

template <class T, int Dim>
void check(const Points<Dim>& points, const Points<Dim>& targets, const GriddingOptions& options) {
  check<T, Dim>(NonuniformSums<Space, Dim, T>(Space(), points.device(), targets.device(), options), points,
                targets, options);
}

} // namespace

TEMPLATE_TEST_CASE("sums over points at targets meet every tolerance in one, two and three dimensions", "",
                   float, double) {
  const double tightest = sizeof(TestType) == 4 ? 1e-6 : 1e-12;
  for (double tolerance = 1e-1; tolerance >= 0.9 * tightest; tolerance /= 10) {
    const GriddingOptions options{.tolerance = tolerance};
    check<TestType, 1>(box<1>(200, 3, 20, 1), box<1>(150, -2, 1.5, 2), options);
    check<TestType, 2>(box<2>(200, -4, 6, 1), box<2>(150, 0.1, 1.1, 2), options);
    check<TestType, 3>(box<3>(200, 0, 2, 1), box<3>(150, 2, 1.3, 2), options);
  }
}

TEST_CASE("boxes of all kinds, signs, slices, orders and strategies") {
  const auto line = [](std::size_t count, double middle, double reach) {
    return box<1>(count, middle, reach, 7);
  };
  const GriddingOptions options{.tolerance = 1e-9};
  check<double, 1>(line(40, 0, 1e-3), line(50, 0, 2e-3), options); // hardly a cycle
  check<double, 1>(line(40, 5, 0), line(50, 0, 2), options);       // one place
  check<double, 1>(line(40, 0, 3), line(50, 1.25, 0), options);    // one frequency
  check<double, 1>(line(1, 5, 0), line(1, -3, 0), options);
  check<double, 1>(line(30, 1e3, 1e-2), line(30, -1e2, 40), options);
  check<double, 1>(line(300, 0, 3e4), line(200, 0, 0.5), options);
  check<double, 1>(line(300, 0, 30), line(200, 3, 2), {.tolerance = 1e-6, .oversampling = 1.25});
  for (const auto order : {SampleOrder::SlicesFirst, SampleOrder::SlicesLast})
    for (const int sign : {1, -1})
      check<double, 2>(box<2>(60, 1, 5, 3), box<2>(70, 2, 0.8, 4),
                       {.slices = 3, .tolerance = 1e-8, .order = order, .sign = sign});
  for (const auto strategy : strategies())
    check<double, 2>(box<2>(60, 1, 5, 3), box<2>(70, 2, 0.8, 4), {.tolerance = 1e-8, .strategy = strategy});
  auto flat = box<3>(60, 1, 3, 5);
  for (auto& point : flat.list)
    point[1] = 4;
  check<double, 3>(flat, box<3>(40, 0, 1, 6), options);
}

TEST_CASE("other points and targets for the same plan, in the same memory where they are as many") {
  const Space space;
  const GriddingOptions options{.slices = 2, .tolerance = 1e-8};
  const auto points = box<2>(100, 0, 6, 1), targets = box<2>(80, 0, 1, 2);
  NonuniformSums<Space, 2, double> plan(space, points.device(), targets.device(), options);
  const auto shape = plan.grid_shape();
  const auto smaller = box<2>(100, 30, 4, 3), others = box<2>(80, 0, 0.7, 4);
  plan.set_points(space, smaller.device(), others.device());
  CHECK(plan.grid_shape() == shape);
  check<double, 2>(plan, smaller, others, options);
  const auto larger = box<2>(100, 0, 20, 5);
  plan.set_points(space, larger.device(), others.device());
  CHECK(plan.grid_shape() > shape);
  check<double, 2>(plan, larger, others, options);
  const auto fewer = box<2>(9, 2, 1, 6);
  plan.set_points(space, fewer.device(), targets.device());
  CHECK(plan.points() == 9);
  check<double, 2>(plan, fewer, targets, options);
  const auto broken = box<2>(9, NAN, 1, 6);
  CHECK_THROWS_AS(plan.set_points(space, broken.device(), targets.device()), Bracewell::Error);
  check<double, 2>(plan, fewer, targets, options); // nothing was changed
}

TEMPLATE_TEST_CASE("wide boxes take the grid that is the fastest, and meet the tolerance", "", float,
                   double) {
  const Space space;
  const auto points = box<2>(60, 3, 60, 1), targets = box<2>(70, -1, 1, 2);
  for (const double tolerance : {1e-2, sizeof(TestType) == 4 ? 1e-5 : 1e-11}) {
    const GriddingOptions options{.tolerance = tolerance};
    NonuniformSums<Space, 2, TestType> plan(space, points.device(), targets.device(), options);
    check<TestType, 2>(plan, points, targets, options);
    GriddingOptions twice = options;
    twice.oversampling = 2;
    const NonuniformSums<Space, 2, TestType> large(space, points.device(), targets.device(), twice);
    check<TestType, 2>(large, points, targets, twice);
    if (Bracewell::Impl::is_host<Space>)
      CHECK(plan.memory_bytes() < 0.8 * double(large.memory_bytes()));
    CHECK_THROWS_AS(plan.set_points(space, box<2>(60, 0, 3e4, 1).device(), targets.device()),
                    Bracewell::Error);
    for (const double reach : {59., 4., 70.}) { // in the same memory, and not
      const auto others = box<2>(60, 3, reach, 3);
      plan.set_points(space, others.device(), targets.device());
      check<TestType, 2>(plan, others, targets, options);
    }
  }
}

TEST_CASE("without points sums are zero, and the reverse; fewer slices than the plan's") {
  const Space space;
  using Plan = NonuniformSums<Space, 1, double>;
  const auto some = box<1>(5, 0, 3, 1), none = Points<1>{};
  using Matrix = View<Kokkos::complex<double>**>;
  const Matrix five("five", 1, 5), empty("empty", 1, 0);
  for (const bool forward : {true, false}) {
    Test::deep_copy(five, Kokkos::complex<double>(7));
    if (forward)
      Plan(space, none.device(), some.device()).forward(space, empty, five);
    else
      Plan(space, some.device(), none.device()).adjoint(space, empty, five);
    for (const auto& value : to_host(five))
      CHECK(value == 0.);
  }
  Plan(space, none.device(), none.device()).forward(space, empty, empty);
  const Plan plan(space, some.device(), some.device(), {.slices = 3, .tolerance = 1e-9});
  check<double, 1>(plan, some, some, {.tolerance = 1e-9});
  plan.forward(space, Matrix("values", 0, 5), Matrix("sums", 0, 5));
}

TEST_CASE("the memory of sums is known before they are planned") {
  const Space space;
  const auto check_memory = [&]<int Dim>(std::integral_constant<int, Dim>, double start) {
    using Plan = NonuniformSums<Space, Dim, float>;
    const auto points = box<Dim>(900, start, 20, 1), targets = box<Dim>(700, 0, 1, 2);
    const GriddingOptions options{.slices = 2, .tolerance = 1e-4};
    const auto needed = double(Plan::bytes_needed(space, points.device(), targets.device(), options));
    CHECK(std::abs(needed - double(Plan(space, points.device(), targets.device(), options).memory_bytes())) <
          0.05 * needed);
  };
  check_memory(std::integral_constant<int, 1>(), -10);
  check_memory(std::integral_constant<int, 2>(), 30);
  check_memory(std::integral_constant<int, 3>(), 0);
}

TEST_CASE("what sums refuse") {
  const Space space;
  using Plan = NonuniformSums<Space, 2, double>;
  const auto points = box<2>(5, 0, 3, 1);
  const auto refuses = [](const std::string& text, const auto& call) {
    try {
      call();
      FAIL("nothing was thrown");
    } catch (const Bracewell::Error& error) {
      CHECK(std::string(error.what()).find(text) == 0);
    }
  };
  refuses("Bracewell::NonuniformSums: points, targets: expected boxes whose lengths' product along an axis",
          [&] { Plan(space, box<2>(5, 0, 3e4, 1).device(), points.device()); });
  refuses("Bracewell::NonuniformSums: targets: expected 2 columns, found 1",
          [&] { Plan(space, points.device(), View<double**>("targets", 3, 1)); });
  refuses("Bracewell::NonuniformSums: targets: expected finite frequencies, found 10 that are not",
          [&] { Plan(space, points.device(), box<2>(5, NAN, 3, 1).device()); });
  refuses("Bracewell::NonuniformSums: options.tolerance: expected from",
          [&] { Plan(space, points.device(), points.device(), {.tolerance = 1e-15}); });
  refuses("Bracewell::NonuniformSums: options.strategy", [&] {
    Plan(space, points.device(), points.device(), {.strategy = GriddingStrategy::PrunedGather});
  });
  const Plan plan(space, points.device(), points.device());
  using Matrix = View<Kokkos::complex<double>**>;
  const Matrix values("values", 1, 5);
  refuses("Bracewell::NonuniformSums::forward: sums: expected [1, 5], found [1, 4]",
          [&] { plan.forward(space, values, Matrix("sums", 1, 4)); });
  refuses("Bracewell::NonuniformSums::forward", [&] { plan.forward(space, values, values); });
}
