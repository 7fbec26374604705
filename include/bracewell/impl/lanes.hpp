// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

/// Unrolls the loop that follows completely, so that the arrays it indexes can live in registers.
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define BRACEWELL_UNROLL _Pragma("unroll")
#else
#define BRACEWELL_UNROLL
#endif

/// A function that must become part of its caller on a GPU, where its arguments are arrays in registers. Host
/// compilers choose for themselves: they would spend minutes on code that a call does not slow down.
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
#define BRACEWELL_REGISTER_FUNCTION KOKKOS_FORCEINLINE_FUNCTION
#else
#define BRACEWELL_REGISTER_FUNCTION inline
#endif

namespace Bracewell::Impl {

/// 2 a - b as one instruction: a compiler of device code would add a twice.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T twice_minus(T a, T b) {
  KOKKOS_IF_ON_DEVICE((return Kokkos::fma(T(2), a, -b);))
  KOKKOS_IF_ON_HOST((return 2 * a - b;))
}

/// Asks for a cache line of global memory that will be read soon.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void prefetch([[maybe_unused]] const T* address) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#endif
}

/// Orders what the lanes of a warp read and write in scratch memory.
KOKKOS_FORCEINLINE_FUNCTION void synchronise_lanes() {
#if defined(__CUDA_ARCH__)
  __syncwarp();
#elif defined(__HIP_DEVICE_COMPILE__)
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
#endif
}

} // namespace Bracewell::Impl
