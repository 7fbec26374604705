// SPDX-License-Identifier: MIT
#include "../deep_copy.hpp"
#include "../tools/checks.hpp"
#include "support.hpp"

#include <bracewell/tomography/fourier.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <limits>
#include <random>

using namespace GriddingTest;
using Bracewell::Gridding;
using Bracewell::PolarPoints;

namespace {

template <class T>
Values spread(const Gridding<Space, 2, T>& plan, const Values& samples) {
  const auto grid = images<T, 2>(plan.slices(), plan.grid_shape());
  plan.spread(Space(), to_device<T>(samples, plan.slices()), grid);
  return to_host(grid);
}

/// Indices of the taps of a point.
struct TapsSeen {
  std::int64_t largest = 0, smallest = std::numeric_limits<std::int64_t>::max(), taps = 0;
};

struct See {
  TapsSeen& seen;

  KOKKOS_FUNCTION void operator()(std::int64_t index, float) const {
    seen.largest = Kokkos::max(seen.largest, index);
    seen.smallest = Kokkos::min(seen.smallest, index);
    ++seen.taps;
  }
};

} // namespace

TEST_CASE("strategies agree to rounding on the grid itself; the gathers repeat bit by bit") {
  const PolarPoints points = rays(70, 81);
  const Values samples = random_values(3 * 70 * 81, 1);
  const auto run = [&]<class T>(GriddingStrategy strategy, T) {
    return spread(Gridding<Space, 2, T>(Space(), points, {80, 80},
                                        {.slices = 3, .oversampling = 2, .strategy = strategy}),
                  samples);
  };
  const Values exact = run(GriddingStrategy::Atomic, double());
  for (const auto strategy : strategies(true)) {
    if (strategy == GriddingStrategy::Atomic)
      continue;
    CHECK(relative_error(run(strategy, double()), exact) < 1e-14);
    const Values single = run(strategy, float());
    CHECK(relative_error(single, exact) < 1e-6);
    CHECK(single == run(strategy, float()));
  }
}

TEST_CASE("samples outside the central period, at its edge and on grid points reach the grid alike") {
  Points<2> points, moved;
  for (const double x : {0., 0.5, -0.5, 0.25, 0.49999999, 1 / 64., -1e-17})
    for (const double y : {0., 0.5, -0.5, -0.3}) {
      points.list.push_back({x, y});
      moved.list.push_back({x + 3, y - 2});
    }
  const Values samples = random_values(points.list.size(), 2);
  const auto run = [&](const Points<2>& where, GriddingStrategy strategy) {
    return spread(Gridding<Space, 2, double>(Space(), where.device(), {32, 32},
                                             {.tolerance = 1e-7, .oversampling = 2, .strategy = strategy}),
                  samples);
  };
  const Values exact = run(points, GriddingStrategy::Atomic);
  CHECK(relative_error(run(points, tiles_or_bins), exact) < 1e-14);
  // A tap at the very end of the kernel may change sides: its weight is below the tolerance.
  CHECK(relative_error(run(moved, tiles_or_bins), exact) < 1e-7);
}

TEST_CASE("interpolation is the transpose of spreading, element by element") {
  const Gridding<Space, 2, double> plan(Space(), Points<2>::random(40).device(), {12, 18},
                                        {.slices = 2, .strategy = tiles_or_bins});
  const Values samples = random_values(80, 3);
  const std::size_t elements = static_cast<std::size_t>(plan.grid_shape()[0]) * plan.grid_shape()[1];
  const Values field = random_values(2 * elements, 4);
  const auto grid = images<double, 2>(2, plan.grid_shape());
  const auto flat = to_device<double>(field, 1);
  Test::deep_copy(View<Kokkos::complex<double>*>(grid.data(), grid.size()),
                  Kokkos::subview(flat, 0, Kokkos::ALL));
  const View<Kokkos::complex<double>**> values("values", 2, 40);
  plan.interpolate(Space(), grid, values);
  const auto left = dot(spread(plan, samples), field), right = dot(samples, to_host(values));
  CHECK(std::abs(left - right) < 1e-12 * std::abs(left));
}

