// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

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

/// Division of integers x >= 0 by a number that the host knows, in a few instructions of a kernel, where a division
/// takes about twenty: floor(x m / 2^32) with m = ceil(2^32 / divisor) is exact for x < 2^32 / divisor.
/// Divisor takes all x below 2^31, by a shift before the product and one behind it more.
class QuickDivision {
public:
  QuickDivision() = default;
  explicit QuickDivision(int divisor)
      : multiplier_(((std::uint64_t(1) << 32) + std::uint64_t(divisor) - 1) / std::uint64_t(divisor)),
        divisor_(divisor) {}

  KOKKOS_FORCEINLINE_FUNCTION int by() const { return divisor_; }
  KOKKOS_FORCEINLINE_FUNCTION int quotient(int x) const {
    return static_cast<int>((static_cast<std::uint32_t>(x) * multiplier_) >> 32);
  }
  KOKKOS_FORCEINLINE_FUNCTION int remainder(int x) const { return x - quotient(x) * divisor_; }

private:
  std::uint64_t multiplier_ = 0;
  int divisor_ = 1;
};

} // namespace Bracewell::Impl
