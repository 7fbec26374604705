// Kernels by their textbook definitions, and half spectra by the rules of conventions.md, in long-hand.
#pragma once

#include "building_blocks.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <random>
#include <utility>
#include <vector>

namespace Test {

using Lanczos = Page::Lanczos;
using Double = std::complex<double>;

inline double sinc(double x) { return x == 0 ? 1 : std::sin(M_PI * x) / (M_PI * x); }
inline double definition(Linear, double x) { return std::max(0., 1 - std::abs(x)); }
inline double definition(CatmullRom, double x) {
  const double a = std::abs(x);
  return a < 1 ? (1.5 * a - 2.5) * a * a + 1 : a < 2 ? ((-0.5 * a + 2.5) * a - 4) * a + 2 : 0;
}
inline double definition(CubicBSpline, double x) {
  const double a = std::abs(x);
  return a < 1 ? 2. / 3 + (a / 2 - 1) * a * a : a < 2 ? std::pow(2 - a, 3) / 6 : 0;
}
inline double definition(Lanczos, double x) { return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0; }

/// The Fourier transform of a kernel by Simpson's rule.
template <class Kernel>
double transform_of_definition(double v) {
  const int steps = 500 * Kernel::width; // knots are among them
  const double h = Kernel::width / 2. / steps;
  double sum = 0;
  for (int i = 0; i <= steps; ++i) {
    const double weight = i == 0 || i == steps ? 1 : 2 + 2 * (i % 2);
    sum += weight * definition(Kernel{}, i * h) * std::cos(2 * M_PI * v * i * h);
  }
  return 2 * h / 3 * sum;
}

template <class T>
constexpr double rounding = sizeof(T) == 4 ? 1e-5 : 1e-12;

template <class T, int D>
struct Spectrum {
  HalfSpectrumLayout<D> layout;
  std::vector<Kokkos::complex<T>> values;

  Spectrum(const int (&size)[D], unsigned seed) {
    for (int d = 0; d < D; ++d)
      layout.size[d] = size[d];
    std::mt19937 engine(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    values.resize(layout.elements());
    for (auto& value : values)
      value = Kokkos::complex<T>(T(uniform(engine)), T(uniform(engine)));
  }

  HalfSpectrum<T, D> access() { return {values.data(), layout}; }
  HalfSpectrum<const T, D> access() const { return {values.data(), layout}; }

  /// Element and whether it is the mate's.
  std::pair<std::size_t, bool> place(const long (&k)[D]) const {
    const auto modulo = [](long a, long n) { return (a % n + n) % n; };
    const bool mate = modulo(k[0], layout.size[0]) > layout.size[0] / 2;
    std::size_t index = 0;
    for (int d = D - 1; d >= 0; --d)
      index = index * (d == 0 ? layout.size[0] / 2 + 1 : layout.size[d]) +
              modulo(mate ? -k[d] : k[d], layout.size[d]);
    return {index, mate};
  }
  Double at(const long (&k)[D]) const {
    const auto [index, mate] = place(k);
    const Double value(values[index].real(), values[index].imag());
    return mate ? std::conj(value) : value;
  }
  /// What a value at k and its conjugate at -k add to, transposed.
  Double at_both(const long (&k)[D]) const {
    long opposite[D];
    for (int d = 0; d < D; ++d)
      opposite[d] = -k[d];
    const auto [own, own_mate] = place(k);
    const auto [other, other_mate] = place(opposite);
    Double sum = 0;
    if (!own_mate)
      sum += Double(values[own].real(), values[own].imag());
    if (!other_mate)
      sum += std::conj(Double(values[other].real(), values[other].imag()));
    return sum;
  }

  template <class Kernel>
  Double sample(const double (&q)[D], Mates mates) const {
    constexpr int reach = Kernel::width / 2;
    int taps = 1;
    for (int d = 0; d < D; ++d)
      taps *= 2 * reach;
    Double sum = 0;
    for (int i = 0; i < taps; ++i) {
      long k[D];
      double weight = 1;
      for (int d = 0, rest = i; d < D; ++d, rest /= 2 * reach) {
        k[d] = long(std::floor(q[d])) - reach + 1 + rest % (2 * reach);
        weight *= definition(Kernel{}, q[d] - double(k[d]));
      }
      sum += weight * (mates == Mates::Single ? at(k) : at_both(k));
    }
    return sum;
  }
};

inline Double wide(const Kokkos::complex<float>& a) { return {a.real(), a.imag()}; }
inline Double wide(const Kokkos::complex<double>& a) { return {a.real(), a.imag()}; }
inline double wide(float a) { return a; }
inline double wide(double a) { return a; }

/// Positions of all kinds: within, on taps, at x = 0 and the Nyquist column, negative, periods out.
template <int D>
std::vector<std::array<double, D>> positions(const HalfSpectrumLayout<D>& layout, int count) {
  std::mt19937 engine(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<std::array<double, D>> result;
  for (int i = 0; i < count; ++i) {
    std::array<double, D> q;
    for (int d = 0; d < D; ++d) {
      const double n = layout.size[d], scale = i % 5 == 0 ? 3 * n : n / 2 + 1;
      q[d] = std::round(1024 * scale * uniform(engine)) / 1024; // the same in float
    }
    if (i % 7 == 1)
      q[0] = i % 2 ? 0 : -0.25;
    if (i % 7 == 2)
      q[0] = layout.size[0] / 2.;
    if (i % 7 == 3)
      for (double& one : q)
        one = std::round(one);
    result.push_back(q);
  }
  return result;
}

template <int D>
HalfSpectrumLayout<D> layout_of(const std::array<int, D>& size) {
  HalfSpectrumLayout<D> layout;
  std::copy(size.begin(), size.end(), layout.size);
  return layout;
}

template <class T, int D>
Spectrum<T, D> spectrum_of(const std::array<int, D>& size, unsigned seed) {
  return Spectrum<T, D>(layout_of<D>(size).size, seed);
}

inline double real_product(const std::vector<Double>& a, const std::vector<Double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a[i].real() * b[i].real() + a[i].imag() * b[i].imag();
  return sum;
}

} // namespace Test
