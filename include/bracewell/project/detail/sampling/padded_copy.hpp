// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/project/detail/samples.hpp>
#include <bracewell/rfft/layout.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace Bracewell::Impl {

/// Copies of spectra for sampling with windows of `width` taps: continued beyond the ends of the stored half
/// so far that no window has to be resolved tap by tap, and in an order in which the windows of neighbouring
/// samples rarely meet in a bank of a GPU's cache. In 2D row by row, rows half a cache line further than a
/// multiple of lines; in 3D in blocks of a cache line, and so that neighbours along x, unless lanes share windows, are
/// a fixed way apart.
template <class Stored, int D, int width>
struct PaddedOrder {
  /// Whether lanes of a GPU share the windows of their samples (padded_windows.hpp). In a block of 4 x 4
  /// elements, pairs along x of the four rows then come first for one half, then for the other, so that the
  /// rows of a window never meet in a bank, nor do its pairs of one half with another's of the other half;
  /// blocks follow each other along z. Places in memory:
  ///
  ///               lanes share       lanes are alone (complex<float>, deep = 2)
  ///     x =       0  1   2  3       0  1  2  3
  ///     y = 0:    0  1 | 8  9       0  4  8 12
  ///     y = 1:    2  3 |10 11       1  5  9 13
  ///     y = 2:    4  5 |12 13
  ///     y = 3:    6  7 |14 15       the next layer: 2 6 10 14, 3 7 11 15
  static constexpr bool lanes_share = D == 3 && width == 4 && sizeof(Stored) <= 8;

  /// Neighbours along x that are read together, each element in as many entries: in 2D, 16 bytes or 8 bytes of
  /// half precision.
  static constexpr int together = D == 2 && sizeof(Stored) <= 8 ? 2 : 1;
  struct alignas(together * sizeof(Stored)) Entry {
    Stored value[together];
  };

  /// Entries of a cache line; of a block on each axis, and together.
  static constexpr unsigned elements = 128 / sizeof(Entry), down = D == 2 ? 1 : (lanes_share ? 4 : 2),
                            deep = D == 2 ? 1 : (lanes_share ? elements / 16 : 2),
                            across = D == 2 ? 1 : elements / down / deep, block = across * down * deep;
  /// Entries from one to its neighbour along x, where lanes are alone.
  static constexpr unsigned beside = down * deep;

  int low[D] = {};         ///< lowest frequency that has an entry
  unsigned blocks[D] = {}; ///< on each axis
  unsigned stride[D] = {}; ///< entries from one block to the next
  std::int64_t size = 0;   ///< entries of a spectrum

  PaddedOrder() = default;
  explicit PaddedOrder(const HalfSpectrumLayout<D>& layout) {
    constexpr unsigned extent[] = {across, down, deep};
    for (int d = 0; d < D; ++d) {
      const int half = layout.size[d] / 2, high = d == 0 ? half + width : half + 1 + width / 2;
      low[d] = d == 0 ? 1 - width : -half - width / 2;
      blocks[d] = (static_cast<unsigned>(high - low[d] + 1) + extent[d] - 1) / extent[d];
    }
    if constexpr (D == 2) {
      const unsigned offset = std::min(elements / 2, 4u), period = 2 * offset;
      stride[0] = 1;
      stride[1] = (blocks[0] + period - 1 - offset) / period * period + offset;
      size = std::int64_t(blocks[1]) * stride[1];
    } else {
      std::int64_t next = block;
      for (int i = 0; i < D; ++i) {
        const int d = lanes_share ? (i + 2) % 3 : i; // z first where lanes share
        stride[d] = static_cast<unsigned>(next);
        next *= blocks[d];
        if (d == 0 && sizeof(Entry) == 4 && !lanes_share)
          next += elements / 2; // rows of blocks half a line further
      }
      size = next;
    }
  }

  /// size, or 0 beyond what 32 bits can count: such spectra are not copied.
  std::int64_t usable_size() const { return size < std::int64_t(1) << 32 ? size : 0; }

