// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bin_turns.hpp>
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/sample_chunks.hpp>
#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/impl/chip_teams.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace Bracewell::Impl {

/// Bins of a grid: boxes of cells, to each of which belong the samples whose first taps lie in it. The taps of
/// its samples reach its tile, up to width - 1 cells beyond it. Bins of one colour have the same indices modulo
/// `turns`, of which their number along every axis is a multiple, and the turns - 1 bins between two of them
/// are width - 1 long, so that their tiles do not meet.
template <int Dim>
struct BinGrid {
  static constexpr int dimensions = Dim, most_turns = 4;
  static constexpr int most_colours = 1 << 2 * Dim;
  static constexpr int most_width = 16; ///< of kernels

  GridShape<Dim> grid;
  int width, turns;
  int number[Dim]; ///< of bins along an axis
  int edge[Dim];   ///< of the longest one
  int stride;      ///< of the rows of tiles in scratch memory
  bool by_cell;    ///< samples of a bin are sorted by the cells of their first taps

  /// @param wanted  edges that bins have about
  /// @param turns   2; more where bins shorter than width - 1 are wanted, for the sake of small tiles
  /// @param period  rows of taps are neighbours modulo so many cells, which keeps lanes on taps out of each
  ///                other's banks of scratch memory
  static BinGrid make(const GridShape<Dim>& grid, int width, const int (&wanted)[3], int turns, int period) {
    BinGrid bins{
        .grid = grid, .width = width, .turns = turns, .number = {}, .edge = {}, .stride = 0, .by_cell = true};
    const int least = (width - 1 + turns - 2) / (turns - 1);
    for (int d = 0; d < Dim; ++d) {
      const int size = grid.size[d], most = std::max(wanted[d], least);
      int& number = bins.number[d];
      number = turns * ((size + turns * most - 1) / (turns * most));
      while (number > turns && size / number < least)
        number -= turns;
      bins.edge[d] = (size + number - 1) / number;
    }
    bins.stride = bins.span(0);
    while (bins.stride % period != width % period)
      ++bins.stride;
    return bins;
  }

  /// Cells of a tile along an axis, at most.
  KOKKOS_FUNCTION int span(int axis) const { return edge[axis] + width - 1; }
  KOKKOS_FUNCTION int tile_rows() const {
    int product = 1;
    for (int d = 1; d < Dim; ++d)
      product *= span(d);
    return product;
  }
  KOKKOS_FUNCTION int tile_cells() const { return tile_rows() * stride; }

  KOKKOS_FUNCTION std::int64_t count() const {
    std::int64_t product = 1;
    for (int d = 0; d < Dim; ++d)
      product *= number[d];
    return product;
  }

  /// The first cell of bin `index` along an axis, and the bin of a cell.
  KOKKOS_FUNCTION int first(int index, int axis) const {
    return static_cast<int>(std::int64_t(index) * grid.size[axis] / number[axis]);
  }
  KOKKOS_FUNCTION int index(int cell, int axis) const {
    return static_cast<int>((std::int64_t(cell + 1) * number[axis] - 1) / grid.size[axis]);
  }

  /// Cells of a bin, at most.
  KOKKOS_FUNCTION std::int64_t bin_cells() const {
    std::int64_t product = 1;
    for (int d = 0; d < Dim; ++d)
      product *= edge[d];
    return product;
  }

  /// First cell and number of cells of a bin.
  KOKKOS_FUNCTION void box(std::uint32_t bin, int (&origin)[Dim], int (&length)[Dim]) const {
    for (int d = 0; d < Dim; ++d) {
      const int at = static_cast<int>(bin % number[d]);
      origin[d] = first(at, d);
      length[d] = first(at + 1, d) - origin[d];
      bin /= number[d];
    }
  }

  KOKKOS_FUNCTION int colour(std::int64_t bin) const {
    int result = 0;
    for (int d = 0; d < Dim; ++d) {
      result = result * turns + static_cast<int>(bin % number[d] % turns);
      bin /= number[d];
    }
    return result;
  }

