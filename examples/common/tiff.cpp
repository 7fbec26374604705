// SPDX-License-Identifier: MIT
#include "tiff.hpp"

#include "input_error.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace Bracewell::Examples {
namespace {

enum Tag : int {
  ImageWidth = 256,
  ImageLength = 257,
  BitsPerSample = 258,
  Compression = 259,
  Photometric = 262,
  StripOffsets = 273,
  SamplesPerPixel = 277,
  RowsPerStrip = 278,
  StripByteCounts = 279,
  SampleFormat = 339
};

enum Kind : int { Short = 3, Long = 4, Long8 = 16 };

static_assert(std::endian::native == std::endian::little, "TIFF files are written as little-endian ones");

/// Bytes of numbers in a row, little-endian.
class Buffer {
public:
  template <class T>
  void append(T value) {
    const auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
    for (const std::byte byte : bytes)
      bytes_.push_back(byte);
  }
  std::span<const std::byte> bytes() const { return bytes_; }

private:
  std::vector<std::byte> bytes_;
};

} // namespace

TiffReader::TiffReader(std::filesystem::path path) : file_(std::move(path)) {
  std::array<std::byte, 8> header{};
  if (file_.size() < std::int64_t(header.size()))
    fail("is not a TIFF file");
  file_.read_at(0, header);
  const bool little = header[0] == std::byte{'I'} && header[1] == std::byte{'I'};
  big_endian_ = header[0] == std::byte{'M'} && header[1] == std::byte{'M'};
  const std::uint32_t version = number(std::span(header).subspan(2, 2));
  if ((!little && !big_endian_) || (version != 42 && version != 43))
    fail("is not a TIFF file");
  if (version == 43)
    fail("is a BigTIFF file, which is not read");

  const std::int64_t directory = number(std::span(header).subspan(4, 4));
  std::array<std::byte, 2> count_bytes{};
  file_.read_at(directory, count_bytes);
  std::map<int, std::vector<std::int64_t>> tags;
  for (std::uint32_t entry = 0; entry < number(count_bytes); ++entry) {
    std::array<std::byte, 12> bytes{};
    file_.read_at(directory + 2 + 12 * std::int64_t(entry), bytes);
    const auto part = [&](std::size_t from, std::size_t count) {
      return number(std::span(bytes).subspan(from, count));
    };
    const std::uint32_t kind = part(2, 2), count = part(4, 4);
    if (kind != Short && kind != Long)
      continue; // texts and fractions say nothing that is needed here
    const std::size_t size = kind == Short ? 2 : 4;
    if (std::int64_t(count) * std::int64_t(size) > file_.size())
      fail("is damaged: a field has more values than the file could hold");
    std::vector<std::byte> values(bytes.begin() + 8, bytes.end());
    if (count * size > 4) {
      values.resize(count * size);
      file_.read_at(part(8, 4), values);
    }
    auto& list = tags[static_cast<int>(part(0, 2))];
    for (std::size_t i = 0; i < count; ++i)
      list.push_back(number(std::span(values).subspan(i * size, size)));
  }
  const auto one = [&](Tag tag, std::int64_t otherwise) {
    const auto found = tags.find(tag);
    return found == tags.end() || found->second.empty() ? otherwise : found->second[0];
  };
  width_ = one(ImageWidth, 0);
  height_ = one(ImageLength, 0);
  rows_per_strip_ = std::min(one(RowsPerStrip, height_), height_);
  bytes_ = static_cast<int>(one(BitsPerSample, 1) / 8);
  format_ = static_cast<int>(one(SampleFormat, 1));
  strips_ = tags[StripOffsets];
  if (width_ < 1 || height_ < 1 || rows_per_strip_ < 1)
    fail("has no pixels");
  if (one(Compression, 1) != 1)
    fail("is compressed (kind " + std::to_string(one(Compression, 1)) + "), which is not read");
  if (one(SamplesPerPixel, 1) != 1)
    fail("has " + std::to_string(one(SamplesPerPixel, 1)) + " values per pixel, expected 1");
  const bool integer = (format_ == 1 || format_ == 2) && (bytes_ == 1 || bytes_ == 2 || bytes_ == 4);
  if (one(BitsPerSample, 1) % 8 != 0 || !(integer || (format_ == 3 && bytes_ == 4)))
    fail("has values of " + std::to_string(one(BitsPerSample, 1)) + " bits and format " +
         std::to_string(format_) + ", expected integers of 8, 16 or 32 bits or floating-point numbers of 32");
  if (std::int64_t(strips_.size()) != (height_ + rows_per_strip_ - 1) / rows_per_strip_)
    fail("is damaged or in tiles: it has " + std::to_string(strips_.size()) + " strips for " +
         std::to_string(height_) + " rows");
  if (width_ * height_ * bytes_ > file_.size())
    fail("is truncated");
}

