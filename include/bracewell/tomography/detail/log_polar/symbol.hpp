// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/line_steps.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// The kernel exp(2 pi i k ln(cos t) / period), angles t in the order of a transform, [k, t].
template <class T>
struct LogPolarKernel {
  Kokkos::complex<T>* kernel;
  int rows, columns;
  double angle_step, period;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const double k = double(2 * row < columns ? row : row - columns);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, rows), [&](int j) {
      const double t = (j <= rows / 2 ? j : j - rows) * angle_step;
      const double cosine = Kokkos::cos(t), cycles = k * Kokkos::log(Kokkos::max(cosine, 0.1)) / period;
      const double phase = 2 * Kokkos::numbers::pi_v<double> * (cycles - Kokkos::floor(cycles));
      // No angle of a span is so far from another; few steps can go around more than half a turn.
      const double weight = cosine > 0.1 && 2 * Kokkos::abs(t) < Kokkos::numbers::pi_v<double> ? 1 : 0;
      kernel[row * rows + j] =
          Kokkos::complex<T>(T(weight * Kokkos::cos(phase)), T(weight * Kokkos::sin(phase)));
    });
  }
};

/// The steps of a transform of N values.
template <int N>
struct ConvolutionSteps : StepRadices<N / (N == 2048 ? 128 : 64), N == 2048 ? 16 : 8, 8> {};

/// Symbols of the convolution that gives the results at the angles (step + b / refinement) * angle_step, in
/// the order that its kernel reads them, [b, k, N / groups, groups], with all factors: those of the sums and
/// FFTs, and the prefilter of the B-splines that will be evaluated.
template <class T, int N>
struct LogPolarSymbol {
  using Steps = ConvolutionSteps<N>;

  const Kokkos::complex<T>* transformed; ///< the kernel in steps of angle_step / refinement, [k, l]
  Kokkos::complex<T>* symbol;
  int refinement, columns;
  double scale;

  KOKKOS_FUNCTION static double prefilter(int index, int size) {
    return 6 / (4 + 2 * Kokkos::cos(2 * Kokkos::numbers::pi_v<double> * index / size));
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const int k = static_cast<int>(row % columns), b = static_cast<int>(row / columns), rows = N * refinement;
    // A real function has no shifted Nyquist frequency.
    const double factor = 2 * k == columns ? 0 : scale * prefilter(k, columns);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, +N), [&](int i) {
      const int coarse = Steps::frequency(i % Steps::groups) + i / Steps::groups * Steps::groups;
      double re = 0, im = 0;
      // The spectrum of the data repeats itself on finer rows, of which these are every refinement-th.
      for (int l = coarse; l < rows; l += N) {
        const double phase = 2 * Kokkos::numbers::pi_v<double> * double(std::int64_t(l) * b % rows) / rows;
        const double weight = factor * prefilter(l, rows), c = Kokkos::cos(phase), s = Kokkos::sin(phase);
        const Kokkos::complex<T> h = transformed[std::int64_t(k) * rows + l];
        re += weight * (c * double(h.real()) - s * double(h.imag()));
        im += weight * (c * double(h.imag()) + s * double(h.real()));
      }
      symbol[row * N + i] = Kokkos::complex<T>(T(re), T(im));
    });
  }
};

/// Calls body.operator()<N>() with N = period.
template <class Body>
void with_log_polar_period(int period, const Body& body) {
  switch (period) {
  case 128:
    return body.template operator()<128>();
  case 256:
    return body.template operator()<256>();
  case 512:
    return body.template operator()<512>();
  case 1024:
    return body.template operator()<1024>();
  default:
    return body.template operator()<2048>();
  }
}

} // namespace Bracewell::Impl
