// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/rfft/layout.hpp>

#include <string>

namespace Bracewell::Impl {

/// An order of the elements of half spectrum volumes in which 128 bytes, a cache line of GPUs, hold
/// neighbours on all axes (4 x 2 x 2 of complex<float>) instead of a part of a row. The windows of
/// neighbouring samples then lie in fewer lines, and rarely in the same bank of different lines, whatever the
/// orientation.
template <class Value>
struct BlockedOrder {
  static constexpr unsigned elements = 128 / sizeof(Value); ///< of a block
  static constexpr unsigned width = sizeof(Value) <= 8 ? 4 : 2, height = sizeof(Value) <= 4 ? 4 : 2,
                            depth = elements / width / height;

  unsigned row = 0, plane = 0; ///< elements of a row of blocks, and of a plane of them
  std::int64_t size = 0;       ///< elements of a volume

  BlockedOrder() = default;
  explicit BlockedOrder(const HalfSpectrumLayout<3>& layout)
      : row((layout.columns() + width - 1) / width * elements),
        plane((layout.size[1] + height - 1) / height * row),
        size(std::int64_t(layout.size[2] + depth - 1) / depth * plane) {}

  /// size, or 0 beyond what 32 bits can count: such volumes are not copied.
  std::int64_t usable_size() const { return size < std::int64_t(1) << 32 ? size : 0; }

  /// An element is at the sum of what its column and its indices on the other axes give.
  KOKKOS_INLINE_FUNCTION unsigned column(unsigned x) const { return x / width * elements + x % width; }
  KOKKOS_INLINE_FUNCTION unsigned line(unsigned y) const { return y / height * row + y % height * width; }
  KOKKOS_INLINE_FUNCTION unsigned layer(unsigned z) const {
    return z / depth * plane + z % depth * (width * height);
  }
};

/// A half spectrum volume, as stored, and a copy of it in blocked order.
template <class Value>
struct BlockedSpectrum {
  const Value* stored;
  const Value* blocks;
  BlockedOrder<Value> order;
};

/// Volumes [B|1, ...] as they are stored; none by default.
template <class Value_>
struct StoredVolumes {
  using Value = Value_;

  const Value* data = nullptr;
  std::int64_t batch_stride = 0;

  KOKKOS_FUNCTION explicit operator bool() const { return data != nullptr; }
  KOKKOS_INLINE_FUNCTION const Value* operator()(std::int64_t batch) const {
    return computed_once(data, batch * batch_stride);
  }
};

/// The same with copies in blocked order.
template <class Value_>
struct BlockedVolumes {
  using Value = Value_;

  StoredVolumes<Value> stored;
  Value* blocks = nullptr; ///< as many volumes as are stored
  BlockedOrder<Value> order = {};

  KOKKOS_INLINE_FUNCTION BlockedSpectrum<Value> operator()(std::int64_t batch) const {
    return {stored(batch), computed_once<const Value>(blocks, stored.batch_stride ? batch * order.size : 0),
            order};
  }
};

/// Copies volumes [batches, D, H, W/2+1] to blocked order; what blocks have beyond their ends is not written.
template <class Value>
struct CopyToBlocks {
  static constexpr int lanes = 32;
  HalfSpectrumLayout<3> layout;
  BlockedVolumes<Value> volumes;

  /// Rows of blocks of all volumes; `lanes` threads share one.
  std::int64_t rows(std::int64_t batches) const { return batches * (volumes.order.size / volumes.order.row); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    using Order = BlockedOrder<Value>;
    const unsigned down = (layout.size[1] + Order::height - 1) / Order::height,
                   deep = (layout.size[2] + Order::depth - 1) / Order::depth;
    const std::int64_t row = i / lanes, layer = row / down, batch = layer / deep;
    const int y = static_cast<int>(row % down * Order::height),
              z = static_cast<int>(layer % deep * Order::depth);
    const Value* const from = volumes.stored(batch);
    Value* const to = volumes.blocks + row * volumes.order.row;
    for (unsigned e = static_cast<unsigned>(i % lanes); e < volumes.order.row; e += lanes) {
      const unsigned within = e % Order::elements;
      const int x = static_cast<int>(e / Order::elements * Order::width + within % Order::width);
      const int tap[3] = {x, static_cast<int>(y + within / Order::width % Order::height),
                          static_cast<int>(z + within / (Order::width * Order::height))};
      if (tap[0] < layout.columns() && tap[1] < layout.size[1] && tap[2] < layout.size[2])
        to[e] = from[layout.row_begin(tap[2] * layout.size[1] + tap[1]) + tap[0]];
    }
  }
};

/// Launches the copy of `count` volumes to memory for as many volumes of BlockedOrder.
template <class ExecutionSpace, class Value>
BlockedVolumes<Value> copy_to_blocks(const ExecutionSpace& space, const std::string& label,
                                     const HalfSpectrumLayout<3>& layout, const StoredVolumes<Value>& stored,
                                     std::int64_t count, Value* blocks) {
  const CopyToBlocks<Value> copy{layout, {stored, blocks, BlockedOrder<Value>(layout)}};
  Kokkos::parallel_for(label,
                       Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(
                           space, 0, copy.rows(count) * copy.lanes),
                       copy);
  return copy.volumes;
}

} // namespace Bracewell::Impl
