// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/bin_grid.hpp>
#include <bracewell/gridding/detail/bins/bin_tasks.hpp>
#include <bracewell/gridding/detail/bins/sort_keys.hpp>
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/matrix_units.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/vector.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Impl {

/// Keys of all points, and how many are not finite.
template <class T, int Dim>
struct KeysOfPoints {
  PointLocations<T, Dim> where;
  BinGrid<Dim> bins;
  std::uint32_t* keys;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& not_finite) const {
    double cell[Dim];
    if (!where.locate(i, cell))
      ++not_finite;
    else
      keys[i] = bins.key(StoredLocations<T, Dim>{nullptr, 0}.of_cells(cell));
  }
};

/// Cells and bins of some points of a host, axis beside axis as in memory, in loops that compilers make vectors of.
template <int Dim>
struct PointBlock {
  static constexpr int points = 32, size = points * Dim;

  double cell[size]; ///< as PointLocations has them
  int bin[size];     ///< what an axis adds to the number of the bin

  template <class T>
  BRACEWELL_INLINE_FOR_TARGET PointBlock(const PointLocations<T, Dim>& where, const BinGrid<Dim>& bins) {
    for (int i = 0; i < size; ++i) {
      const int d = i % Dim;
      cells_[i] = whole_[i] = where.grid.size[d];
      raised_[i] = cells_[i] - where.least_offset();
      per_cell_[i] = bins.number[d] * bins.inverse[d]; // as BinGrid::index
      before_cell_[i] = (bins.number[d] - 0.5) * bins.inverse[d];
      bins_[i] = d == 0 ? 1 : bins_[i - 1] * bins.number[d - 1];
    }
  }

  /// Locates `count` points from number `begin` on. Returns how many are not finite, which are taken for zeros.
  BRACEWELL_INLINE_FOR_TARGET int locate(const PointArray& from, std::int64_t begin, int count) {
    const double* given = given_;
    if (from.data && from.strides[0] == Dim && from.strides[1] == 1 && count == points)
      given = from.data + begin * Dim;
    else
      gather(from, begin, count);
    std::int64_t bits = 0;
    for (int i = 0; i < size; ++i)
      bits |= Kokkos::bit_cast<std::int64_t>(given[i]);
    int not_finite = 0;
    if ((bits >> 62 & 1) != 0) { // some are 2 or more
      not_finite = reduce(given);
      given = given_;
    }
    for (int i = 0; i < size; ++i) {
      const double at = (given[i] - (static_cast<int>(given[i] + 2.5) - 2)) * cells_[i] + raised_[i];
      const int first = static_cast<int>(at), beyond = -static_cast<int>(first >= whole_[i]) & whole_[i];
      cell[i] = at - beyond;
      bin[i] = static_cast<int>((first - beyond) * per_cell_[i] + before_cell_[i]) * bins_[i];
    }
    return not_finite;
  }

private:
  /// Points that do not lie one behind the other.
  BRACEWELL_INLINE_FOR_TARGET void gather(const PointArray from, std::int64_t begin, int count) {
    for (int i = 0; i < count; ++i)
      for (int d = 0; d < Dim; ++d)
        given_[i * Dim + d] = from(begin + i, d);
    std::fill(given_ + count * Dim, given_ + size, 0.);
  }

  /// Numbers of 2 and more to less than 1, which is exact. Counts points that are not finite.
  [[gnu::noinline]] int reduce(const double* given) {
    int result = 0;
    for (int i = 0; i < size; i += Dim) {
      bool finite = true;
      for (int j = i; j < i + Dim; ++j) {
        finite = finite && is_finite(given[j]);
        const bool large = std::abs(given[j]) >= 2;
        given_[j] = !is_finite(given[j]) ? 0 : large ? given[j] - std::floor(given[j]) : given[j];
      }
      result += finite ? 0 : 1;
    }
    return result;
  }

  double given_[size], cells_[size], raised_[size], per_cell_[size], before_cell_[size];
  int whole_[size], bins_[size];
};

/// Locations in the order of bins, on GPUs.
template <class T, int Dim>
struct LocateInOrder {
  PointLocations<T, Dim> where;
  const std::uint32_t* order;
  StoredLocations<T, Dim> locations;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    double cell[Dim] = {};
    where.locate(order[i], cell);
    locations.set(i, cell);
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
template <class T, int Dim>
struct CountInBins {
  PointLocations<T, Dim> where;
  BinGrid<Dim> bins;
  std::uint32_t* counts;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    Kokkos::atomic_inc(counts + bins.bin_of(where[i]));
  }
};

