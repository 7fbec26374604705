// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace Bracewell::Impl {

/// Checks the sinogram [P, n] that an axis is searched in.
/// @return n
inline int check_searched_sinogram(const Arguments& arguments, const ArrayShape& sinogram,
                                   const std::vector<double>& angles) {
  arguments.require(
      sinogram && sinogram.rank == 2 && sinogram.extents[0] == std::int64_t(angles.size()) &&
          sinogram.extents[0] > 0 && sinogram.extents[0] <= (1 << 24) && sinogram.extents[1] >= 16 &&
          sinogram.extents[1] <= (1 << 24),
      "sinogram", [&] { return "[" + number(angles.size()) + ", width from 16 to 2^24]"; },
      [&] { return sinogram.shape(); });
  return static_cast<int>(sinogram.extents[1]);
}

} // namespace Bracewell::Impl
