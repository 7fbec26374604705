// SPDX-License-Identifier: MIT
#pragma once

#include "common/star.hpp"

#include <bracewell/geometry/ctf.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

namespace Bracewell::Examples {

/// What a lens does besides its CTF, as phases of the frequency in 1/Angstrom (Zivanov et al., IUCrJ 7 (2020)
/// 253): the odd ones turn the phases of an image, the even ones are subtracted from the phase of the CTF.
struct Aberrations {
  std::vector<double> odd, even;                   ///< coefficients of Zernike polynomials, radians
  double tilt_x = 0, tilt_y = 0;                   ///< of the odd phase: -(tilt_x x + tilt_y y) k^2
  std::array<double, 4> magnification{1, 0, 0, 1}; ///< the polynomials' argument is this times the frequency
  std::int64_t detector = -1;                      ///< index in Particles::detectors; -1: none

  auto operator<=>(const Aberrations&) const = default; // NOLINT(modernize-use-nullptr): no 0 is here
  /// Whether there are none.
  bool trivial() const {
    const auto zero = [](double value) { return value == 0; };
    return std::ranges::all_of(odd, zero) && std::ranges::all_of(even, zero) && tilt_x == 0 && tilt_y == 0 &&
           detector < 0;
  }
};

/// Zernike's polynomial of degree n and order m (negative: sine) at (x, y), where Z = R(r) cos(m phi).
inline double zernike(int n, int m, double x, double y) {
  const int order = std::abs(m);
  const double r = std::hypot(x, y), phi = std::atan2(y, x);
  double radial = 0;
  for (int k = 0; k <= (n - order) / 2; ++k)
    radial +=
        (k % 2 ? -1 : 1) * std::tgamma(n - k + 1) * std::pow(r, n - 2 * k) /
        (std::tgamma(k + 1) * std::tgamma((n + order) / 2 - k + 1) * std::tgamma((n - order) / 2 - k + 1));
  return radial * (m < 0 ? std::sin(order * phi) : std::cos(order * phi));
}

/// Sum of polynomials in RELION's order: degrees n first (0, 2, ... or 1, 3, ...), orders -n, -n + 2, ..., n.
inline double zernike_sum(const std::vector<double>& coefficients, int first_degree, double x, double y) {
  double sum = 0;
  for (int i = 0, n = first_degree, m = -n; i < static_cast<int>(coefficients.size()); ++i) {
    if (coefficients[static_cast<std::size_t>(i)] != 0)
      sum += coefficients[static_cast<std::size_t>(i)] * zernike(n, m, x, y);
    m += 2;
    if (m > n)
      n += 2, m = -n;
  }
  return sum;
}

/// Phase of the image's spectrum at frequency (x, y), radians.
inline double odd_phase(const Aberrations& a, double x, double y) {
  const double u = a.magnification[0] * x + a.magnification[1] * y;
  const double v = a.magnification[2] * x + a.magnification[3] * y;
  return zernike_sum(a.odd, 1, u, v) - (a.tilt_x * u + a.tilt_y * v) * (u * u + v * v);
}

/// What is subtracted from the CTF's phase, radians.
inline double even_phase(const Aberrations& a, double x, double y) {
  return zernike_sum(a.even, 0, a.magnification[0] * x + a.magnification[1] * y,
                     a.magnification[2] * x + a.magnification[3] * y);
}

/// Those of a particle. A tilt of the beam t gives the phase -2 pi Cs lambda^2 k^2 (t k).
inline Aberrations aberrations_of(const Particles& particles, std::size_t row) {
  Aberrations a;
  if (particles.odd_zernike.present())
    a.odd = particles.odd_zernike[row];
  if (particles.even_zernike.present())
    a.even = particles.even_zernike[row];
  for (std::size_t i = 0; i < 4; ++i)
    if (particles.magnification[i].present())
      a.magnification[i] = particles.magnification[i][row];
  if (particles.detector.present())
    a.detector = particles.detector[row];
  if (particles.voltage.present() && particles.spherical_aberration.present()) {
    constexpr double milliradian = 1e-3, millimetre = 1e7;
    const double lambda = electron_wavelength(particles.voltage[row]);
    const double factor =
        2 * std::numbers::pi * particles.spherical_aberration[row] * millimetre * lambda * lambda;
    if (particles.beam_tilt_x.present())
      a.tilt_x = factor * milliradian * particles.beam_tilt_x[row];
    if (particles.beam_tilt_y.present())
      a.tilt_y = factor * milliradian * particles.beam_tilt_y[row];
  }
  return a;
}

} // namespace Bracewell::Examples
