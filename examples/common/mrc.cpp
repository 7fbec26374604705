// SPDX-License-Identifier: MIT
#include "mrc.hpp"

#include "half_values.hpp"
#include "input_error.hpp"
#include "processes.hpp"
#include "ranges.hpp"
#include "views.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace Bracewell::Examples {
namespace {

constexpr std::int64_t header_bytes = 1024;
constexpr std::int32_t imod_stamp = 1146047817;
constexpr std::int32_t imod_signed_bytes = 1;
// Values handled at a time: small enough to stay in cache from reading to the last conversion.
constexpr std::int64_t chunk_values = 1 << 16;

// Offsets of the header's fields in bytes.
namespace Field {
constexpr std::size_t size = 0, mode = 12, start = 16, sampling = 28, cell = 40, angles = 52, axes = 64,
                      statistics = 76, space_group = 88, extended_bytes = 92, version = 108, imod = 152,
                      imod_flags = 156, origin = 196, map = 208, stamp = 212, deviation = 216,
                      label_count = 220, labels = 224;
} // namespace Field
constexpr std::size_t label_length = 80;

template <class Value>
Value byte_swapped(Value value) {
  if constexpr (sizeof(Value) == 2)
    return std::bit_cast<Value>(__builtin_bswap16(std::bit_cast<std::uint16_t>(value)));
  else if constexpr (sizeof(Value) == 4)
    return std::bit_cast<Value>(__builtin_bswap32(std::bit_cast<std::uint32_t>(value)));
  else
    return value;
}

using RawHeader = std::array<std::byte, header_bytes>;

/// Lines broken into labels, as many as a header has.
std::vector<std::string> wrapped(const std::vector<std::string>& lines) {
  constexpr std::size_t most = 10;
  std::vector<std::string> labels;
  for (std::string line : lines) {
    // Other programs expect printable ASCII.
    std::ranges::replace_if(
        line, [](char c) { return c < ' ' || c > '~'; }, '?');
    for (std::size_t at = 0; at < line.size() && labels.size() < most; at += label_length)
      labels.push_back(line.substr(at, label_length));
  }
  return labels;
}

/// The header's fields in one byte order.
struct Fields {
  const RawHeader& raw;
  bool big_endian;

