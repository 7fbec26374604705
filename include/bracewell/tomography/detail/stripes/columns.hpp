// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/tomography/detail/medians.hpp>
#include <bracewell/tomography/detail/preprocess_impl.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// The sinogram of one slice.
template <class T>
struct SinogramOf {
  T* values; ///< [angles, width]
  int angles, width;
  KOKKOS_FUNCTION T& operator()(int p, int i) const { return values[std::int64_t(p) * width + i]; }
  /// The slice that lies so many behind.
  KOKKOS_FUNCTION SinogramOf next(std::int64_t slices) const {
    return {values + slices * angles * width, angles, width};
  }
};

/// What is known of the columns of some slices, in workspace of the plan.
template <class T>
struct StripeColumns {
  T* values; ///< [slices, arrays(angles), width]
  int angles, width;

  static constexpr int part_angles = 64; ///< summed by one thread
  KOKKOS_FUNCTION static int parts(int angles) { return (angles + part_angles - 1) / part_angles; }
  /// Arrays of a slice: the four below, and two sums for each part of the angles.
  static int arrays(int angles) { return 4 + 2 * parts(angles); }

  KOKKOS_FUNCTION T* array(std::int64_t slice, int which) const {
    return values + (slice * (4 + 2 * parts(angles)) + which) * width;
  }
  KOKKOS_FUNCTION T* mean(std::int64_t slice) const { return array(slice, 0); }
  KOKKOS_FUNCTION T* change(std::int64_t slice) const { return array(slice, 1); }
  KOKKOS_FUNCTION T* dead(std::int64_t slice) const { return array(slice, 2); }
  KOKKOS_FUNCTION T* ratio(std::int64_t slice) const { return array(slice, 2); } ///< after `dead` was used
  KOKKOS_FUNCTION T* offsets(std::int64_t slice) const { return array(slice, 3); }
  KOKKOS_FUNCTION T* sum(std::int64_t slice, int part) const { return array(slice, 4 + 2 * part); }
  KOKKOS_FUNCTION T* changes(std::int64_t slice, int part) const { return array(slice, 5 + 2 * part); }
};

/// Sums over parts of the angles of every column: of values, and of |value - mean of 11 around it|. One call per
/// slice, part and column.
template <class T>
struct SumColumns {
  SinogramOf<T> first;
  StripeColumns<T> columns;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    constexpr int reach = 5;
    const int P = first.angles, n = first.width, parts = columns.parts(P), i = static_cast<int>(item % n),
              part = static_cast<int>(item / n % parts);
    const std::int64_t slice = item / n / parts;
    const SinogramOf<T> sinogram = first.next(slice);
    const int begin = part * columns.part_angles, end = Kokkos::min(P, begin + columns.part_angles);
    T sum = 0, around = 0, changes = 0;
    for (int p = Kokkos::max(0, begin - reach - 1); p < Kokkos::min(begin + reach, P); ++p)
      around += sinogram(p, i);
    for (int p = begin; p < end; ++p) {
      if (p + reach < P)
        around += sinogram(p + reach, i);
      if (p > reach)
        around -= sinogram(p - reach - 1, i);
      const int count = Kokkos::min(P - 1, p + reach) - Kokkos::max(0, p - reach) + 1;
      sum += sinogram(p, i);
      changes += Kokkos::abs(sinogram(p, i) - around / T(count));
    }
    columns.sum(slice, part)[i] = sum;
    columns.changes(slice, part)[i] = changes;
  }
};

/// Mean over the angles of every column, and how much it changes. One call per slice and column.
template <class T>
struct ColumnStatistics {
  StripeColumns<T> columns;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const int n = columns.width, i = static_cast<int>(item % n);
    const std::int64_t slice = item / n;
    T sum = 0, changes = 0;
    for (int part = 0; part < columns.parts(columns.angles); ++part) {
      sum += columns.sum(slice, part)[i];
      changes += columns.changes(slice, part)[i];
    }
    columns.mean(slice)[i] = sum / T(columns.angles);
    columns.change(slice)[i] = changes / T(columns.angles);
  }
};

/// How much the columns on either side of one change: medians of up to 15 to its left and to its right. At an end of the
/// detector both are those of the other side.
template <class T>
struct ChangesBeside {
  T left, right;