  /// The entry of an element is at the sum of what its frequencies on each axis give.
  KOKKOS_INLINE_FUNCTION unsigned offset_x(int x) const {
    const unsigned i = static_cast<unsigned>(x - low[0]);
    return lanes_share ? i / across * stride[0] + i % 2 + i % 4 / 2 * 8 : i * beside;
  }
  KOKKOS_INLINE_FUNCTION unsigned offset_y(int y) const {
    const unsigned i = static_cast<unsigned>(y - low[1]);
    return i / down * stride[1] + i % down * (lanes_share ? 2 : 1);
  }
  KOKKOS_INLINE_FUNCTION unsigned offset_z(int z) const {
    const unsigned i = static_cast<unsigned>(z - low[2]);
    return lanes_share ? i * (across * down) : i / deep * stride[2] + i % deep * down;
  }

  /// offset_y(y) and offset_z(z) of the taps of a window, by fewer instructions than one by one.
  KOKKOS_INLINE_FUNCTION void offsets_y(int first, unsigned (&at)[width]) const {
    at[0] = offset_y(first);
    for (int t = 1; t < width; ++t)
      at[t] = lanes_share ? offset_y(first + t) : following<down>(at, t, first - low[1], 1, stride[1]);
  }
  KOKKOS_INLINE_FUNCTION void offsets_z(int first, unsigned (&at)[width]) const {
    at[0] = offset_z(first);
    for (int t = 1; t < width; ++t)
      at[t] = lanes_share ? offset_z(first + t) : following<deep>(at, t, first - low[2], down, stride[2]);
  }

  /// Entries of blocks side by side along x, and how many such rows there are.
  KOKKOS_FUNCTION unsigned row_entries() const { return blocks[0] * block; }
  KOKKOS_FUNCTION std::int64_t rows() const {
    return D == 2 ? blocks[1] : std::int64_t(blocks[1]) * blocks[D - 1];
  }

  /// Where an entry of a row is; k: its frequencies.
  KOKKOS_INLINE_FUNCTION unsigned find(unsigned row, unsigned entry, int (&k)[D]) const {
    const unsigned within = entry % block;
    k[0] = low[0] + static_cast<int>(entry / block * across +
                                     (lanes_share ? within % 2 + within / 8 % 2 * 2 : within / beside));
    if constexpr (D == 2) {
      k[1] = low[1] + static_cast<int>(row);
      return offset_x(k[0]) + offset_y(k[1]);
    } else {
      k[1] = low[1] + static_cast<int>(row % blocks[1] * down + within / (lanes_share ? 2 : 1) % down);
      k[2] = low[2] + static_cast<int>(row / blocks[1] * deep +
                                       (lanes_share ? within / (across * down) : within / down % deep));
      return offset_x(k[0]) + offset_y(k[1]) + offset_z(k[2]);
    }
  }

private:
  /// The place of tap t of those that begin with entry i of an axis, `apart` within blocks of one or two.
  template <unsigned in_block>
  KOKKOS_INLINE_FUNCTION static unsigned following(const unsigned (&at)[width], int t, int i, unsigned apart,
                                                   unsigned blocks_apart) {
    if (t >= int(in_block))
      return at[t - int(in_block)] + blocks_apart;
    return at[t - 1] + (i % 2 ? blocks_apart - apart : apart);
  }
};

/// Copies of the spectra of a batch, or of one for all its members.
template <class Stored, int D, int width>
struct PaddedSpectra {
  using Order = PaddedOrder<Stored, D, width>;

  typename Order::Entry* entries = nullptr;
  Order order = {};
  bool one_for_all = true;
  Gain<Stored> gain = {};

  KOKKOS_FUNCTION explicit operator bool() const { return entries != nullptr; }
  KOKKOS_INLINE_FUNCTION const typename Order::Entry* operator()(std::int64_t batch) const {
    return computed_once<const typename Order::Entry>(entries, one_for_all ? 0 : batch * order.size);
  }
};

/// Fills copies from spectra [batches, (D,) H, W/2+1] of values From, as they are sampled with `mates`.
template <class From, class Stored, int D, int width, Mates mates>
struct CopyToPadded {
  static constexpr int lanes = 32;
  HalfSpectrumLayout<D> layout;
  StoredSpectra<From> from;
  PaddedSpectra<Stored, D, width> to;
  Gain<Stored> scale = {};