TEMPLATE_TEST_CASE("interpolation in both orders of the samples, kernels of every width", "", float, double) {
  const PolarPoints points = rays(40, 31); // hundreds of samples around the origin, none in the corners
  for (const double tolerance : {0.3, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6})
    for (const std::int64_t slices : {4, 5, 9, 11, 17, 22, 33, 70}) {
      CAPTURE(tolerance, slices);
      Values values[2];
      for (const auto order : {SampleOrder::SlicesFirst, SampleOrder::SlicesLast}) {
        const bool last = order == SampleOrder::SlicesLast;
        const Gridding<Space, 2, TestType> plan(Space(), points, {29, 38},
                                                {.slices = slices,
                                                 .tolerance = tolerance,
                                                 .oversampling = 2, // what is chosen depends on the order
                                                 .strategy = tiles_or_bins,
                                                 .order = order});
        const auto grid = images<TestType, 2>(slices, plan.grid_shape());
        const auto field = to_device<TestType>(random_values(grid.size(), 5), 1);
        Test::deep_copy(View<Kokkos::complex<TestType>*>(grid.data(), grid.size()),
                        Kokkos::subview(field, 0, Kokkos::ALL));
        const View<Kokkos::complex<TestType>**> samples("samples", last ? plan.points() : slices,
                                                        last ? slices : plan.points());
        plan.interpolate(Space(), grid, samples);
        values[last] = last ? to_host(samples) : transposed(to_host(samples), std::size_t(slices));
      }
      CHECK(relative_error(values[1], values[0]) < (sizeof(TestType) == 4 ? 1e-6 : 1e-14));
    }
}

TEST_CASE("grid indices beyond 2^31 elements do not wrap") {
  // Only the arithmetic: the grids themselves would be 34 GB.
  using Bracewell::Impl::GridShape;
  const GridShape<2> grid{{65536, 65536}};
  const Bracewell::Impl::Location<float, 2> at{{2.f, 2.f}, {65533, 65533}};
  const std::vector<float> table(Bracewell::Impl::TapWeights<float>::stride * 2, 1.f);
  const Bracewell::Impl::TapWeights<float> kernel{table.data(), 5, 1};
  float weights[2][8];
  for (auto& row : weights)
    for (float& weight : row)
      weight = 1;
  TapsSeen seen;
  Bracewell::Impl::for_each_tap(at, grid, kernel, weights, See{seen});
  CHECK(seen.taps == 25);
  CHECK(seen.smallest == 0);
  CHECK(seen.largest == 65536LL * 65536 - 1);
  const float first = 0; // never read: the address alone counts
  const Bracewell::Impl::SampleArray<const float> samples{&first, 64, 1};
  CHECK(reinterpret_cast<std::uintptr_t>(&samples(1LL << 27, 63)) -
            reinterpret_cast<std::uintptr_t>(&first) ==
        sizeof(float) * ((1ULL << 33) + 63));
}

TEST_CASE("grids are fast sizes of at least the oversampling, kernels as wide as the tolerance asks") {
  const auto points = Points<2>::random(5).device();
  const Gridding<Space, 2, float> plan(Space(), points, {181, 99}, {.tolerance = 1e-4, .oversampling = 2});
  CHECK(plan.grid_shape() == std::array{375, 200});
  CHECK(plan.width() == 5);
  CHECK(Gridding<Space, 2, double>(Space(), points, {64, 64}, {.tolerance = 1e-12}).width() >= 13);
  if (Bracewell::Impl::is_host<Space>) { // few pixels have a grid of four times as many, where fewer taps do
    const int width = Gridding<Space, 2, double>(Space(), points, {8, 8}, {.tolerance = 1e-12}).width();
    CHECK((width >= 10 && width <= 12));
  }
}

