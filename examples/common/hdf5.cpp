// SPDX-License-Identifier: MIT
#include "hdf5.hpp"

#include "hdf5_library.hpp"
#include "input_error.hpp"
#include "input_file.hpp"
#include "output_family.hpp"
#include "views.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace Bracewell::Examples {

using namespace Hdf5;

namespace {

Handle complex_type(hid_t real, std::size_t bytes, const char* r = "r", const char* i = "i") {
  Handle type(H5Tcreate(H5T_COMPOUND, 2 * bytes), H5Tclose);
  H5Tinsert(type, r, 0, real);
  H5Tinsert(type, i, bytes, real);
  return type;
}

bool is_complex(Hdf5Type type) { return type == Hdf5Type::Complex64 || type == Hdf5Type::Complex128; }

Handle memory_type(Hdf5Type type, const char* r = "r", const char* i = "i") {
  const auto copy = [](hid_t native) { return Handle(H5Tcopy(native), H5Tclose); };
  switch (type) {
  case Hdf5Type::Int8:
    return copy(H5T_NATIVE_INT8);
  case Hdf5Type::UInt8:
    return copy(H5T_NATIVE_UINT8);
  case Hdf5Type::Int16:
    return copy(H5T_NATIVE_INT16);
  case Hdf5Type::UInt16:
    return copy(H5T_NATIVE_UINT16);
  case Hdf5Type::Int32:
    return copy(H5T_NATIVE_INT32);
  case Hdf5Type::UInt32:
    return copy(H5T_NATIVE_UINT32);
  case Hdf5Type::Int64:
    return copy(H5T_NATIVE_INT64);
  case Hdf5Type::UInt64:
    return copy(H5T_NATIVE_UINT64);
  case Hdf5Type::Float32:
    return copy(H5T_NATIVE_FLOAT);
  case Hdf5Type::Float64:
    return copy(H5T_NATIVE_DOUBLE);
  case Hdf5Type::Complex64:
    return complex_type(H5T_NATIVE_FLOAT, sizeof(float), r, i);
  case Hdf5Type::Complex128:
    return complex_type(H5T_NATIVE_DOUBLE, sizeof(double), r, i);
  }
  throw std::logic_error("an HDF5 type that does not exist");
}

/// Names of the two floating-point members of a complex type; nothing for other types.
std::optional<std::pair<std::string, std::string>> complex_members(hid_t type) {
  if (H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2)
    return {};
  std::string names[2];
  for (unsigned member : {0u, 1u}) {
    const Handle number(H5Tget_member_type(type, member), H5Tclose);
    const std::size_t offset = H5Tget_member_offset(type, member), bytes = H5Tget_size(type);
    if (H5Tget_member_class(type, member) != H5T_FLOAT || !is_sound(number) || offset > bytes ||
        H5Tget_size(number) > bytes - offset)
      return {};
    char* const name = H5Tget_member_name(type, member);
    names[member] = name != nullptr ? name : "";
    H5free_memory(name);
  }
  const bool known = (names[0] == "r" && names[1] == "i") || (names[0] == "real" && names[1] == "imag");
  return known ? std::optional(std::pair(names[0], names[1])) : std::nullopt;
}

Handle memory_space(const Hdf5Shape& shape) {
  const auto extents = sizes(shape);
  return {shape.empty() ? H5Screate(H5S_SCALAR)
                        : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
          H5Sclose};
}

/// Whether opening a file would wait for its writer, or never reach an end: a pipe, a socket, a device.
bool is_special(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

/// The places where the library looks for a file that another one names, in its order.
std::vector<std::filesystem::path> places_of(const std::filesystem::path& name,
                                             const std::filesystem::path& holder, const char* variable) {
  std::vector<std::filesystem::path> places;
  std::filesystem::path relative = name;
  if (name.is_absolute()) {
    places.push_back(name);
    relative = name.filename();
  }
  std::istringstream prefixes(std::getenv(variable) != nullptr ? std::getenv(variable) : "");
  for (std::string prefix; std::getline(prefixes, prefix, ':');)
    places.push_back(std::filesystem::path(prefix) / relative);
  std::error_code error;
  places.push_back(holder.parent_path() / relative);
  places.push_back(relative);
  places.push_back(std::filesystem::weakly_canonical(holder, error).parent_path() / relative);
  return places;
}

/// The file that a link led to and that was not opened, with what names it; empty where all were.
std::string& refused_link() {
  static std::string text; // guarded by Lock
  return text;
}

/// Called by the library before it opens the file that an external link names.
herr_t look_at_link(const char* holder, const char*, const char* name, const char*, unsigned*, hid_t, void*) {
  for (const auto& place : places_of(name, holder, "HDF5_EXT_PREFIX"))
    if (is_special(place)) {
      refused_link() = place.string() + ": is not a regular file, and a link in " + holder + " leads to it";
      return -1;
    }
  return 0;
}

/// How objects are opened: external links lead to regular files only.
hid_t access_of(hid_t kind) {
  const hid_t properties = H5Pcreate(kind);
  H5Pset_elink_cb(properties, look_at_link, nullptr);
  return properties;
}
hid_t links() {
  static const hid_t properties = access_of(H5P_LINK_ACCESS);
  return properties;
}

/// Whether every part of a path is there: the library calls a missing parent an error.
bool exists(hid_t file, const std::string& name) {
  refused_link().clear();
  const auto is_there = [&] {
    for (std::size_t end = 0; end != std::string::npos;) {
      end = name.find('/', end + 1);
      const std::string part = name.substr(0, end);
      if (part != "/" && !part.empty() && H5Lexists(file, part.c_str(), links()) <= 0)
        return false;
    }
    return H5Oexists_by_name(file, name.c_str(), links()) > 0; // false for a link to nothing
  };
  const bool result = is_there();
  if (!refused_link().empty())
    throw InputError(refused_link());
  return result;
}

struct Attribute {
  Handle opened, space, type;
};

/// An attribute of an object; nothing where there is none.
std::optional<Attribute> open_attribute(hid_t file, const std::string& object, const std::string& name) {
  if (!exists(file, object) || H5Aexists_by_name(file, object.c_str(), name.c_str(), links()) <= 0)
    return {};
  Handle opened(H5Aopen_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT, links()), H5Aclose);
  Handle space(H5Aget_space(opened), H5Sclose), type(H5Aget_type(opened), H5Tclose);
  return Attribute{std::move(opened), std::move(space), std::move(type)};
}

bool is_dataset(hid_t file, const std::string& name) {
  const Handle object(exists(file, name) ? H5Oopen(file, name.c_str(), links()) : -1, H5Oclose);
  return object && H5Iget_type(object) == H5I_DATASET;
}

/// The text that a function of the library puts into memory of the length that it asks for.
template <class Get>
std::string text_of(const Get& get) {
  std::string text(static_cast<std::size_t>(std::max<ssize_t>(0, get(nullptr, 0))) + 1, '\0');
  get(text.data(), text.size());
  return text.c_str();
}

/// A file that a dataset names: the first place where it is; empty where it is at none.
std::filesystem::path find_source(const std::string& name, const std::filesystem::path& holder,
                                  const char* variable) {
  std::error_code error;
  for (const auto& place : places_of(name, holder, variable))
    if (std::filesystem::exists(place, error))
      return place;
  return {};
}

/// One of the sources that a virtual dataset is put together from.
struct Source {
  std::string file, dataset; ///< as stated: "." is the file itself, "%b" stands for numbers from 0 on
  Handle target, source;     ///< what is selected of both

