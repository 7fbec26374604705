// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// The middle one of an odd number of values, which are sorted.
template <class T>
KOKKOS_FUNCTION T median_of(T* values, int count) {
  for (int i = 1; i < count; ++i) {
    const T value = values[i];
    int j = i;
    for (; j > 0 && values[j - 1] > value; --j)
      values[j] = values[j - 1];
    values[j] = value;
  }
  return values[count / 2];
}

/// The sinogram of one slice.
template <class T>
struct SinogramOf {
  T* values; ///< [angles, width]
  int angles, width;
  KOKKOS_FUNCTION T& operator()(int p, int i) const { return values[std::int64_t(p) * width + i]; }
};

/// Mean over the angles of every column, and how much it changes: the mean of |value - mean of 11 around it|.
template <class T>
struct ColumnStatistics {
  SinogramOf<T> sinogram;
  T *mean, *change;

  KOKKOS_FUNCTION void operator()(int i) const {
    constexpr int reach = 5;
    const int P = sinogram.angles;
    T sum = 0, around = 0, changes = 0;
    for (int p = 0; p < Kokkos::min(+reach, P); ++p)
      around += sinogram(p, i);
    for (int p = 0; p < P; ++p) {
      if (p + reach < P)
        around += sinogram(p + reach, i);
      if (p > reach)
        around -= sinogram(p - reach - 1, i);
      const int count = Kokkos::min(P - 1, p + reach) - Kokkos::max(0, p - reach) + 1;
      sum += sinogram(p, i);
      changes += Kokkos::abs(sinogram(p, i) - around / T(count));
    }
    mean[i] = sum / T(P);
    change[i] = changes / T(P);
  }
};

/// 1 for columns that change much more, or less, than those to their left and those to their right, else 0.
template <class T>
struct MarkDeadColumns {
  const T* change;
  T* dead;
  int width;
  T ratio;

  /// Median of up to 15 columns from `begin` on, none beyond the detector; `otherwise` where there is none.
  KOKKOS_FUNCTION T usual(int begin, T otherwise) const {
    constexpr int reach = 15;
    T values[reach];
    int count = 0;
    for (int i = Kokkos::max(begin, 0); i < Kokkos::min(begin + reach, width); ++i)
      values[count++] = change[i];
    return count > 0 ? median_of(values, count) : otherwise;
  }

  KOKKOS_FUNCTION void operator()(int i) const {
    T left = usual(i - 15, T(-1));
    const T right = usual(i + 1, left);
    left = left < T(0) ? right : left;
    dead[i] = change[i] > ratio * Kokkos::max(left, right) || change[i] * ratio < Kokkos::min(left, right)
                  ? T(1)
                  : T(0);
  }
};

/// Straight lines between the nearest good columns.
template <class T>
struct BridgeDeadColumns {
  SinogramOf<T> sinogram;
  const T* dead;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const int p = static_cast<int>(row), n = sinogram.width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, n), [&](int i) {
      if (dead[i] == T(0))
        return;
      int left = i, right = i;
      while (left >= 0 && dead[left] != T(0))
        --left;
      while (right < n && dead[right] != T(0))
        ++right;
      if (left < 0 && right >= n)
        return;
      const T part = left < 0 ? T(1) : (right >= n ? T(0) : T(i - left) / T(right - left));
      sinogram(p, i) = (left < 0 ? T(0) : (T(1) - part) * sinogram(p, left)) +
                       (right >= n ? T(0) : part * sinogram(p, right));
    });
  }
};

/// Solves (D^T D + strength) z = D^T D m from both ends, one system on one thread.
template <class T>
struct SolveOffsets {
  const T* mean;
  T *ratio, *offsets;
  int width;
  T strength;

  KOKKOS_FUNCTION void operator()(int) const {
    const auto neighbours = [&](int i) { return T((i > 0) + (i + 1 < width)); };
    T previous_ratio = 0, previous = 0;
    for (int i = 0; i < width; ++i) {
      const T right = (i > 0 ? mean[i] - mean[i - 1] : T(0)) + (i + 1 < width ? mean[i] - mean[i + 1] : T(0));
      const T pivot = neighbours(i) + strength - (i > 0 ? previous_ratio : T(0));
      previous = (right + (i > 0 ? previous : T(0))) / pivot;
      previous_ratio = 1 / pivot;
      ratio[i] = previous_ratio;
      offsets[i] = previous;
    }
    for (int i = width - 2; i >= 0; --i)
      offsets[i] += ratio[i] * offsets[i + 1];
  }
};

/// Takes its offset from every column.
template <class T>
struct SubtractOffsets {
  SinogramOf<T> sinogram;
  const T* offsets;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, sinogram.width),
                         [&](int i) { sinogram(static_cast<int>(row), i) -= offsets[i]; });
  }
};

} // namespace Bracewell::Impl