TEST_CASE("labels and instances") {
  const Space space;
  for (const auto strategy : strategies(true)) {
    const Gridding<Space, 2, float> plan(space, rays(4, 16), {16, 16}, {.strategy = strategy});
    const auto grid = images<float, 2>(1, plan.grid_shape());
    const View<Kokkos::complex<float>**> samples("samples", 1, 64);
    const Test::Function spreads{"Gridding::", [&](const Space& s) { plan.spread(s, samples, grid); }};
    const Test::Function interpolates{"Gridding::interpolate",
                                      [&](const Space& s) { plan.interpolate(s, grid, samples); }};
    for (const auto& function : {spreads, interpolates}) {
      Test::check_labels(function);
      Test::check_instances(function);
    }
  }
  const Bracewell::FourierTomography<Space, float> tomography(space, {.angles = {0, 1}, .width = 12},
                                                              {.slices = 2});
  const View<float***> projections("projections", 3, 2, 12), image("image", 3, 12, 12); // two passes
  const Test::Function back{"", [&](const Space& s) { tomography.backproject(s, projections, image); }};
  const Test::Function forth{"", [&](const Space& s) { tomography.project(s, image, projections); }};
  for (const auto& function : {back, forth}) {
    Test::check_labels(function);
    Test::check_instances(function);
  }
}

TEST_CASE("plans of gridding take the memory that they say") {
  const auto scattered = Points<3>::random(4000).device();
  const auto plane = Points<2>::random(9000).device();
  auto all = strategies();
  all.push_back(GriddingStrategy::Automatic);
  for (const auto strategy : all)
    for (const std::int64_t slices : {1, 5}) {
      CAPTURE(int(strategy), slices);
      const Bracewell::GriddingOptions options{.slices = slices, .strategy = strategy};
      Test::check_memory<Gridding<Space, 2, float>>(3, plane, std::array{81, 70}, options);
      Test::check_memory<Gridding<Space, 2, double>>(3, rays(130, 75), std::array{75, 75}, options);
      Test::check_memory<Bracewell::NonuniformFFT<Space, 3, float>>(3, scattered, std::array{19, 20, 21},
                                                                    options);
    }
  const Bracewell::GriddingOptions pruned{.strategy = GriddingStrategy::PrunedGather};
  Test::check_memory<Gridding<Space, 2, float>>(3, rays(130, 75), std::array{75, 75}, pruned);
}

TEST_CASE("a call of fewer slices than the plan's") {
  const auto points = Points<2>::random(300).device();
  for (const auto strategy : strategies())
    for (const auto order : {SampleOrder::SlicesFirst, SampleOrder::SlicesLast}) {
      CAPTURE(int(strategy), int(order));
      const bool last = order == SampleOrder::SlicesLast;
      const Bracewell::NonuniformFFT<Space, 2, double> five(
          Space(), points, {16, 13}, {.slices = 5, .strategy = strategy, .order = order}),
          two(Space(), points, {16, 13}, {.slices = 2, .strategy = strategy, .order = order});
      const auto samples = to_device<double>(random_values(600, 3), last ? 300 : 2);
      const auto few = images<double, 2>(2, {16, 13}), exact = images<double, 2>(2, {16, 13});
      const auto all = images<double, 2>(5, {16, 13});
      const auto more = to_device<double>(random_values(1500, 4), last ? 300 : 5);
      five.adjoint(Space(), more, all); // leaves grids that the next call does not fill
      five.adjoint(Space(), samples, few);
      two.adjoint(Space(), samples, exact);
      CHECK(relative_error(to_host(few), to_host(exact)) < 1e-13);
      const View<Kokkos::complex<double>**> a("a", samples.extent(0), samples.extent(1)),
          b("b", samples.extent(0), samples.extent(1));
      five.forward(Space(), few, a);
      two.forward(Space(), exact, b);
      CHECK(relative_error(to_host(a), to_host(b)) < 1e-13);
    }
}
