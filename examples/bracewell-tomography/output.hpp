// SPDX-License-Identifier: MIT
#pragma once

#include "common/hdf5.hpp"
#include "common/tiff.hpp"

#include <filesystem>
#include <optional>
#include <span>

namespace Bracewell::Examples {

/// Slices [count, width, width] as HDF5 (/exchange/data) or as the pages of a TIFF file, by the extension of
/// the name; /dev/null takes them, too. Appears whole, on commit. Several processes write one HDF5 file.
class SliceOutput {
public:
  /// Of Float32 or Float16. Throws InputError for another extension, and where nothing can be written.
  SliceOutput(const std::filesystem::path& path, std::int64_t slices, std::int64_t width, StoredType type);

  /// Threads that write side by side; one has to write the slices in order.
  int threads(int most) const { return tiff_ ? 1 : most; }
  /// Slices from `first` on, as they are stored.
  void write(std::int64_t first, std::span<const std::byte> values);
  void write_attribute(const std::string& name, const std::string& value);
  void write_attribute(const std::string& name, double value);
  /// Of the whole file, before the first slice.
  void write_provenance(const std::string& text);
  void commit();

private:
  std::int64_t pixels_, bytes_; ///< of a slice
  std::string description_ = {};
  std::optional<Hdf5Writer> hdf5_;
  std::optional<AtomicFile> part_; ///< processes but the first: the file that hdf5_ is of there
  std::int64_t offset_ = 0;        ///< of the slices in it
  std::optional<TiffWriter> tiff_;
};

/// Whether nothing is to be written, for measuring.
inline bool is_null_output(const std::filesystem::path& path) { return path == "/dev/null"; }

} // namespace Bracewell::Examples
