// SPDX-License-Identifier: MIT
#include "../deep_copy.hpp"
#include "support.hpp"

#include <bracewell/impl/vector.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <utility>

using namespace GriddingTest;
using Bracewell::GriddingOptions;
using Bracewell::NonuniformFFT;

namespace {

template <class T>
const std::vector<double> tolerances = sizeof(T) == 4 ? std::vector{1e-2, 1e-3, 1e-4, 1e-5, 1e-6}
                                                      : std::vector{1e-3, 1e-6, 1e-8, 1e-10, 1e-12};

/// Adjoint and forward transform against direct sums, and against each other.
template <class T, int Dim, class Where>
void check(const Where& where, const Points<Dim>& points, const std::array<int, Dim>& shape,
           GriddingOptions options) {
  CAPTURE(int(options.strategy), options.tolerance, shape);
  const Space space;
  const auto slices = static_cast<std::size_t>(options.slices);
  const Values samples = random_values(slices * points.list.size(), 1),
               exact = direct<Dim>(points, samples, shape);
  const NonuniformFFT<Space, Dim, T> plan(space, where, shape, options);
  const bool last = options.order == SampleOrder::SlicesLast;

  const auto image = images<T, Dim>(options.slices, shape);
  Test::deep_copy(image, Kokkos::complex<T>(Kokkos::Experimental::quiet_NaN_v<T>)); // all must be written
  plan.adjoint(space,
               last ? to_device<T>(transposed(samples, slices), plan.plan().points())
                    : to_device<T>(samples, options.slices),
               image);
  const Values result = to_host(image);
  CHECK(relative_error(result, exact) <= options.tolerance);

  const View<Kokkos::complex<T>**> back("back", last ? points.list.size() : slices,
                                        last ? slices : points.list.size());
  plan.forward(space, image, back);
  const Values values = to_host(back);
  // <samples, forward image> = <adjoint samples, image>
  const auto left = dot(last ? transposed(samples, slices) : samples, values), right = dot(result, result);
  CHECK(std::abs(left - right) <= (sizeof(T) == 4 ? 2e-6 : 1e-12) * std::abs(right));
}

} // namespace

TEMPLATE_TEST_CASE("sums over samples anywhere meet every tolerance with every strategy", "", float, double) {
  const std::array<int, 2> shape{22, 31}; // an odd, prime width
  const auto points = Points<2>::random(150);
  for (const double tolerance : tolerances<TestType>)
    for (const auto strategy : strategies())
      check<TestType, 2>(points.device(), points, shape,
                         {.slices = 3, .tolerance = tolerance, .strategy = strategy});
}

TEMPLATE_TEST_CASE("polar samples: any angles, with every strategy", "", float, double) {
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> anywhere(-40, 40);
  std::vector<double> half_turn, full_turn, random, same(9, 0.7), axes;
  for (int p = 0; p < 20; ++p) {
    half_turn.push_back(std::numbers::pi * p / 20);
    full_turn.push_back(2 * std::numbers::pi * p / 20);
    random.push_back(anywhere(generator));
    axes.push_back((p * 7 % 20 - 8) * std::numbers::pi / 2); // several turns, shuffled
  }
  for (const auto& angles : {half_turn, full_turn, random, same, axes, {1.}})
    for (const int samples : {24, 25})
      for (const auto strategy : strategies(true)) {
        const Bracewell::PolarPoints rays{.angles = angles, .samples = samples};
        check<TestType, 2>(rays, Points<2>::polar(rays), {19, 26},
                           {.slices = 2, .tolerance = 1e-5, .strategy = strategy});
      }
}

TEMPLATE_TEST_CASE("the numbers of slices and both orders of the axes", "", float, double) {
  const Bracewell::PolarPoints rays{.angles = {0.1, 1, 2, 3}, .samples = 21};
  for (const std::int64_t slices : {1, 2, 5, 17, 33, 70})
    for (const auto order : {SampleOrder::SlicesFirst, SampleOrder::SlicesLast})
      for (const auto strategy : strategies(true))
        check<TestType, 2>(rays, Points<2>::polar(rays), {16, 16},
                           {.slices = slices, .tolerance = 1e-4, .strategy = strategy, .order = order});
}

TEST_CASE("less oversampling, and more") {
  const auto points = Points<2>::random(100);
  for (const double oversampling : {1.25, 1.5, 1.7, 3.})
    check<double, 2>(points.device(), points, {20, 17}, {.tolerance = 1e-5, .oversampling = oversampling});
}

