// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp> // complex numbers are aligned
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

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

/// pointer + offset (null stays null on hosts) in global memory, computed here and now: a compiler of device
/// code would rather repeat the arithmetic in every iteration of a loop that uses it.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T* computed_once(T* pointer, std::int64_t offset) {
#if defined(__CUDA_ARCH__)
  std::size_t address = __cvta_generic_to_global(pointer + offset);
  asm("" : "+l"(address));
  return static_cast<T*>(__cvta_global_to_generic(address));
#else
  return pointer ? pointer + offset : nullptr;
#endif
}

/// Writes what is not read again soon, so that caches keep what is.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void store_streaming(Kokkos::complex<T>* address,
                                                 const Kokkos::complex<T>& value) {
#if defined(__CUDA_ARCH__)
  using Parts = std::conditional_t<sizeof(T) == 4, float2, double2>;
  __stcs(reinterpret_cast<Parts*>(address), Parts{value.real(), value.imag()});
#else
  *address = value;
#endif
}

/// Lets the numbers around an address set out for the cache of the device, for whichever thread reads them soon.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void prefetch([[maybe_unused]] const T* address) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(address)));
#endif
}

/// Copies a complex number from global to scratch memory on the way beside what follows: it is there for the
/// lane after wait_for_copies(), for its team after a barrier behind that.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void copy_ahead(Kokkos::complex<T>* target, const Kokkos::complex<T>* source) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
               :
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(target))),
                 "l"(__cvta_generic_to_global(source)), "n"(sizeof(Kokkos::complex<T>))
               : "memory");
#else
  *target = *source;
#endif
}
KOKKOS_FORCEINLINE_FUNCTION void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" : : : "memory");
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

/// Whether something holds for any of the lanes of a warp that take the same branch; on hosts, for the caller.
KOKKOS_FORCEINLINE_FUNCTION bool any_lane(bool holds) {
#if defined(__CUDA_ARCH__)
  return __any_sync(__activemask(), holds);
#elif defined(__HIP_DEVICE_COMPILE__)
  return __any(holds);
#else
  return holds;
#endif
}

#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
/// What the lanes of a warp tell each other; all 32 must take part. Bit i: whether something holds for lane i.
__device__ __forceinline__ unsigned bits_of_lanes(bool holds) {
#if defined(__CUDA_ARCH__)
  return __ballot_sync(~0u, holds);
#else
  return static_cast<unsigned>(__ballot(holds) >> (__lane_id() & 32));
#endif
}
/// The value of lane `other` of the `width` that this one is among.
template <int width, class T>
__device__ __forceinline__ T from_lane(T value, int other) {
#if defined(__CUDA_ARCH__)
  return __shfl_sync(~0u, value, other, width);
#else
  return __shfl(value, other, width);
#endif
}
/// The value of the lane whose number differs in `bit`.
template <class T>
__device__ __forceinline__ T from_opposite_lane(T value, int bit) {
#if defined(__CUDA_ARCH__)
  return __shfl_xor_sync(~0u, value, bit);
#else
  return __shfl_xor(value, bit);
#endif
}
#endif

/// Bit i: holds(i), for every i < count <= 32. The lanes of a thread of a team share the work; on CUDA they
/// are 32.
template <class Team, class Predicate>
KOKKOS_INLINE_FUNCTION unsigned lane_bits([[maybe_unused]] const Team& team, int count,
                                          const Predicate& holds) {
#if defined(__CUDA_ARCH__)
  const int lane = threadIdx.x;
  return __ballot_sync(~0u, lane < count && holds(lane));
#else
  unsigned all = 0;
  Kokkos::parallel_reduce(
      Kokkos::ThreadVectorRange(team, count), [&](int i, unsigned& bits) { bits |= unsigned(holds(i)) << i; },
      Kokkos::BOr<unsigned>(all));
  return all;
#endif
}

/// Replaces 32 numbers in scratch memory by their running sums, and returns the last.
template <class Team>
KOKKOS_INLINE_FUNCTION int sum_lanes([[maybe_unused]] const Team& team, int* numbers) {
#if defined(__CUDA_ARCH__)
  const int lane = threadIdx.x;
  int sum = numbers[lane];
  BRACEWELL_UNROLL_FOR (int distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(~0u, sum, distance);
    sum += lane >= distance ? other : 0;
  }
  numbers[lane] = sum;
  __syncwarp();
  return __shfl_sync(~0u, sum, 31);
#else
  int total = 0;
  Kokkos::parallel_scan(
      Kokkos::ThreadVectorRange(team, 32),
      [&](int i, int& sum, bool final) {
        sum += numbers[i];
        if (final)
          numbers[i] = sum;
      },
      total);
  Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, 1), [](int) {}); // all lanes see the sums
  return total;
#endif
}

} // namespace Bracewell::Impl
