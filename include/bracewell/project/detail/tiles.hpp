// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/rfft/layout.hpp>

#include <type_traits>

namespace Bracewell::Impl {

/// Threads that go through a tile together. On GPUs the lanes of a warp: they cover its columns and as many
/// rows at a time as there are lanes for, so that their taps stay close together, and each keeps to one
/// column.
template <class Space>
inline constexpr int tile_lanes = is_host<Space> ? 1 : 32;

/// The stored elements of every projection in tiles (rows of all slow axes in one sequence).
template <int M, int columns_ = 8>
struct Tiles {
  static constexpr int columns = columns_;

  HalfSpectrumLayout<M> layout;
  int rows, across, per_pose;

  /// As high as there is work enough for all threads: what a lane prepares once then serves more samples.
  template <class Space>
  static Tiles make(const Space& space, const HalfSpectrumLayout<M>& layout, std::int64_t poses,
                    int most_rows = 64) {
    const std::int64_t all_rows = layout.elements() / layout.columns();
    Tiles tiles = of_rows(layout, 4);
    while (tiles.rows < most_rows && tiles.rows < all_rows &&
           poses * tiles.across * (all_rows / tiles.rows / 2) * tile_lanes<Space> >= 2 * space.concurrency())
      tiles = of_rows(layout, 2 * tiles.rows);
    return tiles;
  }

  static Tiles of_rows(const HalfSpectrumLayout<M>& layout, int rows) {
    const std::int64_t all_rows = layout.elements() / layout.columns();
    const int across = (layout.columns() + columns - 1) / columns;
    return {layout, rows, across, across * static_cast<int>((all_rows + rows - 1) / rows)};
  }

  struct Tile {
    int column, row;
  };
  KOKKOS_INLINE_FUNCTION Tile tile(int index) const {
    const int down = index / across;
    return {(index - down * across) * columns, down * rows};
  }

  /// Calls visit(k, index) with frequency and index within the projection of the elements of a tile that
  /// belong to one of `lanes` threads.
  template <int lanes, class Visit>
  KOKKOS_INLINE_FUNCTION void for_each(int index, int lane, const Visit& visit) const {
    static_assert(lanes == 1 || lanes % columns == 0);
    const Tile own = tile(index);
    if constexpr (lanes == 1) {
      for (int column = 0; column < columns; ++column)
        for_each_row<1>(own.column + column, own.row, own.row + rows, visit);
    } else {
      for_each_row<lanes / columns>(own.column + lane % columns, own.row + lane / columns, own.row + rows,
                                    visit);
    }
  }

private:
  template <int step, class Visit>
  KOKKOS_INLINE_FUNCTION void for_each_row(int column, int row, int end, const Visit& visit) const {
    const int width = layout.columns();
    int all_rows = layout.size[1];
    if constexpr (M == 3)
      all_rows *= layout.size[2];
    end = column < width ? Kokkos::min(end, all_rows) : 0;
    // On GPUs 32 bits where they do: 2D projections that operators accept have less than 2^30 elements.
    using Index = std::conditional_t<M == 2 && (step > 1), unsigned, std::int64_t>;
    Index index = static_cast<Index>(row) * width + column;
    for (; row < end; row += step, index += step * width) {
      int k[M] = {column}, rest = row;
      for (int c = 1; c < M - 1; ++c) {
        k[c] = layout.frequency(rest % layout.size[c], layout.size[c]);
        rest /= layout.size[c];
      }
      k[M - 1] = layout.frequency(rest, layout.size[M - 1]);
      visit(k, index);
    }
  }
};

/// Short where it does: a long division takes as many instructions as a sample.
KOKKOS_INLINE_FUNCTION std::int64_t divide(std::int64_t a, int b) {
  return a < std::int64_t(1) << 32 ? static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b) : a / b;
}

/// functor.sample(functor.of_pose(pose), k, element) for every stored element of every projection; poses of
/// batch and pose axes are counted in one sequence.
template <class Functor, int M, int columns, int lanes>
struct TileLoop {
  Functor functor;
  Tiles<M, columns> tiles;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = i / lanes, pose = divide(item, tiles.per_pose);
    const auto at = functor.of_pose(pose);
    tiles.template for_each<lanes>(static_cast<int>(item - pose * tiles.per_pose),
                                   static_cast<int>(i % lanes),
                                   [&](const int(&k)[M], auto element) { functor.sample(at, k, element); });
  }
};

/// Runs a TileLoop. `resident`: blocks of `threads` threads that a multiprocessor of an NVIDIA GPU should hold
/// at least (threads = 0: as registers allow).
template <int threads = 0, int resident = 0, class Space, class Functor, int M, int columns>
void launch_tiles(const Space& space, const Label& label, const Functor& functor,
                  const Tiles<M, columns>& tiles, std::int64_t poses) {
  constexpr int lanes = tile_lanes<Space>;
  const TileLoop<Functor, M, columns, lanes> loop{functor, tiles};
  const std::int64_t count = poses * tiles.per_pose * lanes;
  if constexpr (is_host<Space>) {
    launch_host_tasks(space, label, count, loop);
  } else {
    using Bounds = std::conditional_t<threads == 0, Kokkos::LaunchBounds<>,
                                      Kokkos::LaunchBounds<threads, resident_teams<Space>(resident)>>;
    using Policy = Kokkos::RangePolicy<Space, Bounds, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for(label, Policy(space, 0, count), loop);
  }
}

} // namespace Bracewell::Impl
