// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/project/detail/insertion/insert_sample.hpp>
#include <bracewell/project/detail/samples.hpp>

namespace Bracewell::Impl {

/// The elements of a reconstruction that a patch of samples of a flat projection reaches: columns, each
/// `deep` elements long. In 3D they stand on a rectangle, run along the axis most normal to the plane, and
/// start where the plane passes; in 2D they run along y, and all start at one height. Axes of a box are in
/// the order (across[, across], along).
///
///     along ^
///           |                 [ ]      [/] an element on the plane, [ ] one that its windows reach;
///           |           [ ][ ][/]      here `deep` is 3, `count` 6 and `slope` a half
///           |     [ ][ ][/][/][ ]
///           |  [ ][/][/][ ][ ]
///           |  [/][ ][ ]
///           |  [ ]                     the lowest of a column: bottom + (rest + slope column) / one
///           +-----------------------> across
///            first
template <class T, int D, int width>
struct PatchBox {
  static constexpr int columns_axes = D - 1, one = 1 << 16;

  T matrix[D][2];          ///< from frequencies to positions, by axes of the box
  int axis[D];             ///< of the reconstruction
  int first[columns_axes]; ///< where the columns begin
  int count[columns_axes];
  int deep, bottom;        ///< elements of a column; lowest element of the first, rounded down ...
  int rest;                ///< ... by so many parts of `one`: sums of integers are the same wherever computed
  int slope[columns_axes]; ///< change of the lowest element from column to column, parts of `one`

  /// For frequencies low ... high.
  KOKKOS_INLINE_FUNCTION PatchBox(const Pose<T, 2, D>& pose, const int (&low)[2], const int (&high)[2]) {
    const auto& m = pose.matrix;
    T normal[3] = {0, 1, 0};
    const T along = choose_axes(m, normal);
    T lowest[D], highest[D], farthest = 0;
    BRACEWELL_UNROLL_FOR (int b = 0; b < D; ++b) {
      lowest[b] = highest[b] = 0;
      BRACEWELL_UNROLL_FOR (int c = 0; c < 2; ++c) {
        matrix[b][c] = of(m, axis[b], c);
        const T one_end = matrix[b][c] * T(low[c]), other = matrix[b][c] * T(high[c]);
        lowest[b] += Kokkos::min(one_end, other);
        highest[b] += Kokkos::max(one_end, other);
      }
      farthest = Kokkos::max(farthest, Kokkos::max(-lowest[b], highest[b]));
    }
    const T margin = Margin<T>::slopes + Margin<T>::sum * farthest;
    T start = 0, reach = margin;
    BRACEWELL_UNROLL_FOR (int b = 0; b < columns_axes; ++b) {
      first[b] = floor(lowest[b] - margin) - (width / 2 - 1);
      count[b] = floor(highest[b] + margin) + width / 2 + 1 - first[b];
      T tilt = 0;
      if constexpr (D == 3)
        for (int d = 0; d < 3; ++d)
          tilt = axis[b] == d ? -normal[d] / along : tilt;
      slope[b] = floor(tilt * T(one) + T(0.5));
      start += tilt * T(first[b]);
      reach += Kokkos::abs(tilt) * (T(width) / 2);
    }
    if constexpr (D == 2) {
      start = (lowest[1] + highest[1]) / 2;
      reach = (highest[1] - lowest[1]) / 2 + margin;
    }
    bottom = floor(start - reach);
    rest = floor((start - reach - T(bottom)) * T(one));
    bottom -= width / 2 - 1;
    deep = floor(2 * reach) + 1 + width;
    if (width > 2)
      deep |= 1; // lanes with neighbouring columns reach all banks of scratch memory
  }

  KOKKOS_INLINE_FUNCTION int columns() const { return D == 3 ? count[0] * count[D - 2] : count[0]; }
  KOKKOS_INLINE_FUNCTION int elements() const { return columns() * deep; }

  /// Lowest element of a column; columns count from `first`.
  KOKKOS_INLINE_FUNCTION int lowest(const int (&column)[columns_axes]) const {
    int parts = rest;
    for (int b = 0; b < columns_axes; ++b)
      parts += slope[b] * column[b];
    return bottom + (parts >> 16);
  }

  KOKKOS_INLINE_FUNCTION int index(const int (&column)[columns_axes]) const {
    return D == 3 ? column[D - 2] * count[0] + column[0] : column[0];
  }

private:
  /// The axes, and the plane's normal in 3D; returns its largest component.
  KOKKOS_FORCEINLINE_FUNCTION T choose_axes(const T (&m)[D][2], T (&normal)[3]) {
    if constexpr (D == 3)
      for (int d = 0; d < 3; ++d)
        normal[d] = m[(d + 1) % 3][0] * m[(d + 2) % 3][1] - m[(d + 2) % 3][0] * m[(d + 1) % 3][1];
    axis[D - 1] = 0;
    T along = normal[0];
    for (int d = 1; d < D; ++d)
      if (Kokkos::abs(normal[d]) > Kokkos::abs(along)) {
        axis[D - 1] = d;
        along = normal[d];
      }
    axis[0] = axis[D - 1] == 0 ? 1 : 0;
    if constexpr (D == 3)
      axis[1] = axis[D - 1] == 2 ? 1 : 2;
    return along;
  }

