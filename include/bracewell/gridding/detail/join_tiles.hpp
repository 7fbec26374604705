// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bin_tasks.hpp>
#include <bracewell/gridding/detail/tile_on_grid.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Adds the tiles of bins that several teams had a part of, in fixed order.
template <class T, int Dim>
struct JoinTiles {
  BinGrid<Dim> bins;
  const SplitBin* split;
  const Kokkos::complex<T>* partial; ///< [slots, slices, tile]
  Kokkos::complex<T>* grid;
  std::int64_t slices;

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    const std::int64_t cells = bins.tile_cells(), bin = thread / cells;
    const auto cell = static_cast<int>(thread % cells);
    add_to_grid(bin, cell, sum(bin, cell, 0, 1));
  }

  /// The sum over tiles begin, begin + step .. for a cell of bin `bin` of all split bins and slices.
  KOKKOS_FUNCTION Kokkos::complex<T> sum(std::int64_t bin, int cell, int begin, int step) const {
    const std::int64_t cells = bins.tile_cells(), slice = bin % slices;
    Kokkos::complex<T> sums[4] = {};
    if (cell >= cells)
      return sums[0];
    const SplitBin& from_bin = split[bin / slices];
    const Kokkos::complex<T>* const from = partial + (from_bin.first * slices + slice) * cells + cell;
    for (int i = begin; i < from_bin.count; i += 4 * step) { // four loads on their way
      BRACEWELL_UNROLL
      for (int u = 0; u < 4; ++u)
        if (i + u * step < from_bin.count)
          sums[u] += from[(i + u * step) * slices * cells];
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  KOKKOS_FUNCTION void add_to_grid(std::int64_t bin, int cell, const Kokkos::complex<T>& sum) const {
    const TileOnGrid<Dim> tile(bins, split[bin / slices].bin);
    const int x = cell % bins.stride;
    if (cell >= bins.tile_cells() || x >= tile.length[0])
      return;
    const std::int64_t row = tile.row(cell / bins.stride);
    if (row >= 0)
      grid[bin % slices * bins.grid.elements() + row + tile.wrapped(tile.origin[0] + x, 0)] += sum;
  }
};

} // namespace Bracewell::Impl
