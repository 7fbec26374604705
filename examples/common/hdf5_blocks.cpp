// SPDX-License-Identifier: MIT
#include "hdf5_blocks.hpp"

#include "bitshuffle.hpp"
#include "hdf5_library.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include <zlib.h>

namespace Bracewell::Examples {

using namespace Hdf5;

namespace {

/// The format of numbers that the device can convert; nothing for others.
std::optional<StoredFormat> stored_format(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  const std::size_t bytes = H5Tget_size(type);
  if ((kind != H5T_INTEGER && kind != H5T_FLOAT) || !is_sound(type) || H5Tget_precision(type) != 8 * bytes)
    return {};
  const H5T_order_t order = H5Tget_order(type);
  if (order != H5T_ORDER_LE && order != H5T_ORDER_BE)
    return {};
  const bool swapped = (order == H5T_ORDER_BE) == (std::endian::native == std::endian::little);
  if (kind == H5T_INTEGER) {
    const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
    switch (bytes) {
    case 1:
      return StoredFormat{is_signed ? StoredType::Int8 : StoredType::UInt8, false};
    case 2:
      return StoredFormat{is_signed ? StoredType::Int16 : StoredType::UInt16, swapped};
    case 4:
      return StoredFormat{is_signed ? StoredType::Int32 : StoredType::UInt32, swapped};
    default:
      return {};
    }
  }
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits);
  const auto is = [&](std::size_t size, std::size_t bits, std::size_t bias) {
    return bytes == size && exponent_bits == bits && mantissa == 0 && mantissa_bits == exponent &&
           sign == exponent + bits && sign + 1 == 8 * size && H5Tget_ebias(type) == bias &&
           H5Tget_norm(type) == H5T_NORM_IMPLIED;
  };
  if (is(2, 5, 15))
    return StoredFormat{StoredType::Float16, swapped};
  if (is(4, 8, 127))
    return StoredFormat{StoredType::Float32, swapped};
  if (is(8, 11, 1023))
    return StoredFormat{StoredType::Float64, swapped};
  return {};
}

/// Where a box of values lies in an array.
struct Place {
  Hdf5Shape shape;  ///< of the array
  Hdf5Shape offset; ///< of the box in it

  std::int64_t element(const Hdf5Shape& index) const {
    std::int64_t element = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      element = element * shape[axis] + offset[axis] + index[axis];
    return element;
  }
};

/// Calls run(element of `from`, element of `to`, number) for the elements of a box that lie one after the other in
/// both.
template <class Run>
void for_runs(const Place& from, const Place& to, const Hdf5Shape& count, const Run& run) {
  if (hdf5_elements(count) == 0)
    return;
  std::size_t axis = count.size(); // the axes from here on are one run
  std::int64_t length = 1;
  for (bool whole = true; axis > 0 && whole;) {
    --axis;
    length *= count[axis];
    whole = count[axis] == from.shape[axis] && count[axis] == to.shape[axis];
  }
  Hdf5Shape index(count.size(), 0);
  for (bool more = true; more;) {
    run(from.element(index), to.element(index), length);
    std::size_t a = axis;
    while (a > 0 && ++index[a - 1] == count[a - 1])
      index[--a] = 0;
    more = a > 0;
  }
}

} // namespace

Hdf5Blocks::Hdf5Blocks(const Hdf5Reader& reader, std::string dataset)
    : reader_(reader), name_(std::move(dataset)), shape_(reader.shape(name_)) {
  if (reader.is_complex(name_))
    reader.fail(name_, "expected real numbers, found complex ones");
  const Lock lock(reader.path());
  dataset_ = open_dataset(reader, reader.file_, name_).release();
  if (!find_storage())
    file_.reset();
}

Hdf5Blocks::Hdf5Blocks(Hdf5Blocks&& other) noexcept
    : reader_(other.reader_), name_(std::move(other.name_)), shape_(std::move(other.shape_)),
      compressed_chunk_(std::move(other.compressed_chunk_)), chunk_(std::move(other.chunk_)),
      format_(other.format_), filters_(std::move(other.filters_)), fill_value_(std::move(other.fill_value_)),
      offsets_(std::move(other.offsets_)), file_(std::move(other.file_)),
      dataset_(std::exchange(other.dataset_, -1)), offset_(other.offset_) {}