  KOKKOS_INLINE_FUNCTION static int floor(T value) { return static_cast<int>(Kokkos::floor(value)); }

  /// m[d][c]; a sum, because compilers make choices of values in memory, not in registers.
  KOKKOS_INLINE_FUNCTION static T of(const T (&m)[D][2], int d, int c) {
    T result = 0;
    for (int e = 0; e < D; ++e)
      result += T(d == e) * m[e][c];
    return result;
  }
};

/// Sums over the elements of a box, in scratch memory, and behind them room for what idle lanes add, so that
/// all lanes do the same.
template <class T, int width, int capacity, int lanes_, bool weighted>
struct PatchSums {
  static constexpr int lanes = lanes_, size = capacity + lanes + width;
  Kokkos::complex<T> values[size];
  T weights[weighted ? size : 1];
};

/// Adds the sums of a box to the stored half of the reconstruction; the lanes of a warp share its elements.
template <class Sums, class T, int D, int width, Mates mates, bool weighted>
struct StorePatch {
  static constexpr int lanes = Sums::lanes;
  using Box = PatchBox<T, D, width>;

  const HalfSpectrumLayout<D>& layout;
  const InsertionTarget<T>& target;

  /// volume: where the reconstruction of the batch begins.
  KOKKOS_INLINE_FUNCTION void operator()(const Box& box, std::int64_t volume, int lane,
                                         const Sums& sums) const {
    if constexpr (D == 3)
      if (box.axis[2] == 0)
        return store_along_x(box, volume, lane, sums);
    const bool along_y = D == 2 || box.axis[D - 1] == 1;
    const int period = along_y ? layout.size[1] : layout.size[D - 1];
    const unsigned stride = along_y ? layout.columns() : layout.size[1] * layout.columns();
    const T per_row = T(1) / T(box.count[0]);
    for (int flat = lane; flat < box.columns(); flat += lanes) {
      int column[D - 1];
      split_index(flat, box.count[0], per_row, column);
      const int lowest = box.lowest(column), element = flat * box.deep;
      int tap[D] = {}; // the row where a column begins, from 0 on the axis along
      if constexpr (D == 3)
        tap[along_y ? 2 : 1] = box.first[1] + column[1];
      const int x = layout.wrap(box.first[0] + column[0], layout.size[0]);
      const auto add_column = [&](bool mirrored, int stored) {
        const std::int64_t begin = volume + row(tap, mirrored) + stored;
        for (int i = 0; i < box.deep; ++i) {
          const unsigned step = layout.wrap(mirrored ? -(lowest + i) : lowest + i, period);
          add(sums, element + i, mirrored, begin + static_cast<std::int64_t>(std::uint64_t(step) * stride));
        }
      };
      const bool beyond = x > layout.size[0] / 2;
      add_column(beyond, beyond ? layout.size[0] - x : x);
      if (mates == Mates::Both && layout.self_mated(x))
        add_column(true, x);
    }
  }

private:
  /// The same where columns run along x: lanes side by side take elements of one column, for additions to
  /// neighbours in memory are made together.
  KOKKOS_INLINE_FUNCTION void store_along_x(const Box& box, std::int64_t volume, int lane,
                                            const Sums& sums) const {
    const T per_column = T(1) / T(box.deep), per_row = T(1) / T(box.count[0]);
    for (int element = lane; element < box.elements(); element += lanes) {
      int within[2], column[D - 1];
      split_index(element, box.deep, per_column, within);
      split_index(within[1], box.count[0], per_row, column);
      const int tap[3] = {0, box.first[0] + column[0], box.first[D - 2] + column[D - 2]};
      const int x = layout.wrap(box.lowest(column) + within[0], layout.size[0]);
      const bool mirrored = x > layout.size[0] / 2;
      add(sums, element, mirrored, volume + row(tap, mirrored) + (mirrored ? layout.size[0] - x : x));
      if (mates == Mates::Both && layout.self_mated(x))
        add(sums, element, true, volume + row(tap, true) + x);
    }
  }

  /// index as (index % count, index / count); per_one: 1 / count.
  template <int axes>
  KOKKOS_INLINE_FUNCTION static void split_index(int index, int count, T per_one, int (&result)[axes]) {
    result[0] = index;
    if constexpr (axes == 2) {
      result[1] = static_cast<int>((T(index) + T(0.5)) * per_one);
      result[0] -= result[1] * count;
    }
  }

  /// Where the row through a tap, or through its mate, begins.
  KOKKOS_INLINE_FUNCTION std::int64_t row(const int (&tap)[D], bool of_mate) const {
    int at[D];
    for (int d = 1; d < D; ++d)
      at[d] = of_mate ? -tap[d] : tap[d];
    return layout.row(at);
  }

  /// Adds a sum, or its conjugate, to an element.
  KOKKOS_INLINE_FUNCTION void add(const Sums& sums, int i, bool conjugated, std::int64_t element) const {
    const Kokkos::complex<T> value = sums.values[i];
    const T weight = weighted ? sums.weights[i] : T(0);
    const bool some = value.real() != 0 || value.imag() != 0 || weight != 0;
    atomic_add_if(some, target.data + element, conjugated ? conjugate(value) : value);
    if constexpr (weighted)
      atomic_add_if(some, target.weight + element, weight);
  }
};

} // namespace Bracewell::Impl
