// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/tomography/detail/stripe_columns.hpp>

namespace Bracewell::Impl {

inline constexpr int largest_stripe_window = 63;

/// Column that stands for one beyond the ends, where columns are mirrored.
KOKKOS_INLINE_FUNCTION int mirrored_column(int column, int width) {
  column = column < 0 ? -column : column;
  column = column >= width ? 2 * (width - 1) - column : column;
  return Kokkos::clamp(column, 0, width - 1);
}

/// A value of a column and the angle that it came from.
template <class T>
struct RankedValue {
  T value;
  int angle;

  /// What is not a number is ranked as infinity: there is an order of all values.
  KOKKOS_FUNCTION static RankedValue of(T value, int angle) {
    return {Kokkos::isnan(value) ? Kokkos::Experimental::infinity_v<T> : value, angle};
  }
  /// Equal values are in the order of their angles.
  KOKKOS_FUNCTION bool less(const RankedValue& other) const {
    return value < other.value || (value == other.value && angle < other.angle);
  }
};

/// Sorts a column by value on one thread, by heap sort: its worst case is its usual one.
template <class T>
struct SortColumn {
  SinogramOf<T> first;    ///< the slices lie one behind the other
  RankedValue<T>* ranked; ///< [slices, width, angles]

  KOKKOS_FUNCTION static void sift(RankedValue<T>* heap, int root, int count) {
    const RankedValue<T> value = heap[root];
    for (int child = 2 * root + 1; child < count; child = 2 * root + 1) {
      if (child + 1 < count && heap[child].less(heap[child + 1]))
        ++child;
      if (!value.less(heap[child]))
        break;
      heap[root] = heap[child];
      root = child;
    }
    heap[root] = value;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t column) const {
    const int P = first.angles, i = static_cast<int>(column % first.width);
    const SinogramOf<T> sinogram = first.next(column / first.width);
    RankedValue<T>* const heap = ranked + column * P;
    for (int p = 0; p < P; ++p)
      heap[p] = RankedValue<T>::of(sinogram(p, i), p);
    for (int root = P / 2 - 1; root >= 0; --root)
      sift(heap, root, P);
    for (int end = P - 1; end > 0; --end) {
      const RankedValue<T> largest = heap[0];
      heap[0] = heap[end];
      heap[end] = largest;
      sift(heap, 0, end);
    }
  }
};

/// Sorts columns on GPUs, or parts of long ones, each by a team: a bitonic network (Batcher 1968) over `items` neighbours in the registers of
/// each thread. Pairs within a thread are compared there, those within a warp by shuffles, others through scratch
/// memory.
template <class T, int items>
struct SortColumnByTeam {
  using Value = RankedValue<T>;
  static constexpr int slots = sizeof(T) == 4 ? 4 : 2; ///< of `items`, in scratch memory at once
  static constexpr int least = 32, most = 1024;        ///< threads

