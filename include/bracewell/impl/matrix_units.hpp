// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// Whether products of matrices run on matrix units: those of NVIDIA from the Ampere generation on.
#if defined(KOKKOS_ENABLE_CUDA) && defined(__NVCC__) && !defined(KOKKOS_ARCH_MAXWELL) &&                     \
    !defined(KOKKOS_ARCH_PASCAL) && !defined(KOKKOS_ARCH_VOLTA) && !defined(KOKKOS_ARCH_TURING75)
inline constexpr bool matrix_units = true;
#else
inline constexpr bool matrix_units = false;
#endif

/// Floats as matrix units take them, each as the sum of two numbers of 11 and 13 bits.
template <int count>
struct SplitFloats {
  unsigned high[count], low[count];

  /// What is beyond the first 11 bits of the mantissa is exactly the rest; matrix units drop its last two bits.
  KOKKOS_FORCEINLINE_FUNCTION void set(int i, float value) {
    high[i] = Kokkos::bit_cast<unsigned>(value) & 0xffffe000u;
    low[i] = Kokkos::bit_cast<unsigned>(value - Kokkos::bit_cast<float>(high[i]));
  }
  /// The same with the first one rounded to nearest, so that the second may have either sign.
  KOKKOS_FORCEINLINE_FUNCTION void set_rounded(int i, float value) {
    high[i] = (Kokkos::bit_cast<unsigned>(value) + 0x1000u) & 0xffffe000u;
    low[i] = Kokkos::bit_cast<unsigned>(value - Kokkos::bit_cast<float>(high[i]));
  }
};

/// sums += a b of matrices of 16 x 8 and 8 x 8 numbers, by a warp: lane 4 g + t has of a the elements (g, t), (g + 8, t),
/// (g, t + 4), (g + 8, t + 4), of b (t, g), (t + 4, g), of the sums (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1).
KOKKOS_FORCEINLINE_FUNCTION void multiply_by_warp([[maybe_unused]] float (&sums)[4],
                                                  [[maybe_unused]] const unsigned (&a)[4],
                                                  [[maybe_unused]] const unsigned (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/// The same of matrices of 8 x 4 and 4 x 8 numbers: lane 4 g + t has element (g, t) of a, (t, g) of b, (g, 2 t) and
/// (g, 2 t + 1) of the sums.
KOKKOS_FORCEINLINE_FUNCTION void multiply_by_warp([[maybe_unused]] double (&sums)[2],
                                                  [[maybe_unused]] double a, [[maybe_unused]] double b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(sums[0]), "+d"(sums[1])
      : "d"(a), "d"(b));
#endif
}

} // namespace Bracewell::Impl
