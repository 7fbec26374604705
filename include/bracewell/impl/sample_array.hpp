// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Samples of all slices, in either order of the axes.
template <class Value>
struct SampleArray {
  Value* data;
  std::int64_t point_stride, slice_stride;

  KOKKOS_FUNCTION Value& operator()(std::int64_t point, std::int64_t slice) const {
    return data[point * point_stride + slice * slice_stride];
  }
};

} // namespace Bracewell::Impl
