// SPDX-License-Identifier: MIT
#pragma once

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
  SinogramOf<T> sinogram;
  RankedValue<T>* ranked; ///< [width, angles]

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

  KOKKOS_FUNCTION void operator()(int i) const {
    const int P = sinogram.angles;
    RankedValue<T>* const heap = ranked + std::int64_t(i) * P;
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

/// Sorts a column by value in a team's scratch memory: a bitonic network (Batcher 1968), in which a team compares
/// pairs at fixed distances.
template <class T>
struct SortColumnByTeam {
  SinogramOf<T> sinogram;
  RankedValue<T>* ranked; ///< [width, angles]
  int padded;             ///< power of two, the angles at least

  static int padded_size(int angles) {
    int size = 2;
    while (size < angles)
      size *= 2;
    return size;
  }
  static std::size_t scratch_bytes(int padded) { return (std::size_t(padded) + 1) * sizeof(RankedValue<T>); }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int P = sinogram.angles, i = static_cast<int>(team.league_rank());
    auto* const column = static_cast<RankedValue<T>*>(
        team.team_scratch(0).get_shmem_aligned(padded * sizeof(RankedValue<T>), sizeof(RankedValue<T>)));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, padded), [&](int p) {
      column[p] = RankedValue<T>::of(p < P ? sinogram(p, i) : Kokkos::Experimental::infinity_v<T>, p);
    });
    team.team_barrier();
    for (int sorted = 2; sorted <= padded; sorted *= 2)
      for (int distance = sorted / 2; distance > 0; distance /= 2) {
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, padded / 2), [&](int pair) {
          const int low = 2 * pair - (pair & (distance - 1)), high = low + distance;
          const RankedValue<T> a = column[low], b = column[high];
          if (b.less(a) == ((low & sorted) == 0)) {
            column[low] = b;
            column[high] = a;
          }
        });
        team.team_barrier();
      }
    RankedValue<T>* const out = ranked + std::int64_t(i) * P;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, P), [&](int p) { out[p] = column[p]; });
  }
};

/// Medians over neighbouring columns of values of equal rank, back at the angles that they came from.
template <class T, int Window>
struct MedianOfRanks {
  SinogramOf<T> sinogram;
  const RankedValue<T>* ranked;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const std::int64_t P = sinogram.angles;
    const int i = static_cast<int>(item / P), rank = static_cast<int>(item % P), n = sinogram.width;
    T values[Window];
    for (int k = 0; k < Window; ++k)
      values[k] = ranked[mirrored_column(i + k - Window / 2, n) * P + rank].value;
    // Odd and even neighbours in turn, as often as there are values: all in registers.
    for (int pass = 0; pass < Window; ++pass)
      for (int k = pass % 2; k + 1 < Window; k += 2) {
        const T low = Kokkos::min(values[k], values[k + 1]);
        values[k + 1] = Kokkos::max(values[k], values[k + 1]);
        values[k] = low;
      }
    sinogram(ranked[item].angle, i) = values[Window / 2];
  }
};

} // namespace Bracewell::Impl