  Source(hid_t properties, std::size_t i)
      : file(text_of([&](char* text, std::size_t size) {
          return H5Pget_virtual_filename(properties, i, text, size);
        })),
        dataset(text_of([&](char* text, std::size_t size) {
          return H5Pget_virtual_dsetname(properties, i, text, size);
        })),
        target(H5Pget_virtual_vspace(properties, i), H5Sclose),
        source(H5Pget_virtual_srcspace(properties, i), H5Sclose) {}

  bool is_numbered() const {
    return numbered(file, 0) != numbered(file, 1) || numbered(dataset, 0) != numbered(dataset, 1);
  }
  /// The name with a number, as the library makes it.
  static std::string numbered(const std::string& name, std::int64_t number) {
    std::string result;
    for (std::size_t i = 0; i < name.size(); ++i)
      if (name.compare(i, 2, "%b") == 0)
        result += std::to_string(number), ++i;
      else if (name.compare(i, 2, "%%") == 0)
        result += '%', ++i;
      else
        result += name[i];
    return result;
  }
};

std::vector<Source> sources_of(hid_t properties) {
  std::vector<Source> sources;
  std::size_t count = 0;
  if (H5Pget_layout(properties) == H5D_VIRTUAL)
    H5Pget_virtual_count(properties, &count);
  for (std::size_t i = 0; i < count; ++i)
    sources.emplace_back(properties, i);
  return sources;
}

/// First and last rows of what is selected; nothing where that has no end.
std::optional<std::pair<Hdf5Shape, Hdf5Shape>> bounds_of(hid_t selection) {
  const auto rank = static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(selection)));
  std::vector<hsize_t> first(rank), last(rank);
  if (rank == 0 || H5Sget_select_bounds(selection, first.data(), last.data()) < 0)
    return {};
  return std::pair(Hdf5Shape(first.begin(), first.end()), Hdf5Shape(last.begin(), last.end()));
}

