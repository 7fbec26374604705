// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Division of integers x >= 0 by a number that the host knows, in a few instructions of a kernel, where a division
/// takes about twenty: floor(x m / 2^32) with m = ceil(2^32 / divisor) is exact for x < 2^32 / divisor.
/// Divisor takes all x below 2^31, by a shift before the product and one behind it more.
class QuickDivision {
public:
  QuickDivision() = default;
  explicit QuickDivision(int divisor)
      : multiplier_(((std::uint64_t(1) << 32) + divisor - 1) / divisor), divisor_(divisor) {}

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
