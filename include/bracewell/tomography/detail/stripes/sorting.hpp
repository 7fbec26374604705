// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/tomography/detail/stripes/ranks.hpp>
#include <bracewell/tomography/detail/tuning.hpp>

#include <utility>

namespace Bracewell::Impl {

/// Sorts columns on GPUs, or parts of long ones, each by a team: a bitonic network (Batcher 1968) over `items` neighbours
/// in the registers of each thread. A thread compares its own pairs there, pairs within a warp by shuffles, others
/// through scratch memory.
template <class T, int items>
struct SortColumnByTeam {
  using Value = RankedValue<T>;
  static constexpr int slots = GPUStripeTuning<T>::exchanged_items; ///< of `items`, in scratch memory at once
  static constexpr int least = 32, most = 1024;                     ///< threads

  const T* values;         ///< [columns, angles]
  RankedColumns<T> ranked; ///< of them, which may be in the same place
  int length, part;        ///< angles of a column, and of its parts, the last one fewer: part_of

  /// Angles of the fewest parts of a column that teams can sort; where there are several, a multiple of `items`.
  static int part_of(int angles) {
    const int parts = (angles - 1) / (most * items) + 1;
    return parts == 1 ? angles : ((angles - 1) / parts / items + 1) * items;
  }
  /// Threads for a part.
  static int threads_for(int part) {
    int threads = least;
    while (threads * items < part)
      threads *= 2;
    return threads;
  }
  static int scratch_bytes(int threads) { return (slots * threads + 1) * int(sizeof(Value)); }

  /// Puts two values in order.
  KOKKOS_FORCEINLINE_FUNCTION static void order(Value& low, Value& high, bool up) {
    if (high.less(low) == up) {
      const Value other = low;
      low = high;
      high = other;
    }
  }

  /// The steps of a merge at distances below `items`.
  KOKKOS_FORCEINLINE_FUNCTION static void merge(Value (&mine)[items], bool up) {
    BRACEWELL_UNROLL_FOR (int distance = items / 2; distance > 0; distance /= 2) {
      BRACEWELL_UNROLL_FOR (int i = 0; i < items; ++i)
        if ((i & distance) == 0)
          order(mine[i], mine[i + distance], up);
    }
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int parts = (length - 1) / part + 1, number = static_cast<int>(team.league_rank()),
              begin = number % parts * part;
    const std::int64_t column = std::int64_t(number / parts) * length;
    auto* const scratch = static_cast<Value*>(
        team.team_scratch(0).get_shmem_aligned(slots * team.team_size() * sizeof(Value), sizeof(Value)));
    sort(team, values + column, ranked.from(column), begin, Kokkos::min(begin + part, length), scratch);
  }

private:
  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION static void sort(const Member& team, const T* values,
                                               const RankedColumns<T>& column, int begin, int end,
                                               Value* scratch) {
    const int threads = team.team_size(), thread = team.team_rank();
    Value mine[items];
    BRACEWELL_UNROLL_FOR (int k = 0; k < items; ++k) {
      const int p = begin + k * threads + thread; // in any order
      mine[k] = Value::of(p < end ? values[p] : Kokkos::Experimental::infinity_v<T>, p);
    }
    team.team_barrier(); // others may be written where these were
    BRACEWELL_UNROLL_FOR (int sorted = 2; sorted < items; sorted *= 2) {
      BRACEWELL_UNROLL_FOR (int distance = sorted / 2; distance > 0; distance /= 2) {
        BRACEWELL_UNROLL_FOR (int k = 0; k < items; ++k)
          if ((k & distance) == 0)
            order(mine[k], mine[k | distance], (k & sorted) == 0);
      }
    }
    merge(mine, (thread & 1) == 0);
    for (int sorted = 2; sorted <= threads; sorted *= 2) { // threads whose values are in order together
      const bool up = (thread & sorted) == 0;
      for (int distance = sorted / 2; distance > 0; distance /= 2)
        keep_halves(team, mine, distance, up == ((thread & distance) == 0), scratch);
      merge(mine, up);
    }
    BRACEWELL_UNROLL_FOR (int k = 0; k < items; ++k)
      if (begin + thread * items + k < end)
        column.put(begin + thread * items + k, mine[k]);
  }

