// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/memory.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace Bracewell::Impl {

/// Edges of the tiles of the grid that teams own.
template <int Dim>
struct TileEdges {
  static constexpr BoxShape shape = Dim == 2 ? gpu_gridding_tuning.tile_2d : gpu_gridding_tuning.tile_3d;
  static constexpr int x = shape.x, y = shape.y, z = shape.z;
  static constexpr int columns = x, rows = y * z, cells = columns * rows;

  KOKKOS_FUNCTION static constexpr int edge(int axis) { return axis == 0 ? x : axis == 1 ? y : z; }
};

/// The tiles of a grid, and those that a sample reaches.
template <int Dim>
struct TileGrid {
  using Edges = TileEdges<Dim>;

  GridShape<Dim> grid;
  int tiles[Dim];

  static TileGrid make(const GridShape<Dim>& grid) {
    TileGrid result{.grid = grid, .tiles = {}};
    for (int d = 0; d < Dim; ++d)
      result.tiles[d] = (grid.size[d] + Edges::edge(d) - 1) / Edges::edge(d);
    return result;
  }

  std::int64_t count() const { return product(tiles); }

  KOKKOS_FUNCTION void origin(std::int32_t tile, int (&first)[Dim]) const {
    for (int d = 0; d < Dim; ++d) {
      first[d] = tile % tiles[d] * Edges::edge(d);
      tile /= tiles[d];
    }
  }

  /// First tap of a sample as seen from a tile that it reaches: -width < result < edge.
  KOKKOS_FUNCTION int relative(int first, int origin, int axis) const {
    const int distance = first - origin;
    return distance >= Edges::edge(axis) ? distance - grid.size[axis] : distance;
  }

  template <class T, class Visit>
  KOKKOS_FUNCTION void for_each(const Location<T, Dim>& at, int width, const Visit& visit) const {
    int begin[Dim], number[Dim], total = 1;
    for (int d = 0; d < Dim; ++d) {
      const int last = at.first[d] + width - 1;
      begin[d] = at.first[d] / Edges::edge(d);
      number[d] = last < grid.size[d] ? last / Edges::edge(d) - begin[d] + 1
                                      : tiles[d] - begin[d] + (last - grid.size[d]) / Edges::edge(d) + 1;
      total *= number[d];
    }
    for (int i = 0; i < total; ++i) {
      std::int64_t tile = 0, stride = 1;
      int rest = i;
      for (int d = 0; d < Dim; ++d) {
        const int index = begin[d] + rest % number[d];
        rest /= number[d];
        tile += stride * (index < tiles[d] ? index : index - tiles[d]);
        stride *= tiles[d];
      }
      visit(tile);
    }
  }
};

/// Counts the samples of every tile, and lists them.
template <class Locations, int Dim>
struct ListSamples {
  TileGrid<Dim> tiles;
  Locations locations; ///< locations[point]
  int width;
  std::int64_t* cursor;          ///< [tiles]
  std::uint32_t* list = nullptr; ///< when null samples are only counted
  std::uint32_t* list_tile = nullptr;

  KOKKOS_FUNCTION void operator()(std::int64_t point) const {
    tiles.for_each(locations[point], width, [&](std::int64_t tile) {
      const std::int64_t entry = Kokkos::atomic_fetch_add(cursor + tile, std::int64_t(1));
      if (list) {
        list[entry] = static_cast<std::uint32_t>(point);
        list_tile[entry] = static_cast<std::uint32_t>(tile);
      }
    });
  }
};

/// The lists were filled in any order; ascending order makes sums reproducible and reads local. The index
/// of an element is the number of smaller ones.
struct OrderLists {
  const std::int64_t* begin;
  const std::uint32_t *list, *list_tile;
  std::uint32_t* ordered;

  KOKKOS_FUNCTION void operator()(std::int64_t entry) const {
    const std::uint32_t point = list[entry], tile = list_tile[entry];
    std::int64_t index = begin[tile];
    for (std::int64_t i = begin[tile]; i < begin[tile + 1]; ++i)
      index += list[i] < point;
    ordered[index] = point;
  }
};