  /// `lanes` threads share a row of blocks.
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto& order = to.order;
    const std::int64_t batch = i / lanes / order.rows();
    const unsigned row = static_cast<unsigned>(i / lanes - batch * order.rows());
    const From* const source = from(batch);
    for (unsigned e = static_cast<unsigned>(i % lanes); e < order.row_entries(); e += lanes) {
      int k[D];
      auto& entry = to.entries[batch * order.size + order.find(row, e, k)];
      typename PaddedOrder<Stored, D, width>::Entry values;
      for (int r = 0; r < order.together; ++r, ++k[0])
        values.value[r] = Stored(scale.restored(element(source, k)));
      entry = values;
    }
  }

private:
  /// Of the spectrum continued by Hermitian symmetry and periodicity.
  KOKKOS_INLINE_FUNCTION computed_with<Stored> element(const From* source, const int (&k)[D]) const {
    using Value = computed_with<Stored>;
    int tap[D];
    for (int d = 0; d < D; ++d) {
      tap[d] = k[d];
      while (tap[d] < 0)
        tap[d] += layout.size[d];
      while (tap[d] >= layout.size[d])
        tap[d] -= layout.size[d];
    }
    const auto address = layout.resolve(tap);
    const Value value = source[address.index];
    if constexpr (mates == Mates::Both)
      if (layout.self_mated(tap[0])) {
        int mate[D] = {tap[0]};
        for (int d = 1; d < D; ++d)
          mate[d] = -tap[d];
        return value + conjugate(Value(source[layout.resolve(mate).index]));
      }
    return address.conjugate ? conjugate(value) : value;
  }
};

/// Copies stored spectra, element by element.
template <class From, class Stored>
struct CopyStored {
  const From* from;
  Stored* to;
  Gain<Stored> scale;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    to[i] = Stored(scale.restored(computed_with<Stored>(from[i])));
  }
};

/// The largest part of any element that is finite.
template <class From>
struct LargestPart {
  const From* values;

  KOKKOS_FUNCTION void operator()(std::int64_t i, float& largest) const {
    const Kokkos::complex<float> value(values[i]);
    const float real = Kokkos::abs(value.real()), imaginary = Kokkos::abs(value.imag());
    if (is_finite(real))
      largest = Kokkos::max(largest, real);
    if (is_finite(imaginary))
      largest = Kokkos::max(largest, imaginary);
  }
};

/// Launches the copy of `count` spectra to copies that have memory and an order.
template <Mates mates, class ExecutionSpace, class From, class Stored, int D, int width>
void copy_to_padded(const ExecutionSpace& space, const Label& label, const HalfSpectrumLayout<D>& layout,
                    const StoredSpectra<From>& from, std::int64_t count,
                    const PaddedSpectra<Stored, D, width>& to, const Gain<Stored>& scale = {}) {
  using Copy = CopyToPadded<From, Stored, D, width, mates>;
  Kokkos::parallel_for(label,
                       Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(
                           space, 0, count * to.order.rows() * Copy::lanes),
                       Copy{layout, from, to, scale});
}

/// How a PreparedReference is stored.
template <class Kernel, class ExecutionSpace, int D, class Stored>
using PreparedSpectra = std::conditional_t<is_host<ExecutionSpace>, StoredSpectra<Stored>,
                                           PaddedSpectra<Stored, D, Kernel::width>>;

/// What sampling operators read: `Spectra` are stored ones, or padded copies.
template <class Stored_, class Spectra>
struct Reference {
  using Stored = Stored_;
  static constexpr bool prepared = !std::is_same_v<Spectra, StoredSpectra<Stored>>;

  ArrayShape shape;
  NamedMemory memory; ///< of the caller
  Spectra spectra;
  std::optional<double> oversampling = std::nullopt; ///< where options leave it out
};

template <class Stored>
using StoredReference = Reference<Stored, StoredSpectra<Stored>>;
template <class Kernel, class ExecutionSpace, int D, class Stored>
using PreparedReferenceOf = Reference<Stored, PreparedSpectra<Kernel, ExecutionSpace, D, Stored>>;

/// Of an array [B|1, (D,) H, W/2+1]; spectra that all batches share have stride 0.
template <class Stored, class MemorySpace>
StoredReference<Stored> reference_to(const char* argument, const Array<const Stored, MemorySpace>& array) {
  const std::int64_t count = array.rank > 0 ? array.extents[0] : 0;
  return {array, {argument, array}, {array.data, count > 1 ? array.size() / count : 0}};
}

} // namespace Bracewell::Impl