std::filesystem::path file_of(hid_t dataset) {
  const Handle file(H5Iget_file_id(dataset), H5Fclose);
  return text_of([&](char* text, std::size_t size) { return H5Fget_name(file, text, size); });
}

/// Values may lie in other files, by external links, virtual datasets and external storage: these are read, too. Throws
/// where a source of a virtual dataset is missing or too small, for which the library gives the fill value, where it is no
/// regular file, and where it is the dataset itself, for which the library takes memory without end.
void follow_sources(const Hdf5Reader& reader, const std::string& of, hid_t dataset) {
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose);
  const std::filesystem::path holder = file_of(dataset);
  OutputFamily::remember_input(holder);
  static int depth = 0; // guarded by Lock
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  } const deeper;
  constexpr int deepest = 16;
  const auto check = [&](const std::string& file, const std::string& name, const Source& of_source,
                         bool numbered) {
    const auto place = file == "." ? holder : find_source(file, holder, "HDF5_VDS_PREFIX");
    if (place.empty()) {
      if (!numbered) // of a numbered one the library takes as many as there are
        reader.fail(of, "is virtual, and its source " + file + " is missing");
      return false;
    }
    if (depth > deepest)
      reader.fail(of, "is virtual, and refers to itself, or to others more than " + std::to_string(deepest) +
                          " times in a row");
    const Hdf5Reader source(place);
    if (numbered && !source.has_dataset(name))
      return false;
    const Hdf5Shape shape = source.shape(name);
    const hid_t selection = of_source.source;
    const bool all = H5Sget_select_type(selection) == H5S_SEL_ALL; // its extents are not stored
    const auto bounds = all ? std::nullopt : bounds_of(selection);
    bool fits = !all || hdf5_elements(shape) >= H5Sget_select_npoints(of_source.target);
    for (std::size_t axis = 0; bounds && axis < std::max(shape.size(), bounds->second.size()); ++axis)
      fits = fits && shape.size() == bounds->second.size() && bounds->second[axis] < shape[axis];
    if (!fits)
      reader.fail(of, "is virtual, and its source " + file + " has too few values: " + name + " is " +
                          hdf5_text(shape));
    return true;
  };
  for (const Source& source : sources_of(properties)) {
    if (!source.is_numbered()) {
      check(Source::numbered(source.file, 0), Source::numbered(source.dataset, 0), source, false);
      continue;
    }
    std::int64_t number = 0;
    while (
        check(Source::numbered(source.file, number), Source::numbered(source.dataset, number), source, true))
      ++number;
    if (number == 0)
      reader.fail(of, "is virtual, and its source " + Source::numbered(source.file, 0) + " is missing");
  }
  for (int i = 0; i < H5Pget_external_count(properties); ++i) {
    std::array<char, 4096> name{};
    H5Pget_external(properties, static_cast<unsigned>(i), name.size() - 1, name.data(), nullptr, nullptr);
    const auto place = find_source(name.data(), holder, "HDF5_EXTFILE_PREFIX");
    OutputFamily::remember_input(place);
    if (is_special(place))
      reader.fail(of, "has its values in " + place.string() + ", which is not a regular file");
  }
}

} // namespace

bool Hdf5::is_sound(hid_t number) {
  const std::size_t bits = 8 * H5Tget_size(number), precision = H5Tget_precision(number);
  const int offset = H5Tget_offset(number);
  if (bits > 8 * widest_value || offset < 0 || precision > bits || std::size_t(offset) > bits - precision)
    return false;
  if (H5Tget_class(number) != H5T_FLOAT)
    return true;
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  return H5Tget_fields(number, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
         sign < bits && exponent <= bits && exponent_bits <= bits - exponent && mantissa <= bits &&
         mantissa_bits <= bits - mantissa;
}

Handle Hdf5::open_dataset(const Hdf5Reader& reader, hid_t file, const std::string& name) {
  if (!exists(file, name))
    throw InputError(reader.path().string() + ": has no dataset " + name);
  if (!is_dataset(file, name))
    throw InputError(reader.path().string() + ": " + name + " is a group, not a dataset");
  static const hid_t access = access_of(H5P_DATASET_ACCESS);
  Handle dataset(H5Dopen2(file, name.c_str(), access), H5Dclose);
  if (!dataset)
    reader.fail(name, "cannot be opened");
  return dataset;
}

Hdf5Shape Hdf5::shape_of(const Hdf5Reader& reader, const std::string& name, hid_t dataset) {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  const H5S_class_t kind = space ? H5Sget_simple_extent_type(space) : H5S_NO_CLASS;
  if (kind != H5S_SIMPLE && kind != H5S_SCALAR)
    reader.fail(name, "has no values");
  std::vector<hsize_t> extents(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space))));
  if (!extents.empty())
    H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  // The values' number in bytes fits, even where one extent is 0.
  hsize_t left = std::numeric_limits<std::int64_t>::max() / widest_value;
  for (const hsize_t extent : extents)
    if ((left /= std::max<hsize_t>(1, extent)) == 0)
      reader.fail(name, "is damaged: it states more values than there can be");
  return {extents.begin(), extents.end()};
}

