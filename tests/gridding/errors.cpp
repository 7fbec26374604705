// SPDX-License-Identifier: MIT
// Wrong arguments and empty problems.
#include "../deep_copy.hpp"
#include "../tools/recorder.hpp"
#include "support.hpp"

#include <bracewell/tomography/fourier.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <limits>

using namespace GriddingTest;
using Bracewell::Gridding;
using Bracewell::NonuniformFFT;
using Bracewell::PolarPoints;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("wrong arguments are refused with a sentence") {
  const Space space;
  const auto points = Points<2>::random(6).device();
  using Plan = Gridding<Space, 2, float>;
  const auto refuses = [&](const Bracewell::GriddingOptions& options, const std::string& text) {
    CHECK_THROWS_MATCHES(Plan(space, points, {16, 16}, options), Bracewell::Error,
                         MessageMatches(ContainsSubstring("Bracewell::Gridding: " + text)));
  };
  refuses({.slices = -1}, "options.slices: expected at least 0, found -1");
  refuses({.tolerance = 0}, "options.tolerance: expected from 1e-07 to 1, found 0");
  refuses({.tolerance = 1e-9}, "options.tolerance: expected from 1e-07 to 1, found 1e-09");
  refuses({.tolerance = 1}, "options.tolerance: expected from 1e-07 to 1, found 1");
  refuses({.tolerance = std::numeric_limits<double>::quiet_NaN()}, "options.tolerance");
  refuses({.oversampling = 1.1}, "options.oversampling: expected from 1.2 to 8");
  refuses({.tolerance = 1e-7}, "options.tolerance: expected one that");
  refuses({.strategy = GriddingStrategy::PrunedGather}, "options.strategy");
  for (const auto boxes : {GriddingStrategy::OwnedBoxes, GriddingStrategy::MatrixBoxes})
    refuses({.strategy = boxes},
            "options.strategy: expected another one but in 3D on GPUs"); // this plan is 2D
  if (Bracewell::Impl::is_host<Space>)
    refuses({.strategy = GriddingStrategy::Tiles},
            "options.strategy: expected another one on hosts, found Tiles");
  CHECK_THROWS_MATCHES(Plan(space, points, {16, 0}), Bracewell::Error,
                       MessageMatches(ContainsSubstring("shape: expected sizes from 1 to 32768, found 0")));
  CHECK_THROWS_MATCHES(Plan(space, Points<3>::random(2).device(), {16, 16}), Bracewell::Error,
                       MessageMatches(ContainsSubstring("points: expected 2 columns, found 3")));
  const PolarPoints many{.angles = std::vector<double>(1 << 16), .samples = 1 << 16};
  CHECK_THROWS_MATCHES(
      Plan(space, many, {16, 16}), Bracewell::Error,
      MessageMatches(ContainsSubstring("points: expected at most 2^32 - 1 points, found 4294967296")));
  Points<2> broken = Points<2>::random(6);
  broken.list[3][1] = std::numeric_limits<double>::infinity();
  CHECK_THROWS_MATCHES(Plan(space, broken.device(), {16, 16}), Bracewell::Error,
                       MessageMatches(ContainsSubstring("finite frequencies, found 1 that are not")));
  CHECK_THROWS_MATCHES(Plan(space, PolarPoints{.angles = {NAN}, .samples = 4}, {16, 16}), Bracewell::Error,
                       MessageMatches(ContainsSubstring("angles: expected finite values, found nan")));
  CHECK_THROWS_MATCHES(Plan(space, PolarPoints{.angles = {1}, .samples = 4, .step = -1e-7}, {16, 16}),
                       Bracewell::Error,
                       MessageMatches(ContainsSubstring("step: expected a finite value > 0, found -1e-07")));
  CHECK_THROWS_MATCHES(Plan(space, PolarPoints{.angles = {1.}}, {16, 16}), Bracewell::Error,
                       MessageMatches(ContainsSubstring("samples: expected at least 1")));

  const Plan plan(space, points, {16, 16}, {.slices = 2, .oversampling = 2});
  const auto grid = images<float, 2>(2, plan.grid_shape());
  const View<Kokkos::complex<float>**> samples("samples", 2, 6), wrong("wrong", 6, 2);
  CHECK_THROWS_MATCHES(plan.spread(space, wrong, grid), Bracewell::Error,
                       MessageMatches(ContainsSubstring("samples: expected [2, 6], found [6, 2]")));
  CHECK_THROWS_MATCHES(plan.interpolate(space, (images<float, 2>(2, {16, 16})), samples), Bracewell::Error,
                       MessageMatches(ContainsSubstring("grid: expected [2, 32, 32], found [2, 16, 16]")));
  const View<Kokkos::complex<float>**> inside(grid.data(), 2, 6);
  CHECK_THROWS_MATCHES(plan.spread(space, inside, grid), Bracewell::Error,
                       MessageMatches(ContainsSubstring("memory shared with samples")));
}