  template <class Value>
  Value read(std::size_t offset) const {
    Value value;
    std::memcpy(&value, raw.data() + offset, sizeof value);
    return big_endian == (std::endian::native == std::endian::big) ? value : byte_swapped(value);
  }
  std::int32_t integer(std::size_t offset) const { return read<std::int32_t>(offset); }
  double real(std::size_t offset) const { return read<float>(offset); }
  std::array<std::int64_t, 3> integers(std::size_t offset) const {
    return {integer(offset), integer(offset + 4), integer(offset + 8)};
  }
};

/// How values of a mode are stored; nothing for one that is not read.
std::optional<StoredType> stored_type(std::int32_t mode) {
  switch (MrcMode(mode)) {
  case MrcMode::Int8:
    return StoredType::Int8;
  case MrcMode::Int16:
    return StoredType::Int16;
  case MrcMode::UInt16:
    return StoredType::UInt16;
  case MrcMode::Float16:
    return StoredType::Float16;
  case MrcMode::Float32:
    return StoredType::Float32;
  }
  return {};
}

std::string mode_name(std::int32_t mode) {
  const std::string number = std::to_string(mode);
  if (mode == 3)
    return number + " (complex int16)";
  if (mode == 4)
    return number + " (complex float32)";
  if (mode == 101)
    return number + " (4-bit)";
  return number;
}

std::string joined(const std::array<std::int64_t, 3>& values, const char* separator = " x ") {
  return std::to_string(values[0]) + separator + std::to_string(values[1]) + separator +
         std::to_string(values[2]);
}

bool is_permutation(const std::array<std::int64_t, 3>& axes) {
  return std::ranges::is_permutation(axes, std::array<std::int64_t, 3>{1, 2, 3});
}

/// Header, extended header and values, where that fits 64 bits.
std::optional<std::int64_t> expected_bytes(const std::array<std::int64_t, 3>& size,
                                           std::int64_t bytes_per_value, std::int64_t extended) {
  const std::int64_t section = size[0] * size[1]; // both are below 2^31
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() - header_bytes - extended;
  if (size[2] > most / bytes_per_value / section)
    return std::nullopt;
  return header_bytes + extended + section * size[2] * bytes_per_value;
}

/// How well a byte order explains the header, higher is better: the mode says most, for it is small in one
/// order only unless it is 0.
int plausibility(const Fields& fields, std::int64_t file_bytes) {
  const auto size = fields.integers(Field::size);
  const auto axes = fields.integers(Field::axes);
  const std::int32_t mode = fields.integer(Field::mode);
  const std::int64_t extended = fields.integer(Field::extended_bytes);
  const bool positive = std::ranges::all_of(size, [](std::int64_t n) { return n > 0; });
  const std::optional<StoredType> type = stored_type(mode);
  int points = 0;
  if (mode >= 0 && mode < 1000)
    points += 2;
  if (is_permutation(axes))
    points += 2;
  if (positive)
    points += 1;
  if (positive && type && extended >= 0) {
    const auto expected = expected_bytes(size, bytes_of(*type), extended);
    if (expected && *expected <= file_bytes)
      points += 4;
  }
  return points;
}

/// Chooses the byte order: that of the machine stamp, unless the header makes sense in the other order alone.
bool find_byte_order(const RawHeader& raw, std::int64_t file_bytes, std::vector<std::string>& warnings) {
  const auto stamp = std::to_integer<int>(raw[Field::stamp]);
  const bool tagged = std::memcmp(raw.data() + Field::map, "MAP", 3) == 0;
  const bool stamped = stamp == 0x44 || stamp == 0x11;
  const int little = plausibility({raw, false}, file_bytes);
  const int big = plausibility({raw, true}, file_bytes);
  const bool big_endian = stamped ? (stamp == 0x11 ? big + 4 > little : big > little + 4) : big > little;
  const std::string order = big_endian ? "big-endian" : "little-endian";
  if (stamped && big_endian != (stamp == 0x11))
    warnings.push_back("the machine stamp contradicts the rest of the header; read as " + order);
  else if (!stamped)
    warnings.push_back(std::string("the header has no ") + (tagged ? "" : "'MAP ' tag and no ") +
                       "machine stamp; read as " + order);
  else if (!tagged)
    warnings.push_back("the header has no 'MAP ' tag");
  return big_endian;
}

/// Sizes, starts, voxels and angles, in the order x, y, z.
/// @param axes  a permutation of 1, 2, 3: which of them columns, rows and sections are
void read_axes(const Fields& fields, const std::array<std::int64_t, 3>& axes, MrcHeader& header) {
  const auto sizes = fields.integers(Field::size), starts = fields.integers(Field::start);
  for (std::size_t i = 0; i < 3; ++i) {
    // Sizes and starts are in the order of the file, everything else is x, y, z already.
    const auto axis = static_cast<std::size_t>(axes[i] - 1);
    header.axis_order[i] = static_cast<int>(axis);
    header.size[axis] = sizes[i];
    header.start[axis] = starts[i];
    const double length = fields.real(Field::cell + 4 * i);
    const std::int32_t sampling = fields.integer(Field::sampling + 4 * i);
    if (std::isfinite(length) && length > 0 && sampling > 0)
      header.voxel_size[i] = length / sampling;
    header.cell_angles[i] = fields.real(Field::angles + 4 * i);
    header.origin[i] = fields.real(Field::origin + 4 * i);
  }
}

std::vector<std::string> labels_of(const Fields& fields) {
  std::vector<std::string> labels;
  const auto count = static_cast<std::size_t>(std::clamp(fields.integer(Field::label_count), 0, 10));
  for (std::size_t i = 0; i < count; ++i) {
    const char* text = reinterpret_cast<const char*>(fields.raw.data()) + Field::labels + i * label_length;
    std::string label(text, std::find(text, text + label_length, '\0'));
    label.erase(label.find_last_not_of(' ') + 1);
    labels.push_back(std::move(label));
  }
  return labels;
}

template <class Value>
void convert(std::span<const std::byte> bytes, bool swap, std::span<float> out) {
  const std::byte* in = bytes.data();
  const auto value_at = [in](std::size_t i) {
    Value value;
    std::memcpy(&value, in + i * sizeof(Value), sizeof(Value));
    return value;
  };
  if (swap)
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>(byte_swapped(value_at(i)));
  else
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>(value_at(i));
}

void convert_halves(std::span<const std::byte> bytes, bool swap, std::span<float> out) {
  const std::byte* in = bytes.data();
  const auto half_at = [in](std::size_t i) {
    std::uint16_t half;
    std::memcpy(&half, in + 2 * i, 2);
    return half;
  };
  if (swap)
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = float_of_half(byte_swapped(half_at(i)));
  else
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = float_of_half(half_at(i));
}

bool is_finite(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7f800000u) != 0x7f800000u; }