void TiffReader::fail(const std::string& message) const {
  throw InputError(path().string() + ": " + message);
}

std::uint32_t TiffReader::number(std::span<const std::byte> bytes) const {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value |= std::to_integer<std::uint32_t>(bytes[i]) << 8 * (big_endian_ ? bytes.size() - 1 - i : i);
  return value;
}

void TiffReader::read_rows(std::int64_t first, std::int64_t count, std::span<float> values) const {
  std::vector<std::byte> row(static_cast<std::size_t>(width_ * bytes_));
  for (std::int64_t y = first; y < first + count; ++y) {
    const std::int64_t begin = strips_[static_cast<std::size_t>(y / rows_per_strip_)];
    file_.read_at(begin + y % rows_per_strip_ * width_ * bytes_, row);
    for (std::size_t x = 0; x < static_cast<std::size_t>(width_); ++x) {
      const auto size = static_cast<std::size_t>(bytes_);
      const std::uint32_t bits = number(std::span(row).subspan(x * size, size));
      const int unused = 32 - 8 * bytes_;
      values[static_cast<std::size_t>((y - first) * width_) + x] =
          format_ == 3   ? std::bit_cast<float>(bits)
          : format_ == 2 ? static_cast<float>(static_cast<std::int32_t>(bits << unused) >> unused)
                         : static_cast<float>(bits);
    }
  }
}

namespace {

constexpr std::int64_t entries = 10;
/// Header and, per page, the directory before the pixels.
std::int64_t header_size(bool big) { return big ? 16 : 8; }
std::int64_t directory_size(bool big) { return big ? 8 + 20 * entries + 8 : 2 + 12 * entries + 4 + 2; }

} // namespace

TiffWriter::TiffWriter(std::filesystem::path path, std::int64_t width, std::int64_t height,
                       std::int64_t pages)
    : file_(std::move(path)), width_(width), height_(height), pages_(pages), big_(false) {
  big_ = page_begin(pages) > 0xffffffffLL;
  Buffer header;
  header.append('I');
  header.append('I');
  header.append(std::uint16_t(big_ ? 43 : 42));
  if (big_) {
    header.append(std::uint16_t(8)); // bytes of an offset
    header.append(std::uint16_t(0));
    header.append(std::uint64_t(header_size(big_)));
  } else {
    header.append(std::uint32_t(header_size(big_)));
  }
  file_.write_at(0, header.bytes());
}

std::int64_t TiffWriter::page_begin(std::int64_t page) const {
  return header_size(big_) + page * (directory_size(big_) + 4 * width_ * height_);
}

void TiffWriter::write(std::int64_t page, std::span<const float> values) {
  if (page < 0 || page >= pages_ || std::int64_t(values.size()) != width_ * height_)
    throw std::logic_error(path().string() + ": a page that does not fit");
  const std::int64_t begin = page_begin(page), pixels = begin + directory_size(big_);
  Buffer directory;
  const auto count = [&](std::int64_t value) {
    big_ ? directory.append(std::uint64_t(value)) : directory.append(std::uint16_t(value));
  };
  const auto word = [&](std::int64_t value) {
    big_ ? directory.append(std::uint64_t(value)) : directory.append(std::uint32_t(value));
  };
  const auto field = [&](Tag tag, std::int64_t value) {
    directory.append(std::uint16_t(tag));
    directory.append(std::uint16_t(big_ ? Long8 : Long));
    word(1);
    word(value);
  };
  const auto small_field = [&](Tag tag, std::uint16_t value) {
    directory.append(std::uint16_t(tag));
    directory.append(std::uint16_t(Short));
    word(1);
    word(value); // little-endian: the short comes first
  };
  count(entries);
  field(ImageWidth, width_);
  field(ImageLength, height_);
  small_field(BitsPerSample, 32);
  small_field(Compression, 1);
  small_field(Photometric, 1); // zero is black
  field(StripOffsets, pixels);
  small_field(SamplesPerPixel, 1);
  field(RowsPerStrip, height_);
  field(StripByteCounts, 4 * width_ * height_);
  small_field(SampleFormat, 3);
  word(page + 1 < pages_ ? page_begin(page + 1) : 0);
  file_.write_at(begin, directory.bytes());
  file_.write_at(pixels, std::as_bytes(values));
}

} // namespace Bracewell::Examples
