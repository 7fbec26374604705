// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// The polynomial whose highest coefficient is the first.
template <class T, class... Others>
KOKKOS_FORCEINLINE_FUNCTION T polynomial(T z, T sum, Others... others) {
  ((sum = sum * z + others), ...);
  return sum;
}

/// exp(2 pi i turns), to 2e-7 (float; on CUDA 1e-6) or 3e-16 (double) absolute for |turns| up to a few
/// hundred: Chebyshev interpolants of sin(2 pi y) / y and cos(2 pi y) in y^2 on |y| <= 1/4. Unlike a library
/// sine it is branch-free, inlined and vectorised on every backend.
template <class T>
KOKKOS_INLINE_FUNCTION Kokkos::complex<T> unit_phase(T turns) {
  const T half_turns = Kokkos::nearbyint(2 * turns); // nearbyint raises no flag: compilers vectorise it
  const T y = turns - half_turns / 2, z = y * y;
  const T sign = Kokkos::nearbyint(half_turns / 2) == half_turns / 2 ? T(1) : T(-1);
  T sine, cosine;
  if constexpr (sizeof(T) <= 4) {
    sine = polynomial<T>(z, 39.7598270853191f, -76.5811726442787f, 81.6024763689252f, -41.3416806133465f,
                         6.2831852801544f);
    cosine = polynomial<T>(z, -24.9814344678917f, 60.1438895603422f, -85.4535647609952f, 64.9393464762101f,
                           -19.7392085477158f, 1.0f);
  } else {
    sine = polynomial<T>(z, 0.100896955016468112, -0.717733792141345331, 3.8199280942271642,
                         -15.0946416761179001, 42.0586939254286823, -76.7058597528249192, 81.6052492760736152,
                         -41.3417022403997569, 6.28318530717958648);
    cosine = polynomial<T>(z, -0.0352196046381467584, 0.281852259384350928, -1.71437943713827034,
                           7.90353587110393788, -26.4262567696311952, 60.2446413716467251,
                           -85.4568172066915177, 64.9393940226682807, -19.7392088021787172, 1.0);
  }
  return {sign * cosine, sign * y * sine};
}

#if defined(__CUDA_ARCH__)
/// By the special function units, which take a third of the instructions.
template <>
KOKKOS_INLINE_FUNCTION Kokkos::complex<float> unit_phase(float turns) {
  const float angle = 6.28318531f * (turns - Kokkos::nearbyint(turns));
  return {__cosf(angle), __sinf(angle)};
}
#endif

/// sin(pi v) / (pi v), 1 at v = 0.
template <class T>
KOKKOS_INLINE_FUNCTION T sinc(T v) {
  const T x = Kokkos::numbers::pi_v<T> * v;
  return v == 0 ? T(1) : Kokkos::sin(x) / x;
}

} // namespace Bracewell::Impl