  /// Bins whose tiles may meet that of one: number `i` of them, which may be the bin itself.
  KOKKOS_FUNCTION int neighbours() const {
    int product = 1;
    for (int d = 0; d < Dim; ++d)
      product *= 2 * turns - 1;
    return product;
  }
  KOKKOS_FUNCTION std::uint32_t neighbour(std::uint32_t bin, int i) const {
    std::uint32_t result = 0, before = 1; // bins before the next one along an axis
    for (int d = 0; d < Dim; ++d) {
      const int at = static_cast<int>(bin % number[d]) + i % (2 * turns - 1) - (turns - 1) + number[d];
      result += before * static_cast<std::uint32_t>(at % number[d]);
      before *= static_cast<std::uint32_t>(number[d]);
      bin /= number[d];
      i /= 2 * turns - 1;
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
  KOKKOS_FUNCTION std::uint32_t key(const Location<T, Dim>& at) const {
    std::uint32_t bin = 0, cell = 0;
    for (int d = Dim - 1; d >= 0; --d) {
      const int here = index(at.first[d], d);
      bin = bin * number[d] + here;
      cell = cell * edge[d] + (at.first[d] - first(here, d));
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

/// The bins that a space works with: edges from the tuning, or shorter ones where scratch memory is too small
/// for their tiles.
template <class Space, class T, int Dim>
BinGrid<Dim> bin_grid(const Space& space, const GridShape<Dim>& grid, int width) {
  const TileShape shape = tuning_of<Space>.bin(Dim);
  const int period = is_host<Space> ? 1 : static_cast<int>(128 / (2 * sizeof(T)));
  auto bins = BinGrid<Dim>::make(grid, width, {shape.x, shape.y, shape.z}, 2, period);
  for (int turns = 2; turns <= bins.most_turns && bin_scratch_bytes(bins, sizeof(T)) > most_scratch(space);
       ++turns)
    bins = BinGrid<Dim>::make(grid, width, {1, 1, 1}, turns, 1);
  bins.by_cell = !is_host<Space>; // there the tile of a bin is in a cache
  return bins;
}

/// A piece of work: samples begin .. end in the order of bins, which belong to one. Of bins with many samples
/// there are several, each with memory of its own (slot) for its tile; otherwise slot is negative.
struct BinTask {
  std::uint32_t begin, end, bin;
  std::int32_t slot;
};

/// A bin whose tiles lie in slots first .. first + count - 1.
struct SplitBin {
  std::uint32_t bin;
  std::int32_t first, count;
};

/// The pieces of work of all bins.
template <int Dim>
struct BinTasks {
  static constexpr int colours = BinGrid<Dim>::most_colours;

  std::vector<BinTask> tasks;                       ///< those with slots, then the others colour by colour
  std::vector<SplitBin> split;                      ///< colour by colour
  std::array<int, colours + 1> task_end, split_end; ///< of colour c at c + 1; before the first at 0
  int slots = 0;
  std::int64_t largest = 0; ///< samples of a bin, at most
  std::int64_t alone = 0;   ///< samples of a bin without slots, at most

  struct Limits {
    std::int64_t most;  ///< samples of a task
    std::int64_t alone; ///< samples of a bin that has no slot: a task of `most` would keep others waiting
    std::int64_t tasks; ///< of bins with slots: whole rounds of the teams at work, for which `most` may grow
  };

  /// No task takes more samples than a small share of what one of the teams that run at once does in all:
  /// points that crowd into few bins are shared by all teams.
  /// @param teams  at work at once
  template <class Space>
  static Limits limits(const Space& space, std::int64_t points, std::int64_t teams) {
    constexpr const GriddingTuning& tuning = tuning_of<Space>;
    const std::int64_t wanted = std::int64_t(space.concurrency()) * tuning.bin_tasks / tuning.bin_lanes;
    const std::int64_t tasks = std::max<std::int64_t>(wanted / teams, 1) * teams;
    const std::int64_t most =
        std::clamp<std::int64_t>(points / tasks, tuning.least_bin_task, tuning.most_bin_task);
    return {most, most / tuning.bin_share_alone, tasks};
  }

  /// @param begin  where the samples of every bin begin, and where the last ones end
  static BinTasks make(const BinGrid<Dim>& bins, const std::uint32_t* begin, Limits limits) {
    BinTasks result;
    result.alone = limits.alone;
    // Bins of a colour; below, where the next one of it belongs.
    std::array<int, colours> whole = {}, divided = {};
    std::vector<std::int64_t> large;
    for_each_filled(bins, begin, [&](std::uint32_t, std::int64_t samples, int colour) {
      result.largest = std::max(result.largest, samples);
      ++(samples <= limits.alone ? whole : divided)[colour];
      if (samples > limits.alone)
        large.push_back(samples);
    });
    const std::int64_t most = rounded(large, limits);
    for (const std::int64_t samples : large)
      result.slots += static_cast<int>((samples + most - 1) / most);
    result.task_end[0] = result.slots;
    result.split_end[0] = 0;
    for (int colour = 0; colour < colours; ++colour) {
      result.task_end[colour + 1] =
          result.task_end[colour] + std::exchange(whole[colour], result.task_end[colour]);
      result.split_end[colour + 1] =
          result.split_end[colour] + std::exchange(divided[colour], result.split_end[colour]);
    }
    result.tasks.resize(static_cast<std::size_t>(result.task_end[colours]));
    result.split.resize(static_cast<std::size_t>(result.split_end[colours]));
    int slot = 0;
    for_each_filled(bins, begin, [&](std::uint32_t bin, std::int64_t samples, int colour) {
      const std::int64_t first = begin[bin];
      if (samples <= limits.alone) {
        result.tasks[whole[colour]++] = {begin[bin], begin[bin + 1], bin, -1};
        return;
      }
      const std::int64_t parts = (samples + most - 1) / most;
      result.split[divided[colour]++] = {bin, slot, std::int32_t(parts)};
      for (std::int64_t i = 0; i < parts; ++i, ++slot)
        result.tasks[slot] = {std::uint32_t(first + samples * i / parts),
                              std::uint32_t(first + samples * (i + 1) / parts), bin, slot};
    });
    return result;
  }

  std::size_t bytes() const { return tasks.size() * sizeof(BinTask) + split.size() * sizeof(SplitBin); }

private:
  /// Calls visit(bin, samples, colour) for every bin that has samples. Colours are counted along: divisions would take
  /// most of the time that a host needs for tens of thousands of bins.
  template <class Visit>
  static void for_each_filled(const BinGrid<Dim>& bins, const std::uint32_t* begin, const Visit& visit) {
    const auto count = static_cast<std::uint32_t>(bins.count());
    int at[Dim] = {}, turn[Dim] = {};
    for (std::uint32_t bin = 0; bin < count; ++bin) {
      if (const std::int64_t samples = begin[bin + 1] - begin[bin]; samples > 0) {
        int colour = 0; // as BinGrid::colour
        for (int d = 0; d < Dim; ++d)
          colour = colour * bins.turns + turn[d];
        visit(bin, samples, colour);
      }
      for (int d = 0; d < Dim; ++d) {
        turn[d] = turn[d] + 1 == bins.turns ? 0 : turn[d] + 1;
        if (++at[d] < bins.number[d])
          break;
        at[d] = 0; // and so is the turn: numbers are multiples of turns
      }
    }
  }

  /// `most`, or as much more as bins with slots take to be no more tasks than wanted: a few more would be a round
  /// of their own, in which most teams have nothing to do.
  /// @param large  samples of the bins with slots
  static std::int64_t rounded(const std::vector<std::int64_t>& large, const Limits& limits) {
    for (std::int64_t most = limits.most; most < 2 * limits.most; most += limits.most / 64 + 1) {
      std::int64_t tasks = 0;
      for (const std::int64_t samples : large)
        tasks += (samples + most - 1) / most;
      if (tasks <= limits.tasks)
        return most;
    }
    return limits.most;
  }
};

/// Teams of SpreadBinsGpu that a GPU has at work at once; 1 elsewhere.
template <class Space, class T, int Dim>
std::int64_t bin_teams_at_once([[maybe_unused]] const Space& space,
                               [[maybe_unused]] const BinGrid<Dim>& bins) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (has_chip_memory<Space>) {
    const auto& gpu = space.cuda_device_prop();
    const std::size_t bytes = bin_scratch_bytes(bins, sizeof(T)) + 64 + 1024; // 1 KB is the system's
    const auto fit = static_cast<std::int64_t>(gpu.sharedMemPerMultiprocessor / bytes);
    return gpu.multiProcessorCount * std::clamp<std::int64_t>(fit, 1, bin_teams(Dim, sizeof(T)));
  }
#endif
  return 1;
}

/// Keys of all points, and how many are not finite.
template <class Points, class T, int Dim>
struct KeysOfPoints {
  PointLocations<Points, T, Dim> where;
  BinGrid<Dim> bins;
  std::uint32_t* keys;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& not_finite) const {
    Location<T, Dim> at = {};
    if (!where.locate(i, at))
      ++not_finite;
    else
      keys[i] = bins.key(at);
  }
};

/// Locations in the order of bins.
template <class Points, class T, int Dim>
struct LocateInOrder {
  PointLocations<Points, T, Dim> where;
  const std::uint32_t* order;
  std::int64_t points;
  Location<T, Dim>* locations;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if constexpr (Kokkos::is_view_v<Points>) { // they lie anywhere in memory
      KOKKOS_IF_ON_HOST((__builtin_prefetch(&where.points(order[Kokkos::min(i + 16, points - 1)], 0));))
    }
    locations[i] = where[order[i]];
  }
};

/// Where the samples of every bin begin among sorted keys.
struct FirstOfBins {
  const std::uint32_t* keys;
  std::uint32_t points, cells_of_key;
  std::uint32_t* begin;

  KOKKOS_FUNCTION void operator()(std::int64_t bin) const {
    std::uint32_t low = 0, high = points;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (keys[middle] / cells_of_key < bin)
        low = middle + 1;
      else
        high = middle;
    }
    begin[bin] = low;
  }
};

/// Counts the samples of every bin.
template <class Points, class T, int Dim>
struct CountInBins {
  PointLocations<Points, T, Dim> where;
  BinGrid<Dim> bins;
  std::uint32_t* counts;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    Kokkos::atomic_inc(counts + bins.key(where[i]) / bins.cells_of_key());
  }
};

