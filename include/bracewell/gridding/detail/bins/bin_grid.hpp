// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/image_on_grid.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace Bracewell::Impl {

/// Bins of a grid: boxes of cells, to each of which belong the samples whose first taps lie in it. The taps of
/// its samples reach its tile, up to width - 1 cells beyond it. Bins of one colour have the same indices modulo
/// `modulus`, of which their number along every axis is a multiple, and the modulus - 1 bins between two of them
/// are width - 1 long, so that their tiles do not meet.
template <int Dim>
struct BinGrid {
  static constexpr int dimensions = Dim, most_modulus = 4;
  static constexpr int most_colours = 1 << 2 * Dim;

  GridShape<Dim> grid;
  int width, modulus;
  int number[Dim] = {};     ///< of bins along an axis
  int edge[Dim] = {};       ///< of the longest one
  double inverse[Dim] = {}; ///< of the grid's sizes: divisions would take half of the time of sorting
  int stride = 0;           ///< of the rows of tiles in scratch memory
  bool by_cell = true;      ///< samples of a bin are sorted by the cells of their first taps

  /// @param wanted  edges that bins have about
  /// @param modulus   2; more where bins shorter than width - 1 are wanted, for the sake of small tiles
  /// @param period  rows of taps are neighbours modulo so many cells, which keeps lanes on taps out of each
  ///                other's banks of scratch memory
  static BinGrid make(const GridShape<Dim>& grid, int width, const int (&wanted)[3], int modulus,
                      int period) {
    BinGrid bins{grid, width, modulus};
    const int least = (width - 1 + modulus - 2) / (modulus - 1);
    for (int d = 0; d < Dim; ++d) {
      const int size = grid.size[d], most = std::max(wanted[d], least);
      int& number = bins.number[d];
      number = modulus * ((size + modulus * most - 1) / (modulus * most));
      while (number > modulus && size / number < least)
        number -= modulus;
      bins.edge[d] = (size + number - 1) / number;
      bins.inverse[d] = 1. / size;
    }
    bins.stride = bins.span(0);
    while (bins.stride % period != width % period)
      ++bins.stride;
    return bins;
  }

  /// Cells of a tile along an axis, at most.
  KOKKOS_FUNCTION int span(int axis) const { return edge[axis] + width - 1; }
  KOKKOS_FUNCTION int tile_rows() const {
    int rows = 1;
    for (int d = 1; d < Dim; ++d)
      rows *= span(d);
    return rows;
  }
  KOKKOS_FUNCTION int tile_cells() const { return tile_rows() * stride; }

  KOKKOS_FUNCTION std::int64_t count() const { return product(number); }

  /// The first cell of bin `index` along an axis, and the bin of a cell.
  KOKKOS_FUNCTION int first(int index, int axis) const {
    return static_cast<int>(std::int64_t(index) * grid.size[axis] / number[axis]);
  }
  KOKKOS_FORCEINLINE_FUNCTION int index(int cell, int axis) const {
    // ((cell + 1) number - 1) / size, rounded down: half of 1 / size lies between the quotient and a whole number.
    return static_cast<int>(((cell + 1.) * number[axis] - 0.5) * inverse[axis]);
  }

  /// Cells of a bin, at most.
  KOKKOS_FUNCTION std::int64_t bin_cells() const { return product(edge); }

  /// First cell and number of cells of a bin.
  KOKKOS_FUNCTION void box(std::uint32_t bin, int (&origin)[Dim], int (&length)[Dim]) const {
    for (int d = 0; d < Dim; ++d) {
      const auto here = static_cast<std::uint32_t>(number[d]);
      const int at = static_cast<int>(bin % here);
      origin[d] = first(at, d);
      length[d] = first(at + 1, d) - origin[d];
      bin /= here;
    }
  }

  KOKKOS_FUNCTION int colour(std::int64_t bin) const {
    int result = 0;
    for (int d = 0; d < Dim; ++d) {
      result = result * modulus + static_cast<int>(bin % number[d] % modulus);
      bin /= number[d];
    }
    return result;
  }

  /// Bins whose tiles may meet that of one: number `i` of them, which may be the bin itself.
  KOKKOS_FUNCTION int neighbours() const {
    int all = 1;
    for (int d = 0; d < Dim; ++d)
      all *= 2 * modulus - 1;
    return all;
  }
  KOKKOS_FUNCTION std::uint32_t neighbour(std::uint32_t bin, int i) const {
    std::uint32_t result = 0, before = 1; // bins before the next one along an axis
    for (int d = 0; d < Dim; ++d) {
      const int at = static_cast<int>(bin % number[d]) + i % (2 * modulus - 1) - (modulus - 1) + number[d];
      result += before * static_cast<std::uint32_t>(at % number[d]);
      before *= static_cast<std::uint32_t>(number[d]);
      bin /= number[d];
      i /= 2 * modulus - 1;
    }
    return result;
  }

