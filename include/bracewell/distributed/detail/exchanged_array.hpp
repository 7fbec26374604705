// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/impl/execution.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace Bracewell::Impl {

/// Elements of a View that processes exchange: real numbers, or bytes.
template <class Space>
struct ExchangedArray {
  /// Memory of the host that a device copies from and to at full speed.
#if defined(KOKKOS_HAS_SHARED_HOST_PINNED_SPACE)
  using Staging = Kokkos::SharedHostPinnedSpace;
#else
  using Staging = Kokkos::HostSpace;
#endif
  template <class Memory>
  using Bytes = Kokkos::View<char*, Memory, Kokkos::MemoryUnmanaged>;

  char* data;
  std::int64_t size; ///< elements
  int bytes;         ///< of one
  bool on_host;
  void (*copy)(const Space&, char* data, char* host, std::int64_t bytes, bool to_host);

  template <class View>
  static ExchangedArray of_bytes(const View& view) {
    using Value = typename View::non_const_value_type;
    using Memory = typename View::memory_space;
    static_assert(
        std::is_trivially_copyable_v<Value>,
        "Bracewell::Communicator: expected a View of values that may be copied as bytes, found others.");
    const Array<Value, Memory> array(view);
    return {reinterpret_cast<char*>(array.data), array.size() * std::int64_t(sizeof(Value)), 1,
            is_host<Memory>, copy_bytes<Memory>};
  }

  template <class View>
  static ExchangedArray of_numbers(const View& view) {
    using Real = real_of<View>;
    static_assert(
        std::is_same_v<Real, float> || std::is_same_v<Real, double>,
        "Bracewell::Communicator: expected a View of float, double or complex numbers of them, found "
        "another type of values.");
    ExchangedArray array = of_bytes(view);
    array.size /= std::int64_t(sizeof(Real));
    array.bytes = sizeof(Real);
    return array;
  }

  /// In the order of the instance, except for memory of the host, which is copied at once.
  template <class Memory>
  static void copy_bytes(const Space& space, char* data, char* host, std::int64_t bytes, bool to_host) {
    const auto count = static_cast<std::size_t>(bytes);
    if constexpr (is_host<Memory>)
      std::memcpy(to_host ? host : data, to_host ? data : host, count);
    else if (to_host)
      Kokkos::deep_copy(space, Bytes<Staging>(host, count), Bytes<Memory>(data, count));
    else
      Kokkos::deep_copy(space, Bytes<Memory>(data, count), Bytes<Staging>(host, count));
  }
};

/// Two pieces of memory of the host, through which arrays go to an exchange and back: while one is exchanged, the next one
/// is on its way.
template <class Space, std::int64_t piece_bytes>
class StagedPieces {
  using Exchanged = ExchangedArray<Space>;

public:
  using Piece = Kokkos::View<char*, typename Exchanged::Staging>;

  /// Allocates them; without it there are none.
  void allocate(const std::string& label) {
    for (Piece& piece : staging_)
      piece = Piece(label, piece_bytes);
  }

  std::size_t memory_bytes() const { return staging_[0].size() + staging_[1].size(); }

  /// Takes the arrays of numbers of so many bytes to the host, a piece at a time and many arrays to a piece, and back
  /// from it after `exchange`(piece, count), while the next piece is on its way.
  template <class Exchange>
  void through(const Space& space, const std::vector<Exchanged>& arrays, int bytes,
               const Exchange& exchange) const {
    struct Segment {
      const Exchanged* array;
      std::int64_t begin, count;
    };
    std::vector<Segment> segments[2]; // of the two pieces
    std::size_t array = 0;
    std::int64_t begin = 0; // where the next segment begins, in this array
    const auto take = [&](int piece) {
      const std::int64_t capacity = piece_bytes / bytes;
      std::int64_t filled = 0;
      segments[piece].clear();
      while (array < arrays.size() && filled < capacity) {
        const Exchanged& from = arrays[array];
        if (from.bytes != bytes || begin == from.size) {
          ++array;
          begin = 0;
          continue;
        }
        const std::int64_t count = std::min(from.size - begin, capacity - filled);
        from.copy(space, from.data + begin * bytes, staging_[piece].data() + filled * bytes, count * bytes,
                  true);
        segments[piece].push_back({&from, begin, count});
        begin += count;
        filled += count;
      }
      return filled;
    };
    if (std::ranges::none_of(arrays,
                             [&](const Exchanged& one) { return one.bytes == bytes && one.size > 0; }))
      return;
    space.fence("Bracewell::Communicator: what is summed was computed");
    std::int64_t count = take(0);
    for (int piece = 0; count > 0; piece = 1 - piece) {
      space.fence("Bracewell::Communicator: a piece is on the host");
      const std::int64_t next = take(1 - piece);
      exchange(staging_[piece].data(), count);
      std::int64_t at = 0;
      for (const Segment& segment : segments[piece]) {
        segment.array->copy(space, segment.array->data + segment.begin * bytes, staging_[piece].data() + at,
                            segment.count * bytes, false);
        at += segment.count * bytes;
      }
      count = next;
    }
    space.fence("Bracewell::Communicator: sums are where the summands were");
  }

private:
  Piece staging_[2];
};

/// What a process' rectangle has in common with another's.
struct Overlap {
  std::int64_t row, column, rows, columns; ///< in the rectangle of this process
  std::int64_t first;                      ///< of its elements among those of all overlaps

  KOKKOS_FUNCTION std::int64_t end() const { return first + rows * columns; }
};

/// Element i of all overlaps, one behind the other.
template <class Value>
struct PackOverlaps {
  const Overlap* overlaps;
  const Value* values; ///< [rows, columns]
  std::int64_t columns;
  Value* packed;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const Overlap* overlap = overlaps;
    while (i >= overlap->end())
      ++overlap;
    const std::int64_t row = overlap->row + (i - overlap->first) / overlap->columns,
                       column = overlap->column + (i - overlap->first) % overlap->columns;
    packed[i] = values[row * columns + column];
  }
};

/// Element i of the rectangle: the sum of all processes' in the order of their ranks, so that it has the same bits in each.
template <class Value>
struct AddOverlaps {
  const Overlap* overlaps;
  int count, lower; ///< overlaps, and those of them with lower ranks
  const Value* received;
  std::int64_t columns;
  Value* values; ///< [rows, columns]

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const Value own = values[i];
    Value sum{};
    for (int k = 0; k <= count; ++k) {
      if (k == lower)
        sum += own;
      if (k == count)
        break;
      const Overlap& other = overlaps[k];
      const std::int64_t row = i / columns - other.row, column = i % columns - other.column;
      if (row >= 0 && row < other.rows && column >= 0 && column < other.columns)
        sum += received[other.first + row * other.columns + column];
    }
    values[i] = sum;
  }
};

} // namespace Bracewell::Impl
