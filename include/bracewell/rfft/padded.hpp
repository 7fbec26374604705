// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/rfft/access.hpp>

#include <algorithm>
#include <string>

namespace Bracewell::Impl {

/// Half spectra [B|1, ...] as they are stored; none by default.
template <class Value>
struct StoredSpectra {
  const Value* data = nullptr;
  std::int64_t batch_stride = 0;

  KOKKOS_FUNCTION explicit operator bool() const { return data != nullptr; }
  KOKKOS_INLINE_FUNCTION const Value* operator()(std::int64_t batch) const {
    return computed_once(data, batch * batch_stride);
  }
};

/// Copies of spectra for sampling with windows of `width` taps: continued beyond the ends of the stored half
/// so far that no window has to be resolved tap by tap, and in an order in which the windows of neighbouring
/// samples rarely meet in a bank of a GPU's cache. In 2D row by row, rows half a cache line further than a
/// multiple of lines; in 3D in blocks of a cache line.
template <class Stored, int D, int width>
struct PaddedOrder {
  /// Neighbours along x that are read together, each element in as many entries: 16 bytes, but 8 for windows
  /// of two taps in 3D, which wait for memory.
  static constexpr bool paired = (D == 2 || width > 2) && sizeof(Stored) <= 8;
  static constexpr int run = paired ? 2 : 1;
  struct alignas(run * sizeof(Stored)) Entry {
    Stored value[run];
  };

  /// Entries of a cache line, and of a block on each axis.
  static constexpr unsigned elements = 128 / sizeof(Entry), across = D == 2 ? 1 : (elements >= 16 ? 4 : 2),
                            down = D == 2 ? 1 : (elements >= 32 ? 4 : 2),
                            deep = D == 2 ? 1 : elements / across / down;

  int low[D] = {};             ///< lowest frequency that has an entry
  unsigned row = 0, plane = 0; ///< entries of a row of blocks, and of a plane of them
  std::int64_t size = 0;       ///< entries of a spectrum

  PaddedOrder() = default;
  explicit PaddedOrder(const HalfSpectrumLayout<D>& layout) {
    unsigned extent[D];
    for (int d = 0; d < D; ++d) {
      const int half = layout.size[d] / 2, high = d == 0 ? half + width : half + 1 + width / 2;
      low[d] = d == 0 ? 1 - width : -half - width / 2;
      extent[d] = static_cast<unsigned>(high - low[d] + 1);
    }
    if constexpr (D == 2) {
      const unsigned offset = std::min(elements / 2, 4u), period = 2 * offset;
      row = (extent[0] + period - 1 - offset) / period * period + offset;
      size = std::int64_t(extent[1]) * row;
    } else {
      row = (extent[0] + across - 1) / across * elements;
      plane = (extent[1] + down - 1) / down * row;
      size = std::int64_t((extent[2] + deep - 1) / deep) * plane;
    }
  }

  /// size, or 0 beyond what 32 bits can count: such spectra are not copied.
  std::int64_t usable_size() const { return size < std::int64_t(1) << 32 ? size : 0; }

  /// The entry of an element is at the sum of what its frequencies on each axis give.
  KOKKOS_INLINE_FUNCTION unsigned column(int x) const {
    const unsigned i = static_cast<unsigned>(x - low[0]);
    return D == 2 ? i : i / across * elements + i % across;
  }
  KOKKOS_INLINE_FUNCTION unsigned line(int y) const {
    const unsigned i = static_cast<unsigned>(y - low[1]);
    return i / down * row + i % down * across;
  }
  KOKKOS_INLINE_FUNCTION unsigned layer(int z) const {
    const unsigned i = static_cast<unsigned>(z - low[2]);
    return i / deep * plane + i % deep * (across * down);
  }

  /// Frequencies of entry `within` a row of blocks; rows are counted through all layers.
  KOKKOS_INLINE_FUNCTION void frequency(unsigned line, unsigned within, int (&k)[D]) const {
    if constexpr (D == 2) {
      k[0] = low[0] + static_cast<int>(within);
      k[1] = low[1] + static_cast<int>(line);
    } else {
      const unsigned lines = plane / row, in_block = within % elements;
      k[0] = low[0] + static_cast<int>(within / elements * across + in_block % across);
      k[1] = low[1] + static_cast<int>(line % lines * down + in_block / across % down);
      k[2] = low[2] + static_cast<int>(line / lines * deep + in_block / (across * down));
    }
  }
};

/// Copies of the spectra of a batch, or of the one that its members share.
template <class Stored, int D, int width>
struct PaddedSpectra {
  using Order = PaddedOrder<Stored, D, width>;

  typename Order::Entry* entries = nullptr;
  Order order = {};
  bool shared = true;

  KOKKOS_INLINE_FUNCTION const typename Order::Entry* operator()(std::int64_t batch) const {
    return computed_once<const typename Order::Entry>(entries, shared ? 0 : batch * order.size);
  }
};

/// Fills copies from spectra [batches, (D,) H, W/2+1].
template <class Stored, int D, int width>
struct CopyToPadded {
  static constexpr int lanes = 32;
  HalfSpectrumLayout<D> layout;
  StoredSpectra<Stored> from;
  PaddedSpectra<Stored, D, width> to;

  /// Rows of blocks of a spectrum; `lanes` threads share one.
  KOKKOS_FUNCTION std::int64_t rows() const { return to.order.size / to.order.row; }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto& order = to.order;
    const std::int64_t batch = i / lanes / rows();
    const unsigned row = static_cast<unsigned>(i / lanes - batch * rows());
    const Stored* const source = from(batch);
    auto* const target = to.entries + batch * order.size + std::int64_t(row) * order.row;
    for (unsigned e = static_cast<unsigned>(i % lanes); e < order.row; e += lanes) {
      int k[D];
      order.frequency(row, e, k);
      typename PaddedOrder<Stored, D, width>::Entry entry;
      for (int r = 0; r < order.run; ++r, ++k[0])
        entry.value[r] = element(source, k);
      target[e] = entry;
    }
  }

private:
  /// Of the spectrum continued by Hermitian symmetry and periodicity.
  KOKKOS_INLINE_FUNCTION Stored element(const Stored* source, const int (&k)[D]) const {
    int tap[D];
    for (int d = 0; d < D; ++d) {
      tap[d] = k[d];
      while (tap[d] < 0)
        tap[d] += layout.size[d];
      while (tap[d] >= layout.size[d])
        tap[d] -= layout.size[d];
    }
    const auto address = layout.resolve(tap);
    const Stored value = source[address.index];
    return address.conjugate ? Stored(conjugate(computed_with<Stored>(value))) : value;
  }
};

/// Launches the copy of `count` spectra to memory for as many of PaddedOrder.
template <int width, class ExecutionSpace, class Stored, int D>
PaddedSpectra<Stored, D, width>
copy_to_padded(const ExecutionSpace& space, const std::string& label, const HalfSpectrumLayout<D>& layout,
               const StoredSpectra<Stored>& stored, std::int64_t count, void* memory) {
  using Order = PaddedOrder<Stored, D, width>;
  const CopyToPadded<Stored, D, width> copy{
      layout, stored, {static_cast<typename Order::Entry*>(memory), Order(layout), stored.batch_stride == 0}};
  Kokkos::parallel_for(label,
                       Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(
                           space, 0, count * copy.rows() * copy.lanes),
                       copy);
  return copy.to;
}

} // namespace Bracewell::Impl