TEST_CASE("errors name what the caller called") {
  const Space space;
  const auto points = Points<2>::random(6).device();
  using Transform = NonuniformFFT<Space, 2, float>;
  CHECK_THROWS_MATCHES(
      Transform(space, points, {16, 16}, {.tolerance = 2}), Bracewell::Error,
      MessageMatches(ContainsSubstring("Bracewell::NonuniformFFT: options.tolerance: expected")));
  CHECK_THROWS_MATCHES(
      Transform(space, PolarPoints{.angles = {1}}, {16, 16}), Bracewell::Error,
      MessageMatches(ContainsSubstring("Bracewell::NonuniformFFT: samples: expected at least 1")));
  using Tomography = Bracewell::FourierTomography<Space, float>;
  CHECK_THROWS_MATCHES(
      Tomography(space, {.angles = {0}, .width = 8}, {.tolerance = 1e-9}), Bracewell::Error,
      MessageMatches(ContainsSubstring("Bracewell::FourierTomography: options.tolerance: expected") &&
                     ContainsSubstring("found 1e-09")));
  CHECK_THROWS_MATCHES(Tomography(space, {.angles = {0}, .width = 8}, {.tolerance = 1e-7}), Bracewell::Error,
                       MessageMatches(ContainsSubstring(
                           "Bracewell::FourierTomography: options.tolerance: expected one that")));

  const Transform transform(space, points, {16, 20}, {.slices = 2});
  const auto image = images<float, 2>(2, {16, 20}), other = images<float, 2>(2, {20, 16});
  const View<Kokkos::complex<float>**> samples("samples", 2, 6), wrong("wrong", 2, 7);
  const auto refuses = [](const auto& call, const std::string& text) {
    CHECK_THROWS_MATCHES(call(), Bracewell::Error, MessageMatches(ContainsSubstring("Bracewell::" + text)));
  };
  refuses([&] { transform.adjoint(space, wrong, image); },
          "NonuniformFFT::adjoint: samples: expected [2, 6], found [2, 7]");
  refuses([&] { transform.adjoint(space, samples, other); },
          "NonuniformFFT::adjoint: images: expected [2, 16, 20], found [2, 20, 16]");
  refuses([&] { transform.forward(space, image, wrong); },
          "NonuniformFFT::forward: samples: expected [2, 6], found [2, 7]");
  refuses([&] { transform.forward(space, other, samples); },
          "NonuniformFFT::forward: images: expected [2, 16, 20], found [2, 20, 16]");
  refuses([&] { transform.forward(space, image, View<Kokkos::complex<float>**>()); },
          "NonuniformFFT::forward: samples: expected [2, 6], found [0, 0]");
  const View<Kokkos::complex<float>**> inside(image.data() + image.size() - 11, 2,
                                              6); // and one beyond, untouched
  refuses([&] { transform.adjoint(space, inside, image); },
          "NonuniformFFT::adjoint: images: expected memory of its own, found memory shared with samples");
  refuses([&] { transform.forward(space, image, inside); },
          "NonuniformFFT::forward: samples: expected memory of its own, found memory shared with images");

  const auto volume = images<float, 3>(1, {5, 6, 7});
  const NonuniformFFT<Space, 3, float> in_space(space, Points<3>::random(6).device(), {5, 6, 8});
  refuses([&] { in_space.adjoint(space, View<Kokkos::complex<float>**>("samples", 1, 6), volume); },
          "NonuniformFFT::adjoint: images: expected [1, 5, 6, 8], found [1, 5, 6, 7]");

  const auto& plan = transform.plan();
  const auto grid = images<float, 2>(2, plan.grid_shape());
  const View<Kokkos::complex<float>**> over(grid.data(), 2, 6);
  refuses([&] { plan.interpolate(space, grid, over); },
          "Gridding::interpolate: samples: expected memory of its own, found memory shared with grid");
  refuses([&] { plan.spread(space, over, grid); },
          "Gridding::spread: grid: expected memory of its own, found memory shared with samples");
  refuses([&] { plan.rolloff(2); }, "Gridding::rolloff: axis: expected from 0 to 1, found 2");
}

namespace {

/// Everything that a plan without points or slices can be asked for.
template <int Dim, class Where>
void check_empty(const Where& where, const std::array<int, Dim>& shape, std::int64_t slices,
                 GriddingStrategy strategy, SampleOrder order) {
  CAPTURE(int(strategy), int(order), slices);
  const Space space;
  const NonuniformFFT<Space, Dim, float> transform(space, where, shape,
                                                   {.slices = slices, .strategy = strategy, .order = order});
  const auto& plan = transform.plan();
  CHECK((plan.points() == 0 || plan.slices() == 0));
  const bool last = order == SampleOrder::SlicesLast;
  const View<Kokkos::complex<float>**> samples("samples", last ? plan.points() : slices,
                                               last ? slices : plan.points());
  const auto grid = images<float, Dim>(slices, plan.grid_shape()), image = images<float, Dim>(slices, shape);
  const auto zero = [](const Values& values) {
    for (const auto& value : values)
      if (value != 0.)
        return false;
    return true;
  };
  Test::deep_copy(grid, Kokkos::complex<float>(NAN));
  plan.spread(space, samples, grid);
  CHECK(zero(to_host(grid)));
  Test::deep_copy(image, Kokkos::complex<float>(NAN));
  transform.adjoint(space, samples, image);
  CHECK(zero(to_host(image)));
  const auto nothing = Test::report([&] {
    plan.interpolate(space, grid, samples);
    transform.forward(space, image, samples);
  });
  CHECK(nothing.kernels.empty());
}

} // namespace

TEST_CASE("without points grids and images are zero; without slices there is nothing to do") {
  auto all = strategies(true);
  all.push_back(GriddingStrategy::Automatic);
  for (const auto order : {SampleOrder::SlicesFirst, SampleOrder::SlicesLast})
    for (const auto strategy : all) {
      for (const std::int64_t slices : {0, 1, 3})
        check_empty<2>(PolarPoints{.angles = {}, .samples = 8}, {6, 9}, slices, strategy, order);
      check_empty<2>(rays(3, 8), {6, 9}, 0, strategy, order);
      if (strategy == GriddingStrategy::PrunedGather)
        continue;
      check_empty<2>(View<double**>("none", 0, 2), {6, 9}, 2, strategy, order);
      check_empty<3>(View<double**>("none", 0, 3), {4, 6, 9}, 2, strategy, order);
      check_empty<3>(Points<3>::random(5).device(), {4, 6, 9}, 0, strategy, order);
    }
}