bool all_finite(std::span<const float> values) {
  std::uint32_t found = 0;
  for (const float value : values)
    found |= static_cast<std::uint32_t>(!is_finite(value));
  return found == 0;
}

constexpr std::size_t lanes = 16; ///< interleaved sums, which need not wait for each other and are vectorised

/// Least and greatest of finite values.
std::pair<float, float> fast_minmax(std::span<const float> values) {
  std::array<float, lanes> low, high;
  low.fill(values[0]);
  high.fill(values[0]);
  const auto whole = values.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      low[lane] = std::min(low[lane], values[i + lane]);
      high[lane] = std::max(high[lane], values[i + lane]);
    }
  for (const float value : values.subspan(whole)) {
    low[0] = std::min(low[0], value);
    high[0] = std::max(high[0], value);
  }
  return {std::ranges::min(low), std::ranges::max(high)};
}

/// Sum of term(value).
template <class Term>
double fast_sum(std::span<const float> values, Term term) {
  std::array<double, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      sums[lane] += term(values[i + lane]);
  for (; i < values.size(); ++i)
    sums[0] += term(values[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

/// The first value that is not finite.
std::int64_t find_non_finite(std::span<const float> values) {
  return std::ranges::find_if_not(values, is_finite) - values.begin();
}

/// Where a pixel lies, counting from 1.
std::string place(std::int64_t pixel, std::int64_t width) {
  return "column " + std::to_string(pixel % width + 1) + ", row " + std::to_string(pixel / width + 1);
}

} // namespace

MrcReader::MrcReader(std::filesystem::path path) : file_(std::move(path)) {
  const auto fail = [this](const std::string& what) {
    throw InputError(file_.path().string() + ": " + what);
  };
  std::string beginning(static_cast<std::size_t>(std::min<std::int64_t>(64, file_.size())), ' ');
  file_.read_at(0, std::as_writable_bytes(std::span(beginning)));
  if (const std::string other = other_format(beginning, file_.path()); !other.empty())
    fail((other.starts_with("this") ? "is not an MRC file: " : "") + other);
  if (file_.size() < header_bytes)
    fail("is not an MRC file: expected a header of 1024 bytes, found " + std::to_string(file_.size()) +
         " bytes");
  RawHeader raw;
  file_.read_at(0, raw);

  const Fields fields{raw, find_byte_order(raw, file_.size(), warnings_)};
  header_.big_endian = fields.big_endian;
  stored_ = fields.integers(Field::size);
  const std::int32_t mode = fields.integer(Field::mode);
  const std::int64_t extended = fields.integer(Field::extended_bytes);
  auto axes = fields.integers(Field::axes);

  if (plausibility(fields, file_.size()) <= 1)
    fail("is not an MRC file: found mode " + std::to_string(mode) + " and size " + joined(stored_));
  if (std::ranges::any_of(stored_, [](std::int64_t n) { return n <= 0; }))
    fail("has a wrong header: expected positive sizes, found " + joined(stored_));
  const std::optional<StoredType> type = stored_type(mode);
  if (!type)
    fail("has mode " + mode_name(mode) +
         ", expected 0 (int8), 1 (int16), 2 (float32), 6 (uint16) or 12 (float16)");
  if (extended < 0)
    fail("has a wrong header: expected an extended header of 0 or more bytes, found " +
         std::to_string(extended));
  if (axes == std::array<std::int64_t, 3>{0, 0, 0}) {
    warnings_.push_back("the header states no order of the axes; read as x, y, z");
    axes = {1, 2, 3};
  }
  if (!is_permutation(axes))
    fail("has a wrong header: expected a permutation of 1, 2, 3 for the order of the axes, found " +
         joined(axes, ", "));
  const auto expected = expected_bytes(stored_, bytes_of(*type), extended);
  if (!expected)
    fail("has a wrong header: its size " + joined(stored_) + " is past any file");
  if (extended > 0 && file_.size() == *expected - extended)
    fail("has a wrong header: it states an extended header of " + std::to_string(extended) +
         " bytes, which is not there: size " + joined(stored_) + " and mode " + std::to_string(mode) +
         " fill the file without it");
  if (file_.size() < *expected)
    fail("is truncated: expected " + std::to_string(*expected) + " bytes for size " + joined(stored_) +
         " and mode " + std::to_string(mode) + ", found " + std::to_string(file_.size()));
  if (file_.size() > *expected)
    warnings_.push_back("the file has " + std::to_string(file_.size() - *expected) +
                        " bytes after the last value");

  header_.mode = MrcMode(mode);
  header_.data_offset = header_bytes + extended;
  header_.space_group = fields.integer(Field::space_group);
  read_axes(fields, axes, header_);
  header_.unsigned_bytes = header_.mode == MrcMode::Int8 && fields.integer(Field::imod) == imod_stamp &&
                           (fields.integer(Field::imod_flags) & imod_signed_bytes) == 0;
  header_.labels = labels_of(fields);
}

void MrcReader::read_sections(std::int64_t first, std::int64_t count, std::span<float> out,
                              NonFinite non_finite) const {
  const std::int64_t section = width() * height();
  const std::int64_t bytes = bytes_of(format().type);
  const bool swap = format().swapped;
  const std::int64_t begin = first * section;
  const std::int64_t end = (first + count) * section;
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(chunk_values, end - begin) * bytes));

  for (std::int64_t at = begin; at < end; at += chunk_values) {
    const auto values = static_cast<std::size_t>(std::min(chunk_values, end - at));
    const auto target = out.subspan(static_cast<std::size_t>(at - begin), values);
    const auto raw = std::span(buffer).first(values * static_cast<std::size_t>(bytes));
    const std::int64_t offset = header_.data_offset + at * bytes;
    if (header_.mode == MrcMode::Float32 && !swap) {
      file_.read_at(offset, std::as_writable_bytes(target));
    } else {
      file_.read_at(offset, raw);
      switch (header_.mode) {
      case MrcMode::Int8:
        header_.unsigned_bytes ? convert<std::uint8_t>(raw, swap, target)
                               : convert<std::int8_t>(raw, swap, target);
        break;
      case MrcMode::Int16:
        convert<std::int16_t>(raw, swap, target);
        break;
      case MrcMode::UInt16:
        convert<std::uint16_t>(raw, swap, target);
        break;
      case MrcMode::Float32:
        convert<float>(raw, swap, target);
        break;
      case MrcMode::Float16:
        convert_halves(raw, swap, target);
        break;
      }
    }
    if (non_finite == NonFinite::Reject && !all_finite(target)) {
      const std::int64_t position = at + find_non_finite(target);
      throw InputError(not_finite(position / section, position % section));
    }
  }
}

