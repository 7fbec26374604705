// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Patterns first .. first + count - 1 of a subset of the scan (all of it where there is no list).
struct Selection {
  const int* patterns;
  std::int64_t first, count;

  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t i) const {
    return patterns ? patterns[first + i] : first + i;
  }
  bool operator==(const Selection&) const = default;
};

/// Where in a subset a pattern stands.
struct FillSlots {
  const int* patterns;
  int* slots;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { slots[patterns[i]] = static_cast<int>(i); }
};

} // namespace Bracewell::Impl
