// SPDX-License-Identifier: MIT
#include "tiff.hpp"

#include "input_error.hpp"
#include "input_file.hpp"

#include <bracewell/half.hpp>

#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <glob.h>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

thread_local std::string last_error; ///< what libtiff said

TiffHandle open_tiff(const fs::path& path, const char* mode) {
  static const bool handlers_set = [] {
    TIFFSetWarningHandler(nullptr); // unknown tags and the like
    TIFFSetErrorHandler([](const char*, const char* format, va_list arguments) {
      std::array<char, 200> text;
      std::vsnprintf(text.data(), text.size(), format, arguments);
      last_error = text.data();
    });
    return true;
  }();
  static_cast<void>(handlers_set);
  last_error.clear();
  return TiffHandle(TIFFOpen(path.c_str(), mode));
}

[[noreturn]] void fail(const fs::path& path, std::string message) {
  if (!last_error.empty())
    message += " (" + std::exchange(last_error, {}) + ")";
  throw InputError(path.string() + ": " + message);
}

/// Appends a page of numbers of so many bytes.
void write_page(TIFF* tiff, const fs::path& path, std::int64_t width, std::int64_t height, std::int64_t bytes,
                std::span<const std::byte> values, const std::string& description) {
  const auto rows = static_cast<std::uint32_t>(std::max<std::int64_t>(1, (1 << 20) / (bytes * width)));
  bool good = TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(width)) &&
              TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(height)) &&
              TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, static_cast<int>(8 * bytes)) &&
              TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP) &&
              TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK) &&
              TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1) &&
              TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, rows);
  if (!description.empty())
    good = good && TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, description.c_str());
  for (std::int64_t row = 0, strip = 0; good && row < height; row += rows, ++strip) {
    const std::int64_t count = std::min<std::int64_t>(rows, height - row) * width * bytes;
    // libtiff takes what it writes as not constant; it changes nothing in this machine's byte order.
    void* const begin = const_cast<std::byte*>(values.data() + row * width * bytes);
    good = TIFFWriteEncodedStrip(tiff, static_cast<std::uint32_t>(strip), begin, count) == count;
  }
  if (!good || !TIFFWriteDirectory(tiff))
    throw std::runtime_error(path.string() + ": cannot be written: " + last_error);
}

/// The files that a name stands for, "scan_2.tif" before "scan_10.tif".
std::vector<fs::path> files_of(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> files;
  if (fs::is_directory(path, error)) {
    for (const auto& entry : fs::directory_iterator(path))
      if (is_tiff_name(entry.path()))
        files.push_back(entry.path());
  } else {
    ::glob_t found{};
    ::glob(path.c_str(), 0, nullptr, &found);
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
  }
  if (files.empty())
    throw InputError(path.string() + ": expected TIFF files, found none");
  std::ranges::sort(
      files, [](const fs::path& a, const fs::path& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; });
  return files;
}

/// How the values of the open page are stored.
struct Layout {
  std::uint32_t width = 0, height = 0;
  std::uint16_t bits = 1, format = SAMPLEFORMAT_UINT, samples = 1, compression = 1;
  bool tiled;
  std::uint32_t block_width, block_height; ///< of a tile or strip
  std::int64_t row_bytes, block_bytes;     ///< of a block

