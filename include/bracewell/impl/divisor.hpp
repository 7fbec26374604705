// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Division of numbers below 2^31 by one that a kernel cannot know, from 1 to 2^31: a product and a shift
/// (Granlund and Montgomery 1994, theorem 4.2), where a division takes twenty instructions. For small numbers
/// QuickDivision does without shifts.
struct Divisor {
  std::uint32_t value = 1, factor = 1u << 31; ///< 2^(31 + shift) / value, rounded up
  int shift = 0;

  Divisor() = default;
  explicit Divisor(std::uint32_t divisor) : value(divisor) {
    while ((std::uint64_t(1) << shift) < divisor)
      ++shift;
    factor = static_cast<std::uint32_t>(((std::uint64_t(1) << (31 + shift)) + divisor - 1) / divisor);
  }

  KOKKOS_INLINE_FUNCTION std::uint32_t quotient(std::uint32_t number) const {
    return static_cast<std::uint32_t>(std::uint64_t(2 * number) * factor >> 32) >> shift;
  }
  /// The quotient; `number` becomes the remainder.
  KOKKOS_INLINE_FUNCTION std::uint32_t divide(std::uint32_t& number) const {
    const std::uint32_t result = quotient(number);
    number -= result * value;
    return result;
  }
};

} // namespace Bracewell::Impl