namespace {

/// Throws where the values, or the parts that the library reads them in, are larger than their file can have them.
/// Those that lie in other files may have any size.
void require_plausible(const Hdf5Reader& reader, const std::string& name, hid_t dataset,
                       const Hdf5Shape& shape) {
  const Handle file(H5Iget_file_id(dataset), H5Fclose), type(H5Dget_type(dataset), H5Tclose),
      properties(H5Dget_create_plist(dataset), H5Pclose);
  hsize_t file_bytes = 0;
  H5Fget_filesize(file, &file_bytes);
  const auto check = [&](const std::vector<hsize_t>& extents) {
    double bytes = double(H5Tget_size(type)); // may pass what integers hold
    for (const hsize_t extent : extents)
      bytes *= double(extent);
    if (bytes > double(most_unpacked(std::int64_t(file_bytes))))
      reader.fail(name, "is damaged: it states " + hdf5_text({extents.begin(), extents.end()}) +
                            " values, in a file of " + std::to_string(file_bytes) + " bytes");
  };
  const H5D_layout_t layout = H5Pget_layout(properties);
  if (layout != H5D_VIRTUAL && H5Pget_external_count(properties) == 0)
    check(sizes(shape));
  if (layout == H5D_COMPACT &&
      double(H5Dget_storage_size(dataset)) < double(hdf5_elements(shape)) * double(H5Tget_size(type)))
    reader.fail(name, "is damaged: it has fewer bytes than its " + hdf5_text(shape) + " values");
  std::vector<hsize_t> chunk(shape.size());
  if (layout == H5D_CHUNKED && H5Pget_chunk(properties, int(chunk.size()), chunk.data()) > 0)
    check(chunk);
}

/// Why a dataset could not be read, as far as can be told.
std::string reason(hid_t dataset) {
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose);
  const int filters = properties ? H5Pget_nfilters(properties) : 0;
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    char name[64] = "";
    const H5Z_filter_t filter = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &values, nullptr,
                                               sizeof name, name, nullptr);
    if (H5Zfilter_avail(filter) <= 0)
      return "cannot be read: it is compressed by filter " + std::to_string(filter) +
             (*name ? " (" + std::string(name) + ")" : "") +
             ", whose plug-in is not there; HDF5_PLUGIN_PATH names the folder of plug-ins";
  }
  return "cannot be read: the file is damaged or truncated";
}

/// Whether a superblock of the older kinds is whole and has no driver information: the library allocates as much as that
/// says that it is long. (It belongs to files in several parts, which are not read.)
bool has_plain_superblock(const InputFile& file) {
  constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
  constexpr std::size_t largest = 28 + 4 * 32;
  for (std::int64_t at = 0; at < file.size(); at = at == 0 ? 512 : 2 * at) {
    std::string head(std::min<std::size_t>(largest, static_cast<std::size_t>(file.size() - at)), '\0');
    file.read_at(at, std::as_writable_bytes(std::span(head)));
    if (!head.starts_with(signature))
      continue;
    head.resize(largest);
    const auto version = static_cast<unsigned char>(head[8]);
    if (version > 1)
      return true;
    const std::size_t fixed = version == 0 ? 24 : 28, address = static_cast<unsigned char>(head[13]);
    const std::size_t root = 2 * address + 24; // the root group's entry
    return address <= 32 && file.size() - at >= static_cast<std::int64_t>(fixed + 4 * address + root) &&
           head.find_first_not_of('\xff', fixed + 3 * address) >= fixed + 4 * address;
  }
  return true;
}

void check_slab(const Hdf5Slab& slab, std::size_t values) {
  if (slab.offset.size() != slab.count.size() ||
      static_cast<std::size_t>(hdf5_elements(slab.count)) != values)
    throw std::logic_error("an HDF5 slab of shape " + hdf5_text(slab.count) + " with " +
                           std::to_string(values) + " values");
}

