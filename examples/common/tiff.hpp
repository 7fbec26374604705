// SPDX-License-Identifier: MIT
#pragma once

#include "atomic_file.hpp"
#include "stored_type.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

using TIFF = struct tiff;

namespace Bracewell::Examples {

struct CloseTiff {
  void operator()(TIFF* tiff) const;
};
using TiffHandle = std::unique_ptr<TIFF, CloseTiff>;

/// Greyscale images of one size, of whatever TIFF or BigTIFF holds: all pages of a file; of all files of a
/// folder; or of the files that a pattern names ("scan/flat_*.tif"), in the order of the numbers in their names.
class TiffReader {
public:
  /// Throws InputError for what is missing, malformed or not greyscale, and for pages of different sizes.
  explicit TiffReader(std::filesystem::path path);
  /// Of the same files, for another thread.
  TiffReader(const TiffReader& other)
      : path_(other.path_), series_(other.series_), files_(other.files_), pages_(other.pages_),
        width_(other.width_), height_(other.height_), rows_together_(other.rows_together_),
        stored_format_(other.stored_format_) {}
  TiffReader(TiffReader&&) = default;
  TiffReader& operator=(TiffReader&&) = default;

  const std::filesystem::path& path() const { return path_; }
  std::int64_t pages() const { return static_cast<std::int64_t>(pages_.size()); }
  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  /// The file of every page.
  const std::filesystem::path& file_of(std::int64_t page) const {
    return files_[pages_[static_cast<std::size_t>(page)].file];
  }
  /// Whether the name is a folder's or a pattern.
  bool series() const { return series_; }
  /// Fills `values` with `count` rows of a page. Throws InputError where they cannot be read. For one thread
  /// at a time.
  void read_rows(std::int64_t page, std::int64_t first, std::int64_t count, std::span<float> values) const;

  /// How values are stored where the rows of every page follow each other in its file, neither compressed nor in tiles;
  /// else none.
  const std::optional<StoredFormat>& stored_format() const { return stored_format_; }
  /// Rows [first, first + count) of the pages from `page` on as they are stored, [any number, count, width], of files
  /// with a stored_format(). Throws as InputFile. From any number of threads.
  void read_stored(std::int64_t page, std::int64_t first, std::int64_t count,
                   std::span<std::byte> values) const;
  /// The most rows that read_rows has to read for one of them.
  std::int64_t rows_together() const { return rows_together_; }

private:
  struct Page {
    std::size_t file;
    std::uint64_t directory; ///< where it begins in the file
    std::int64_t rows;       ///< where its rows begin, of files with a stored_format()
  };
  void add_pages(std::size_t file);
  void open(std::size_t file) const;

  std::filesystem::path path_;
  bool series_ = false;
  std::vector<std::filesystem::path> files_;
  std::vector<Page> pages_;
  std::int64_t width_ = 0, height_ = 0, rows_together_ = 1;
  std::optional<StoredFormat> stored_format_;
  mutable std::size_t open_file_ = 0; ///< the one read last
  mutable TiffHandle handle_;
};

/// Whether a name ends with .tif or .tiff, in whatever case.
bool is_tiff_name(const std::filesystem::path& path);

/// Writes a file of one page, Float16 or Float32, with a description if there is one; for OutputFolder, whose files appear
/// later. From any number of threads. Throws std::runtime_error (disk full).
void write_tiff(const std::filesystem::path& path, std::int64_t width, std::int64_t height, StoredType type,
                std::span<const std::byte> values, const std::string& description = {});

/// A stack of floating-point images, one per page, that appears whole or not at all.
class TiffWriter {
public:
  /// Float16 or Float32. BigTIFF where `pages` images would pass 4 GB.
  TiffWriter(std::filesystem::path path, std::int64_t width, std::int64_t height, std::int64_t pages,
             StoredType type = StoredType::Float32);

  const std::filesystem::path& path() const { return file_.path(); }
  /// Appends a page, with a description of it if there is one.
  void write(std::span<const std::byte> values, const std::string& description = {});
  void write(std::span<const float> values, const std::string& description = {}) {
    write(std::as_bytes(values), description);
  }
  void commit();

private:
  AtomicFile file_;
  std::int64_t width_, height_, bytes_;
  TiffHandle handle_;
};

} // namespace Bracewell::Examples