StoredFormat MrcReader::format() const {
  const StoredType type =
      header_.unsigned_bytes ? StoredType::UInt8 : *stored_type(static_cast<std::int32_t>(header_.mode));
  return {type, bytes_of(type) > 1 && header_.big_endian != (std::endian::native == std::endian::big)};
}

std::string MrcReader::not_finite(std::int64_t image, std::int64_t pixel) const {
  return path().string() + ": image " + std::to_string(image + 1) +
         " (counting from 1) has a value that is not finite at " + place(pixel, width());
}

void MrcReader::check_range(std::int64_t first, std::int64_t count) const {
  if (header_.axis_order != std::array<int, 3>{0, 1, 2})
    throw InputError(path().string() + ": is not an image stack: its axes are not in the order x, y, z");
  if (first < 0 || count < 0 || first > images() - count)
    throw InputError(path().string() + ": has " + std::to_string(images()) + " images, asked for " +
                     std::to_string(count) + " from index " + std::to_string(first) + " (counting from 0)");
}

void MrcReader::read_stored(std::int64_t first, std::span<std::byte* const> images) const {
  check_range(first, static_cast<std::int64_t>(images.size()));
  file_.read_at(header_.data_offset + first * image_bytes(), images, static_cast<std::size_t>(image_bytes()));
}

