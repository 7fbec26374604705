// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/stripe_columns.hpp>

namespace Bracewell::Impl {

inline constexpr int largest_stripe_window = 63;

/// A value of a column and the angle that it came from.
template <class T>
struct RankedValue {
  T value;
  int angle;
};

/// Sorts a column by value, by heap sort: its worst case is its usual one.
template <class T>
struct SortColumn {
  SinogramOf<T> sinogram;
  RankedValue<T>* ranked; ///< [width, angles]

  KOKKOS_FUNCTION static void sift(RankedValue<T>* heap, int root, int count) {
    const RankedValue<T> value = heap[root];
    for (int child = 2 * root + 1; child < count; child = 2 * root + 1) {
      if (child + 1 < count && heap[child].value < heap[child + 1].value)
        ++child;
      if (!(value.value < heap[child].value))
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
      heap[p] = {sinogram(p, i), p};
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

/// Medians over neighbouring columns of values of equal rank, back at the angles that they came from.
template <class T>
struct MedianOfRanks {
  SinogramOf<T> sinogram;
  const RankedValue<T>* ranked;
  int window;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const std::int64_t P = sinogram.angles;
    const int i = static_cast<int>(item / P), rank = static_cast<int>(item % P), n = sinogram.width;
    T values[largest_stripe_window];
    for (int k = 0; k < window; ++k) {
      int column = i + k - window / 2; // mirrored at the ends
      column = column < 0 ? -column : column;
      column = column >= n ? 2 * (n - 1) - column : column;
      values[k] = ranked[Kokkos::clamp(column, 0, n - 1) * P + rank].value;
    }
    sinogram(ranked[item].angle, i) = median_of(values, window);
  }
};

} // namespace Bracewell::Impl
