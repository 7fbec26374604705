// SPDX-License-Identifier: MIT
#pragma once

#include "common/hdf5.hpp"
#include "common/tiff.hpp"

#include <filesystem>
#include <optional>
#include <span>

namespace Bracewell::Examples {

/// Slices [count, width, width] as HDF5 (/exchange/data) or as the pages of a TIFF file, by the extension of
/// the name. Appears whole, on commit.
class SliceOutput {
public:
  /// Throws InputError for another extension, and where nothing can be written.
  SliceOutput(const std::filesystem::path& path, std::int64_t slices, std::int64_t width);

  /// Slices from `first` on, in order.
  void write(std::int64_t first, std::span<const float> values);
  void write_attribute(const std::string& name, double value);
  /// Of the whole file, before the first slice.
  void write_provenance(const std::string& text);
  void commit();

private:
  std::int64_t width_;
  std::string description_ = {};
  std::optional<Hdf5Writer> hdf5_;
  std::optional<TiffWriter> tiff_;
};

} // namespace Bracewell::Examples