Hdf5Blocks::~Hdf5Blocks() {
  const Lock lock;
  if (dataset_ >= 0)
    H5Dclose(dataset_);
}

/// Whether the values can be read without the library. What is found is kept where they can.
bool Hdf5Blocks::find_storage() {
  const Handle type(H5Dget_type(dataset_), H5Tclose), properties(H5Dget_create_plist(dataset_), H5Pclose),
      file(H5Iget_file_id(dataset_), H5Fclose), file_properties(H5Fget_create_plist(file), H5Pclose);
  const H5D_layout_t layout = H5Pget_layout(properties);
  const std::size_t rank = shape_.size();
  std::vector<hsize_t> chunk(rank);
  if (layout == H5D_CHUNKED && H5Pget_chunk(properties, int(rank), chunk.data()) != int(rank))
    return false;
  if (H5Pget_nfilters(properties) > 0)
    compressed_chunk_.assign(chunk.begin(), chunk.end());
  const std::optional<StoredFormat> format = stored_format(type);
  hsize_t user_block = 0;
  H5Pget_userblock(file_properties, &user_block);
  std::vector<char> holder(static_cast<std::size_t>(std::max<ssize_t>(0, H5Fget_name(file, nullptr, 0))) + 1);
  H5Fget_name(file, holder.data(), holder.size());
  const Handle access(H5Fget_access_plist(file), H5Pclose);
  const auto size = static_cast<std::size_t>(format ? bytes_of(format->type) : 1);
  if (const int outside = H5Pget_external_count(properties); format && outside == 1 && rank > 0) {
    std::vector<char> name(4096);
    off_t offset = 0;
    hsize_t bytes = 0;
    H5Pget_external(properties, 0, name.size() - 1, name.data(), &offset, &bytes);
    if (H5Pget_driver(access) == H5FD_CORE) { // its name is absolute
      file_ = std::make_unique<InputFile>(name.data());
      offset_ = static_cast<std::int64_t>(offset);
      format_ = *format;
      if (!fits(std::uint64_t(offset), hsize_t(hdf5_elements(shape_)) * size))
        fail_damaged();
      return true;
    }
  }
  if (!format || rank == 0 || user_block != 0 || H5Pget_external_count(properties) > 0 ||
      H5Pget_driver(access) == H5FD_CORE)
    return false;
  // A link may lead to a dataset of another file.
  file_ = std::make_unique<InputFile>(holder.data());
  if (layout == H5D_CONTIGUOUS) {
    const haddr_t offset = H5Dget_offset(dataset_);
    if (offset == HADDR_UNDEF)
      return false; // never written: the fill value
    if (!fits(offset, hsize_t(hdf5_elements(shape_)) * size))
      fail_damaged();
    offset_ = static_cast<std::int64_t>(offset);
  } else if (layout != H5D_CHUNKED || !find_chunks(properties, type, size, {chunk.begin(), chunk.end()})) {
    return false;
  }
  format_ = *format;
  return true;
}

/// Whether all chunks are packed in the same way, which we can undo.
bool Hdf5Blocks::find_chunks(std::int64_t properties, std::int64_t type, std::size_t size,
                             const Hdf5Shape& chunk) {
  unsigned options = 0; // those at the edge may be stored in another way
  if (H5Pget_chunk_opts(properties, &options) < 0 || options != 0)
    return false;
  std::vector<Filter> filters;
  for (int i = 0; i < H5Pget_nfilters(properties); ++i) {
    unsigned flags = 0;
    std::array<unsigned, 5> values{};
    std::size_t count = values.size();
    const H5Z_filter_t filter = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &count,
                                               values.data(), 0, nullptr, nullptr);
    constexpr unsigned lz4 = 2;
    if (filter == H5Z_FILTER_SHUFFLE)
      filters.push_back(Filter::Shuffle);
    else if (filter == H5Z_FILTER_DEFLATE)
      filters.push_back(Filter::Deflate);
    else if (filter == bitshuffle_filter && count == values.size() && values[2] == size && values[4] == lz4)
      filters.push_back(Filter::Bitshuffle);
    else
      return false;
  }
  using enum Filter;
  if (filters.size() > 2 || (filters.size() == 2 && filters != std::vector{Shuffle, Deflate}))
    return false;
  std::vector<std::byte> fill(size);
  H5D_fill_value_t defined = H5D_FILL_VALUE_ERROR;
  if (H5Pfill_value_defined(properties, &defined) < 0 ||
      (defined != H5D_FILL_VALUE_UNDEFINED && H5Pget_fill_value(properties, type, fill.data()) < 0))
    return false;
  fill_value_ = fill;
  filters_ = filters;
  chunk_ = chunk;
  return true;
}

