// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/options.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace Bracewell::Impl {

/// A gridding kernel in units of grid points, symmetric, zero outside |t| <= width / 2, 1 in its middle.
struct KernelShape {
  static constexpr int max_width = 32;

  GriddingKernel kernel;
  int width;
  double beta; ///< decay; of the Gaussian the exponent at |t| = width / 2

  /// The decay that leaves the least of the kernel's transform outside the image: the products with `width`
  /// in the sources that GriddingKernel names, times factors near 1 found by minimising
  /// KernelPolynomials::aliasing.
  static KernelShape make(GriddingKernel kernel, int width, double oversampling) {
    const double pi = std::acos(-1.), beta = pi * width * (1 - 0.5 / oversampling);
    switch (kernel) {
    case GriddingKernel::Gaussian:
      return {kernel, width, beta / 2};
    case GriddingKernel::KaiserBessel:
      return {kernel, width, beta * (1 - 0.075 / width)};
    default:
      return {kernel, width, beta * (1 - 0.2 / width)};
    }
  }

  double operator()(double t) const {
    const double z = 2 * t / width, square = 1 - z * z;
    if (square < 0)
      return 0;
    switch (kernel) {
    case GriddingKernel::Gaussian:
      return std::exp(-beta * z * z);
    case GriddingKernel::KaiserBessel:
      return bessel(square) / bessel(1);
    default:
      return std::exp(beta * (std::sqrt(square) - 1));
    }
  }

private:
  /// I0(beta sqrt(square)) by its power series, whose terms are all positive.
  double bessel(double square) const {
    double sum = 1, term = 1;
    for (int k = 1; term > 1e-17 * sum; ++k)
      sum += term *= square * beta * beta / (4. * k * k);
    return sum;
  }
};

/// Nodes and weights of Gauss and Legendre's quadrature on [-1, 1].
inline std::vector<std::pair<double, double>> quadrature(int order) {
  const double pi = std::acos(-1.);
  std::vector<std::pair<double, double>> rule;
  for (int i = 0; i < order; ++i) {
    double x = std::cos(pi * (i + 0.75) / (order + 0.5)), slope = 1;
    for (int iteration = 0; iteration < 20; ++iteration) {
      double previous = 1, value = x;
      for (int k = 2; k <= order; ++k)
        previous = std::exchange(value, ((2 * k - 1) * x * value - (k - 1) * previous) / k);
      slope = order * (previous - x * value) / (1 - x * x);
      x -= value / slope;
    }
    rule.emplace_back(x, 2 / ((1 - x * x) * slope * slope));
  }
  return rule;
}

/// The kernel as one polynomial per tap: of the taps i = 0 .. width - 1 of a sample, tap i lies at distance
/// offset - i, offset in (width/2 - 1, width/2]. Every strategy evaluates these polynomials, and the roll-off
/// is their transform, so that how well they fit the kernel hardly matters.
struct KernelPolynomials {
  int width, degree;
  std::vector<double> coefficients; ///< [degree + 1, width], highest power first, in 2 offset - width + 1

  KernelPolynomials(const KernelShape& shape, double tolerance) : width(shape.width) {
    for (degree = 3; !fit(shape, tolerance / 20) && degree < std::min(width + 4, 26); ++degree) {
    }
  }

  double value(int tap, double u) const {
    double result = 0;
    for (int power = 0; power <= degree; ++power)
      result = result * u + coefficients[power * width + tap];
    return result;
  }

  /// Fourier transform at a frequency in cycles per grid point, by quadrature (real: the kernel is even).
  double transform(double frequency) const {
    static const double two_pi = 2 * std::acos(-1.);
    double sum = 0;
    for (const auto& [u, weight] : nodes_)
      for (int tap = 0; tap < width; ++tap)
        sum += weight / 2 * value(tap, u) * std::cos(two_pi * frequency * ((u + width - 1) / 2 - tap));
    return sum;
  }

  /// Relative error (root mean square over the image) of sums over many samples: what the transform lets
  /// through from the periods of the grid beside the image, over what it lets through there (Fessler and
  /// Sutton, section V).
  double aliasing(double oversampling, int dimensions) const {
    const int pixels = 20;
    double sum = 0;
    for (int i = 0; i < pixels; ++i) {
      const double frequency = (i + 0.5) / (2 * pixels * oversampling), inside = transform(frequency);
      for (int period = -2; period <= 2; ++period)
        if (period != 0)
          sum += std::pow(transform(frequency + period) / inside, 2) / pixels;
    }
    return std::sqrt(dimensions * sum);
  }

private:
  std::vector<std::pair<double, double>> nodes_;

  /// Interpolation at Chebyshev nodes; true when it misses the kernel by less than `error`.
  bool fit(const KernelShape& shape, double error) {
    const int n = degree + 1;
    const double pi = std::acos(-1.);
    nodes_ = quadrature(degree + 8);
    coefficients.assign(n * width, 0);
    for (int tap = 0; tap < width; ++tap) {
      const auto at = [&](double u) { return shape((u + width - 1) / 2 - tap); };
      std::vector<double> previous(n), current(n), sum(n); // of Chebyshev polynomials, lowest power first
      current[0] = 1;
      for (int k = 0; k < n; ++k) {
        double c = 0;
        for (int m = 0; m < n; ++m)
          c += at(std::cos(pi * (m + 0.5) / n)) * std::cos(pi * k * (m + 0.5) / n);
        c *= (k == 0 ? 1. : 2.) / n;
        std::vector<double> next(n);
        for (int power = 0; power < n; ++power) {
          sum[power] += c * current[power];
          next[power] = (power > 0 ? (k == 0 ? 1 : 2) * current[power - 1] : 0) - previous[power];
        }
        previous = std::exchange(current, next);
      }
      for (int power = 0; power < n; ++power)
        coefficients[(degree - power) * width + tap] = sum[power];
      for (int m = 0; m <= 40; ++m)
        if (const double u = m / 20. - 1; std::abs(value(tap, u) - at(u)) > error)
          error = -1;
    }
    return error > 0;
  }
};

/// The narrowest kernel that meets the tolerance (with a margin: the error of single problems scatters around
/// the mean); the search begins below exp(-pi width sqrt(1 - 1 / oversampling)), the best decay that there is
/// (Barnett et al., section 4). Its width is max_width + 1 when there is none.
inline KernelPolynomials choose_kernel(GriddingKernel kernel, double tolerance, double oversampling,
                                       int dimensions) {
  const double decay = std::acos(-1.) * std::sqrt(1 - 1 / oversampling);
  for (int width = std::max(2, static_cast<int>(-0.8 * std::log(tolerance) / decay));; ++width) {
    KernelPolynomials polynomials(KernelShape::make(kernel, width, oversampling), tolerance);
    if (width > KernelShape::max_width || polynomials.aliasing(oversampling, dimensions) <= 0.6 * tolerance)
      return polynomials;
  }
}

} // namespace Bracewell::Impl
