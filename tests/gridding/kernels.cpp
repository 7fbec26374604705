// SPDX-License-Identifier: MIT
// Kernels of the user's own: against sums of their definition, and the error that their transform predicts.
#include "../deep_copy.hpp"
#include "../project/kernel_definitions.hpp"
#include "support.hpp"

#include <bracewell/gridding/nonuniform_sums.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>

using namespace GriddingTest;
using Bracewell::Gridding;
using Bracewell::GriddingOptions;
using Bracewell::NonuniformFFT;
using Bracewell::OwnKernel;
using Test::definition;
using Test::Lanczos;

namespace {

/// interpolate is the sum of its definition over the whole grid, and spread is its transpose.
template <class Kernel, class T, int Dim>
void check_sums(const std::array<int, Dim>& shape, GriddingStrategy strategy) {
  CAPTURE(Kernel::width, sizeof(T), Dim, int(strategy));
  const Space space;
  const auto points = Points<Dim>::random(40);
  const Gridding<Space, Dim, T> plan(
      space, points.device(), shape,
      {.tolerance = sizeof(T) == 4 ? 1e-6 : 1e-7, .strategy = strategy, .kernel = OwnKernel::of<Kernel>()});
  CHECK(plan.width() == Kernel::width);
  const auto size = plan.grid_shape();
  const auto grid = images<T, Dim>(1, size), spread = images<T, Dim>(1, size);
  const Values values = random_values(grid.size(), 1), amplitudes = random_values(40, 2);
  const auto flat = to_device<T>(values, 1);
  Test::deep_copy(View<Kokkos::complex<T>*>(grid.data(), grid.size()), Kokkos::subview(flat, 0, Kokkos::ALL));
  const View<Kokkos::complex<T>**> samples("samples", 1, 40);
  plan.interpolate(space, grid, samples);
  Values expected(40);
  for (std::size_t j = 0; j < 40; ++j)
    for (std::size_t cell = 0; cell < values.size(); ++cell) {
      double weight = 1;
      std::size_t rest = cell;
      for (int d = 0; d < Dim; ++d) { // x first
        const int n = size[std::size_t(Dim - 1 - d)];
        const double away = points.list[j][std::size_t(d)] * n - double(rest % std::size_t(n));
        weight *= definition(Kernel{}, away - n * std::round(away / n));
        rest /= std::size_t(n);
      }
      expected[j] += weight * values[cell];
    }
  CHECK(relative_error(to_host(samples), expected) < (sizeof(T) == 4 ? 1e-5 : 1e-7));
  plan.spread(space, to_device<T>(amplitudes, 1), spread);
  const auto left = dot(amplitudes, to_host(samples)), right = dot(to_host(spread), values);
  CHECK(std::abs(left - right) < (sizeof(T) == 4 ? 1e-5 : 1e-12) * double(values.size()));
}

/// The error (L2) of the adjoint of 2000 points, over what the transform of the kernel predicts.
template <class Kernel>
double error_over_prediction(int n, double oversampling) {
  const Space space;
  const auto points = Points<1>::random(2000);
  const Values samples = random_values(2000, 1);
  const NonuniformFFT<Space, 1, double> plan(
      space, points.device(), {n},
      {.tolerance = 1e-7, .oversampling = oversampling, .kernel = OwnKernel::of<Kernel>()});
  const auto image = images<double, 1>(1, {n});
  plan.adjoint(space, to_device<double>(samples, 1), image);
  const double grid = plan.plan().grid_shape()[0];
  const auto rolloff = plan.plan().rolloff(0);
  const auto factors = Test::on_host(rolloff);
  double squares = 0;
  for (int i = 0; i < n; ++i) {
    const double v = (i - n / 2) / grid, inside = Test::transform_of_definition<Kernel>(v);
    CHECK(std::abs(factors(i) * inside - 1) < 1e-6);
    for (int period = -12; period <= 12; ++period)
      squares +=
          period == 0 ? 0 : std::pow(Test::transform_of_definition<Kernel>(v + period) / inside, 2) / n;
  }
  return relative_error(to_host(image), direct<1>(points, samples, {n})) / std::sqrt(squares);
}

/// A tent half as wide as its taps, whose knot no polynomial fits.
struct Tent {
  static constexpr int width = 2;
  template <class T>
  KOKKOS_INLINE_FUNCTION static void weights(T f, T (&w)[2]) {
    w[0] = f < T(0.5) ? 1 - 2 * f : T(0);
    w[1] = f > T(0.5) ? 2 * f - 1 : T(0);
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION static void derivatives(T f, T (&d)[2]) {
    d[0] = f < T(0.5) ? T(-2) : T(0);
    d[1] = f > T(0.5) ? T(2) : T(0);
  }
};

/// A raised cosine of 16 taps, whose transform is zero at an eighth of a cycle.
struct Hann {
  static constexpr int width = 16;
  template <class T>
  KOKKOS_INLINE_FUNCTION static void weights(T f, T (&w)[16]) {
    for (int i = 0; i < 16; ++i)
      w[i] = 1 + Kokkos::cos(Kokkos::numbers::pi_v<T> * (f + T(7 - i)) / 8);
  }
  template <class T>
  KOKKOS_INLINE_FUNCTION static void derivatives(T f, T (&d)[16]) {
    for (int i = 0; i < 16; ++i)
      d[i] = -Kokkos::numbers::pi_v<T> / 8 * Kokkos::sin(Kokkos::numbers::pi_v<T> * (f + T(7 - i)) / 8);
  }
};

/// Lanczos' kernel, lifted at its edge.
struct Lifted : Lanczos {
  template <class T>
  KOKKOS_INLINE_FUNCTION static void weights(T f, T (&w)[6]) {
    Lanczos::weights(f, w);
    for (T& one : w)
      one += T(0.001);
  }
};

} // namespace

TEMPLATE_TEST_CASE("kernels of one's own: sums of their definition, and transposes", "", Lanczos, Linear,
                   CatmullRom, CubicBSpline) {
  for (const auto strategy : strategies()) {
    if (strategy != GriddingStrategy::Tiles)
      check_sums<TestType, double, 1>({33}, strategy);
    check_sums<TestType, float, 2>({17, 20}, strategy);
    check_sums<TestType, double, 2>({9, 23}, strategy);
  }
  for (const auto strategy : sorted_strategies<3>())
    check_sums<TestType, float, 3>({16, 9, 12}, strategy);
}

TEST_CASE("the error of a kernel of one's own is what its transform lets through") {
  for (const double ratio : {error_over_prediction<Lanczos>(90, 2), error_over_prediction<Lanczos>(81, 1.5),
                             error_over_prediction<Linear>(90, 2), error_over_prediction<CatmullRom>(90, 3),
                             error_over_prediction<CubicBSpline>(90, 2)}) {
    CHECK(ratio > 0.8);
    CHECK(ratio < 1.25);
  }
}

TEST_CASE("kernels that a plan cannot take are refused") {
  using Catch::Matchers::ContainsSubstring;
  using Catch::Matchers::MessageMatches;
  const Space space;
  const auto points = Points<2>::random(6).device();
  const auto refuses = [&](const GriddingOptions& options, const std::string& text) {
    CHECK_THROWS_MATCHES(
        (Gridding<Space, 2, float>(space, points, {16, 16}, options)), Bracewell::Error,
        MessageMatches(ContainsSubstring("Bracewell::Gridding: options.kernel: expected " + text)));
  };
  refuses({.kernel = OwnKernel::of<Tent>()},
          "weights that polynomials between taps fit to the tolerance, found a difference of 0.");
  refuses({.kernel = OwnKernel::of<Hann>()}, "a transform within images of at least a hundredth");
  CHECK_NOTHROW(Gridding<Space, 2, float>(space, points, {16, 16},
                                          {.oversampling = 5, .kernel = OwnKernel::of<Hann>()}));
  CHECK_THROWS_MATCHES(
      OwnKernel::of<Lifted>(), Bracewell::Error,
      MessageMatches(ContainsSubstring("Bracewell::OwnKernel::of: Kernel: expected continuous weights")));
  CHECK_THROWS_MATCHES((Bracewell::NonuniformSums<Space, 2, float>(space, points, points,
                                                                   {.kernel = OwnKernel::of<Lanczos>()})),
                       Bracewell::Error,
                       MessageMatches(ContainsSubstring("NonuniformSums: options.kernel: expected none")));
}