/// The dataset's space with the box selected; an invalid one where the box does not fit.
Handle select(hid_t dataset, const Hdf5Slab& slab, const Hdf5Shape& shape) {
  bool fits = shape.size() == slab.count.size();
  for (std::size_t axis = 0; fits && axis < shape.size(); ++axis)
    fits = slab.offset[axis] >= 0 && slab.count[axis] >= 0 &&
           slab.offset[axis] <= shape[axis] - slab.count[axis];
  if (!fits)
    throw std::logic_error("an HDF5 slab " + hdf5_text(slab.count) + " at " + hdf5_text(slab.offset) +
                           " outside of a dataset " + hdf5_text(shape));
  Handle space(H5Dget_space(dataset), H5Sclose);
  if (!shape.empty())
    H5Sselect_hyperslab(space, H5S_SELECT_SET, sizes(slab.offset).data(), nullptr, sizes(slab.count).data(),
                        nullptr);
  return space;
}

} // namespace

std::int64_t hdf5_elements(const Hdf5Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape)
    product *= extent;
  return product;
}

std::string hdf5_text(const Hdf5Shape& shape) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    text += (axis ? ", " : "") + std::to_string(shape[axis]);
  return text + "]";
}

Hdf5Reader::Hdf5Reader(std::filesystem::path path) : path_(std::move(path)) {
  const InputFile file(path_); // which says what is wrong with the path
  bytes_ = file.size();
  const Lock lock(path_);
  if (H5Fis_hdf5(path_.c_str()) <= 0)
    throw InputError(path_.string() + ": is not an HDF5 file");
  if (has_plain_superblock(file))
    file_ = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file_ < 0)
    throw InputError(path_.string() +
                     ": cannot be opened as HDF5: it is damaged, truncated or being written to");
}

Hdf5Reader::Hdf5Reader(std::filesystem::path path, const std::vector<Array>& arrays)
    : path_(std::move(path)) {
  bytes_ = InputFile(path_).size();
  const Lock lock(path_);
  const Handle in_memory(H5Pcreate(H5P_FILE_ACCESS), H5Pclose),
      with_groups(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_fapl_core(in_memory, 1 << 16, 0);
  H5Pset_create_intermediate_group(with_groups, 1);
  file_ = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, in_memory); // which makes no file
  const std::string file = std::filesystem::absolute(path_).string();
  for (const Array& array : arrays) {
    const Handle type = memory_type(array.type), space = memory_space(array.shape),
                 properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const auto bytes = hdf5_elements(array.shape) * std::int64_t(H5Tget_size(type));
    const bool outside = array.values.empty() && bytes > 0;
    if (outside && (array.offset < 0 || array.offset > bytes_ || bytes > bytes_ - array.offset))
      fail(array.name, "cannot be read: the file is damaged or truncated");
    if (array.swapped)
      H5Tset_order(type, H5Tget_order(type) == H5T_ORDER_LE ? H5T_ORDER_BE : H5T_ORDER_LE);
    if (outside)
      H5Pset_external(properties, file.c_str(), static_cast<off_t>(array.offset), hsize_t(bytes));
    const Handle dataset(
        H5Dcreate2(file_, array.name.c_str(), type, space, with_groups, properties, H5P_DEFAULT), H5Dclose);
    if (!dataset || (!array.values.empty() &&
                     (std::ssize(array.values) != bytes ||
                      H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.values.data()) < 0)))
      fail(array.name, "cannot be read");
  }
}

Hdf5Reader::Hdf5Reader(Hdf5Reader&& other) noexcept
    : path_(std::move(other.path_)), bytes_(other.bytes_), file_(std::exchange(other.file_, -1)) {}

Hdf5Reader::~Hdf5Reader() {
  const Lock lock(path_);
  if (file_ >= 0)
    H5Fclose(file_);
}

void Hdf5Reader::fail(const std::string& dataset, const std::string& message) const {
  throw InputError(path_.string() + ": dataset " + dataset + ": " + message);
}

bool Hdf5Reader::has(const std::string& name) const {
  const Lock lock(path_);
  return exists(file_, name);
}

bool Hdf5Reader::has_dataset(const std::string& name) const {
  const Lock lock(path_);
  return is_dataset(file_, name);
}

std::vector<std::string> Hdf5Reader::list(const std::string& group) const {
  const Lock lock(path_);
  static const hid_t access = access_of(H5P_GROUP_ACCESS);
  const Handle opened(exists(file_, group) ? H5Gopen2(file_, group.c_str(), access) : -1, H5Gclose);
  if (!opened)
    throw InputError(path_.string() + ": has no group " + group);
  H5G_info_t info{};
  H5Gget_info(opened, &info);
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[1024] = "";
    H5Lget_name_by_idx(opened, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT);
    names.emplace_back(name);
  }
  return names;
}

