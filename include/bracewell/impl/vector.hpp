// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <algorithm>
#include <type_traits>

/// A function that becomes part of its callers, and is compiled for their processors.
#define BRACEWELL_INLINE_FOR_TARGET [[gnu::always_inline]] inline

namespace Bracewell::Impl {

/// Bytes of the widest vectors of the processors that are compiled for. The compilers lower wider ones to copies in
/// memory (g++ 12: NUFFTs take 3 to 6 times as long).
#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

/// N numbers that a host computes with together: the vector extension of GCC and Clang, for loops that their
/// vectorisers miss. At most `bytes` are in one vector.
template <class T, int N, int bytes = vector_bytes>
struct Vector {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};

/// N numbers in vectors of `together`.
template <class T, int N, int together>
struct Vectors {
  typename Vector<T, together, together * sizeof(T)>::type part[N / together];

  BRACEWELL_INLINE_FOR_TARGET Vectors& operator+=(const Vectors& other) {
    for (int i = 0; i < N / together; ++i)
      part[i] += other.part[i];
    return *this;
  }
  BRACEWELL_INLINE_FOR_TARGET friend Vectors operator*(T factor, Vectors vectors) {
    for (auto& one : vectors.part)
      one *= factor;
    return vectors;
  }
};

template <class T, int N, int bytes>
requires((N & (N - 1)) != 0 || N * sizeof(T) > bytes) struct Vector<T, N, bytes> {
  using type = Vectors<T, N, std::min<int>(N & -N, bytes / sizeof(T))>;
};

/// On x86-64 a binary for any processor has a second version of functions for AVX2, and takes it where the processor has
/// this. (A third one for AVX-512 gains nothing on AMD's Zen 4, see docs/lab/hosts.md.) Not with the compilers of GPUs.
#if defined(__x86_64__) && !defined(__AVX2__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define BRACEWELL_HAS_AVX2_VERSIONS

/// Whether such functions are called; a test may say no.
inline bool& uses_avx2() {
  static bool uses = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return uses;
}

template <class Functor, class... Arguments>
[[gnu::target("avx2,fma"), gnu::noinline]] void run_with_avx2(const Functor& functor,
                                                              Arguments... arguments) {
  functor.template run<32>(arguments...);
}
#endif

/// functor.run<bytes>(arguments), for vectors of so many bytes: BRACEWELL_INLINE_FOR_TARGET with all that it calls.
template <class Functor, class... Arguments>
void run_with_vectors(const Functor& functor, Arguments... arguments) {
#ifdef BRACEWELL_HAS_AVX2_VERSIONS
  if (uses_avx2())
    return run_with_avx2(functor, arguments...);
#endif
  functor.template run<vector_bytes>(arguments...);
}

} // namespace Bracewell::Impl