/// The samples in the order of bins, cut into tasks.
template <class Space, class T, int Dim>
struct Bins {
  template <class Value>
  using Vector = Kokkos::View<Value*, Space>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;

  BinGrid<Dim> grid = {};
  Vector<std::uint32_t> order; ///< numbers of the samples
  SampleChunks<Space> chunks;  ///< in which interpolation on GPUs takes them
  Vector<std::uint32_t> first; ///< where the samples of every bin begin, and where the last ones end
  Vector<BinTask> tasks;
  Vector<SplitBin> split;
  std::array<int, BinGrid<Dim>::most_colours + 1> task_end = {}, split_end = {};
  int slots = 0;
  std::int64_t largest = 0;           ///< samples of a bin, at most
  std::int64_t alone = 0;             ///< samples of a bin without slots, at most
  Vector<std::uint32_t> turn_of_bins; ///< [turn_count], memory of BinTurns

  /// Sorts the points; `locations` come in the order of bins. Memory of earlier points is used again.
  /// @return  how many are not finite: then nothing was sorted
  template <class Points>
  std::int64_t sort(const Space& space, const PointLocations<Points, T, Dim>& where, std::int64_t points,
                    Location<T, Dim>* locations) {
    if (static_cast<std::int64_t>(order.size()) != points)
      order = device_vector<std::uint32_t>(space, "Bracewell::Gridding::order", points);
    // Keys, and what sorting needs beside them, lie where locations come afterwards.
    constexpr std::size_t words = sizeof(Location<T, Dim>) / sizeof(std::uint32_t);
    static_assert(words >= 4);
    const SortMemory<Space> memory(reinterpret_cast<std::uint32_t*>(locations),
                                   words * static_cast<std::size_t>(points));
    const SortMemory<Space> keys(memory.data(), static_cast<std::size_t>(points));
    const SortMemory<Space> beside(memory.data() + points, memory.size() - keys.size());
    if (static_cast<std::int64_t>(first.size()) != grid.count() + 1)
      first = device_vector<std::uint32_t>(space, "Bracewell::Gridding::first_of_bins", grid.count() + 1);
    std::int64_t not_finite = 0;
    Kokkos::parallel_reduce("Bracewell::Gridding::keys_of_points", Range(space, 0, points),
                            KeysOfPoints<Points, T, Dim>{where, grid, keys.data()}, not_finite);
    if (not_finite > 0)
      return not_finite;
    const auto below = static_cast<std::uint32_t>(grid.count() * grid.cells_of_key());
    const std::uint32_t* const sorted = sort_keys<Space>(space, keys, order, below, beside);
    Kokkos::parallel_for(
        "Bracewell::Gridding::first_of_bins", Range(space, 0, grid.count() + 1),
        FirstOfBins{sorted, static_cast<std::uint32_t>(points), grid.cells_of_key(), first.data()});
    std::vector<std::uint32_t> begin(static_cast<std::size_t>(grid.count() + 1));
    copy_to_host(space, first, begin.data());
    chunks.sort(space, order.data(), points, memory);
    Kokkos::parallel_for("Bracewell::Gridding::locate_in_order", Range(space, 0, points),
                         LocateInOrder<Points, T, Dim>{where, order.data(), points, locations});
    // The host makes tasks while a GPU does that.
    const auto host = make_tasks(space, grid, begin.data(), points);
    task_end = host.task_end;
    split_end = host.split_end;
    slots = host.slots;
    largest = host.largest;
    alone = host.alone;
    copy_to_device(space, "Bracewell::Gridding::bin_tasks", host.tasks, tasks);
    copy_to_device(space, "Bracewell::Gridding::split_bins", host.split, split);
    space.fence("Bracewell::Gridding: tasks are copied");
    return 0;
  }