/// Sorting on hosts. A thread counts the samples of every bin among its part of the points; then it writes their numbers and
/// locations to where the bins lie. Both times the same instructions find the bins.
template <class T, int Dim>
struct PartsOfPoints {
  PointLocations<T, Dim> where;
  BinGrid<Dim> bins;
  std::int64_t points, parts;
  std::uint32_t* places; ///< [parts, bins]: samples, and then the place of the next one
  std::uint32_t* order;
  StoredLocations<T, Dim> locations;
  bool counted = false;

  void operator()(std::int64_t part, std::int64_t& not_finite) const {
    run_with_vectors(*this, part, &not_finite);
  }
  template <int bytes>
  BRACEWELL_INLINE_FOR_TARGET void run(std::int64_t part, std::int64_t* not_finite) const {
    const PartsOfPoints from = *this; // no store changes it: it stays in registers
    std::uint32_t* const mine = places + part * bins.count();
    PointBlock<Dim> block(where, bins);
    const std::int64_t end = points * (part + 1) / parts;
    for (std::int64_t i = points * part / parts; i < end; i += block.points) {
      const int count = static_cast<int>(std::min<std::int64_t>(block.points, end - i));
      *not_finite += block.locate(from.where.points, i, count);
      for (int j = 0; j < count; ++j) {
        double cell[Dim];
        int bin = 0;
        for (int d = 0; d < Dim; ++d) {
          cell[d] = block.cell[j * Dim + d];
          bin += block.bin[j * Dim + d];
        }
        const std::uint32_t place = mine[bin]++;
        if (from.counted) {
          // What comes next in the bin: without this, half of the time is spent waiting for it.
          __builtin_prefetch(from.locations.values + place + 4, 1);
          __builtin_prefetch(from.order + place + 16, 1);
          from.order[place] = static_cast<std::uint32_t>(i + j);
          from.locations.set(place, cell);
        }
      }
    }
  }

  /// Samples of parts and bins to places, and to the places where bins begin.
  void add_up(std::uint32_t* first) const {
    std::uint32_t sum = 0;
    for (std::int64_t bin = 0; bin < bins.count(); ++bin) {
      first[bin] = sum;
      for (std::int64_t part = 0; part < parts; ++part)
        sum += std::exchange(places[part * bins.count() + bin], sum);
    }
    first[bins.count()] = sum;
  }
};

/// What orders the tasks of one launch on a GPU: a task begins after those before it, and a bin without slots says when
/// its tile is on the grid.
struct TaskOrder {
  std::uint32_t* begun;       ///< tasks; behind it [bins, slices], whether a bin has finished
  const std::uint32_t* first; ///< where the samples of every bin begin
  std::uint32_t alone;        ///< samples of a bin without slots, at most

  /// Of the next task to begin, the number. Tasks that wait for others find these begun, whatever the order in
  /// which a device starts teams.
  KOKKOS_FUNCTION std::uint32_t next() const { return Kokkos::atomic_fetch_add(begun, 1u); }
  KOKKOS_FUNCTION bool has_no_slots(std::uint32_t bin) const {
    const std::uint32_t samples = first[bin + 1] - first[bin];
    return samples > 0 && samples <= alone;
  }
  KOKKOS_FUNCTION void finish(std::int64_t i) const {
    Kokkos::memory_fence();
    Kokkos::atomic_store(begun + 1 + i, 1u);
  }
  KOKKOS_FUNCTION void wait_for(std::int64_t i) const {
    while (Kokkos::atomic_load(begun + 1 + i) == 0) {
    }
    Kokkos::memory_fence();
  }
};

/// What sorted samples take in memory, in numbers of elements.
template <class Space, int Dim>
struct SortedSizes {
  std::int64_t order, chunks, first; ///< of the samples, of their chunks, of the bins and one more
  std::int64_t progress;             ///< memory of TaskOrder, where a GPU has one launch for all bins
  std::int64_t partial;              ///< cells of the tiles of all slots

  SortedSizes(std::int64_t points, std::int64_t slices, const BinGrid<Dim>& bins, std::int64_t slots)
      : order(points), chunks(SampleChunks<Space>::count(points)), first(bins.count() + 1),
        progress(has_chip_memory<Space> ? 1 + bins.count() * slices : 0),
        partial(slots * slices * bins.tile_cells()) {}