  /// Keeps the lower one, or the higher one, of each value and the value of the thread at a distance.
  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION static void keep_halves(const Member& team, Value (&mine)[items], int distance,
                                                      bool lower, Value* scratch) {
    const auto keep = [lower](Value& own, const Value& other) {
      if (other.less(own) == lower)
        own = other;
    };
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
    if (distance < least) {
      BRACEWELL_UNROLL_FOR (int k = 0; k < items; ++k)
        keep(mine[k],
             {from_opposite_lane(mine[k].value, distance), from_opposite_lane(mine[k].angle, distance)});
      return;
    }
#endif
    const int threads = team.team_size(), thread = team.team_rank();
    BRACEWELL_UNROLL_FOR (int begin = 0; begin < items; begin += slots) {
      team.team_barrier(); // what was there has been read
      BRACEWELL_UNROLL_FOR (int k = 0; k < slots; ++k)
        scratch[k * threads + thread] = mine[begin + k];
      team.team_barrier();
      BRACEWELL_UNROLL_FOR (int k = 0; k < slots; ++k)
        keep(mine[begin + k], scratch[k * threads + (thread ^ distance)]);
    }
  }
};

/// Merges neighbouring sorted parts of columns: a thread finds by bisection where its `items` values begin in both (Odeh,
/// Green, Mwassi, Shmueli, Birk 2012).
template <class T, int items>
struct MergeSortedParts {
  RankedColumns<T> from, to;
  int angles, part; ///< a multiple of `items`

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    const int threads = (angles - 1) / items + 1, begin = static_cast<int>(thread % threads) * items;
    const RankedColumns<T> column = from.from(thread / threads * angles),
                           out = to.from(thread / threads * angles);
    const int pair = begin / part / 2 * (2 * part), middle = Kokkos::min(pair + part, angles),
              end = Kokkos::min(middle + part, angles), taken = begin - pair;
    int low = Kokkos::max(0, taken - (end - middle)), high = Kokkos::min(taken, middle - pair);
    while (low < high) { // values of the first part among those that come before
      const int tried = (low + high) / 2;
      if (column[pair + tried].less(column[middle + taken - 1 - tried]))
        low = tried + 1;
      else
        high = tried;
    }
    int first = pair + low, second = middle + taken - low;
    for (int k = begin; k < Kokkos::min(begin + items, angles); ++k)
      out.put(k, second == end || (first < middle && column[first].less(column[second])) ? column[first++]
                                                                                         : column[second++]);
  }
};

/// Memory of RankedColumns.
template <class Space, class T>
struct RankedVectors {
  Kokkos::View<T*, Space> values;
  Kokkos::View<int*, Space> angles;

  RankedVectors() = default;
  RankedVectors(const Space& space, const char* label, std::int64_t size)
      : values(device_vector<T>(space, label, size)),
        angles(device_vector<int>(space, {label, "_angles"}, size)) {}
  RankedColumns<T> columns() const { return {values.data(), angles.data()}; }
  std::size_t memory_bytes() const { return bytes_of(values, angles); }
  static constexpr std::size_t value_bytes = sizeof(T) + sizeof(int);
};

/// Sorts columns of values, in place: a thread of a host sorts a column, a team of a GPU sorts a column by a network. Teams
/// sort long columns in parts, which are merged.
template <class Space, class T>
class ColumnSorting {
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  static constexpr int items = GPUStripeTuning<T>::sorted_items; ///< that a thread of a GPU sorts
  using Network = SortColumnByTeam<T, items>;

public:
  ColumnSorting() = default;
  /// @param long_values  the most values of columns that are too long for a team
  ColumnSorting(const Space& space, std::int64_t long_values)
      : merged_(space, "Bracewell::StripeRemoval::merged", long_values) {}

  std::size_t memory_bytes() const { return merged_.memory_bytes(); }
  static std::size_t bytes_needed(std::int64_t long_values) {
    return std::size_t(long_values) * RankedVectors<Space, T>::value_bytes;
  }
  /// Of some columns.
  static std::int64_t long_values(std::int64_t columns, int length) {
    return !is_host<Space> && Network::part_of(length) < length ? columns * length : 0;
  }

  void sort(const Space& space, const RankedColumns<T>& ranked, std::int64_t columns, int length) const {
    if constexpr (is_host<Space>)
      launch_kernel("Bracewell::StripeRemoval::sort", Range(space, 0, columns),
                    SortColumn<T>{ranked, length});
    else
      sort_by_networks(space, ranked, columns, length);
  }

private:
  /// By one team for each part.
  void launch_network(const Space& space, std::int64_t parts, const Network& network) const {
    using Teams = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<Network::most, 1>>;
    const int threads = Network::threads_for(network.part);
    launch_kernel("Bracewell::StripeRemoval::sort",
                  Teams(space, static_cast<int>(parts), threads)
                      .set_scratch_size(0, Kokkos::PerTeam(Network::scratch_bytes(threads))),
                  network);
  }

  void sort_by_networks(const Space& space, const RankedColumns<T>& ranked, std::int64_t columns,
                        int length) const {
    const int part = Network::part_of(length), parts = (length - 1) / part + 1;
    int merges = 0;
    while ((std::int64_t(part) << merges) < length)
      ++merges;
    // The last merge leaves the values where they shall be.
    RankedColumns<T> from = merges % 2 == 0 ? ranked : merged_.columns(),
                     to = merges % 2 == 0 ? merged_.columns() : ranked;
    launch_network(space, columns * parts, Network{ranked.values, from, length, part});
    for (int merge = 0; merge < merges; ++merge, std::swap(from, to))
      launch_kernel("Bracewell::StripeRemoval::merge", Range(space, 0, columns * ((length - 1) / items + 1)),
                    MergeSortedParts<T, items>{from, to, length, part << merge});
  }

  RankedVectors<Space, T> merged_;
};

} // namespace Bracewell::Impl