Hdf5Shape Hdf5Reader::shape(const std::string& name) const {
  const Lock lock(path_);
  const Handle dataset = open_dataset(*this, file_, name);
  if (!followed_.contains(name)) {
    follow_sources(*this, name, dataset);
    followed_.insert(name);
  }
  const Hdf5Shape shape = shape_of(*this, name, dataset);
  require_plausible(*this, name, dataset, shape);
  return shape;
}

std::vector<std::int64_t> Hdf5Reader::never_written(const std::string& name) const {
  const Lock lock(path_);
  const Hdf5Shape all = shape(name);
  if (all.empty() || hdf5_elements(all) == 0)
    return {};
  const Handle dataset = open_dataset(*this, file_, name);
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose);
  std::vector<bool> missing(static_cast<std::size_t>(all[0]), false);
  const auto mark = [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t row = std::max<std::int64_t>(0, first); row < std::min(end, all[0]); ++row)
      missing[static_cast<std::size_t>(row)] = true;
  };
  const H5D_layout_t layout = H5Pget_layout(properties);
  if (layout == H5D_CONTIGUOUS && H5Pget_external_count(properties) == 0) {
    if (H5Dget_storage_size(dataset) == 0)
      mark(0, all[0]);
  } else if (layout == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(all.size()), place(all.size());
    if (H5Pget_chunk(properties, int(all.size()), chunk.data()) != int(all.size()))
      return {};
    hsize_t there = 0, chunks = 1, across = 1;
    for (std::size_t axis = 0; axis < all.size(); ++axis) {
      const hsize_t number = (hsize_t(all[axis]) + chunk[axis] - 1) / chunk[axis];
      chunks *= number;
      across *= axis == 0 ? 1 : number;
    }
    const Handle space(H5Dget_space(dataset), H5Sclose);
    if (H5Dget_num_chunks(dataset, space, &there) < 0 || there >= chunks)
      return {};
    for (std::int64_t first = 0; first < all[0]; first += std::int64_t(chunk[0]))
      for (hsize_t i = 0; i < across; ++i) {
        place[0] = hsize_t(first);
        hsize_t left = i;
        for (std::size_t axis = all.size(); axis-- > 1;) {
          const hsize_t number = (hsize_t(all[axis]) + chunk[axis] - 1) / chunk[axis];
          place[axis] = left % number * chunk[axis];
          left /= number;
        }
        hsize_t size = 0;
        if (H5Dget_chunk_storage_size(dataset, place.data(), &size) >= 0 && size > 0)
          continue;
        mark(first, first + std::int64_t(chunk[0]));
        break;
      }
  } else if (layout == H5D_VIRTUAL) {
    const std::filesystem::path holder = file_of(dataset);
    std::vector<double> covered(missing.size(), 0); // values of each row
    for (const Source& source : sources_of(properties)) {
      const std::string file = Source::numbered(source.file, 0),
                        dataset_there = Source::numbered(source.dataset, 0);
      if (source.is_numbered())
        return {}; // as many as there are
      const Hdf5Reader other(file == "." ? holder : find_source(file, holder, "HDF5_VDS_PREFIX"));
      const auto to = bounds_of(source.target);
      auto from = bounds_of(source.source);
      if (H5Sget_select_type(source.source) == H5S_SEL_ALL) {
        const Hdf5Shape whole = other.shape(dataset_there);
        from.emplace(Hdf5Shape(whole.size(), 0), whole);
        for (std::int64_t& last : from->second)
          --last;
      }
      const auto selected = double(H5Sget_select_npoints(source.target));
      if (!to || !from || from->first.empty())
        return {};
      const std::int64_t rows = to->second[0] - to->first[0] + 1;
      for (std::int64_t row = to->first[0]; row <= to->second[0] && row < all[0]; ++row)
        covered[static_cast<std::size_t>(row)] += selected / double(rows);
      const auto lacking = other.never_written(dataset_there);
      if (from->second[0] - from->first[0] + 1 == rows)
        for (const std::int64_t row : lacking)
          if (row >= from->first[0] && row <= from->second[0])
            mark(row - from->first[0] + to->first[0], row - from->first[0] + to->first[0] + 1);
      if (from->second[0] - from->first[0] + 1 != rows && !lacking.empty())
        mark(to->first[0], to->second[0] + 1);
    }
    const double whole = double(hdf5_elements(all)) / double(all[0]);
    for (std::int64_t row = 0; row < all[0]; ++row)
      if (covered[static_cast<std::size_t>(row)] < whole * (1 - 1e-9))
        mark(row, row + 1);
  }
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < all[0]; ++row)
    if (missing[static_cast<std::size_t>(row)])
      rows.push_back(row);
  return rows;
}