  template <class T>
  std::size_t bytes() const {
    return static_cast<std::size_t>(order + chunks + first + progress) * sizeof(std::uint32_t) +
           static_cast<std::size_t>(partial) * sizeof(Kokkos::complex<T>);
  }
};

/// The samples in the order of bins, cut into tasks, and the memory that spreading them needs.
template <class Space, class T, int Dim>
struct SortedSamples {
  template <class Value>
  using Vector = Kokkos::View<Value*, Space>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  using Sizes = SortedSizes<Space, Dim>;

  BinGrid<Dim> bins = {};
  Vector<std::uint32_t> order; ///< numbers of the samples
  SampleChunks<Space> chunks;  ///< in which interpolation on GPUs takes them
  Vector<std::uint32_t> first; ///< where the samples of every bin begin, and where the last ones end
  Vector<BinTask> tasks;
  Vector<SplitBin> split;
  std::array<int, BinGrid<Dim>::most_colours + 1> task_end = {}, split_end = {};
  int slots = 0;
  std::int64_t largest = 0;           ///< samples of a bin, at most
  std::int64_t alone = 0;             ///< samples of a bin without slots, at most
  double box = 0;                     ///< samples that reach a box of SpreadMatrixBoxes, at most
  Vector<std::uint32_t> progress;     ///< memory of TaskOrder
  Vector<Kokkos::complex<T>> partial; ///< tiles of bins of which several teams have a part

  /// Sorts the points for plans of so many slices; `locations` come in the order of bins. Memory of earlier points is used
  /// again, or taken anew where other points need more.
  /// @return  how many are not finite: then nothing was sorted
  std::int64_t sort(const Space& space, const PointLocations<T, Dim>& where, std::int64_t points,
                    std::int64_t slices, const StoredLocations<T, Dim>& locations,
                    const Arguments& arguments) {
    resize(space, "Bracewell::Gridding::order", order, points);
    resize(space, "Bracewell::Gridding::first_of_bins", first, bins.count() + 1);
    std::vector<std::uint32_t> begin;
    const std::int64_t not_finite = sort_by_bins(space, where, points, locations, begin);
    if (not_finite > 0)
      return not_finite;
    // The host makes tasks while a GPU locates.
    const auto host = make_tasks(space, bins, is_host<Space> ? first.data() : begin.data(), points);
    arguments.within<std::int64_t>("options.slices", slices, 0,
                                   std::numeric_limits<int>::max() /
                                       std::max<std::int64_t>(1, std::int64_t(host.tasks.size())),
                                   " (of a launch of bins)");
    task_end = host.task_end;
    split_end = host.split_end;
    slots = host.slots;
    largest = host.largest;
    alone = host.alone;
    if constexpr (Dim == 3 && !is_host<Space> && matrix_units)
      box = largest_box(bins, begin.data(), matrix_box_edge);
    store(space, "Bracewell::Gridding::bin_tasks", host.tasks, tasks);
    store(space, "Bracewell::Gridding::split_bins", host.split, split);
    const Sizes sizes(points, slices, bins, slots);
    resize(space, "Bracewell::Gridding::progress", progress, sizes.progress);
    if (static_cast<std::int64_t>(partial.size()) < sizes.partial)
      resize(space, "Bracewell::Gridding::partial_sums", partial, sizes.partial);
    space.fence("Bracewell::Gridding: tasks are copied");
    return 0;
  }

  std::size_t memory_bytes() const {
    return bytes_of(order, first, chunks.order, tasks, split, progress, partial);
  }

  /// What memory_bytes() would be. It counts samples but does not sort them.
  static std::size_t bytes_needed(const Space& space, const PointLocations<T, Dim>& where,
                                  std::int64_t points, std::int64_t slices, const BinGrid<Dim>& bins) {
    const Vector<std::uint32_t> counts(Kokkos::view_alloc(space, "Bracewell::Gridding::bin_counts"),
                                       bins.count());
    launch_kernel("Bracewell::Gridding::count_in_bins", Range(space, 0, points),
                  CountInBins<T, Dim>{where, bins, counts.data()});
    std::vector<std::uint32_t> begin(static_cast<std::size_t>(bins.count() + 1));
    read_sizes(space, counts, &begin[1]);
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    const auto tasks = make_tasks(space, bins, begin.data(), points);
    return Sizes(points, slices, bins, tasks.slots).template bytes<T>() + tasks.bytes();
  }

