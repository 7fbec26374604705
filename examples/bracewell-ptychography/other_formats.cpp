// SPDX-License-Identifier: MIT
// Measurements in files that are not HDF5.
#include "bracewell-ptychography/measurement.hpp"

#include "common/input_error.hpp"
#include "common/input_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <regex>
#include <string_view>

#include <zlib.h>

namespace Bracewell::Examples {
namespace {

/// Little-endian numbers of a file, which ends a reader that goes beyond it.
class Bytes {
public:
  Bytes(const InputFile& file, std::int64_t offset, std::int64_t count) : text_(std::size_t(count), '\0') {
    file.read_at(offset, std::as_writable_bytes(std::span(text_)));
  }
  std::uint64_t number(std::size_t at, std::size_t bytes) const {
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(at + i < text_.size() ? text_[at + i] : 0);
    return value;
  }
  std::string_view text() const { return text_; }

private:
  std::string text_;
};

[[noreturn]] void fail_damaged(const InputFile& file) {
  throw InputError(file.path().string() + ": cannot be read as .npz: it is damaged or truncated");
}

/// A file within a .zip.
struct Member {
  std::string name;
  bool deflated;
  std::int64_t offset, packed,
      bytes;           ///< where its bytes begin, how many there are in the file, and how many they become
  std::uint32_t check; ///< CRC-32 of the latter
};

std::vector<Member> members_of(const InputFile& file) {
  constexpr std::int64_t end_bytes = 22, longest_comment = 65535, entry_bytes = 46, local_bytes = 30;
  const std::int64_t tail = std::min(file.size(), end_bytes + longest_comment);
  const Bytes last(file, file.size() - tail, tail);
  const std::size_t end = last.text().rfind("PK\5\6");
  if (end == std::string_view::npos || std::int64_t(end) + end_bytes > tail)
    fail_damaged(file);
  auto count = last.number(end + 10, 2), place = last.number(end + 16, 4), length = last.number(end + 12, 4);
  constexpr std::size_t locator = 20;
  if (end >= locator && last.text().substr(end - locator, 4) == "PK\6\7") { // more than 4 GB
    const auto at = last.number(end - locator + 8, 8);
    if (at > std::uint64_t(file.size()) - 56)
      fail_damaged(file);
    const Bytes large(file, std::int64_t(at), 56);
    count = large.number(32, 8), length = large.number(40, 8), place = large.number(48, 8);
  }
  const auto size = std::uint64_t(file.size());
  if (place > size || length > size - place)
    fail_damaged(file);
  const Bytes entries(file, std::int64_t(place), std::int64_t(length));
  std::vector<Member> members;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (at + entry_bytes > length || entries.text().substr(at, 4) != "PK\1\2")
      fail_damaged(file);
    const std::size_t name = entries.number(at + 28, 2), extra = entries.number(at + 30, 2);
    if (at + entry_bytes + name + extra > length)
      fail_damaged(file);
    std::array numbers{entries.number(at + 24, 4), entries.number(at + 20, 4), entries.number(at + 42, 4)};
    const std::size_t extra_end = at + entry_bytes + name + extra;
    for (std::size_t field = at + entry_bytes + name; field + 4 <= extra_end;
         field += 4 + entries.number(field + 2, 2))
      if (entries.number(field, 2) == 1) { // those that 4 bytes do not hold
        std::size_t next = field + 4;
        for (auto& number : numbers)
          if (number == 0xffffffff)
            number = entries.number(next, 8), next += 8;
      }
    const auto method = entries.number(at + 10, 2);
    const std::string title(entries.text().substr(at + entry_bytes, name));
    if ((method != 0 && method != 8) || (entries.number(at + 8, 2) & 1) != 0)
      throw InputError(file.path().string() + ": " + title +
                       " is packed in a way that is not known here; numpy.savez writes it plain");
    const auto [bytes, packed, local] = numbers;
    if (local > size || size - local < std::uint64_t(local_bytes))
      fail_damaged(file);
    const Bytes head(file, std::int64_t(local), local_bytes);
    const std::uint64_t first = local + local_bytes + head.number(26, 2) + head.number(28, 2);
    if (head.text().substr(0, 4) != "PK\3\4" || first > size || packed > size - first ||
        (method == 0 && packed != bytes) || bytes > std::uint64_t(most_unpacked(std::int64_t(packed))))
      fail_damaged(file);
    members.push_back({title, method == 8, std::int64_t(first), std::int64_t(packed), std::int64_t(bytes),
                       std::uint32_t(entries.number(at + 16, 4))});
    at = extra_end + entries.number(at + 32, 2);
  }
  return members;
}

std::vector<std::byte> inflated(const InputFile& file, const Member& member) {
  std::vector<std::byte> packed(std::size_t(member.packed)), values(std::size_t(member.bytes) + 1);
  file.read_at(member.offset, packed);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    throw std::bad_alloc();
  int state = Z_OK;
  std::size_t from = 0, to = 0;
  constexpr std::size_t most = std::size_t(1) << 30; // of one call
  while (state == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(packed.data() + from);
    stream.avail_in = uInt(std::min(most, packed.size() - from));
    stream.next_out = reinterpret_cast<Bytef*>(values.data() + to);
    stream.avail_out = uInt(std::min(most, values.size() - to));
    state = inflate(&stream, Z_NO_FLUSH);
    from = std::size_t(reinterpret_cast<std::byte*>(stream.next_in) - packed.data());
    to = std::size_t(reinterpret_cast<std::byte*>(stream.next_out) - values.data());
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || to != std::size_t(member.bytes))
    fail_damaged(file);
  values.resize(to);
  uLong sum = crc32(0, nullptr, 0);
  for (std::size_t at = 0; at < to; at += most)
    sum = crc32(sum, reinterpret_cast<const Bytef*>(values.data() + at), uInt(std::min(most, to - at)));
  if (sum != member.check)
    fail_damaged(file);
  return values;
}

/// The type that NumPy writes as `<u2`; nothing for those that are not read.
std::optional<Hdf5Type> type_of(const std::string& name) {
  constexpr std::pair<std::string_view, Hdf5Type> known[] = {
      {"b1", Hdf5Type::UInt8},      {"i1", Hdf5Type::Int8},    {"u1", Hdf5Type::UInt8},
      {"i2", Hdf5Type::Int16},      {"u2", Hdf5Type::UInt16},  {"i4", Hdf5Type::Int32},
      {"u4", Hdf5Type::UInt32},     {"i8", Hdf5Type::Int64},   {"u8", Hdf5Type::UInt64},
      {"f4", Hdf5Type::Float32},    {"f8", Hdf5Type::Float64}, {"c8", Hdf5Type::Complex64},
      {"c16", Hdf5Type::Complex128}};
  for (const auto& [text, type] : known)
    if (text == name)
      return type;
  return {};
}

/// The arrays of a .npz; those of types that are not numbers are left out.
std::vector<Hdf5Reader::Array> arrays_of(const InputFile& file) {
  std::vector<Hdf5Reader::Array> arrays;
  for (const Member& member : members_of(file)) {
    if (!member.name.ends_with(".npy"))
      continue;
    const std::string name = member.name.substr(0, member.name.size() - 4);
    std::vector<std::byte> values;
    if (member.deflated)
      values = inflated(file, member);
    std::string head(std::size_t(std::min<std::int64_t>(member.bytes, 65536)), '\0');
    if (member.deflated)
      std::copy_n(reinterpret_cast<const char*>(values.data()), head.size(), head.data());
    else
      file.read_at(member.offset, std::as_writable_bytes(std::span(head)));
    const auto byte = [&](std::size_t at) {
      return at < head.size() ? std::size_t(static_cast<unsigned char>(head[at])) : 0;
    };
    const std::size_t major = byte(6), start = major == 1 ? 10 : 12,
                      length =
                          byte(8) + 256 * byte(9) + (major == 1 ? 0 : 65536 * byte(10) + 16777216 * byte(11));
    if (!head.starts_with("\x93NUMPY") || start + length > head.size())
      fail_damaged(file);
    const std::string text = head.substr(start, length);
    static const std::regex type_in("'descr': *'([<>|=])([a-z][0-9]+)'"),
        order_in("'fortran_order': *(True|False)"), shape_in("'shape': *\\(([0-9, ]*)\\)");
    std::smatch type, order, shape;
    if (!std::regex_search(text, order, order_in) || !std::regex_search(text, shape, shape_in))
      fail_damaged(file);
    const bool plain = std::regex_search(text, type, type_in);
    const auto known = plain ? type_of(type[2]) : std::nullopt;
    if (!known) // text, objects
      continue;
    Hdf5Reader::Array array{.name = "/" + name,
                            .shape = {},
                            .type = *known,
                            .swapped = (type[1] == '>') == (std::endian::native == std::endian::little) &&
                                       type[1] != '|',
                            .offset = member.offset + std::int64_t(start + length)};
    double elements = 1;
    const std::string extents = shape[1];
    static const std::regex number("[0-9]+");
    for (auto next = std::sregex_iterator(extents.begin(), extents.end(), number);
         next != std::sregex_iterator(); ++next) {
      if (next->length() > 15 || (elements *= std::max(1.0, std::stod(next->str()))) > 1e15)
        fail_damaged(file);
      array.shape.push_back(std::stoll(next->str()));
    }
    if (array.shape.size() > 1 && order[1] == "True")
      throw InputError(
          file.path().string() + ": " + name +
          ": expected an array in C order, found one in Fortran's; numpy.ascontiguousarray makes one");
    if (member.deflated) {
      values.erase(values.begin(), values.begin() + std::ptrdiff_t(start + length));
      array.values = std::move(values);
    } else if (hdf5_elements(array.shape) > member.bytes - std::int64_t(start + length)) {
      fail_damaged(file);
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

/// The frames of an EMPAD.
Hdf5Reader::Array empad_frames(const InputFile& file) {
  constexpr std::int64_t rows = 130, columns = 128, frame = rows * columns * 4;
  if (file.size() == 0 || file.size() % frame != 0)
    throw InputError(file.path().string() +
                     ": expected an EMPAD's frames of 130 x 128 numbers of 4 bytes, found " +
                     std::to_string(file.size()) + " bytes, which are no whole frames");
  const std::int64_t count = file.size() / frame;
  Hdf5Shape shape{count, rows, columns};
  static const std::regex scan("x([0-9]{1,6})_y([0-9]{1,6})");
  const std::string name = file.path().stem().string();
  if (std::smatch sides; std::regex_search(name, sides, scan)) {
    const std::int64_t across = std::stoll(sides[1]), down = std::stoll(sides[2]);
    if (across * down != count)
      throw InputError(file.path().string() + ": expected " + std::to_string(across * down) +
                       " frames by its name, found " + std::to_string(count));
    shape = {down, across, rows, columns};
  } else if (const auto side = std::llround(std::sqrt(double(count))); side * side == count) {
    shape = {side, side, rows, columns};
  }
  return {.name = "/entry_1/data_1/data",
          .shape = shape,
          .type = Hdf5Type::Float32,
          .swapped = std::endian::native == std::endian::big,
          .offset = 0};
}

} // namespace

Hdf5Reader Measurement::open(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".npz")
    return Hdf5Reader(path, arrays_of(InputFile(path)));
  if (ending == ".raw")
    return Hdf5Reader(path, {empad_frames(InputFile(path))});
  return Hdf5Reader(path);
}

} // namespace Bracewell::Examples
