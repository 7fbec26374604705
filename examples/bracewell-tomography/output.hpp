// SPDX-License-Identifier: MIT
#pragma once

#include "common/hdf5.hpp"
#include "common/output_folder.hpp"
#include "common/tiff.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Examples {

/// Slices [count, width, width] by the name: HDF5 (.h5: /exchange/data), the pages of a TIFF file (.tif), a TIFF file for
/// each (slice_%05d.tif), or a Zarr group of version 2 in the layout of OME-NGFF 0.4 (.zarr: one resolution, a chunk for
/// each slice, not compressed); /dev/null takes them, too. Appears whole, on commit. Several processes write one HDF5
/// file.
class SliceOutput {
public:
  /// Of Float32 or Float16. Throws InputError for another extension, and where nothing can be written: as OutputFolder.
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
  void write_zarr() const;

  std::int64_t slices_, width_, pixels_, bytes_; ///< the last two of a slice
  StoredType type_;
  std::string description_ = {};
  std::optional<Hdf5Writer> hdf5_;
  std::optional<AtomicFile> part_; ///< processes but the first: the file that hdf5_ is of there
  std::int64_t offset_ = 0;        ///< of the slices in it
  std::optional<TiffWriter> tiff_;
  std::optional<FolderNames> names_; ///< of the files of a series; whole: Zarr
  std::optional<OutputFolder> folder_;
  std::vector<std::pair<std::string, std::string>> attributes_ = {}; ///< of Zarr: names and JSON
};

/// The folder that OUT is, or whose files it names; none of one file.
std::optional<FolderNames> output_folder(const std::filesystem::path& out);

/// The name of another output: scan.h5 gives scan_middle.png, and so do scan.zarr and scan_%05d.tif.
std::filesystem::path beside_slices(const std::filesystem::path& out, const std::string& ending);

/// Whether nothing is to be written, for measuring.
inline bool is_null_output(const std::filesystem::path& path) { return path == "/dev/null"; }

} // namespace Bracewell::Examples
