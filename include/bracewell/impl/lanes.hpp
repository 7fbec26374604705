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

/// A function of its own, which then has all registers for itself: the caller's are saved around the call.
#define BRACEWELL_SEPARATE_FUNCTION KOKKOS_FUNCTION __attribute__((noinline))

namespace Bracewell::Impl {

/// Tells the compiler that a pointer is one into scratch memory of level 0, where instructions for such
/// memory are faster than general ones.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void assume_scratch([[maybe_unused]] const T* pointer) {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isShared(pointer));
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

/// The value that the lane has whose number differs in the bits of `mask`. All lanes of a warp take part. On
/// hosts there are no lanes.
template <class T>
KOKKOS_INLINE_FUNCTION T from_lane_xor(T value, [[maybe_unused]] int mask) {
#if defined(__CUDA_ARCH__)
  return __shfl_xor_sync(0xffffffffu, value, mask);
#elif defined(__HIP_DEVICE_COMPILE__)
  return __shfl_xor(value, mask);
#else
  return value;
#endif
}

} // namespace Bracewell::Impl
