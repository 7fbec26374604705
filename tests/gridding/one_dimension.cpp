// SPDX-License-Identifier: MIT
// Non-uniform FFTs of one dimension against direct sums.
#include "../deep_copy.hpp"
#include "support.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace GriddingTest;
using Bracewell::GriddingOptions;
using Bracewell::NonuniformFFT;

namespace {

/// Both directions against direct sums, and against each other.
template <class T>
void check(const Points<1>& points, int size, GriddingOptions options) {
  CAPTURE(points.list.size(), size, options.tolerance, int(options.strategy), options.slices,
          int(options.order));
  const Space space;
  const auto slices = static_cast<std::size_t>(options.slices), count = points.list.size();
  const bool last = options.order == SampleOrder::SlicesLast;
  Points<1> signed_points = points;
  for (auto& point : signed_points.list)
    point[0] *= options.sign;
  const Values samples = random_values(slices * count, 1);
  const NonuniformFFT<Space, 1, T> plan(space, points.device(), {size}, options);
  CHECK(plan.memory_bytes() ==
        NonuniformFFT<Space, 1, T>::bytes_needed(space, points.device(), {size}, options));
  const auto image = images<T, 1>(options.slices, {size});
  Test::deep_copy(image, Kokkos::complex<T>(Kokkos::Experimental::quiet_NaN_v<T>)); // all must be written
  plan.adjoint(space,
               last ? to_device<T>(transposed(samples, slices), plan.plan().points())
                    : to_device<T>(samples, options.slices),
               image);
  const Values result = to_host(image);
  CHECK(relative_error(result, direct<1>(signed_points, samples, {size})) <= options.tolerance);
  const View<Kokkos::complex<T>**> back("back", last ? count : slices, last ? slices : count);
  plan.forward(space, image, back);
  const Values values = last ? transposed(to_host(back), count) : to_host(back);
  CHECK(relative_error(values, direct_forward<1>(signed_points, result, {size})) <= options.tolerance);
  const double pairing = std::abs(dot(samples, values)), norm = std::abs(dot(result, result));
  CHECK(std::abs(pairing - norm) <= (sizeof(T) == 4 ? 1e-5 : 1e-12) * norm);
}

std::vector<GriddingStrategy> strategies_of_rows() {
  auto result = strategies();
  std::erase(result, GriddingStrategy::Tiles);
  return result;
}

} // namespace

TEMPLATE_TEST_CASE("rows of any size meet every tolerance with every strategy", "", float, double) {
  const double tightest = sizeof(TestType) == 4 ? 1e-6 : 1e-12;
  for (const auto strategy : strategies_of_rows())
    for (double tolerance = 1e-1; tolerance >= 0.9 * tightest; tolerance /= 10)
      check<TestType>(Points<1>::random(60), 101, {.tolerance = tolerance, .strategy = strategy});
  for (double tolerance = 1e-1; tolerance >= 0.9 * tightest; tolerance /= 10)
    for (int size = 6; size < 34; ++size)
      check<TestType>(Points<1>::random(41), size, {.tolerance = tolerance});
  for (const int size : {1, 2, 3, 5, 16, 5000})
    for (const std::size_t count : {1, 2, 33})
      check<TestType>(Points<1>::random(count), size, {.tolerance = 10 * tightest});
}

TEST_CASE("rows: crowded points, many slices, both orders and signs") {
  for (const auto strategy : strategies_of_rows()) {
    check<double>(Points<1>::random(7000, 0.01), 300, {.tolerance = 1e-10, .strategy = strategy});
    for (const auto order : {SampleOrder::SlicesFirst, SampleOrder::SlicesLast})
      for (const std::int64_t slices : {1, 3, 17})
        check<double>(
            Points<1>::random(50), 45,
            {.slices = slices, .tolerance = 1e-9, .strategy = strategy, .order = order, .sign = -1});
  }
  // Grids that caches have no room for: hosts take a few slices at a time.
  for (const auto order : {SampleOrder::SlicesFirst, SampleOrder::SlicesLast})
    check<double>(Points<1>::random(20), 40000, {.slices = 5, .tolerance = 1e-9, .order = order});
  Points<1> edges;
  for (const double x : {0., 0.5, -0.5, 0.49999999, -1e-17, 1., 7.25, 1 / 64.})
    edges.list.push_back({x});
  check<double>(edges, 77, {.tolerance = 1e-11});
}

TEST_CASE("rows without points or slices, and what is refused") {
  const Space space;
  const NonuniformFFT<Space, 1, double> none(space, Points<1>{}.device(), {9});
  const auto image = images<double, 1>(1, {9});
  Test::deep_copy(image, Kokkos::complex<double>(7));
  none.adjoint(space, View<Kokkos::complex<double>**>("samples", 1, 0), image);
  for (const auto& pixel : to_host(image))
    CHECK(pixel == 0.);
  none.forward(space, image, View<Kokkos::complex<double>**>("samples", 1, 0));
  const NonuniformFFT<Space, 1, double> no_slices(space, Points<1>::random(5).device(), {9}, {.slices = 0});
  no_slices.adjoint(space, View<Kokkos::complex<double>**>("samples", 0, 5), images<double, 1>(0, {9}));
  CHECK_THROWS_AS((NonuniformFFT<Space, 1, double>(space, Points<1>::random(5).device(), {9},
                                                   {.strategy = GriddingStrategy::Tiles})),
                  Bracewell::Error);
  CHECK_THROWS_AS((NonuniformFFT<Space, 1, double>(space, Points<1>::random(5).device(), {0})),
                  Bracewell::Error);
}

TEST_CASE("gradients of points of rows are finite differences of direct sums") {
  const Space space;
  const auto points = Points<1>::random(20);
  const Values image = random_values(33, 1), samples = random_values(20, 2);
  const NonuniformFFT<Space, 1, double> plan(space, points.device(), {33}, {.tolerance = 1e-11});
  const View<double**> gradients("gradients", 20, 1);
  plan.point_gradients(space, to_device<double>(image, 1), to_device<double>(samples, 1), gradients,
                       View<Kokkos::complex<double>**>("scratch", 1, 20));
  const auto found = Test::on_host(gradients);
  for (std::size_t j = 0; j < 20; ++j) {
    double loss[2];
    for (const int side : {0, 1}) {
      const Points<1> moved{{{points.list[j][0] + (side == 0 ? 1e-6 : -1e-6)}}};
      loss[side] = (std::conj(samples[j]) * direct_forward<1>(moved, image, {33})[0]).real();
    }
    CHECK(std::abs(found(j, 0) - (loss[0] - loss[1]) / 2e-6) < 1e-4);
  }
}