bool Hdf5Reader::is_complex(const std::string& name) const {
  const Lock lock(path_);
  const Handle dataset = open_dataset(*this, file_, name);
  const Handle type(H5Dget_type(dataset), H5Tclose);
  return complex_members(type).has_value();
}

void Hdf5Reader::read(const std::string& name, const Hdf5Slab& slab, Hdf5Type type, void* values,
                      std::size_t size) const {
  check_slab(slab, size);
  const Lock lock(path_);
  const Handle dataset = open_dataset(*this, file_, name);
  const Handle stored(H5Dget_type(dataset), H5Tclose);
  const auto members = complex_members(stored);
  const H5T_class_t kind = H5Tget_class(stored);
  if (Examples::is_complex(type) && !members)
    fail(name, "expected complex numbers, compounds of r and i");
  if (!Examples::is_complex(type) && kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_ENUM)
    fail(name,
         "expected real numbers, found " + std::string(members ? "complex ones" : "values of another kind"));
  if (H5Tget_size(stored) > widest_value || ((kind == H5T_INTEGER || kind == H5T_FLOAT) && !is_sound(stored)))
    fail(name, "is damaged: its numbers of " + std::to_string(H5Tget_size(stored)) + " bytes make no sense");
  const Handle native =
      members ? memory_type(type, members->first.c_str(), members->second.c_str()) : memory_type(type);
  const Handle from = select(dataset, slab, shape_of(*this, name, dataset)), to = memory_space(slab.count);
  if (size > 0 && H5Dread(dataset, native, to, from, H5P_DEFAULT, values) < 0)
    fail(name, reason(dataset));
}

std::optional<double> Hdf5Reader::attribute(const std::string& object, const std::string& name) const {
  const Lock lock(path_);
  const auto attribute = open_attribute(file_, object, name);
  if (!attribute)
    return {};
  const auto& [opened, space, type] = *attribute;
  const H5T_class_t kind = H5Tget_class(type);
  double value = 0;
  if (H5Sget_simple_extent_npoints(space) != 1 || (kind != H5T_INTEGER && kind != H5T_FLOAT) ||
      !is_sound(type) || H5Aread(opened, H5T_NATIVE_DOUBLE, &value) < 0)
    throw InputError(path_.string() + ": attribute " + name + " of " + object + ": expected one number");
  return value;
}

std::string Hdf5Reader::text_attribute(const std::string& object, const std::string& name) const {
  const Lock lock(path_);
  const auto attribute = open_attribute(file_, object, name);
  if (!attribute)
    return {};
  const auto& [opened, space, type] = *attribute;
  if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1 ||
      H5Tget_size(type) > static_cast<std::size_t>(bytes_))
    return {};
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    if (H5Aread(opened, type, &text) < 0 || text == nullptr)
      return {};
    std::string copy = text;
    H5free_memory(text);
    return copy;
  }
  std::string text(H5Tget_size(type), '\0');
  if (H5Aread(opened, type, text.data()) < 0)
    return {};
  return text.c_str(); // to the first zero
}

