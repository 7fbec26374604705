// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/kernel.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <vector>

namespace Bracewell::Impl {

/// The polynomials on a device. Rows are padded with zeros to `stride` taps.
template <class T>
struct TapWeights {
  static constexpr int stride = KernelShape::max_width;

  const T* table;
  int width, degree;

  KOKKOS_FUNCTION T evaluate_one(T offset, int tap) const {
    const T u = 2 * offset - T(width - 1);
    T weight = table[tap];
    for (int power = 1; power <= degree; ++power)
      weight = weight * u + table[power * stride + tap];
    return weight;
  }
};

/// The polynomials of at most MaxWidth taps for kernels that evaluate many. The table travels with the kernel's
/// arguments, where GPUs read it at no cost; polynomials of lower degree begin with zeros.
template <class T, int MaxWidth>
struct TapTable {
  static constexpr int powers = MaxWidth + 5;

  T coefficients[powers][MaxWidth];
  int width;

  /// Not inlined: GCC 12 would write rows of a table on the stack as if it had aligned them (-O3, AVX-512).
  [[gnu::noinline]] TapTable(const TapWeights<T>& weights, const std::vector<T>& values)
      : coefficients{}, width(weights.width) {
    for (int power = 0; power <= weights.degree; ++power)
      for (int tap = 0; tap < MaxWidth; ++tap)
        coefficients[powers - 1 - weights.degree + power][tap] =
            values[std::size_t(power * weights.stride + tap)];
  }

  KOKKOS_FUNCTION void evaluate(T offset, T (&result)[MaxWidth]) const { evaluate_some(offset, 0, result); }

  /// Weights of `count` taps from `begin` on; those beyond the last are not defined.
  template <int count>
  KOKKOS_FUNCTION void evaluate_some(T offset, int begin, T (&result)[count]) const {
    const T u = 2 * offset - T(width - 1);
    BRACEWELL_UNROLL_FOR (int i = 0; i < count; ++i)
      result[i] = coefficients[0][Kokkos::min(begin + i, MaxWidth - 1)];
    BRACEWELL_UNROLL_FOR (int power = 1; power < powers; ++power) {
      BRACEWELL_UNROLL_FOR (int i = 0; i < count; ++i)
        result[i] = result[i] * u + coefficients[power][Kokkos::min(begin + i, MaxWidth - 1)];
    }
  }
};

/// Calls run with the number of taps that machines of the strategies that sort samples into bins are compiled for: the
/// width itself or, as SIMD registers of hosts hold, the next multiple of four.
template <bool by_four, int width = by_four ? 4 : 2, class Call>
void with_bin_width(int wanted, const Call& call) {
  if constexpr (width < KernelShape::max_width)
    if (wanted > width)
      return with_bin_width<by_four, width + (by_four ? 4 : 1)>(wanted, call);
  call.template operator()<width>();
}

/// The same for all other machines, where a narrower kernel uses the next.
template <class T, class Call>
void with_max_width(int width, const Call& call) {
  if constexpr (sizeof(T) == 4)
    if (width <= 8)
      return call.template operator()<8>();
  call.template operator()<KernelShape::max_width>();
}

} // namespace Bracewell::Impl