  /// What samples are sorted by: the bin, and in it the cell of the first tap where by_cell says so and 32 bits have
  /// room for it.
  KOKKOS_FUNCTION std::uint32_t cells_of_key() const {
    const std::int64_t cells = bin_cells();
    return by_cell && count() * cells < std::int64_t(1) << 32 ? static_cast<std::uint32_t>(cells) : 1u;
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION std::uint32_t bin_of(const Location<T, Dim>& at) const {
    std::uint32_t bin = 0;
    for (int d = Dim - 1; d >= 0; --d)
      bin = bin * std::uint32_t(number[d]) + std::uint32_t(index(at.first[d], d));
    return bin;
  }
  template <class T>
  KOKKOS_FUNCTION std::uint32_t key(const Location<T, Dim>& at) const {
    std::uint32_t bin = 0, cell = 0;
    for (int d = Dim - 1; d >= 0; --d) {
      const int here = index(at.first[d], d);
      bin = bin * std::uint32_t(number[d]) + std::uint32_t(here);
      cell = cell * std::uint32_t(edge[d]) + std::uint32_t(at.first[d] - first(here, d));
    }
    const std::uint32_t cells = cells_of_key();
    return cells == 1 ? bin : bin * cells + cell;
  }
};

/// Bytes of scratch memory of a team on a GPU, at most.
template <class Space>
std::size_t most_scratch([[maybe_unused]] const Space& space) {
  if constexpr (is_host<Space>)
    return std::numeric_limits<std::size_t>::max();
  else
    return std::max<std::size_t>(chip_memory(space), Kokkos::TeamPolicy<Space>::scratch_size_max(0)) - 64;
}

/// Teams of SpreadOwnedBoxes and SpreadMatrixBoxes.
struct BoxLimits {
  /// Bytes of scratch memory of a team: half of what a multiprocessor of an NVIDIA H200 has.
  static constexpr int team_scratch = 115584;
  static constexpr int most_bins = 255; ///< around a box
  static constexpr int owned_edge = 8;  ///< cells of a box of SpreadOwnedBoxes along an axis
};

/// Whether there is room for teams of all boxes for every slice, and for the bins around them.
template <class Space>
bool boxes_fit(const Space& space, const BinGrid<3>& bins, int edge, std::int64_t slices) {
  std::int64_t around = 1, boxes = std::max<std::int64_t>(slices, 1);
  for (int d = 0; d < 3; ++d) {
    around *= std::min((edge + bins.width - 3) / (bins.grid.size[d] / bins.number[d]) + 2, bins.number[d]);
    boxes *= (bins.grid.size[d] + edge - 1) / edge;
  }
  return !is_host<Space> && BoxLimits::team_scratch <= most_scratch(space) &&
         around <= BoxLimits::most_bins && boxes <= std::numeric_limits<int>::max();
}

/// How many samples reach a box of a grid, `edge` cells along every axis, at most: bins around count with the share of
/// their cells from which samples do.
/// @param begin  where the samples of every bin begin, and where the last ones end
template <int Dim>
double largest_box(const BinGrid<Dim>& bins, const std::uint32_t* begin, int edge) {
  struct Share {
    std::size_t box, bin;
    double cells;
  };
  std::vector<double> sums(static_cast<std::size_t>(bins.count()));
  for (std::size_t bin = 0; bin < sums.size(); ++bin)
    sums[bin] = begin[bin + 1] - begin[bin];
  std::size_t slower = 1, faster = sums.size(); // elements along axes of boxes, and of bins
  for (int d = Dim - 1; d >= 0; --d) {
    const int size = bins.grid.size[d], number = bins.number[d], boxes = (size + edge - 1) / edge;
    std::vector<Share> shares;
    for (int box = 0; box < boxes; ++box) {
      const int end = std::min((box + 1) * edge, size);
      const int start = std::max(box * edge - bins.width + 1, end - size);
      for (int bin = 0; bin < number; ++bin) {
        const int first = bins.first(bin, d), last = bins.first(bin + 1, d);
        const auto reach = [&](int shift) {
          return std::max(std::min(end, last - shift) - std::max(start, first - shift), 0);
        };
        if (const int cells = reach(0) + reach(size); cells > 0)
          shares.push_back({std::size_t(box), std::size_t(bin), double(cells) / (last - first)});
      }
    }
    faster /= std::size_t(number);
    std::vector<double> next(slower * std::size_t(boxes) * faster);
    for (std::size_t i = 0; i < slower; ++i)
      for (const Share& share : shares) {
        const double* const from = sums.data() + (i * std::size_t(number) + share.bin) * faster;
        double* const to = next.data() + (i * std::size_t(boxes) + share.box) * faster;
        for (std::size_t j = 0; j < faster; ++j)
          to[j] += share.cells * from[j];
      }
    slower *= std::size_t(boxes);
    sums = std::move(next);
  }
  return *std::max_element(sums.begin(), sums.end());
}

/// The bins that a space works with: edges from the tuning, or shorter ones where scratch memory is too small
/// for their tiles.
template <class Space, class T, int Dim>
BinGrid<Dim> bin_grid(const Space& space, const GridShape<Dim>& grid, int width) {
  const BoxShape shape = tuning_of<Space>.bin(Dim);
  const int period = is_host<Space> ? 1 : static_cast<int>(128 / (2 * sizeof(T)));
  auto bins = BinGrid<Dim>::make(grid, width, {shape.x, shape.y, shape.z}, 2, period);
  for (int modulus = 2;
       modulus <= bins.most_modulus && bin_scratch_bytes(bins, sizeof(T)) > most_scratch(space); ++modulus)
    bins = BinGrid<Dim>::make(grid, width, {1, 1, 1}, modulus, 1);
  bins.by_cell = !is_host<Space>; // there the tile of a bin is in a cache
  return bins;
}

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

  /// Row `row` of a tile as an index in the grid; negative where this bin, not the longest one, has none.
  KOKKOS_FUNCTION std::int64_t row(int row) const {
    std::int64_t result = 0, stride = bins.grid.size[0];
    for (int d = 1; d < Dim; ++d) {
      const int at = d + 1 < Dim ? row % bins.span(d) : row;
      if (at >= length[d])
        return -1;
      result += stride * bins.grid.wrapped(origin[d] + at, d);
      row /= bins.span(d);
      stride *= bins.grid.size[d];
    }
    return result;
  }
};

} // namespace Bracewell::Impl