  Layout(TIFF* tiff, const fs::path& path, std::int64_t file_bytes) : tiled(TIFFIsTiled(tiff) != 0) {
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
    // The library says what it cannot set, and goes on as if the tag were not there.
    if (last_error.find("\"Orientation\"") != std::string::npos)
      fail(path, "is damaged: expected an orientation of 1 to 8");
    block_width = width, block_height = height;
    if (tiled) {
      TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &block_width);
      TIFFGetField(tiff, TIFFTAG_TILELENGTH, &block_height);
    } else {
      TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &block_height);
      block_height = std::min(block_height, height);
    }
    row_bytes = tiled ? TIFFTileRowSize64(tiff) : TIFFScanlineSize64(tiff);
    block_bytes = tiled ? TIFFTileSize64(tiff) : TIFFStripSize64(tiff);
    if (width < 1 || height < 1 || block_width < 1 || block_height < 1 || row_bytes < 1 || block_bytes < 1)
      fail(path, "has no pixels");
    if (!TIFFIsCODECConfigured(compression))
      fail(path,
           "is compressed (kind " + std::to_string(compression) + "), which this libtiff does not read");
    if (samples != 1)
      fail(path, "has " + std::to_string(samples) + " values per pixel, expected 1");
    const bool real = format == SAMPLEFORMAT_IEEEFP && (bits == 16 || bits == 32 || bits == 64);
    const bool integer =
        (format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_INT || format == SAMPLEFORMAT_VOID) &&
        (bits <= 32 || bits == 64);
    if (bits < 1 || !(real || integer))
      fail(path, "has values of " + std::to_string(bits) + " bits and format " + std::to_string(format) +
                     ", expected integers of 1 to 32 or 64 bits or floating-point numbers of 16, 32 or 64");
    if (compression == COMPRESSION_NONE && std::int64_t(width) * height / 8 * bits > file_bytes)
      fail(path, "is truncated");
    if (block_bytes > most_unpacked(file_bytes) || row_bytes > block_bytes / block_height)
      fail(path, "is damaged: a part of it would have " + std::to_string(block_bytes) + " bytes");
    if (std::int64_t(width) * height / 8 > most_unpacked(file_bytes) / bits)
      fail(path, "is damaged: " + std::to_string(width) + " x " + std::to_string(height) + " pixels of " +
                     std::to_string(bits) + " bits in a file of " + std::to_string(file_bytes) + " bytes");
  }

  /// Of rows that follow each other in the file; none where they do not, or are compressed.
  std::optional<StoredFormat> stored_format(TIFF* tiff, std::int64_t file_bytes) const {
    std::uint16_t order = FILLORDER_MSB2LSB;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_FILLORDER, &order);
    if (tiled || compression != COMPRESSION_NONE || order != FILLORDER_MSB2LSB)
      return {};
    const std::uint64_t begin = TIFFGetStrileOffset(tiff, 0);
    for (std::uint32_t strip = 0; strip < TIFFNumberOfStrips(tiff); ++strip)
      if (TIFFGetStrileOffset(tiff, strip) != begin + std::uint64_t(strip) * std::uint64_t(block_bytes))
        return {};
    if (begin == 0 || std::int64_t(begin) > file_bytes - row_bytes * height)
      return {};
    const bool whole = format == SAMPLEFORMAT_INT, real = format == SAMPLEFORMAT_IEEEFP;
    const auto of = [&](StoredType type) {
      return StoredFormat{type, TIFFIsByteSwapped(tiff) != 0 && bits > 8};
    };
    switch (bits) {
    case 8:
      return of(whole ? StoredType::Int8 : StoredType::UInt8);
    case 16:
      return of(real ? StoredType::Float16 : whole ? StoredType::Int16 : StoredType::UInt16);
    case 32:
      return of(real ? StoredType::Float32 : whole ? StoredType::Int32 : StoredType::UInt32);
    case 64:
      return real ? std::optional(of(StoredType::Float64)) : std::nullopt;
    default:
      return {};
    }
  }

  void convert(const std::uint8_t* row, std::span<float> values) const {
    const auto whole = [&]<class T>(T value) {
      for (float& out : values) {
        std::memcpy(&value, row, sizeof value);
        row += sizeof value;
        out = static_cast<float>(value);
      }
    };
    const auto integers = [&](auto value) {
      format == SAMPLEFORMAT_INT ? whole(std::make_signed_t<decltype(value)>()) : whole(value);
    };
    const bool real = format == SAMPLEFORMAT_IEEEFP;
    switch (bits) {
    case 8:
      return integers(std::uint8_t());
    case 16:
      return real ? whole(Half()) : integers(std::uint16_t());
    case 32:
      return real ? whole(float()) : integers(std::uint32_t());
    case 64:
      return real ? whole(double()) : integers(std::uint64_t());
    default:
      break;
    }
    std::size_t at = 0; // bits, the first of a byte is its highest
    for (float& out : values) {
      std::uint32_t word = 0;
      for (int i = 0; i < bits; ++i, ++at) {
        const std::size_t byte = bits == 24 ? at / 24 * 3 + 2 - at % 24 / 8 : at / 8; // 24 are a number
        word = word << 1 | (row[byte] >> (7 - at % 8) & 1u);
      }
      const int unused = 32 - bits;
      out = format == SAMPLEFORMAT_INT
                ? static_cast<float>(static_cast<std::int32_t>(word << unused) >> unused)
                : static_cast<float>(word);
    }
  }
};

} // namespace

bool is_tiff_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return ending == ".tif" || ending == ".tiff";
}

void CloseTiff::operator()(TIFF* tiff) const { TIFFClose(tiff); }

TiffReader::TiffReader(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  series_ = fs::is_directory(path_, error) ||
            (!fs::exists(path_, error) && path_.string().find_first_of("*?[") != std::string::npos);
  files_ = series_ ? files_of(path_) : std::vector<fs::path>{path_};
  for (std::size_t file = 0; file < files_.size(); ++file)
    add_pages(file);
}

void TiffReader::open(std::size_t file) const {
  handle_.reset();                            // one file at a time
  static_cast<void>(InputFile(files_[file])); // says what is wrong with a name
  handle_ = open_tiff(files_[file], "rm");    // m: files are not mapped, as they may shrink
  open_file_ = file;
  if (!handle_)
    fail(files_[file], "is not a TIFF file");
}

