// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// The middle one of an odd number of values, which are sorted.
template <class T>
KOKKOS_FUNCTION T median_of(T* values, int count) {
  for (int i = 1; i < count; ++i) {
    const T value = values[i];
    int j = i;
    for (; j > 0 && values[j - 1] > value; --j)
      values[j] = values[j - 1];
    values[j] = value;
  }
  return values[count / 2];
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION T median_of_three(T a, T b, T c) {
  return Kokkos::max(Kokkos::min(a, b), Kokkos::min(Kokkos::max(a, b), c));
}

/// In registers: with rows sorted, the middle one of the largest of the lowest, the median of the middle ones and the
/// lowest of the largest.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T median_of_nine(const T (&rows)[3][3]) {
  T low[3], middle[3], high[3];
  BRACEWELL_UNROLL_FOR (int i = 0; i < 3; ++i) {
    const auto& row = rows[i];
    low[i] = Kokkos::min(Kokkos::min(row[0], row[1]), row[2]);
    middle[i] = median_of_three(row[0], row[1], row[2]);
    high[i] = Kokkos::max(Kokkos::max(row[0], row[1]), row[2]);
  }
  return median_of_three(Kokkos::max(Kokkos::max(low[0], low[1]), low[2]),
                         median_of_three(middle[0], middle[1], middle[2]),
                         Kokkos::min(Kokkos::min(high[0], high[1]), high[2]));
}

/// The middle one of an odd number of values, in registers: odd and even neighbours alternately, as often as there are values.
template <int count, class T>
KOKKOS_FORCEINLINE_FUNCTION T median_in_registers(T (&values)[count]) {
  BRACEWELL_UNROLL_FOR (int pass = 0; pass < count; ++pass) {
    BRACEWELL_UNROLL_FOR (int k = pass % 2; k + 1 < count; k += 2) {
      const T low = Kokkos::min(values[k], values[k + 1]);
      values[k + 1] = Kokkos::max(values[k], values[k + 1]);
      values[k] = low;
    }
  }
  return values[count / 2];
}

} // namespace Bracewell::Impl
