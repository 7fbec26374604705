// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/turns.hpp>

namespace Bracewell {

/// Cubic B-spline (Unser 1999, eq. 3). Not interpolating: divide the image by its transform sinc^4. The
/// smallest aliases of the three.
struct CubicBSpline {
  static constexpr int width = 4; ///< taps per axis: floor(q) - width/2 + 1 ... floor(q) + width/2
  static constexpr const char* name = "bspline3"; ///< in output

  /// Weight of a tap at distance x.
  template <class T>
  KOKKOS_INLINE_FUNCTION static T value(T x) {
    const T a = Kokkos::min(T(2), Kokkos::abs(x)), b = 2 - a;
    return a < 1 ? T(2) / 3 + a * a * (a / 2 - 1) : b * b * b * (T(1) / 6);
  }

  /// Weights of the taps at floor(q) - 1 ... floor(q) + 2; f = q - floor(q).
  template <class T>
  KOKKOS_INLINE_FUNCTION static constexpr void weights(T f, T (&w)[width]) {
    const T g = 1 - f;
    w[0] = g * g * g * (T(1) / 6); // a product, which GPUs do in one instruction, unlike the division
    w[1] = T(2) / 3 + f * f * (f / 2 - 1);
    w[2] = T(2) / 3 + g * g * (g / 2 - 1);
    w[3] = f * f * f * (T(1) / 6);
  }

  /// Derivatives of the weights with respect to q.
  template <class T>
  KOKKOS_INLINE_FUNCTION static constexpr void derivatives(T f, T (&d)[width]) {
    const T g = 1 - f;
    d[0] = -g * g / 2;
    d[1] = f * (T(1.5) * f - 2);
    d[2] = -g * (T(1.5) * g - 2);
    d[3] = f * f / 2;
  }

  /// Fourier transform of the kernel: what the image at v = x / N (N the padded size) is multiplied by.
  template <class T>
  KOKKOS_INLINE_FUNCTION static T transform(T v) {
    const T s = Impl::sinc(v);
    return s * s * s * s;
  }
};

} // namespace Bracewell