bool Hdf5Blocks::fits(std::uint64_t offset, std::uint64_t bytes) const {
  const auto size = static_cast<std::uint64_t>(file_->size());
  return offset <= size && bytes <= size - offset;
}

void Hdf5Blocks::fail_damaged() const {
  reader_.fail(name_, "cannot be read: the file is damaged or truncated");
}

void Hdf5Blocks::read(const Hdf5Slab& slab, std::span<std::byte> values) const {
  const std::size_t rank = shape_.size();
  bool inside = slab.offset.size() == rank && slab.count.size() == rank;
  for (std::size_t axis = 0; inside && axis < rank; ++axis)
    inside = slab.offset[axis] >= 0 && slab.count[axis] >= 0 &&
             slab.offset[axis] <= shape_[axis] - slab.count[axis];
  if (!inside || static_cast<std::int64_t>(values.size()) != bytes(slab.count))
    throw std::logic_error("an HDF5 slab of shape " + hdf5_text(slab.count) + " with " +
                           std::to_string(values.size()) + " bytes");
  if (!file_)
    return reader_.read(
        name_, slab,
        std::span<float>(reinterpret_cast<float*>(values.data()), values.size() / sizeof(float)));
  if (chunk_.empty()) {
    const std::int64_t size = bytes_of(format_.type);
    return for_runs({shape_, slab.offset}, {slab.count, Hdf5Shape(rank, 0)}, slab.count,
                    [&](std::int64_t from, std::int64_t to, std::int64_t count) {
                      file_->read_at(offset_ + from * size,
                                     values.subspan(std::size_t(to * size), std::size_t(count * size)));
                    });
  }
  // All chunks that the slab meets.
  Hdf5Shape begin(rank), number(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    begin[axis] = slab.offset[axis] / chunk_[axis];
    number[axis] = slab.count[axis] == 0
                       ? 0
                       : (slab.offset[axis] + slab.count[axis] - 1) / chunk_[axis] - begin[axis] + 1;
  }
  Hdf5Shape first(rank);
  for (std::int64_t i = 0; i < hdf5_elements(number); ++i) {
    std::int64_t left = i;
    for (std::size_t axis = rank; axis-- > 0; left /= number[axis])
      first[axis] = (begin[axis] + left % number[axis]) * chunk_[axis];
    read_chunk(first, slab, values.data());
  }
}

/// Whether chunks are read whole by the library, one at a time, as those are that are packed; else we read parts of them.
bool Hdf5Blocks::library_finds_chunks() const {
  std::int64_t chunks = 1;
  for (std::size_t axis = 0; axis < chunk_.size(); ++axis)
    chunks *= (shape_[axis] + chunk_[axis] - 1) / chunk_[axis];
  // The library goes through all before a chunk to tell its place, but not to read it.
  constexpr std::int64_t many = 20000;
  return !filters_.empty() || chunks > many;
}

