// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// What a process' rectangle has in common with another's.
struct Overlap {
  std::int64_t row, column, rows, columns; ///< in the rectangle of this process
  std::int64_t first;                      ///< of its elements among those of all overlaps

  KOKKOS_FUNCTION std::int64_t end() const { return first + rows * columns; }
};

/// Element i of all overlaps, one behind the other.
template <class Value>
struct PackOverlaps {
  const Overlap* overlaps;
  const Value* values; ///< [rows, columns]
  std::int64_t columns;
  Value* packed;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const Overlap* overlap = overlaps;
    while (i >= overlap->end())
      ++overlap;
    const std::int64_t row = overlap->row + (i - overlap->first) / overlap->columns,
                       column = overlap->column + (i - overlap->first) % overlap->columns;
    packed[i] = values[row * columns + column];
  }
};

/// Element i of the rectangle: the sum of all processes' in the order of their ranks, so that it has the same bits in each.
template <class Value>
struct AddOverlaps {
  const Overlap* overlaps;
  int count, lower; ///< overlaps, and those of them with lower ranks
  const Value* received;
  std::int64_t columns;
  Value* values; ///< [rows, columns]

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const Value own = values[i];
    Value sum{};
    for (int k = 0; k <= count; ++k) {
      if (k == lower)
        sum += own;
      if (k == count)
        break;
      const Overlap& other = overlaps[k];
      const std::int64_t row = i / columns - other.row, column = i % columns - other.column;
      if (row >= 0 && row < other.rows && column >= 0 && column < other.columns)
        sum += received[other.first + row * other.columns + column];
    }
    values[i] = sum;
  }
};

} // namespace Bracewell::Impl
