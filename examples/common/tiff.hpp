// SPDX-License-Identifier: MIT
#pragma once

#include "atomic_file.hpp"
#include "input_file.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

/// Greyscale TIFF files, uncompressed (TIFF 6.0; BigTIFF where a file passes 4 GB).
namespace Bracewell::Examples {

/// The first image of a TIFF file, of either byte order, in strips: integers of 8, 16 or 32 bits or 32-bit
/// floating-point numbers.
class TiffReader {
public:
  /// Throws InputError for what is missing, malformed or of another kind.
  explicit TiffReader(std::filesystem::path path);

  const std::filesystem::path& path() const { return file_.path(); }
  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  /// Fills `values` with `count` rows. Throws InputError where the file ends early.
  void read_rows(std::int64_t first, std::int64_t count, std::span<float> values) const;

private:
  [[noreturn]] void fail(const std::string& message) const;
  std::uint32_t number(std::span<const std::byte> bytes) const;

  InputFile file_;
  bool big_endian_ = false;
  std::int64_t width_ = 0, height_ = 0, rows_per_strip_ = 0;
  int bytes_ = 0, format_ = 1;       ///< per value; 1 unsigned, 2 signed, 3 floating point
  std::vector<std::int64_t> strips_; ///< where they begin
};

/// A stack of 32-bit floating-point images, one per page, that appears whole or not at all. Pages are written
/// in any order; every one has to be.
class TiffWriter {
public:
  TiffWriter(std::filesystem::path path, std::int64_t width, std::int64_t height, std::int64_t pages);

  const std::filesystem::path& path() const { return file_.path(); }
  void write(std::int64_t page, std::span<const float> values);
  void commit() { file_.commit(); }

private:
  std::int64_t page_begin(std::int64_t page) const;

  AtomicFile file_;
  std::int64_t width_, height_, pages_;
  bool big_;
};

} // namespace Bracewell::Examples
