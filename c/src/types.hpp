// SPDX-License-Identifier: MIT
// The types of a source that is compiled once per precision and backend.
#pragma once

#include "arguments.hpp"

#include <algorithm>
#include <array>

namespace Bracewell::C {
namespace {

using Real = BRACEWELL_C_REAL;
constexpr Backend backend = Backend::BRACEWELL_C_BACKEND;
using Space = SpaceOf<backend>;
using Memory = Space::memory_space;
using Complex = Kokkos::complex<Real>;
template <class Value>
using Of = Argument<Value, Space>;

template <int D>
std::array<int, D> sizes_of(const int* sizes) {
  std::array<int, D> result;
  std::copy_n(sizes, D, result.begin());
  return result;
}

} // namespace
} // namespace Bracewell::C
