// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// A value within [0, 1]. GPUs have an instruction for it.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T saturate(T x) {
  KOKKOS_IF_ON_DEVICE((return Kokkos::fmin(Kokkos::fmax(x, T(0)), T(1));))
  KOKKOS_IF_ON_HOST((x = x > T(0) ? x : T(0); return x < T(1) ? x : T(1);))
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T positive_part(T x) {
  KOKKOS_IF_ON_DEVICE((return Kokkos::fmax(x, T(0));))
  KOKKOS_IF_ON_HOST((return x > T(0) ? x : T(0);))
}

/// The whole number next to x, and x less it, within +-4e6: by the last bits of a sum. Processors convert numbers at
/// a fraction of the rate at which they add.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION int nearest(T x, T& rest) {
  constexpr bool single = sizeof(T) == 4;
  constexpr T whole =
      single ? T(12582912) : T(6755399441055744); // 1.5 x 2^23 or 2^52: numbers are 1 apart there
  const T sum = x + whole;
  rest = x - (sum - whole);
  if constexpr (single)
    return Kokkos::bit_cast<std::int32_t>(sum) - 0x4b400000;
  else
    return static_cast<std::int32_t>(Kokkos::bit_cast<std::int64_t>(sum));
}

/// A trapezoid that is symmetric about 0: the convolution of two boxes. What lies of it beyond a point is a
/// weight of the strip model: of a square pixel's shadow beyond the edge of a detector cell (boxes |cos| and
/// |sin| wide), or of the part of a strip that lies in a line of pixels beyond the edge of a pixel.
template <class T>
struct Trapezoid {
  T steepness, ramp_start, height, flat_start, half_ramp, area;

  /// @param wide, narrow  of the boxes
  KOKKOS_FORCEINLINE_FUNCTION static Trapezoid make(double wide, double narrow, double height) {
    // Of a ramp without width there is nothing that counts.
    const double ramp = Kokkos::max(narrow, 1e-30), outer = 0.5 * (wide + ramp), inner = 0.5 * (wide - ramp);
    return {T(1 / ramp),          T((outer - 0.5) / ramp), T(height), T(height * (inner - 0.5)),
            T(height * ramp / 2), T(height * wide)};
  }

  /// Its integral from 1/2 - x to infinity, for points 1/2 - x no further left than the flat part's begin.
  KOKKOS_FORCEINLINE_FUNCTION T beyond_half_less(T x) const {
    const T ramp = saturate(x * steepness + ramp_start);
    return (half_ramp * ramp) * ramp + positive_part(x * height + flat_start);
  }
};

} // namespace Bracewell::Impl