void MrcReader::read_images(std::int64_t first, std::int64_t count, std::span<float> out,
                            NonFinite non_finite) const {
  check_range(first, count);
  if (out.size() != static_cast<std::size_t>(count * width() * height()))
    throw std::invalid_argument("MrcReader::read_images: the span does not have the size of the images");
  read_sections(first, count, out, non_finite);
}

std::vector<float> MrcReader::read_volume(NonFinite non_finite) const {
  if (header_.space_group >= 401 && header_.space_group <= 630)
    throw InputError(path().string() + ": is a stack of maps (space group " +
                     std::to_string(header_.space_group) + "), expected one map");
  const auto [columns, rows, sections] = stored_;
  std::vector<float> volume(static_cast<std::size_t>(columns * rows * sections));
  if (header_.axis_order == std::array<int, 3>{0, 1, 2}) {
    read_sections(0, sections, volume, non_finite);
    return volume;
  }
  const std::array<std::int64_t, 3> strides{1, header_.size[0], header_.size[0] * header_.size[1]};
  const std::int64_t column_stride = strides[static_cast<std::size_t>(header_.axis_order[0])];
  const std::int64_t row_stride = strides[static_cast<std::size_t>(header_.axis_order[1])];
  const std::int64_t section_stride = strides[static_cast<std::size_t>(header_.axis_order[2])];
  std::vector<float> section(static_cast<std::size_t>(columns * rows));
  for (std::int64_t s = 0; s < sections; ++s) {
    read_sections(s, 1, section, non_finite);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        volume[static_cast<std::size_t>(s * section_stride + r * row_stride + c * column_stride)] =
            section[static_cast<std::size_t>(r * columns + c)];
  }
  return volume;
}

MrcWriter::MrcWriter(std::filesystem::path path, Kind kind, std::int64_t width, std::int64_t height,
                     const MrcWriteOptions& options)
    : file_(std::move(path), options.shared_images > 0 ? AtomicFile::Writers::All : AtomicFile::Writers::One),
      kind_(kind), width_(width), height_(height), options_(options),
      moments_(static_cast<std::size_t>(options.shared_images)) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (width < 1 || height < 1 || width > most || height > most)
    throw InputError(file_.path().string() + ": cannot be written: images of " + std::to_string(width) +
                     " x " + std::to_string(height) + " pixels");
  if (options.mode != MrcMode::Float32 && options.mode != MrcMode::Float16)
    throw InputError(file_.path().string() + ": cannot be written in mode " +
                     std::to_string(static_cast<std::int32_t>(options.mode)) +
                     ", expected 2 (float32) or 12 (float16)");
  if (!(options.pixel_size >= 0) || !std::isfinite(options.pixel_size))
    throw InputError(file_.path().string() +
                     ": cannot be written: expected a pixel size of 0 (not known) or more");
  if (writes_header())
    file_.write(RawHeader{}); // its place; close() fills it in
  reserve(options.shared_images);
}

void MrcWriter::reserve(std::int64_t images) {
  if (io_threads() > 1)
    file_.reserve(header_bytes, images * width_ * height_ * (options_.mode == MrcMode::Float16 ? 2 : 4));
}

void MrcWriter::write(std::span<const float> images) {
  write_at(static_cast<std::int64_t>(moments_.size()), images);
}

std::size_t MrcWriter::count_images(std::int64_t first, std::span<const float> images) const {
  const auto section = static_cast<std::size_t>(width_ * height_);
  if (images.size() % section != 0)
    throw std::invalid_argument("MrcWriter::write: the span does not hold whole images");
  const std::size_t count = images.size() / section;
  if (static_cast<std::size_t>(first) + count > std::size_t(std::numeric_limits<std::int32_t>::max()))
    throw InputError(file_.path().string() + ": cannot be written: more than 2^31 - 1 images");
  return count;
}

