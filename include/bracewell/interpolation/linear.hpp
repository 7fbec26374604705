// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/turns.hpp>

namespace Bracewell {

/// Linear interpolation, w(x) = 1 - |x|: RELION's kernel. Interpolating; attenuates the image by sinc^2.
struct Linear {
  static constexpr int width = 2; ///< taps per axis: floor(q) - width/2 + 1 ... floor(q) + width/2
  static constexpr const char* name = "linear"; ///< in output

  /// Weight of a tap at distance x.
  template <class T>
  KOKKOS_INLINE_FUNCTION static T value(T x) {
    return Kokkos::max(T(0), 1 - Kokkos::abs(x));
  }

  /// Weights of the taps at floor(q) and floor(q) + 1; f = q - floor(q).
  template <class T>
  KOKKOS_INLINE_FUNCTION static constexpr void weights(T f, T (&w)[width]) {
    w[0] = 1 - f;
    w[1] = f;
  }

  /// Derivatives of the weights with respect to q.
  template <class T>
  KOKKOS_INLINE_FUNCTION static constexpr void derivatives(T, T (&d)[width]) {
    d[0] = -1;
    d[1] = 1;
  }

  /// Fourier transform of the kernel: what the image at v = x / N (N the padded size) is multiplied by.
  template <class T>
  KOKKOS_INLINE_FUNCTION static T transform(T v) {
    const T s = Impl::sinc(v);
    return s * s;
  }
};

} // namespace Bracewell
