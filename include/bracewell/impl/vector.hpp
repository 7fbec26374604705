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

} // namespace Bracewell::Impl