void MrcWriter::keep(std::int64_t first, std::span<const Moments> moments) {
  const auto begin = static_cast<std::size_t>(first);
  const std::lock_guard lock(mutex_);
  moments_.resize(std::max(moments_.size(), begin + moments.size()));
  std::ranges::copy(moments, moments_.begin() + static_cast<std::ptrdiff_t>(begin));
}

void MrcWriter::write_at(std::int64_t first, std::span<const float> images) {
  const auto section = static_cast<std::size_t>(width_ * height_);
  const std::size_t count = count_images(first, images);
  std::vector<Moments> moments;
  std::vector<std::uint16_t> halves;
  std::vector<float> rounded;
  const bool half = options_.mode == MrcMode::Float16;
  for (std::size_t i = 0; i < count; ++i) {
    const auto image = images.subspan(i * section, section);
    const auto index = first + static_cast<std::int64_t>(i);
    if (half) {
      halves.resize(section);
      rounded.resize(section);
      std::ranges::transform(image, halves.begin(), half_of_float);
      std::ranges::transform(halves, rounded.begin(), float_of_half);
      if (!all_finite(rounded)) {
        moments_of(image, index); // throws where the image has such values
        throw InputError(
            file_.path().string() + ": not written: image " + std::to_string(index + 1) +
            " (counting from 1) has values above 65504, the largest of mode 12 (float16); use mode 2");
      }
      file_.write_at(header_bytes + index * width_ * height_ * 2, std::as_bytes(std::span(halves)));
    }
    moments.push_back(moments_of(half ? rounded : image, index));
  }
  if (half)
    keep(first, moments);
  else
    write_at(first, images, moments);
}

void MrcWriter::write_at(std::int64_t first, std::span<const float> images,
                         std::span<const Moments> moments) {
  const auto section = static_cast<std::size_t>(width_ * height_);
  if (moments.size() != count_images(first, images) || options_.mode != MrcMode::Float32)
    throw std::invalid_argument("MrcWriter::write_at: expected the moments of every image, of mode 2");
  for (std::size_t i = 0; i < moments.size(); ++i)
    if (!std::isfinite(moments[i].mean)) // which it is not where a value is not
      moments_of(images.subspan(i * section, section), first + static_cast<std::int64_t>(i));
  file_.write_at(header_bytes + first * width_ * height_ * 4, std::as_bytes(images));
  keep(first, moments);
}

MrcWriter::Moments MrcWriter::moments_of(std::span<const float> image, std::int64_t index) const {
  const auto values = static_cast<double>(image.size());
  const double mean = fast_sum(image, [](double value) { return value; }) / values;
  if (!std::isfinite(mean) && !all_finite(image))
    throw std::runtime_error(file_.path().string() + ": not written: image " + std::to_string(index + 1) +
                             " (counting from 1) has a value that is not finite at " +
                             place(find_non_finite(image), width_));
  const auto [low, high] = fast_minmax(image);
  return {low, high, mean, fast_sum(image, [mean](double value) { return (value - mean) * (value - mean); }),
          true};
}

bool MrcWriter::writes_header() const { return options_.shared_images == 0 || is_first_process(); }

/// Those of the images that every process wrote, for all.
void MrcWriter::exchange_moments() {
  const OnHost<double* [5]> all("Bracewell::examples::moments", moments_.size());
  for (std::size_t i = 0; i < moments_.size(); ++i)
    if (const Moments& own = moments_[i]; own.written) {
      const std::array values{double(own.minimum), double(own.maximum), own.mean, own.squared_deviations,
                              1.0};
      std::ranges::copy(values, &all(i, 0));
    }
  processes().sum(Space(), all);
  for (std::size_t i = 0; i < moments_.size(); ++i)
    moments_[i] = {float(all(i, 0)), float(all(i, 1)), all(i, 2), all(i, 3), all(i, 4) == 1};
}

