// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/kernel.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <numbers>

namespace Bracewell::Impl {

/// The reciprocal of a kernel's transform at frequencies up to `reach` in cycles per grid point. Its logarithm is a
/// Chebyshev series in the square of the frequency, to rounding: zeros of the transform lie at 1.4 times the edge of
/// images or beyond, where the oversampling is 1.2 or more. (Quadrature takes a hundred cosines and more.)
struct ReciprocalTransform {
  static constexpr int terms = 28;
  double series[terms];
  double reach;

  ReciprocalTransform(const KernelPolynomials& kernel, double reach_) : series{}, reach(reach_) {
    double values[terms];
    for (int m = 0; m < terms; ++m)
      values[m] = -std::log(kernel.transform(reach * std::sqrt((1 + node(m)) / 2)));
    for (int k = 0; k < terms; ++k) {
      for (int m = 0; m < terms; ++m)
        series[k] += values[m] * std::cos(std::numbers::pi * k * (m + 0.5) / terms);
      series[k] *= (k == 0 ? 1. : 2.) / terms;
    }
  }

  KOKKOS_FUNCTION double operator()(double frequency) const {
    const double x = 2 * (frequency / reach) * (frequency / reach) - 1;
    double next = 0, value = 0; // Clenshaw's recurrence
    for (int k = terms - 1; k > 0; --k) {
      const double now = 2 * x * value - next + series[k];
      next = value;
      value = now;
    }
    return Kokkos::exp(x * value - next + series[0]);
  }

private:
  static double node(int m) { return std::cos(std::numbers::pi * (m + 0.5) / terms); }
};

} // namespace Bracewell::Impl
