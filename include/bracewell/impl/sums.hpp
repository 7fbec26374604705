// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// Sums of several numbers; Kokkos' default reduction calls the constructor and +=.
template <int Count>
struct Sums {
  double values[Count] = {};
  KOKKOS_FUNCTION Sums& operator+=(const Sums& other) {
    for (int i = 0; i < Count; ++i)
      values[i] += other.values[i];
    return *this;
  }
};

} // namespace Bracewell::Impl
