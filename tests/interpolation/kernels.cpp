// The interpolation kernels against their textbook definitions.

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include <cmath>
#include <limits>
#include <numeric>

using namespace Bracewell;

namespace {

// Piecewise polynomials of the distance to a tap, in long double.
long double piecewise(Linear, long double x) { return x < 1 ? 1 - x : 0; }
long double piecewise(CatmullRom, long double x) { // Keys 1981, equation 4, a = -1/2
  if (x < 1)
    return 1.5L * x * x * x - 2.5L * x * x + 1;
  return x < 2 ? -0.5L * x * x * x + 2.5L * x * x - 4 * x + 2 : 0;
}
long double piecewise(CubicBSpline, long double x) { // Unser 1999, equation 3
  if (x < 1)
    return 2.L / 3 - x * x * (2 - x) / 2;
  return x < 2 ? (2 - x) * (2 - x) * (2 - x) / 6 : 0;
}

template <class Kernel>
long double kernel(long double x) {
  return piecewise(Kernel{}, std::abs(x));
}

/// Highest degree of polynomials that interpolation reproduces.
constexpr int reproduced_degree(Linear) { return 1; }
constexpr int reproduced_degree(CatmullRom) { return 2; }
constexpr int reproduced_degree(CubicBSpline) { return 1; } // without prefilter

constexpr int steps = 64;

template <class T>
constexpr T rounding = 8 * std::numeric_limits<T>::epsilon();

} // namespace

#define KERNELS_AND_PRECISIONS                                                                               \
  (std::pair<Linear, float>), (std::pair<CatmullRom, float>), (std::pair<CubicBSpline, float>),              \
      (std::pair<Linear, double>), (std::pair<CatmullRom, double>), (std::pair<CubicBSpline, double>)

TEMPLATE_TEST_CASE("weights are the textbook polynomials", "", KERNELS_AND_PRECISIONS) {
  using Kernel = typename TestType::first_type;
  using T = typename TestType::second_type;
  for (int step = 0; step <= steps; ++step) {
    const T fraction = T(step) / steps;
    T weights[Kernel::width];
    Kernel::weights(fraction, weights);
    for (int i = 0; i < Kernel::width; ++i) {
      const int tap = i - Kernel::width / 2 + 1;
      CHECK(std::abs(weights[i] - kernel<Kernel>((long double)(fraction)-tap)) < rounding<T>);
    }
  }
}

TEMPLATE_TEST_CASE("weights sum to one and reproduce low polynomials", "", KERNELS_AND_PRECISIONS) {
  using Kernel = typename TestType::first_type;
  using T = typename TestType::second_type;
  for (int step = 0; step < steps; ++step) {
    const T fraction = T(step + 0.3) / steps;
    T weights[Kernel::width];
    Kernel::weights(fraction, weights);
    for (int degree = 0; degree <= reproduced_degree(Kernel{}); ++degree) {
      double sum = 0;
      for (int i = 0; i < Kernel::width; ++i)
        sum += weights[i] * std::pow(i - Kernel::width / 2 + 1, degree);
      CHECK(std::abs(sum - std::pow(fraction, degree)) < rounding<T>);
    }
  }
}

TEMPLATE_TEST_CASE("derivatives are those of the weights", "", KERNELS_AND_PRECISIONS) {
  using Kernel = typename TestType::first_type;
  using T = typename TestType::second_type;
  for (int step = 0; step < steps; ++step) {
    const T fraction = T(step + 0.3) / steps;
    T derivatives[Kernel::width];
    Kernel::derivatives(fraction, derivatives);
    for (int i = 0; i < Kernel::width; ++i) {
      const long double x = (long double)(fraction) - (i - Kernel::width / 2 + 1), h = 1e-4L;
      // Exact for the cubics up to rounding: the third difference is constant within a piece.
      const long double slope = (8 * (kernel<Kernel>(x + h) - kernel<Kernel>(x - h)) -
                                 kernel<Kernel>(x + 2 * h) + kernel<Kernel>(x - 2 * h)) /
                                (12 * h);
      CHECK(std::abs(derivatives[i] - slope) < rounding<T> + 1e-13);
    }
  }
}

TEMPLATE_TEST_CASE("the derivatives of all taps sum to zero", "", KERNELS_AND_PRECISIONS) {
  using Kernel = typename TestType::first_type;
  using T = typename TestType::second_type;
  for (int step = 0; step <= steps; ++step) {
    T derivatives[Kernel::width];
    Kernel::derivatives(T(step) / steps, derivatives);
    CHECK(std::abs(std::accumulate(derivatives, derivatives + Kernel::width, T(0))) < rounding<T>);
  }
}

TEMPLATE_TEST_CASE("the transform is the Fourier integral of the kernel", "", KERNELS_AND_PRECISIONS) {
  using Kernel = typename TestType::first_type;
  using T = typename TestType::second_type;
  for (const double v : {-1.5, -0.75, -0.25, 0., 1e-9, 1e-3, 0.1, 0.25, 0.5, 0.9, 1., 2.3}) {
    // Gauss-Legendre with three points on short intervals that end at the kernel's knots.
    constexpr int intervals = 400;
    const double width = double(Kernel::width) / intervals, node = std::sqrt(0.6);
    double integral = 0;
    for (int i = 0; i < intervals; ++i) {
      const double middle = -Kernel::width / 2. + (i + 0.5) * width;
      const auto integrand = [&](double x) { return double(kernel<Kernel>(x)) * std::cos(2 * M_PI * v * x); };
      integral += width / 18 *
                  (5 * integrand(middle - node * width / 2) + 8 * integrand(middle) +
                   5 * integrand(middle + node * width / 2));
    }
    CHECK(std::abs(Kernel::transform(T(v)) - integral) < rounding<T> * (1 + std::abs(v)) + 1e-12);
  }
}

TEMPLATE_TEST_CASE("values at a distance are the weights", "", KERNELS_AND_PRECISIONS) {
  using Kernel = typename TestType::first_type;
  using T = typename TestType::second_type;
  for (int step = -3 * steps; step <= 3 * steps; ++step) {
    const T distance = T(step) / steps;
    CHECK(std::abs(Kernel::value(distance) - kernel<Kernel>(distance)) < rounding<T>);
  }
}

TEST_CASE("interpolating kernels keep the values at grid points") {
  const auto check = []<class Kernel>(Kernel) {
    double weights[Kernel::width];
    Kernel::weights(0., weights);
    for (int i = 0; i < Kernel::width; ++i)
      CHECK(weights[i] == (i == Kernel::width / 2 - 1 ? 1. : 0.));
  };
  check(Linear{});
  check(CatmullRom{});
}
