// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_BitManipulation.hpp>
#include <Kokkos_Core.hpp>

#include <cstdint>

/// IEEE numbers of 16 bits as files have them, without branches, so that compilers can vectorise them.
namespace Bracewell::Examples {

/// Moving the exponent's bits to their place leaves it too small by the difference of the biases, 112; the product
/// corrects that exactly, subnormal numbers included. Infinity and NaN keep the largest exponent.
KOKKOS_INLINE_FUNCTION float float_of_half(std::uint16_t half) {
  const std::uint32_t magnitude = (half & 0x7fffu) << 13, sign = (half & 0x8000u) << 16,
                      special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  const auto scaled = Kokkos::bit_cast<std::uint32_t>(Kokkos::bit_cast<float>(magnitude) * 0x1p112f);
  return Kokkos::bit_cast<float>(scaled | special | sign);
}

/// Rounded to nearest even; values of 65520 and more become infinite, what is not a number stays that.
KOKKOS_INLINE_FUNCTION std::uint16_t half_of_float(float value) {
  const auto bits = Kokkos::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  // Below 2^-14 a half counts units of 2^-24, the spacing of floats just above one half: the sum rounds to it.
  const std::uint32_t small =
      Kokkos::bit_cast<std::uint32_t>(Kokkos::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const std::uint32_t finite = magnitude < 0x38800000u ? small : normal < 0x7c00u ? normal : 0x7c00u;
  return static_cast<std::uint16_t>(sign | (magnitude > 0x7f800000u ? 0x7e00u : finite));
}

} // namespace Bracewell::Examples
