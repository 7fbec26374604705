// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/turns.hpp>

namespace Bracewell {

/// Cubic convolution with a = -1/2 (Catmull & Rom 1974; Keys 1981, eq. 4). Interpolating; flat roll-off, 1 -
/// (pi v)^4/5 + ...
struct CatmullRom {
  static constexpr int width = 4; ///< taps per axis: floor(q) - width/2 + 1 ... floor(q) + width/2
  static constexpr const char* name = "catmull_rom"; ///< in output

  /// Weight of a tap at distance x.
  template <class T>
  KOKKOS_INLINE_FUNCTION static T value(T x) {
    const T a = Kokkos::min(T(2), Kokkos::abs(x)), b = 2 - a;
    return a < 1 ? 1 + a * a * (T(1.5) * a - T(2.5)) : T(0.5) * (1 - a) * b * b;
  }

  /// Weights of the taps at floor(q) - 1 ... floor(q) + 2; f = q - floor(q).
  template <class T>
  KOKKOS_INLINE_FUNCTION static constexpr void weights(T f, T (&w)[width]) {
    const T g = 1 - f;
    w[0] = T(-0.5) * f * g * g;
    w[1] = 1 + f * f * (T(1.5) * f - T(2.5));
    w[2] = 1 + g * g * (T(1.5) * g - T(2.5));
    w[3] = T(-0.5) * g * f * f;
  }

  /// Derivatives of the weights with respect to q.
  template <class T>
  KOKKOS_INLINE_FUNCTION static constexpr void derivatives(T f, T (&d)[width]) {
    const T g = 1 - f;
    d[0] = g * (T(1.5) * f - T(0.5));
    d[1] = f * (T(4.5) * f - 5);
    d[2] = -g * (T(4.5) * g - 5);
    d[3] = -f * (T(1.5) * g - T(0.5));
  }

  /// Fourier transform of the kernel: what the image at v = x / N (N the padded size) is multiplied by.
  template <class T>
  KOKKOS_INLINE_FUNCTION static T transform(T v) {
    const T s = Impl::sinc(v);
    return s * s * s * (3 * s - 2 * Kokkos::cos(Kokkos::numbers::pi_v<T> * v));
  }
};

} // namespace Bracewell
