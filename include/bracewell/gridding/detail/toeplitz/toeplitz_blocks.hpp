// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Where numbers of the spectra of rows lie: in blocks of two rows and as many columns as a team has, so that teams of
/// columns read and write 64 bytes at a time, 32 of which a team of a row writes or reads.
struct ToeplitzBlocks {
  static constexpr int rows = 2;
  int row_length, columns; ///< of a block: a power of two

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t row(int y) const {
    return std::int64_t(y & -rows) * row_length + (y & (rows - 1)) * columns;
  }
  KOKKOS_FORCEINLINE_FUNCTION int column(int x) const { return (x & -columns) * rows + (x & (columns - 1)); }
  /// Numbers of an image.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t size(int height) const {
    return std::int64_t((height + rows - 1) & -rows) * row_length;
  }
};

} // namespace Bracewell::Impl
