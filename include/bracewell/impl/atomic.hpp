// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp> // complex numbers are aligned

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Atomic additions to a run of neighbouring numbers, each number by itself. Hopper GPUs add up to four
/// floats with one operation where they are aligned (PTX `red.v4.f32`), which costs no more than adding one.
template <int N, class T>
KOKKOS_INLINE_FUNCTION void atomic_add_neighbours(T* address, const T (&value)[N]) {
  for (int i = 0; i < N; ++i)
    Kokkos::atomic_add(address + i, value[i]);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
template <int Phase, int I, int N>
KOKKOS_INLINE_FUNCTION void reduce_from(float* address, const float (&value)[N]) {
  if constexpr (I + 4 <= N && (Phase + I) % 4 == 0) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address + I), "f"(value[I]),
                 "f"(value[I + 1]), "f"(value[I + 2]), "f"(value[I + 3])
                 : "memory");
    reduce_from<Phase, I + 4>(address, value);
  } else if constexpr (I + 2 <= N && (Phase + I) % 2 == 0) {
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(address + I), "f"(value[I]), "f"(value[I + 1])
                 : "memory");
    reduce_from<Phase, I + 2>(address, value);
  } else if constexpr (I < N) {
    Kokkos::atomic_add(address + I, value[I]);
    reduce_from<Phase, I + 1>(address, value);
  }
}

template <int N>
KOKKOS_INLINE_FUNCTION void atomic_add_neighbours(float* address, const float (&value)[N]) {
  switch (reinterpret_cast<std::uintptr_t>(address) / sizeof(float) % 4) {
  case 0:
    return reduce_from<0, 0>(address, value);
  case 1:
    return reduce_from<1, 0>(address, value);
  case 2:
    return reduce_from<2, 0>(address, value);
  default:
    return reduce_from<3, 0>(address, value);
  }
}
#endif

/// The same for complex numbers, real and imaginary parts apart.
template <int N, class T>
KOKKOS_INLINE_FUNCTION void atomic_add_neighbours(Kokkos::complex<T>* address,
                                                  const Kokkos::complex<T> (&value)[N]) {
  T parts[2 * N];
  for (int i = 0; i < N; ++i) {
    parts[2 * i] = value[i].real();
    parts[2 * i + 1] = value[i].imag();
  }
  atomic_add_neighbours(reinterpret_cast<T*>(address), parts);
}

/// Atomic additions of threads that run side by side. Where all threads of a warp are together and add to the same
/// place, one of them adds the sum of all (CUDA).
struct LanesTogether {
  bool together = false;

  /// @param place  where additions begin
  KOKKOS_INLINE_FUNCTION explicit LanesTogether([[maybe_unused]] const void* place) {
#if defined(__CUDA_ARCH__)
    constexpr unsigned all = 0xffffffff;
    if (__activemask() == all) {
      const auto address = reinterpret_cast<unsigned long long>(place);
      together = __all_sync(all, address == __shfl_sync(all, address, 0));
    }
#endif
  }

  template <class T>
  KOKKOS_INLINE_FUNCTION void atomic_add(T* address, T value) const {
#if defined(__CUDA_ARCH__)
    if (together) {
      for (int other = 16; other > 0; other /= 2)
        value += __shfl_xor_sync(0xffffffff, value, other);
      unsigned lane;
      asm("mov.u32 %0, %%laneid;" : "=r"(lane));
      if (lane != 0)
        return;
    }
#endif
    Kokkos::atomic_add(address, value);
  }
};

/// An atomic addition if `wanted`.
template <class T>
KOKKOS_INLINE_FUNCTION void atomic_add_if(bool wanted, T* address, T value) {
  if (wanted)
    Kokkos::atomic_add(address, value);
}
template <class T>
KOKKOS_INLINE_FUNCTION void atomic_add_if(bool wanted, Kokkos::complex<T>* address,
                                          const Kokkos::complex<T>& value) {
  const Kokkos::complex<T> one[1] = {value};
  if (wanted)
    atomic_add_neighbours(address, one);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 // without a branch
template <>
KOKKOS_INLINE_FUNCTION void atomic_add_if(bool wanted, float* address, float value) {
  asm volatile(
      "{.reg .pred p; setp.ne.u32 p, %0, 0; @p red.global.add.f32 [%1], %2;}" ::"r"(unsigned(wanted)),
      "l"(address), "f"(value)
      : "memory");
}
template <>
KOKKOS_INLINE_FUNCTION void atomic_add_if(bool wanted, Kokkos::complex<float>* address,
                                          const Kokkos::complex<float>& value) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %0, 0; @p red.global.add.v2.f32 [%1], {%2, %3};}" ::"r"(
                   unsigned(wanted)),
               "l"(address), "f"(value.real()), "f"(value.imag())
               : "memory");
}
#endif

} // namespace Bracewell::Impl