struct FirstOfTiles {
  const std::int64_t* count;
  std::int64_t *begin, *cursor;
  std::int64_t tiles;

  KOKKOS_FUNCTION void operator()(std::int64_t tile, std::int64_t& sum, bool final) const {
    if (final)
      begin[tile] = sum;
    if (tile == tiles)
      return;
    if (final)
      cursor[tile] = sum;
    sum += count[tile];
  }
};

/// A piece of work: samples begin .. end of the lists, which belong to a tile. Of tiles with many samples
/// there are several, each with memory of its own (slot) for partial sums; otherwise slot is negative.
struct TileTask {
  std::int64_t begin, end;
  std::int32_t tile, slot;
};

/// A tile whose partial sums lie in slots first .. first + count - 1.
struct SplitTile {
  std::int32_t tile, first, count;
};

/// The pieces of work of all tiles.
struct TileTasks {
  std::vector<TileTask> tasks;  ///< those with slots first
  std::vector<SplitTile> split; ///< the tiles that have several tasks
  int slots;
  std::int64_t entries; ///< samples of all tiles

  /// Tiles near the origin of polar points hold hundreds of times more samples than others. No task takes
  /// more than a small share of what one of the teams that run at once does in all.
  /// @param begin  where the samples of every tile begin in one list, and where the last ones end
  template <class Space>
  static TileTasks make(const Space& space, const std::int64_t* begin, std::int64_t count) {
    constexpr const GpuGriddingTuning& tuning = gpu_gridding_tuning;
    const auto most = std::clamp<std::int64_t>(begin[count] / (space.concurrency() / tuning.tile_slices),
                                               tuning.least_task, tuning.most_task);
    std::vector<TileTask> whole, parts;
    std::vector<SplitTile> split;
    for (std::int64_t tile = 0; tile < count; ++tile) {
      const std::int64_t samples = begin[tile + 1] - begin[tile];
      if (samples <= most) {
        whole.push_back({begin[tile], begin[tile + 1], std::int32_t(tile), -1});
        continue;
      }
      const std::int64_t pieces = (samples + most - 1) / most;
      split.push_back({std::int32_t(tile), std::int32_t(parts.size()), std::int32_t(pieces)});
      for (std::int64_t i = 0; i < pieces; ++i)
        parts.push_back({begin[tile] + samples * i / pieces, begin[tile] + samples * (i + 1) / pieces,
                         std::int32_t(tile), std::int32_t(parts.size())});
    }
    const int slots = static_cast<int>(parts.size());
    parts.insert(parts.end(), whole.begin(), whole.end());
    return {std::move(parts), std::move(split), slots, begin[count]};
  }

  /// Bytes of the lists on a device.
  std::size_t bytes() const {
    return static_cast<std::size_t>(entries) * sizeof(std::uint32_t) + tasks.size() * sizeof(TileTask) +
           split.size() * sizeof(SplitTile);
  }
};

/// Of plans that never have tiles.
struct NoTiles {
  static constexpr std::size_t memory_bytes() { return 0; }
};

/// On GPUs: for every tile of the grid the samples that reach it, in ascending order, cut into tasks.
template <class Space, class T, int Dim>
struct TileLists {
  using Edges = TileEdges<Dim>;
  template <class Value>
  using Vector = Kokkos::View<Value*, Space>;

  TileGrid<Dim> tiles = {};
  Vector<std::uint32_t> list;
  Vector<TileTask> tasks;
  Vector<SplitTile> split;
  int slots = 0;
  Vector<Kokkos::complex<T>> partial; ///< sums of tiles of which several teams have a part

