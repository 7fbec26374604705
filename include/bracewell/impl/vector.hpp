// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

namespace Bracewell::Impl {

/// N numbers that a host computes with together: the vector extension of GCC and Clang, for loops that their
/// vectorisers miss.
template <class T, int N>
struct Vector {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};

/// N numbers, not a power of two, in vectors of `together`.
template <class T, int N, int together>
struct Vectors {
  typename Vector<T, together>::type part[N / together];

  Vectors& operator+=(const Vectors& other) {
    for (int i = 0; i < N / together; ++i)
      part[i] += other.part[i];
    return *this;
  }
  friend Vectors operator*(T factor, Vectors vectors) {
    for (auto& one : vectors.part)
      one *= factor;
    return vectors;
  }
};

template <class T, int N>
requires((N & (N - 1)) != 0) struct Vector<T, N> {
  using type = Vectors<T, N, (N & -N)>;
};

} // namespace Bracewell::Impl