void TiffReader::add_pages(std::size_t file) {
  open(file);
  const auto bytes = static_cast<std::int64_t>(fs::file_size(files_[file]));
  do {
    const Layout layout(handle_.get(), files_[file], bytes);
    last_error.clear();
    if (pages_.empty())
      width_ = layout.width, height_ = layout.height;
    if (layout.width != width_ || layout.height != height_)
      fail(files_[file], "expected pages of " + std::to_string(width_) + " x " + std::to_string(height_) +
                             " pixels as the first one has, found " + std::to_string(layout.width) + " x " +
                             std::to_string(layout.height));
    const std::optional<StoredFormat> stored = layout.stored_format(handle_.get(), bytes);
    if (pages_.empty())
      stored_format_ = stored;
    else if (stored_format_ != stored)
      stored_format_.reset();
    rows_together_ = std::max<std::int64_t>(rows_together_, layout.block_height);
    pages_.push_back({file, TIFFCurrentDirOffset(handle_.get()),
                      stored ? std::int64_t(TIFFGetStrileOffset(handle_.get(), 0)) : 0});
  } while (TIFFReadDirectory(handle_.get()));
  if (!last_error.empty())
    fail(files_[file], "is damaged behind page " + std::to_string(pages_.size()));
}

void TiffReader::read_rows(std::int64_t page, std::int64_t first, std::int64_t count,
                           std::span<float> values) const {
  const Page& at = pages_[static_cast<std::size_t>(page)];
  const fs::path& path = files_[at.file];
  if (!handle_ || open_file_ != at.file)
    open(at.file);
  last_error.clear();
  TIFF* const tiff = handle_.get();
  if (TIFFCurrentDirOffset(tiff) != at.directory && !TIFFSetSubDirectory(tiff, at.directory))
    fail(path, "page " + std::to_string(page) + " cannot be read");
  const Layout layout(tiff, path, static_cast<std::int64_t>(fs::file_size(path)));
  if (layout.width != width_ || layout.height != height_)
    fail(path, "has changed");
  std::vector<std::uint8_t> block(static_cast<std::size_t>(layout.block_bytes));
  const std::int64_t high = layout.block_height, wide = layout.block_width;
  for (std::int64_t top = first / high * high; top < first + count; top += high)
    for (std::int64_t left = 0; left < width_; left += wide) {
      const auto x = static_cast<std::uint32_t>(left), y = static_cast<std::uint32_t>(top);
      const std::int64_t begin = std::max(first, top), end = std::min({first + count, top + high, height_});
      const std::int64_t needed = (end - top) * layout.row_bytes;
      const std::int64_t found =
          layout.tiled ? TIFFReadEncodedTile(tiff, TIFFComputeTile(tiff, x, y, 0, 0), block.data(), -1)
                       : TIFFReadEncodedStrip(tiff, TIFFComputeStrip(tiff, y, 0), block.data(), -1);
      if (found < needed)
        fail(path, "is truncated or damaged: rows from " + std::to_string(top) + " on cannot be read");
      for (std::int64_t row = begin; row < end; ++row)
        layout.convert(block.data() + (row - top) * layout.row_bytes,
                       values.subspan(static_cast<std::size_t>((row - first) * width_ + left),
                                      static_cast<std::size_t>(std::min(wide, width_ - left))));
    }
}

void TiffReader::read_stored(std::int64_t page, std::int64_t first, std::int64_t count,
                             std::span<std::byte> values) const {
  const std::int64_t row = width_ * bytes_of(stored_format_.value().type);
  const auto bytes = static_cast<std::size_t>(count * row);
  std::optional<InputFile> input;
  for (std::size_t p = 0; p < values.size() / bytes; ++p) {
    const Page& at = pages_[static_cast<std::size_t>(page) + p];
    if (!input || input->path() != files_[at.file])
      input.emplace(files_[at.file]);
    input->read_at(at.rows + first * row, values.subspan(p * bytes, bytes));
  }
}

void write_tiff(const fs::path& path, std::int64_t width, std::int64_t height, StoredType type,
                std::span<const std::byte> values, const std::string& description) {
  TiffHandle handle = open_tiff(path, bytes_of(type) * width * height > 0xfff00000LL ? "w8" : "w");
  if (!handle)
    throw std::runtime_error(path.string() + ": cannot be written: " + last_error);
  write_page(handle.get(), path, width, height, bytes_of(type), values, description);
  if (TIFFFlush(handle.get()) == 0)
    throw std::runtime_error(path.string() + ": cannot be written: " + last_error);
}

TiffWriter::TiffWriter(fs::path path, std::int64_t width, std::int64_t height, std::int64_t pages,
                       StoredType type)
    : file_(std::move(path)), width_(width), height_(height), bytes_(bytes_of(type)),
      handle_(
          open_tiff(file_.temporary(), pages * (bytes_ * width * height + 300) > 0xffff0000LL ? "w8" : "w")) {
  if (!handle_)
    throw std::runtime_error(file_.path().string() + ": cannot be written: " + last_error);
}

void TiffWriter::write(std::span<const std::byte> values, const std::string& description) {
  if (!handle_ || std::int64_t(values.size()) != bytes_ * width_ * height_)
    throw std::logic_error(path().string() + ": a page that does not fit");
  write_page(handle_.get(), path(), width_, height_, bytes_, values, description);
}

void TiffWriter::commit() {
  const bool good = TIFFFlush(handle_.get()) != 0;
  handle_.reset();
  if (!good)
    throw std::runtime_error(path().string() + ": cannot be written: " + last_error);
  file_.commit();
}

} // namespace Bracewell::Examples