  /// Lists samples that have their locations, for plans of so many slices.
  void list_samples(const Space& space, const SpreadingProblem<T, Dim>& problem) {
    tiles = TileGrid<Dim>::make(problem.grid);
    const std::int64_t count = tiles.count();
    const Vector<std::int64_t> counts(Kokkos::view_alloc(space, "Bracewell::Gridding::tile_counts"), count);
    const auto cursor = device_vector<std::int64_t>(space, "Bracewell::Gridding::tile_cursors", count);
    const auto begin = device_vector<std::int64_t>(space, "Bracewell::Gridding::tile_begin", count + 1);
    using Points = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
    ListSamples<StoredLocations<T, Dim>, Dim> lister{tiles, problem.locations, problem.kernel.width,
                                                     counts.data()};
    launch_kernel("Bracewell::Gridding::count_samples", Points(space, 0, problem.points), lister);
    Kokkos::parallel_scan("Bracewell::Gridding::first_of_tiles", Points(space, 0, count + 1),
                          FirstOfTiles{counts.data(), begin.data(), cursor.data(), count});
    std::vector<std::int64_t> host_begin(static_cast<std::size_t>(count + 1));
    copy_to_host(space, begin.data(), host_begin.size(), host_begin.data());
    space.fence("Bracewell::Gridding: tile sizes are needed on the host");
    const std::int64_t entries = host_begin.back();

    list = device_vector<std::uint32_t>(space, "Bracewell::Gridding::tile_samples", entries);
    const auto unordered =
        device_vector<std::uint32_t>(space, "Bracewell::Gridding::unordered_samples", entries);
    const auto list_tile =
        device_vector<std::uint32_t>(space, "Bracewell::Gridding::tiles_of_samples", entries);
    lister.cursor = cursor.data();
    lister.list = unordered.data();
    lister.list_tile = list_tile.data();
    launch_kernel("Bracewell::Gridding::list_samples", Points(space, 0, problem.points), lister);
    launch_kernel("Bracewell::Gridding::order_samples", Points(space, 0, entries),
                  OrderLists{begin.data(), unordered.data(), list_tile.data(), list.data()});
    const TileTasks host = TileTasks::make(space, host_begin.data(), count);
    slots = host.slots;
    tasks = device_copy(space, "Bracewell::Gridding::tasks", host.tasks);
    split = device_copy(space, "Bracewell::Gridding::split_tiles", host.split);
    if (const auto sums = partial_size(slots, problem.slices);
        static_cast<std::int64_t>(partial.size()) < sums)
      partial = device_vector<Kokkos::complex<T>>(space, "Bracewell::Gridding::partial_sums", sums);
  }

  /// Chunks of slices that teams of SpreadTiles take.
  static int slice_chunks(std::int64_t slices) {
    constexpr int together = gpu_gridding_tuning.tile_slices;
    return static_cast<int>((slices + together - 1) / together);
  }

  std::size_t memory_bytes() const { return bytes_of(list, tasks, split, partial); }

  /// What memory_bytes() would be. It counts samples but does not list them.
  static std::size_t bytes_needed(const Space& space, const PointLocations<T, Dim>& where,
                                  std::int64_t points, std::int64_t slices) {
    const auto tiles = TileGrid<Dim>::make(where.grid);
    const std::int64_t count = tiles.count();
    const Vector<std::int64_t> counts(Kokkos::view_alloc(space, "Bracewell::Gridding::tile_counts"), count);
    launch_kernel("Bracewell::Gridding::count_samples",
                  Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, points),
                  ListSamples<PointLocations<T, Dim>, Dim>{tiles, where, where.width, counts.data()});
    std::vector<std::int64_t> begin(static_cast<std::size_t>(count + 1));
    copy_to_host(space, counts.data(), counts.size(), &begin[1]);
    space.fence("Bracewell::Gridding: tile sizes are needed on the host");
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    const TileTasks host = TileTasks::make(space, begin.data(), count);
    return host.bytes() +
           static_cast<std::size_t>(partial_size(host.slots, slices)) * sizeof(Kokkos::complex<T>);
  }

private:
  static std::int64_t partial_size(int slots, std::int64_t slices) {
    return std::int64_t(slots) * slice_chunks(slices) * Edges::cells * gpu_gridding_tuning.tile_slices;
  }
};

} // namespace Bracewell::Impl