  /// The order of a launch, from the first task on.
  TaskOrder start(const Space& space, std::int64_t slices) const {
    clear(space, "Bracewell::Gridding::progress", progress.data(), 1 + bins.count() * slices);
    return {progress.data(), first.data(), static_cast<std::uint32_t>(alone)};
  }

private:
  /// Order and locations; `begin` becomes a copy of `first` where the host cannot read that. Returns how many points are
  /// not finite.
  std::int64_t sort_by_bins(const Space& space, const PointLocations<T, Dim>& where, std::int64_t points,
                            const StoredLocations<T, Dim>& locations,
                            [[maybe_unused]] std::vector<std::uint32_t>& begin) {
    std::int64_t not_finite = 0;
    if constexpr (is_host<Space>) {
      const std::int64_t parts = std::clamp<std::int64_t>(points / std::max<std::int64_t>(bins.count(), 4096),
                                                          1, space.concurrency());
      std::vector<std::uint32_t> places(static_cast<std::size_t>(parts * bins.count()));
      PartsOfPoints<T, Dim> sort{where, bins, points, parts, places.data(), order.data(), locations};
      const auto each_part = Range(space, 0, parts, Kokkos::ChunkSize(1));
      Kokkos::parallel_reduce("Bracewell::Gridding::count_in_bins", each_part, sort, not_finite);
      if (not_finite > 0)
        return not_finite;
      sort.add_up(first.data());
      sort.counted = true;
      Kokkos::parallel_reduce("Bracewell::Gridding::locate_in_bins", each_part, sort, not_finite);
    } else {
      // Keys, and what sorting needs beside them, lie where locations come afterwards.
      constexpr std::size_t words = sizeof(*locations.values) / sizeof(std::uint32_t);
      static_assert(words >= 4);
      const SortMemory<Space> memory(reinterpret_cast<std::uint32_t*>(locations.values),
                                     words * static_cast<std::size_t>(points));
      const SortMemory<Space> keys(memory.data(), static_cast<std::size_t>(points));
      const SortMemory<Space> beside(memory.data() + points, memory.size() - keys.size());
      Kokkos::parallel_reduce("Bracewell::Gridding::keys_of_points", Range(space, 0, points),
                              KeysOfPoints<T, Dim>{where, bins, keys.data()}, not_finite);
      if (not_finite > 0)
        return not_finite;
      const auto below = static_cast<std::uint32_t>(bins.count() * bins.cells_of_key());
      const std::uint32_t* const sorted = sort_keys<Space>(space, keys, order, below, beside);
      launch_kernel(
          "Bracewell::Gridding::first_of_bins", Range(space, 0, bins.count() + 1),
          FirstOfBins{sorted, static_cast<std::uint32_t>(points), bins.cells_of_key(), first.data()});
      begin.resize(static_cast<std::size_t>(bins.count() + 1));
      read_sizes(space, first, begin.data());
      chunks.sort(space, order.data(), points, memory);
      launch_kernel("Bracewell::Gridding::locate_in_order", Range(space, 0, points),
                    LocateInOrder<T, Dim>{where, order.data(), locations});
    }
    return 0;
  }

  static BinTasks<Dim> make_tasks(const Space& space, const BinGrid<Dim>& bins, const std::uint32_t* begin,
                                  std::int64_t points) {
    const std::int64_t teams = bin_teams_at_once<Space, T>(space, bins);
    return BinTasks<Dim>::make(bins, begin, BinTasks<Dim>::limits(space, points, teams));
  }

  /// Takes other memory only where there are more or fewer values.
  template <class Value>
  static void resize(const Space& space, const std::string& label, Vector<Value>& values, std::int64_t size) {
    if (static_cast<std::int64_t>(values.size()) != size)
      values = device_vector<Value>(space, label, size);
  }
  template <class Value>
  static void store(const Space& space, const std::string& label, const std::vector<Value>& values,
                    Vector<Value>& to) {
    resize(space, label, to, static_cast<std::int64_t>(values.size()));
    copy_to_device(space, values.data(), values.size(), to.data());
  }

  static void read_sizes(const Space& space, const Vector<std::uint32_t>& from, std::uint32_t* to) {
    copy_to_host(space, from.data(), from.size(), to);
    space.fence("Bracewell::Gridding: sizes of bins are needed on the host");
  }
};

} // namespace Bracewell::Impl
