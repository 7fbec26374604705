// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/unroll.hpp>
#include <bracewell/tomography/detail/medians.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Medians of windows where a value is far from them: see remove_outliers.
template <class T>
struct ReplaceOutliers {
  static constexpr int largest_window = 9;

  const T* sinograms; ///< [slices, angles, width]
  T* result;
  int angles, width, window;
  T threshold;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const auto p = static_cast<int>(row % angles);
    const T* slice = sinograms + row / angles * angles * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) {
      result[row * width + i] = window == 3 ? of_nine(slice, p, i) : cleaned(slice, p, i);
    });
  }

  /// As `cleaned`, with the window in registers.
  KOKKOS_FUNCTION T of_nine(const T* slice, int p, int i) const {
    T values[3][3];
    BRACEWELL_UNROLL_FOR (int q = 0; q < 3; ++q) {
      const T* row = slice + std::int64_t(Kokkos::clamp(p + q - 1, 0, angles - 1)) * width;
      BRACEWELL_UNROLL_FOR (int j = 0; j < 3; ++j)
        values[q][j] = row[Kokkos::clamp(i + j - 1, 0, width - 1)];
    }
    const T value = values[1][1];
    int below = 0, above = 0;
    BRACEWELL_UNROLL_FOR (int q = 0; q < 3; ++q) {
      BRACEWELL_UNROLL_FOR (int j = 0; j < 3; ++j) {
        below += values[q][j] < value - threshold;
        above += values[q][j] > value + threshold;
      }
    }
    return below > 4 || above > 4 ? median_of_nine(values) : value;
  }

  KOKKOS_FUNCTION T cleaned(const T* slice, int p, int i) const {
    const T value = slice[std::int64_t(p) * width + i];
    const int reach = window / 2, most = window * window / 2;
    // The median is further below than the threshold where more than half of the values are: no need to sort.
    int below = 0, above = 0;
    for (int q = p - reach; q <= p + reach; ++q) {
      const T* row = slice + std::int64_t(Kokkos::clamp(q, 0, angles - 1)) * width;
      for (int j = i - reach; j <= i + reach; ++j) {
        const T other = row[Kokkos::clamp(j, 0, width - 1)];
        below += other < value - threshold;
        above += other > value + threshold;
      }
    }
    return below > most || above > most ? median(slice, p, i) : value;
  }

  KOKKOS_FUNCTION T median(const T* slice, int p, int i) const {
    const int reach = window / 2;
    T sorted[largest_window * largest_window];
    int count = 0;
    for (int q = p - reach; q <= p + reach; ++q)
      for (int j = i - reach; j <= i + reach; ++j)
        sorted[count++] =
            slice[std::int64_t(Kokkos::clamp(q, 0, angles - 1)) * width + Kokkos::clamp(j, 0, width - 1)];
    return median_of(sorted, count);
  }
};

} // namespace Bracewell::Impl