Hdf5Writer::Hdf5Writer(std::filesystem::path path, AtomicFile::Writers writers)
    : target_(std::move(path), writers) {
  const Lock lock;
  // The default driver resolves links before it opens a file; one without a name cannot be found that way.
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_stdio(access);
  file_ = H5Fcreate(target_.temporary().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  if (file_ < 0)
    fail("no HDF5 file can be made there");
  if (!creator().empty())
    write_attribute("/", "creator", creator());
}

Hdf5Writer::~Hdf5Writer() { close(); }

void Hdf5Writer::close() noexcept {
  const Lock lock;
  if (file_ >= 0)
    H5Fclose(std::exchange(file_, -1));
}

void Hdf5Writer::fail(const std::string& what) const {
  throw std::runtime_error(path().string() + ": cannot be written: " + what);
}

namespace {

/// Groups of a name are made as they are needed.
Handle with_parents() {
  Handle properties(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(properties, 1);
  return properties;
}

} // namespace

namespace {

/// Native numbers, and IEEE's of 16 bits.
Handle file_type(StoredType type) {
  const auto copy = [](hid_t native) { return Handle(H5Tcopy(native), H5Tclose); };
  switch (type) {
  case StoredType::Int8:
    return copy(H5T_NATIVE_INT8);
  case StoredType::UInt8:
    return copy(H5T_NATIVE_UINT8);
  case StoredType::Int16:
    return copy(H5T_NATIVE_INT16);
  case StoredType::UInt16:
    return copy(H5T_NATIVE_UINT16);
  case StoredType::Int32:
    return copy(H5T_NATIVE_INT32);
  case StoredType::UInt32:
    return copy(H5T_NATIVE_UINT32);
  case StoredType::Float32:
    return copy(H5T_NATIVE_FLOAT);
  case StoredType::Float64:
    return copy(H5T_NATIVE_DOUBLE);
  case StoredType::Float16:
    break;
  }
  Handle half = copy(H5T_NATIVE_FLOAT);
  H5Tset_fields(half, 15, 10, 5, 0, 10);
  H5Tset_size(half, 2);
  H5Tset_ebias(half, 15);
  return half;
}

} // namespace

void Hdf5Writer::create_group(const std::string& name) {
  const Lock lock;
  if (exists(file_, name))
    return;
  const Handle group(H5Gcreate2(file_, name.c_str(), with_parents(), H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  if (!group)
    fail("group " + name + " failed");
}

void Hdf5Writer::create_dataset(const std::string& name, const Hdf5Shape& shape, Hdf5Type type) {
  const Lock lock;
  const Handle dataset(H5Dcreate2(file_, name.c_str(), memory_type(type), memory_space(shape), with_parents(),
                                  H5P_DEFAULT, H5P_DEFAULT),
                       H5Dclose);
  if (!dataset)
    fail("dataset " + name + " failed");
}

std::int64_t Hdf5Writer::create_stored(const std::string& name, const Hdf5Shape& shape, StoredType type) {
  const Lock lock;
  const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), stored = file_type(type);
  H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY); // for it to have its place
  H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
  const Handle dataset(
      H5Dcreate2(file_, name.c_str(), stored, memory_space(shape), with_parents(), properties, H5P_DEFAULT),
      H5Dclose);
  const haddr_t offset = dataset ? H5Dget_offset(dataset) : HADDR_UNDEF;
  if (offset == HADDR_UNDEF)
    fail("dataset " + name + " failed");
  stored_[name] = {static_cast<std::int64_t>(offset), bytes_of(type)};
  if (io_threads() > 1)
    target_.reserve(static_cast<std::int64_t>(offset),
                    static_cast<std::int64_t>(H5Dget_storage_size(dataset)));
  return static_cast<std::int64_t>(offset);
}

void Hdf5Writer::write_stored(const std::string& name, std::int64_t first,
                              std::span<const std::byte> values) {
  const Stored& place = stored_.at(name);
  target_.write_at(place.offset + first * place.bytes_per_value, values);
}

void Hdf5Writer::write(const std::string& name, const Hdf5Slab& slab, Hdf5Type type, const void* values,
                       std::size_t size) {
  check_slab(slab, size);
  const Lock lock;
  const Handle dataset(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset)
    fail("there is no dataset " + name);
  const Handle space(H5Dget_space(dataset), H5Sclose);
  std::vector<hsize_t> extents(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space))));
  if (!extents.empty())
    H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  const Handle to = select(dataset, slab, {extents.begin(), extents.end()});
  if (size > 0 && H5Dwrite(dataset, memory_type(type), memory_space(slab.count), to, H5P_DEFAULT, values) < 0)
    fail("dataset " + name + " failed (is the disk full?)");
}

void Hdf5Writer::write_attribute(const std::string& object, const std::string& name, double value) {
  const Lock lock;
  const Handle attribute(H5Acreate_by_name(file_, object.c_str(), name.c_str(), H5T_NATIVE_DOUBLE,
                                           memory_space({}), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  if (!attribute || H5Awrite(attribute, H5T_NATIVE_DOUBLE, &value) < 0)
    fail("attribute " + name + " failed");
}

void Hdf5Writer::write_attribute(const std::string& object, const std::string& name,
                                 const std::string& value) {
  const Lock lock;
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, value.size() + 1);
  H5Tset_cset(type, H5T_CSET_UTF8);
  const Handle attribute(H5Acreate_by_name(file_, object.c_str(), name.c_str(), type, memory_space({}),
                                           H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  if (!attribute || H5Awrite(attribute, type, value.c_str()) < 0)
    fail("attribute " + name + " failed");
}

void Hdf5Writer::soft_link(const std::string& target, const std::string& name) {
  const Lock lock;
  if (H5Lcreate_soft(target.c_str(), file_, name.c_str(), with_parents(), H5P_DEFAULT) < 0)
    fail("link " + name + " failed");
}

void Hdf5Writer::commit() {
  {
    const Lock lock;
    if (file_ < 0)
      throw std::logic_error(path().string() + ": closed twice");
    if (H5Fclose(std::exchange(file_, -1)) < 0)
      fail("it could not be closed (is the disk full?)");
  }
  target_.commit();
}

} // namespace Bracewell::Examples
