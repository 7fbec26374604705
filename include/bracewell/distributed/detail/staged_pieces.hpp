// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/distributed/detail/exchanged_array.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace Bracewell::Impl {

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

} // namespace Bracewell::Impl
