// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// sin(pi v) / (pi v), 1 at v = 0.
template <class T>
KOKKOS_INLINE_FUNCTION T sinc(T v) {
  const T x = Kokkos::numbers::pi_v<T> * v;
  return v == 0 ? T(1) : Kokkos::sin(x) / x;
}

} // namespace Bracewell::Impl