/// Reads what a slab has of the chunk whose first element is `first`.
void Hdf5Blocks::read_chunk(const Hdf5Shape& first, const Hdf5Slab& slab, std::byte* values) const {
  const std::size_t rank = shape_.size();
  Place from{chunk_, Hdf5Shape(rank)}, to{slab.count, Hdf5Shape(rank)};
  Hdf5Shape count(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t begin = std::max(first[axis], slab.offset[axis]),
                       end = std::min(first[axis] + chunk_[axis], slab.offset[axis] + slab.count[axis]);
    from.offset[axis] = begin - first[axis];
    to.offset[axis] = begin - slab.offset[axis];
    count[axis] = end - begin;
  }
  const std::int64_t size = bytes_of(format_.type);
  const auto take = [&](const std::vector<std::byte>& all) {
    for_runs(from, to, count, [&](std::int64_t source, std::int64_t target, std::int64_t length) {
      std::copy_n(all.data() + source * size, length * size, values + target * size);
    });
  };
  if (library_finds_chunks()) {
    const std::optional<Packed> packed = read_packed(first);
    if (packed)
      return take(unpacked(*packed));
  } else if (const std::optional<std::int64_t> offset = find_chunk(first)) {
    constexpr std::int64_t small = 1 << 20; // read at once, not row by row
    if (bytes(chunk_) <= small) {
      std::vector<std::byte> all(static_cast<std::size_t>(bytes(chunk_)));
      file_->read_at(*offset, all);
      return take(all);
    }
    return for_runs(from, to, count, [&](std::int64_t source, std::int64_t target, std::int64_t length) {
      file_->read_at(*offset + source * size, {values + target * size, std::size_t(length * size)});
    });
  }
  // Never written.
  for_runs(from, to, count, [&](std::int64_t, std::int64_t target, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i)
      std::copy_n(fill_value_.data(), size, values + (target + i) * size);
  });
}

/// Where a chunk that is not packed is in the file; nothing where it was never written.
std::optional<std::int64_t> Hdf5Blocks::find_chunk(const Hdf5Shape& first) const {
  const Lock lock(reader_.path());
  const auto [place, unknown] = offsets_.try_emplace(first, -1);
  if (unknown) {
    unsigned skipped = 0;
    haddr_t offset = HADDR_UNDEF;
    hsize_t size = 0;
    if (H5Dget_chunk_info_by_coord(dataset_, sizes(first).data(), &skipped, &offset, &size) < 0 ||
        (offset != HADDR_UNDEF && (!fits(offset, size) || size != hsize_t(bytes(chunk_)))))
      fail_damaged();
    place->second = offset == HADDR_UNDEF ? -1 : static_cast<std::int64_t>(offset);
  }
  return place->second < 0 ? std::nullopt : std::optional(place->second);
}

/// A chunk as it is in the file; nothing where it was never written.
std::optional<Hdf5Blocks::Packed> Hdf5Blocks::read_packed(const Hdf5Shape& first) const {
  const Lock lock(reader_.path());
  const auto offset = sizes(first);
  hsize_t size = 0;
  if (H5Dget_chunk_storage_size(dataset_, offset.data(), &size) < 0 || size == 0) {
    // It says the same of a chunk that was never written and of one that cannot be found: reading tells them apart.
    double value = 0;
    reader_.read(name_, {first, Hdf5Shape(first.size(), 1)}, std::span(&value, 1));
    return {};
  }
  if (size > hsize_t(file_->size()))
    fail_damaged();
  Packed packed{std::vector<std::byte>(static_cast<std::size_t>(size)), 0};
  if (H5Dread_chunk(dataset_, H5P_DEFAULT, offset.data(), &packed.skipped, packed.bytes.data()) < 0)
    fail_damaged();
  return packed;
}

/// The values of a chunk, its filters undone from the last to the first.
std::vector<std::byte> Hdf5Blocks::unpacked(const Packed& packed) const {
  const auto size = static_cast<std::size_t>(bytes_of(format_.type)),
             whole = static_cast<std::size_t>(bytes(chunk_));
  std::vector<std::byte> values = packed.bytes, other(whole);
  for (std::size_t filter = filters_.size(); filter-- > 0;) {
    if ((packed.skipped >> filter & 1) != 0)
      continue;
    if (filters_[filter] == Filter::Bitshuffle) {
      if (!unpack_bitshuffle(values, size, other))
        fail_damaged();
    } else if (filters_[filter] == Filter::Deflate) {
      uLongf length = whole;
      if (uncompress(reinterpret_cast<Bytef*>(other.data()), &length,
                     reinterpret_cast<const Bytef*>(values.data()), values.size()) != Z_OK ||
          length != whole)
        fail_damaged();
    } else { // first all first bytes, then all second ones
      if (values.size() != whole)
        fail_damaged();
      const std::size_t count = whole / size;
      for (std::size_t byte = 0; byte < size; ++byte)
        for (std::size_t i = 0; i < count; ++i)
          other[i * size + byte] = values[byte * count + i];
    }
    std::swap(values, other);
    other.resize(whole);
  }
  if (values.size() != whole)
    fail_damaged();
  return values;
}

} // namespace Bracewell::Examples