TEMPLATE_TEST_CASE("volumes", "", float, double) {
  const auto points = Points<3>::random(60);
  for (const auto strategy : strategies())
    for (const std::int64_t slices : {1, 3})
      check<TestType, 3>(points.device(), points, {7, 10, 9},
                         {.slices = slices, .tolerance = 1e-4, .strategy = strategy});
  check<TestType, 3>(points.device(), points, {1, 5, 6}, {.tolerance = 1e-4});
}

TEST_CASE("sums in float over a million points meet the tolerance, wherever these lie") {
  const std::array<int, 2> shape{16, 16};
  const int side = 1024, count = side * side;
  Points<2> lattice, spot;
  for (int i = 0; i < count; ++i) {
    lattice.list.push_back({(i % side) / double(side), (i / side) / double(side)});
    spot.list.push_back({0.1234, -0.4071});
  }
  const Values ones(count, 1.);
  Values of_lattice(256), of_spot = direct<2>(Points<2>{{spot.list.front()}}, {1.}, shape);
  of_lattice[8 * 16 + 8] = count; // roots of unity cancel, but for frequency 0
  for (auto& value : of_spot)
    value *= count;

  const Space space;
  const auto sums = [&](const Points<2>& points) {
    const NonuniformFFT<Space, 2, float> plan(space, points.device(), shape, {.tolerance = 1e-6});
    const auto image = images<float, 2>(1, shape);
    plan.adjoint(space, to_device<float>(ones, 1), image);
    return to_host(image);
  };
  CHECK(relative_error(sums(lattice), of_lattice) < 3e-6);
  CHECK(relative_error(sums(spot), of_spot) < 1e-5);
}

namespace {

/// The relative error of `count` equal samples on one spot, in float: what is rounded is rounded alike every time.
template <int Dim>
double error_on_spot(const std::array<double, Dim>& spot, const std::array<int, Dim>& shape,
                     std::int64_t count) {
  Points<Dim> one;
  one.list.push_back(spot);
  Values exact = direct<Dim>(one, {1.}, shape);
  for (auto& value : exact)
    value *= static_cast<double>(count);
  const Space space;
  const View<double**> points("points", count, Dim);
  for (int d = 0; d < Dim; ++d)
    Test::deep_copy(Kokkos::subview(points, Kokkos::ALL, d), spot[static_cast<std::size_t>(d)]);
  const View<Kokkos::complex<float>**> ones("ones", 1, count);
  Test::deep_copy(ones, Kokkos::complex<float>(1));
  const NonuniformFFT<Space, Dim, float> plan(space, points, shape, {.tolerance = 1e-6});
  const auto image = images<float, Dim>(1, shape);
  plan.adjoint(space, ones, image);
  return relative_error(to_host(image), exact);
}

} // namespace

TEST_CASE("equal samples in float on one spot meet the tolerance on hosts, however many") {
  if constexpr (Bracewell::Impl::is_host<Space>)
    for (const std::int64_t count : {1, 63, 64, 65, 200, 1000, 1024, 1025, 5000, 1000000}) {
      CAPTURE(count);
      CHECK(error_on_spot<1>({0.1234}, {64}, count) < 1e-6);
      CHECK(error_on_spot<2>({0.1234, -0.4071}, {32, 31}, count) < 1e-6);
      CHECK(error_on_spot<3>({0.1234, -0.4071, 0.2203}, {9, 10, 11}, count) < 1e-6);
    }
}

#ifdef BRACEWELL_HAS_AVX2_VERSIONS
TEMPLATE_TEST_CASE("every width of the kernel and every edge, as processors without AVX2 compute them", "",
                   float, double) {
  struct WithoutAVX2 {
    bool before = std::exchange(Bracewell::Impl::uses_avx2(), false);
    ~WithoutAVX2() { Bracewell::Impl::uses_avx2() = before; }
  } without;
  const auto on_line = Points<1>::random(70);
  const auto in_plane = Points<2>::random(50);
  const auto anywhere = Points<3>::random(40);
  for (const double tolerance : tolerances<TestType>) {
    const GriddingOptions options{.slices = 2,
                                  .tolerance = tolerance,
                                  .strategy = GriddingStrategy::Bins,
                                  .order = SampleOrder::SlicesLast};
    check<TestType, 1>(on_line.device(), on_line, {29}, options);
    check<TestType, 2>(in_plane.device(), in_plane, {11, 14}, options);
    check<TestType, 3>(anywhere.device(), anywhere, {6, 9, 7}, options);
  }
}
#endif
