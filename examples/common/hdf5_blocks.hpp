// SPDX-License-Identifier: MIT
#pragma once

#include "hdf5.hpp"
#include "stored_type.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// The values of a dataset as they are stored, read by any number of threads at once: from the file itself where they
/// lie there as they are, or in chunks that were shuffled and deflated, or bitshuffled with LZ4; by the library, one thread at a time, for all
/// other filters, types and layouts.
class Hdf5Blocks {
public:
  /// `reader` has to outlive this. Throws InputError as Hdf5Reader::shape, and for values that are not real numbers.
  Hdf5Blocks(const Hdf5Reader& reader, std::string dataset);
  Hdf5Blocks(Hdf5Blocks&&) noexcept;
  Hdf5Blocks& operator=(Hdf5Blocks&&) = delete;
  ~Hdf5Blocks();

  const Hdf5Shape& shape() const { return shape_; }
  /// Of what read() gives; Float32 where the library converts.
  StoredFormat format() const { return format_; }
  /// What is decompressed together; empty where nothing is.
  const Hdf5Shape& compressed_chunk() const { return compressed_chunk_; }
  /// Bytes of a box.
  std::int64_t bytes(const Hdf5Shape& count) const { return hdf5_elements(count) * bytes_of(format_.type); }

  /// Fills `values` with a box, row-major. Throws InputError where it cannot be read.
  void read(const Hdf5Slab& slab, std::span<std::byte> values) const;

private:
  enum class Filter { Shuffle, Deflate, Bitshuffle };
  struct Packed {
    std::vector<std::byte> bytes;
    std::uint32_t skipped; ///< filters, bit by bit
  };

  bool find_storage();
  bool find_chunks(std::int64_t properties, std::int64_t type, std::size_t size, const Hdf5Shape& chunk);
  /// Whether the file is large enough for what it says that it has.
  bool fits(std::uint64_t offset, std::uint64_t bytes) const;
  [[noreturn]] void fail_damaged() const;
  bool library_finds_chunks() const;
  void read_chunk(const Hdf5Shape& first, const Hdf5Slab& slab, std::byte* values) const;
  std::optional<std::int64_t> find_chunk(const Hdf5Shape& first) const;
  std::optional<Packed> read_packed(const Hdf5Shape& first) const;
  std::vector<std::byte> unpacked(const Packed& packed) const;

  const Hdf5Reader& reader_;
  std::string name_;
  Hdf5Shape shape_, compressed_chunk_, chunk_; ///< the last is empty where values are contiguous
  StoredFormat format_;
  std::vector<Filter> filters_;
  std::vector<std::byte> fill_value_;
  mutable std::map<Hdf5Shape, std::int64_t> offsets_; ///< of chunks that were looked for; -1: never written
  std::unique_ptr<InputFile> file_;                   ///< null: the library reads
  std::int64_t dataset_ = -1, offset_ = 0;
};

} // namespace Bracewell::Examples