void MrcWriter::close() {
  if (options_.shared_images > 0 && process_count() > 1)
    exchange_moments();
  if (moments_.empty())
    throw std::runtime_error(file_.path().string() + ": not written: it would have no images");
  if (!std::ranges::all_of(moments_, &Moments::written))
    throw std::logic_error(file_.path().string() + ": closed before all of its images were written");
  // Moments of the images before are merged with those of the next (Chan, Golub, LeVeque 1979): no cancellation for a
  // large mean.
  const double section_values = static_cast<double>(width_ * height_);
  Moments all = moments_[0];
  for (std::size_t i = 1; i < moments_.size(); ++i) {
    const Moments& image = moments_[i];
    const auto before = static_cast<double>(i);
    const double difference = image.mean - all.mean;
    all.minimum = std::min(all.minimum, image.minimum);
    all.maximum = std::max(all.maximum, image.maximum);
    all.mean += difference / (before + 1);
    all.squared_deviations +=
        image.squared_deviations + difference * difference * section_values * before / (before + 1);
  }
  if (!creator().empty() && !(options_.may_be_constant && all.minimum == all.maximum))
    require_sensible(file_.path(), all.minimum, all.maximum, true, options_.likeliest);
  RawHeader raw{};
  const auto put = [&raw](std::size_t offset, auto... values) {
    ((std::memcpy(raw.data() + offset, &values, sizeof values), offset += sizeof values), ...);
  };
  const auto columns = static_cast<std::int32_t>(width_);
  const auto rows = static_cast<std::int32_t>(height_);
  const auto sections = static_cast<std::int32_t>(moments_.size());
  const std::int32_t depth =
      kind_ == Kind::Volume ? sections : 1; // sampling along z: a stack is many images of depth 1
  const auto length = [this](std::int32_t voxels) {
    return static_cast<float>(options_.pixel_size * voxels);
  };

  put(Field::size, columns, rows, sections, static_cast<std::int32_t>(options_.mode));
  put(Field::sampling, columns, rows, depth, length(columns), length(rows), length(depth), 90.0f, 90.0f,
      90.0f);
  put(Field::axes, 1, 2, 3);
  put(Field::statistics, all.minimum, all.maximum, static_cast<float>(all.mean));
  put(Field::space_group, kind_ == Kind::Volume ? 1 : 0);
  put(Field::version, 20140);
  constexpr unsigned char stamp_byte = std::endian::native == std::endian::big ? 0x11 : 0x44;
  put(Field::map, 'M', 'A', 'P', ' ', stamp_byte, stamp_byte);
  std::vector<std::string> lines = options_.labels;
  const auto says_origin = [](const std::string& line) { return line.starts_with("bracewell-"); };
  if (creator().empty() && lines.empty())
    lines.emplace_back("Bracewell");
  else if (!creator().empty() && std::ranges::none_of(lines, says_origin))
    lines.push_back(creator());
  const auto labels = wrapped(lines);
  put(Field::deviation, static_cast<float>(std::sqrt(all.squared_deviations / (section_values * sections))),
      static_cast<std::int32_t>(labels.size()));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    std::memset(raw.data() + Field::labels + i * label_length, ' ', label_length);
    std::memcpy(raw.data() + Field::labels + i * label_length, labels[i].data(), labels[i].size());
  }

  if (writes_header())
    file_.write_at(0, raw);
  file_.commit();
}

void write_volume(const std::filesystem::path& path, std::span<const float> volume,
                  std::array<std::int64_t, 3> size, const MrcWriteOptions& options) {
  if (volume.size() != static_cast<std::size_t>(size[0] * size[1] * size[2]))
    throw std::invalid_argument("write_volume: the span does not have the size of the volume");
  MrcWriter writer(path, MrcWriter::Kind::Volume, size[0], size[1], options);
  if (options.mode == MrcMode::Float32)
    writer.reserve(size[2]);
  // By several threads, as one fills pages of memory slower than a disk takes them.
  const std::int64_t together = (size[2] + io_threads() - 1) / io_threads();
  std::vector<std::future<void>> parts;
  for (std::int64_t first = 0; first < size[2]; first += together)
    parts.push_back(std::async(std::launch::async, [&, first] {
      const auto section = static_cast<std::size_t>(size[0] * size[1]);
      writer.write_at(
          first, volume.subspan(static_cast<std::size_t>(first) * section,
                                static_cast<std::size_t>(std::min(together, size[2] - first)) * section));
    }));
  for (auto& part : parts)
    part.get();
  writer.close();
}

} // namespace Bracewell::Examples