  /// The tasks that sorting would make. It counts samples but does not sort them.
  template <class Points>
  static BinTasks<Dim> tasks_of(const Space& space, const PointLocations<Points, T, Dim>& where,
                                std::int64_t points, const BinGrid<Dim>& grid) {
    const Vector<std::uint32_t> counts(Kokkos::view_alloc(space, "Bracewell::Gridding::bin_counts"),
                                       grid.count());
    Kokkos::parallel_for("Bracewell::Gridding::count_in_bins", Range(space, 0, points),
                         CountInBins<Points, T, Dim>{where, grid, counts.data()});
    std::vector<std::uint32_t> begin(static_cast<std::size_t>(grid.count() + 1));
    copy_to_host(space, counts, &begin[1]);
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    return make_tasks(space, grid, begin.data(), points);
  }

  /// Elements of turn_of_bins.
  static std::int64_t turn_count(const BinGrid<Dim>& grid, std::int64_t slices) {
    return has_chip_memory<Space> ? 1 + grid.count() * slices : 0;
  }

  /// The turns of a launch, from the first one on.
  BinTurns turns(const Space& space, std::int64_t slices) const {
    clear(space, "Bracewell::Gridding::turns", turn_of_bins.data(), turn_count(grid, slices));
    return {turn_of_bins.data(), first.data(), static_cast<std::uint32_t>(alone)};
  }

private:
  static BinTasks<Dim> make_tasks(const Space& space, const BinGrid<Dim>& grid, const std::uint32_t* begin,
                                  std::int64_t points) {
    const std::int64_t teams = bin_teams_at_once<Space, T>(space, grid);
    return BinTasks<Dim>::make(grid, begin, BinTasks<Dim>::limits(space, points, teams));
  }

  /// Takes other memory only where there are more or fewer values.
  template <class Value>
  static void copy_to_device(const Space& space, const std::string& label, const std::vector<Value>& values,
                             Vector<Value>& to) {
    if (to.size() != values.size())
      to = device_vector<Value>(space, label, static_cast<std::int64_t>(values.size()));
    Kokkos::deep_copy(
        space, to,
        Kokkos::View<const Value*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(values.data(), values.size()));
  }

  static void copy_to_host(const Space& space, const Vector<std::uint32_t>& from, std::uint32_t* to) {
    Kokkos::deep_copy(
        space, Kokkos::View<std::uint32_t*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(to, from.size()),
        from);
    space.fence("Bracewell::Gridding: sizes of bins are needed on the host");
  }
};

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