  SinogramOf<T> first; ///< the slices lie one behind the other
  Value* ranked;       ///< [slices, width, angles]
  int part;            ///< so many angles of a column, the last one fewer: part_of

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
    BRACEWELL_UNROLL
    for (int distance = items / 2; distance > 0; distance /= 2) {
      BRACEWELL_UNROLL
      for (int i = 0; i < items; ++i)
        if ((i & distance) == 0)
          order(mine[i], mine[i + distance], up);
    }
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int P = first.angles, threads = team.team_size(), thread = team.team_rank();
    const int parts = (P - 1) / part + 1, begin = team.league_rank() % parts * part,
              end = Kokkos::min(begin + part, P);
    const std::int64_t column = team.league_rank() / parts, slice = column / first.width;
    const int i = static_cast<int>(column % first.width);
    auto* const scratch = static_cast<Value*>(
        team.team_scratch(0).get_shmem_aligned(slots * threads * sizeof(Value), sizeof(Value)));
    const SinogramOf<T> sinogram = first.next(slice);
    Value mine[items];
    BRACEWELL_UNROLL
    for (int k = 0; k < items; ++k) {
      const int p = begin + k * threads + thread; // in any order
      mine[k] = Value::of(p < end ? sinogram(p, i) : Kokkos::Experimental::infinity_v<T>, p);
    }
    BRACEWELL_UNROLL
    for (int sorted = 2; sorted < items; sorted *= 2) {
      BRACEWELL_UNROLL
      for (int distance = sorted / 2; distance > 0; distance /= 2) {
        BRACEWELL_UNROLL
        for (int k = 0; k < items; ++k)
          if ((k & distance) == 0)
            order(mine[k], mine[k + distance], (k & sorted) == 0);
      }
    }
    merge(mine, (thread & 1) == 0);
    for (int sorted = 2; sorted <= threads; sorted *= 2) { // threads whose values are in order together
      const bool up = (thread & sorted) == 0;
      for (int distance = sorted / 2; distance > 0; distance /= 2)
        keep_halves(team, mine, distance, up == ((thread & distance) == 0), scratch);
      merge(mine, up);
    }
    Value* const out = ranked + column * P + begin;
    BRACEWELL_UNROLL
    for (int k = 0; k < items; ++k)
      if (thread * items + k < end - begin)
        out[thread * items + k] = mine[k];
  }

private:
  /// Of each value and that of the thread so far away the lower one, or the higher one.
  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION static void keep_halves(const Member& team, Value (&mine)[items], int distance,
                                                      bool lower, Value* scratch) {
    const auto keep = [lower](Value& own, const Value& other) {
      if (other.less(own) == lower)
        own = other;
    };
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
    if (distance < least) {
      BRACEWELL_UNROLL
      for (int k = 0; k < items; ++k)
        keep(mine[k],
             {from_opposite_lane(mine[k].value, distance), from_opposite_lane(mine[k].angle, distance)});
      return;
    }
#endif
    const int threads = team.team_size(), thread = team.team_rank();
    BRACEWELL_UNROLL
    for (int begin = 0; begin < items; begin += slots) {
      team.team_barrier(); // what was there has been read
      BRACEWELL_UNROLL
      for (int k = 0; k < slots; ++k)
        scratch[k * threads + thread] = mine[begin + k];
      team.team_barrier();
      BRACEWELL_UNROLL
      for (int k = 0; k < slots; ++k)
        keep(mine[begin + k], scratch[k * threads + (thread ^ distance)]);
    }
  }
};

/// Merges neighbouring sorted parts of columns: a thread finds by bisection where its `items` values begin in both (Odeh,
/// Green, Mwassi, Shmueli, Birk 2012).
template <class T, int items>
struct MergeSortedParts {
  using Value = RankedValue<T>;

  const Value* from; ///< [columns, angles]
  Value* to;
  int angles, part; ///< a multiple of `items`

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    const int threads = (angles - 1) / items + 1, begin = static_cast<int>(thread % threads) * items;
    const Value* const column = from + thread / threads * angles;
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
    Value* const out = to + thread / threads * angles;
    for (int k = begin; k < Kokkos::min(begin + items, angles); ++k)
      out[k] = second == end || (first < middle && column[first].less(column[second])) ? column[first++]
                                                                                       : column[second++];
  }
};

/// Medians over neighbouring columns of values of equal rank, back at the angles that they came from.
template <class T, int Window>
struct MedianOfRanks {
  SinogramOf<T> first;          ///< the slices lie one behind the other
  const RankedValue<T>* ranked; ///< [slices, width, angles]

  /// One team per column.
  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int P = first.angles, n = first.width, i = static_cast<int>(team.league_rank() % n);
    const std::int64_t slice = team.league_rank() / n;
    const SinogramOf<T> sinogram = first.next(slice);
    const RankedValue<T>* const columns = ranked + slice * n * P;
    const RankedValue<T>* neighbours[Window];
    for (int k = 0; k < Window; ++k)
      neighbours[k] = columns + std::int64_t(mirrored_column(i + k - Window / 2, n)) * P;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, P), [&](int rank) {
      T values[Window];
      for (int k = 0; k < Window; ++k)
        values[k] = neighbours[k][rank].value;
      // Odd and even neighbours in turn, as often as there are values: all in registers.
      for (int pass = 0; pass < Window; ++pass)
        for (int k = pass % 2; k + 1 < Window; k += 2) {
          const T low = Kokkos::min(values[k], values[k + 1]);
          values[k + 1] = Kokkos::max(values[k], values[k + 1]);
          values[k] = low;
        }
      sinogram(neighbours[Window / 2][rank].angle, i) = values[Window / 2];
    });
  }
};

} // namespace Bracewell::Impl
