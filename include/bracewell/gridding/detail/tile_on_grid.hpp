// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bin_grid.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Cell (0, 0, 0) of the tile of a bin on the grid, and how a tile is added to it.
template <int Dim>
struct TileOnGrid {
  BinGrid<Dim> bins;
  int origin[Dim], length[Dim];

  KOKKOS_FUNCTION TileOnGrid(const BinGrid<Dim>& grid, std::uint32_t bin) : bins(grid) {
    bins.box(bin, origin, length);
    for (int d = 0; d < Dim; ++d)
      length[d] += bins.width - 1;
  }

  KOKKOS_FUNCTION int wrapped(int cell, int axis) const {
    return cell < bins.grid.size[axis] ? cell : cell - bins.grid.size[axis];
  }
  /// Row `row` of a tile as an index in the grid; negative where this bin, not the longest one, has none.
  KOKKOS_FUNCTION std::int64_t row(int row) const {
    std::int64_t result = 0, stride = bins.grid.size[0];
    for (int d = 1; d < Dim; ++d) {
      const int at = d + 1 < Dim ? row % bins.span(d) : row;
      if (at >= length[d])
        return -1;
      result += stride * wrapped(origin[d] + at, d);
      row /= bins.span(d);
      stride *= bins.grid.size[d];
    }
    return result;
  }
};

} // namespace Bracewell::Impl
