// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/tomography/detail/medians.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cstdint>

namespace Bracewell {
namespace Impl {
template <class T>
struct ReplaceOutliers;
} // namespace Impl

/// What remove_outliers takes for an outlier.
struct OutlierOptions {
  int window = 3;         ///< angles and columns of the median, odd, 3 to 9
  double threshold = 0.5; ///< outliers are further than this from the median
};

/// Replaces values that are further than a threshold from the median over neighbouring angles and columns by it:
/// zingers, flashes of scattered radiation that one frame sees. Beyond the edges the outermost values go on. Angles are
/// in the order in which they were taken.
/// @param sinograms  [S, P, n]
/// @param cleaned    [S, P, n], overwritten
/// @throws Error on shapes that do not fit, shared memory, and options out of range
template <class ExecutionSpace, class Input, class Output>
void remove_outliers(const ExecutionSpace& space, const Input& sinograms, const Output& cleaned,
                     const OutlierOptions& options = {}) {
  using T = typename Output::value_type;
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Replace = Impl::ReplaceOutliers<T>;
  constexpr Impl::Arguments arguments{"remove_outliers"};
  const Array<const T, MemorySpace> in(sinograms);
  const Array<T, MemorySpace> out(cleaned);
  if (!in || in.rank != 3 || in.extents[1] >= 1 << 30 || in.extents[2] >= 1 << 30)
    arguments.refuse("sinograms", "[slices, angles, width], found %s", in.shape_text().characters);
  arguments.same_shape("cleaned", out, in);
  arguments.disjoint({{"cleaned", out}}, {{"sinograms", in}});
  if (options.window % 2 != 1 || options.window < 3 || options.window > Replace::largest_window)
    arguments.refuse("options.window", "3, 5, 7 or 9, found %d", options.window);
  arguments.positive("options.threshold", options.threshold);
  Kokkos::Profiling::ScopedRegion region("Bracewell::remove_outliers");
  Impl::for_each_row(space, "Bracewell::remove_outliers::replace", in.extents[0] * in.extents[1],
                     Replace{in.data, out.data, int(in.extents[1]), int(in.extents[2]), options.window,
                             T(options.threshold)});
}

} // namespace Bracewell

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
