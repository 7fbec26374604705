// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/ptychography/probe_optics.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

inline void check_optics(const Arguments& check, const ProbeOptics& optics) {
  check.positive("optics.wavelength", optics.wavelength);
  check.positive("optics.pixel_size", optics.pixel_size);
  check.positive("optics.convergence_angle", optics.convergence_angle);
  check.positive("optics.cs_to_length", optics.cs_to_length);
}

/// Wave in the aperture, A exp(i chi), and its derivatives, at one frequency.
template <class T>
struct Aperture {
  double wavelength, k_max, cs_to_length, step; ///< step: 1 / (n pixel_size)
  int n;

  struct Value {
    T amplitude, edge; ///< A, and dA/d(smoothness) for smoothness >= 0
    T cosine, sine;    ///< of chi
    T chi[4];          ///< derivatives of chi with respect to the first four parameters
  };

  KOKKOS_FUNCTION Value operator()(std::int64_t i, const T* parameters) const {
    const int row = static_cast<int>(i / n), column = static_cast<int>(i % n);
    // In double precision: chi reaches hundreds of radians, and there are only n^2 of them.
    const double k1 = step * (2 * row < n ? row : row - n),
                 k2 = step * (2 * column < n ? column : column - n);
    const double kk = k1 * k1 + k2 * k2, k = Kokkos::sqrt(kk), pi = Kokkos::numbers::pi;
    const double angle = parameters[AstigmatismAngle];
    const double c = Kokkos::cos(2 * angle), s = Kokkos::sin(2 * angle);
    // k^2 cos 2(theta - angle) and k^2 sin 2(theta - angle), theta from the row axis
    const double even = (k1 * k1 - k2 * k2) * c + 2 * k1 * k2 * s;
    const double odd = 2 * k1 * k2 * c - (k1 * k1 - k2 * k2) * s;
    const double defocus = pi * wavelength * kk;
    const double spherical = 0.5 * pi * wavelength * wavelength * wavelength * cs_to_length * kk * kk;
    const double chi = parameters[Defocus] * defocus + parameters[SphericalAberration] * spherical +
                       parameters[Astigmatism] * pi * wavelength * even;
    const double width = Kokkos::abs(double(parameters[ApertureSmoothness])) + 0.01;
    const double x = (k_max - k) / (k_max * width);
    const double amplitude = 1 / (1 + Kokkos::exp(-x));
    Value value;
    value.amplitude = static_cast<T>(amplitude);
    value.edge = static_cast<T>(-amplitude / (1 + Kokkos::exp(x)) * x / width);
    value.cosine = static_cast<T>(Kokkos::cos(chi));
    value.sine = static_cast<T>(Kokkos::sin(chi));
    value.chi[0] = static_cast<T>(defocus);
    value.chi[1] = static_cast<T>(spherical);
    value.chi[2] = static_cast<T>(pi * wavelength * even);
    value.chi[3] = static_cast<T>(2 * pi * wavelength * parameters[Astigmatism] * odd);
    return value;
  }
};

/// Sums over the aperture, added in the order that the reduction of the space fixes.
struct ApertureSums {
  double value[8] = {}; ///< A A, A g, A edge, g edge, and A Im(v) dchi for four parameters

  KOKKOS_FUNCTION ApertureSums& operator+=(const ApertureSums& other) {
    for (int i = 0; i < 8; ++i)
      value[i] += other.value[i];
    return *this;
  }
};

template <class T>
struct FillAperture {
  Aperture<T> aperture;
  const T* parameters;
  Kokkos::complex<T>* wave;

  KOKKOS_FUNCTION void operator()(std::int64_t i, double& energy) const {
    const auto value = aperture(i, parameters);
    wave[i] = Kokkos::complex<T>(value.amplitude * value.cosine, value.amplitude * value.sine);
    energy += double(value.amplitude) * value.amplitude;
  }
};

/// Copies the window of m x m pixels around the origin of a periodic n x n array, or puts it there.
template <class T>
struct ProbeWindow {
  const Kokkos::complex<T>* from;
  Kokkos::complex<T>* to;
  const double* energy;
  int n, m;

  KOKKOS_FUNCTION int wrapped(int r) const { return (r - m / 2 + n) % n; }

  KOKKOS_FUNCTION T scale() const { return static_cast<T>(1 / (n * Kokkos::sqrt(*energy))); }
};
template <class T>
struct CropProbe : ProbeWindow<T> {
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int row = this->wrapped(static_cast<int>(i / this->m)),
              column = this->wrapped(static_cast<int>(i % this->m));
    this->to[i] = this->scale() * this->from[std::int64_t(row) * this->n + column];
  }
};
template <class T>
struct EmbedProbe : ProbeWindow<T> {
  KOKKOS_FUNCTION int within(int r) const { return (r + this->m / 2) % this->n; }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const int row = within(static_cast<int>(i / this->n)), column = within(static_cast<int>(i % this->n));
    const bool inside = row < this->m && column < this->m;
    this->to[i] = inside ? this->from[std::int64_t(row) * this->m + column] : Kokkos::complex<T>(0);
  }
};

/// Sums of the gradient of the loss with respect to the wave in the aperture.
template <class T>
struct ApertureGradient {
  Aperture<T> aperture;
  const T* parameters;
  const Kokkos::complex<T>* gradient; ///< unnormalised DFT of the embedded gradient

  KOKKOS_FUNCTION void operator()(std::int64_t i, ApertureSums& sums) const {
    const auto value = aperture(i, parameters);
    const double g = double(gradient[i].real()) * value.cosine + double(gradient[i].imag()) * value.sine;
    const double turned = double(gradient[i].imag()) * value.cosine - double(gradient[i].real()) * value.sine;
    sums.value[0] += double(value.amplitude) * value.amplitude;
    sums.value[1] += value.amplitude * g;
    sums.value[2] += double(value.amplitude) * value.edge;
    sums.value[3] += g * value.edge;
    for (int c = 0; c < 4; ++c)
      sums.value[4 + c] += value.amplitude * turned * value.chi[c];
  }
};

template <class T>
struct FinishProbeGradient {
  const ApertureSums* sums;
  const T* parameters;
  T* gradient;
  int n;

  KOKKOS_FUNCTION void operator()(int) const {
    const double* s = sums->value;
    const double norm = n * Kokkos::sqrt(s[0]); // n: the DFT was not scaled to be unitary
    for (int c = 0; c < 4; ++c)
      gradient[c] = static_cast<T>(s[4 + c] / norm);
    const T a = parameters[ApertureSmoothness];
    const int sign = (a > 0) - (a < 0);
    gradient[ApertureSmoothness] = static_cast<T>(sign * (s[3] - s[1] * s[2] / s[0]) / norm);
  }
};

} // namespace Bracewell::Impl

template <>
struct Kokkos::reduction_identity<Bracewell::Impl::ApertureSums> {
  KOKKOS_FORCEINLINE_FUNCTION static Bracewell::Impl::ApertureSums sum() { return {}; }
};
