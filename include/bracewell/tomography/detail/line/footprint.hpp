// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

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
/// |sin| wide), or of the part of a strip that lies in a row of pixels beyond the edge of a pixel.
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

/// The areas that the shadows of two by two pixels have in common with cells. A shadow is boxes `wide` and `narrow`
/// convolved; those of the first and last pixel along the detector are (wide + narrow) / 2 from the corner that all
/// four share, those of the second and third (wide - narrow) / 2. None reaches further than wide + narrow < 1.5 from
/// the corner, so that four cells, two on either side of the cell edge next to it, see all of them.
template <class T>
struct CornerShares {
  T steepness, slope, half_ramp; ///< 1 / narrow, 1 / wide, narrow / (2 wide)
  // Where ramps and flat parts of the cumulative shadows begin, in units of `narrow` and `wide`.
  T first_ramp, first_flat, third_ramp, third_flat, second_ramp, far_ramp;

  KOKKOS_FORCEINLINE_FUNCTION static CornerShares make(double wide, double ramp) {
    const double narrow = Kokkos::max(ramp, 1e-30); // Of a ramp without width there is nothing that counts.
    return {T(1 / narrow),
            T(1 / wide),
            T(narrow / (2 * wide)),
            T((wide - 1) / narrow + 1),
            T((wide - 1) / wide),
            T((wide - 1) / narrow),
            T((wide - 1 - narrow) / wide),
            T(1 - wide / narrow),
            T(1 - 1 / narrow)};
  }

  struct Shares {
    T first[3]; ///< of the first pixel in the first three cells
    T third[4]; ///< of the third pixel in the last three cells and, where it is `far`, in the first one
  };

  /// Seen from the other side, at(-x), they are those of the last and the second pixel in the cells in reverse order.
  /// @param far  whether the second and third pixel reach all four cells: narrow > 1/2
  /// @param x    of the corner, right of the cell edge next to it
  template <bool far>
  KOKKOS_FORCEINLINE_FUNCTION Shares at(T x) const {
    const T u = x * steepness, v = x * slope;
    Shares shares;
    // What lies before or behind an edge is a ramp's part and a flat one's, neither above 1.
    shares.first[0] = area(first_ramp - u) + rising(first_flat - v);
    shares.first[2] = area(u) + rising(v - T(2) * half_ramp);
    shares.first[1] = T(1) - shares.first[0] - shares.first[2];
    const T before = area(T(1) - u) + rising(-v) - area(second_ramp - u);
    shares.third[2] = area(u + third_ramp) + rising(v + third_flat);
    shares.third[1] = T(1) - before - shares.third[2];
    if constexpr (far) { // the first pixel's second ramp begins where the third pixel's first one does
      shares.third[3] = area(far_ramp - u);
      shares.third[0] = before - shares.third[3];
      shares.first[0] -= shares.third[3];
      shares.first[1] += shares.third[3];
    } else {
      shares.third[3] = T(0);
      shares.third[0] = before;
    }
    return shares;
  }

private:
  /// Of a ramp up to a point within it.
  KOKKOS_FORCEINLINE_FUNCTION T area(T point) const {
    const T ramp = saturate(point);
    return (half_ramp * ramp) * ramp;
  }
  KOKKOS_FORCEINLINE_FUNCTION static T rising(T x) {
    if constexpr (sizeof(T) == 4)
      return saturate(x); // one instruction with the addition before it
    else
      return positive_part(x);
  }
};

} // namespace Bracewell::Impl
