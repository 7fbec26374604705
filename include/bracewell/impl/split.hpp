// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// Splits a position of at most 2^21 in magnitude into the integer below it and the rest.
template <class T>
KOKKOS_INLINE_FUNCTION void split(T position, int& lower, T& fraction) {
  const T floor = Kokkos::floor(position);
  lower = static_cast<int>(floor);
  fraction = position - floor;
}

#if defined(__CUDA_ARCH__)
// Adding 1.5 * 2^23 (2^52), rounded down, leaves the integer in the last bits: no conversion, which is slow.
template <>
KOKKOS_INLINE_FUNCTION void split(float position, int& lower, float& fraction) {
  const float shifted = __fadd_rd(position, 0x1.8p23f);
  lower = __float_as_int(shifted) - __float_as_int(0x1.8p23f);
  fraction = position - (shifted - 0x1.8p23f);
}
template <>
KOKKOS_INLINE_FUNCTION void split(double position, int& lower, double& fraction) {
  const double shifted = __dadd_rd(position, 0x1.8p52);
  lower = __double2loint(shifted);
  fraction = position - (shifted - 0x1.8p52);
}
#endif

} // namespace Bracewell::Impl
