// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/project/detail/insert_sample.hpp>
#include <bracewell/project/detail/patch_box.hpp>

namespace Bracewell::Impl {

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