  KOKKOS_FUNCTION ChangesBeside(const T* change, int i, int width) {
    constexpr int reach = 15;
    const auto usual = [&](int begin, T otherwise) {
      T values[reach];
      int count = 0;
      for (int k = Kokkos::max(begin, 0); k < Kokkos::min(begin + reach, width); ++k)
        if (k != i)
          values[count++] = change[k];
      return count > 0 ? median_of(values, count) : otherwise;
    };
    left = i > 0 ? usual(i - reach, T(-1)) : T(-1);
    right = usual(i + 1, left);
    left = left < T(0) ? right : left;
  }

  KOKKOS_FUNCTION bool stands_out(T own, T ratio) const {
    return own > ratio * Kokkos::max(left, right) || own * ratio < Kokkos::min(left, right);
  }
};

/// 1 for columns that change much more, or less, than those to their left and those to their right, else 0.
template <class T>
struct MarkDeadColumns {
  StripeColumns<T> columns;
  T ratio;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const int i = static_cast<int>(item % columns.width);
    const std::int64_t slice = item / columns.width;
    const T* const change = columns.change(slice);
    columns.dead(slice)[i] =
        ChangesBeside<T>(change, i, columns.width).stands_out(change[i], ratio) ? T(1) : T(0);
  }
};

/// Marks columns, too, of which more than half of the values are not valid. One call per slice and column.
template <class T>
struct MarkInvalidColumns {
  const T* valid; ///< [slices, angles, width]
  StripeColumns<T> columns;
  bool adds; ///< to the marks that are there

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const int i = static_cast<int>(item % columns.width);
    const std::int64_t slice = item / columns.width;
    const T* const own = valid + slice * columns.angles * columns.width + i;
    int invalid = 0;
    for (int p = 0; p < columns.angles; ++p)
      invalid += own[std::int64_t(p) * columns.width] > T(0) ? 0 : 1;
    T& mark = columns.dead(slice)[i];
    mark = 2 * invalid > columns.angles || (adds && mark != T(0)) ? T(1) : T(0);
  }
};

/// Straight lines between the nearest good columns.
template <class T>
struct BridgeDeadColumns {
  SinogramOf<T> first;
  StripeColumns<T> columns;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const int p = static_cast<int>(row % first.angles), n = first.width;
    const SinogramOf<T> sinogram = first.next(row / first.angles);
    const T* const dead = columns.dead(row / first.angles);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, n), [&](int i) {
      if (dead[i] != T(0))
        sinogram(p, i) = bridge(dead, n, i)(sinogram, p);
    });
  }

  /// The nearest good columns to either side of a dead one, and how much the right one counts.
  struct Bridge {
    int left, right;
    T part;

    KOKKOS_FUNCTION T operator()(const SinogramOf<T>& sinogram, int p) const {
      return (left < 0 ? T(0) : (T(1) - part) * sinogram(p, left)) +
             (right >= sinogram.width ? T(0) : part * sinogram(p, right));
    }
  };
  /// The column itself where all are dead.
  KOKKOS_FUNCTION static Bridge bridge(const T* dead, int width, int i) {
    int left = i, right = i;
    while (left >= 0 && dead[left] != T(0))
      --left;
    while (right < width && dead[right] != T(0))
      ++right;
    if (left < 0 && right >= width)
      return {i, width, T(0)};
    return {left, right, left < 0 ? T(1) : (right >= width ? T(0) : T(i - left) / T(right - left))};
  }
};

/// Solves (D^T D + strength) z = D^T D m from both ends, the system of a slice on one thread.
template <class T>
struct SolveOffsets {
  StripeColumns<T> columns;
  T strength;

  KOKKOS_FUNCTION void operator()(std::int64_t slice) const {
    const T* const mean = columns.mean(slice);
    T *const ratio = columns.ratio(slice), *const offsets = columns.offsets(slice);
    const int width = columns.width;
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
  SinogramOf<T> first;
  StripeColumns<T> columns;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    T* const values = first.values + row * first.width;
    const T* const offsets = columns.offsets(row / first.angles);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, first.width),
                         [&](int i) { values[i] -= offsets[i]; });
  }
};

} // namespace Bracewell::Impl
