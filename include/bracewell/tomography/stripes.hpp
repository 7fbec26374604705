// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/row_loop.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cmath>

namespace Bracewell {

enum class StripeMethod {
  /// An offset per column, such that the mean over the angles becomes smooth: min |D(m - z)|^2 + strength
  /// |z|^2
  /// with m the mean and D differences of neighbours (after Titarenko, Withers and Yagola, Appl. Math. Lett.
  /// 23,
  /// 2010). For detector pixels whose response is slightly wrong.
  Offset,
  /// The values of every column, sorted by size, are smoothed over `window` columns by a median, which keeps
  /// their order in time (Vo, Atwood and Drakopoulos, Opt. Express 26, 2018). For partial stripes as well.
  Sorting
};

struct StripeOptions {
  StripeMethod method = StripeMethod::Sorting;
  double strength = 1; ///< of Offset: stripes wider than about 1 / sqrt(strength) columns stay
  int window = 5;      ///< of Sorting, odd, up to 63 columns: stripes wider than half of it stay
  double dead = 3;     ///< columns whose values change this many times more or less over the angles than
                       ///< those on either side are interpolated from their neighbours first; 0: none are
};

namespace Impl {

inline constexpr int largest_stripe_window = 63;

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

} // namespace Impl

/// Removes stripes along the angles from sinograms: they become rings in the reconstruction.
/// A plan with workspace for one slice (2 P n values). Movable; calls that can overlap need a plan each.
template <class ExecutionSpace, class T>
class StripeRemoval {
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Columns = Kokkos::View<T**, Kokkos::LayoutRight, MemorySpace>;

public:
  /// @throws Error on sizes below 1 and options out of range
  StripeRemoval(const ExecutionSpace& space, int angles, int width, const StripeOptions& options = {})
      : angles_(angles), width_(width), options_(options) {
    constexpr const char* name = "StripeRemoval";
    if (angles < 1 || width < 1)
      Impl::fail(name, "angles, width", "at least 1", std::to_string(angles) + ", " + std::to_string(width));
    if (options.window < 1 || options.window > Impl::largest_stripe_window || options.window % 2 == 0)
      Impl::fail(name, "options.window", "an odd number up to " + std::to_string(Impl::largest_stripe_window),
                 std::to_string(options.window));
    Impl::require_positive(name, "options.strength", options.strength);
    if (!(options.dead == 0 || (options.dead > 1 && options.dead < 1e6)))
      Impl::fail(name, "options.dead", "0 or a ratio above 1", std::to_string(options.dead));
    columns_ =
        Columns(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::StripeRemoval::columns"),
                4, static_cast<std::size_t>(width));
    if (options.method == StripeMethod::Sorting)
      ranked_ = decltype(ranked_)(
          Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::StripeRemoval::ranked"),
          static_cast<std::size_t>(angles) * static_cast<std::size_t>(width));
  }

  /// @param sinograms  [S, P, n] attenuation, changed in place
  /// @throws Error on shapes that do not fit
  template <class Sinograms>
  void execute(const ExecutionSpace& space, const Sinograms& sinograms) const {
    const Array<T, MemorySpace> array(sinograms);
    if (!array || array.rank != 3 || array.extents[1] != angles_ || array.extents[2] != width_)
      Impl::fail("StripeRemoval::execute", "sinograms",
                 "[slices, " + std::to_string(angles_) + ", " + std::to_string(width_) + "]", array.shape());
    Kokkos::Profiling::ScopedRegion region("Bracewell::StripeRemoval::execute");
    for (std::int64_t slice = 0; slice < array.extents[0]; ++slice)
      execute_slice(space, {array.data + slice * angles_ * width_, angles_, width_});
  }

private:
  void execute_slice(const ExecutionSpace& space, const Impl::SinogramOf<T>& sinogram) const {
    using Range = Kokkos::RangePolicy<ExecutionSpace>;
    using LongRange = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    T *const mean = columns_.data(), *const change = mean + width_, *const extra = mean + 2 * width_;
    const auto statistics = [&] {
      Kokkos::parallel_for("Bracewell::StripeRemoval::statistics", Range(space, 0, width_),
                           Impl::ColumnStatistics<T>{sinogram, mean, change});
    };
    if (options_.dead > 0) {
      statistics();
      Kokkos::parallel_for("Bracewell::StripeRemoval::mark", Range(space, 0, width_),
                           Impl::MarkDeadColumns<T>{change, extra, width_, T(options_.dead)});
      Impl::for_each_row(space, "Bracewell::StripeRemoval::bridge", angles_,
                         Impl::BridgeDeadColumns<T>{sinogram, extra});
    }
    if (options_.method == StripeMethod::Offset) {
      statistics();
      Kokkos::parallel_for("Bracewell::StripeRemoval::solve", Range(space, 0, 1),
                           Impl::SolveOffsets<T>{mean, extra, extra + width_, width_, T(options_.strength)});
      Impl::for_each_row(space, "Bracewell::StripeRemoval::subtract", angles_,
                         Impl::SubtractOffsets<T>{sinogram, extra + width_});
    } else {
      Kokkos::parallel_for("Bracewell::StripeRemoval::sort", Range(space, 0, width_),
                           Impl::SortColumn<T>{sinogram, ranked_.data()});
      Kokkos::parallel_for("Bracewell::StripeRemoval::median",
                           LongRange(space, 0, std::int64_t(angles_) * width_),
                           Impl::MedianOfRanks<T>{sinogram, ranked_.data(), options_.window});
    }
  }

  int angles_, width_;
  StripeOptions options_;
  Columns columns_; ///< mean, change, two more
  Kokkos::View<Impl::RankedValue<T>*, MemorySpace> ranked_;
};

} // namespace Bracewell
