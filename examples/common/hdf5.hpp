// SPDX-License-Identifier: MIT
#pragma once

#include "atomic_file.hpp"
#include "input_file.hpp"
#include "stored_type.hpp"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// Types of values in memory; files may hold any other integer or floating-point type.
enum class Hdf5Type {
  Int8,
  UInt8,
  Int16,
  UInt16,
  Int32,
  UInt32,
  Int64,
  UInt64,
  Float32,
  Float64,
  Complex64,
  Complex128
};

template <class T>
inline constexpr Hdf5Type hdf5_type = T::has_no_hdf5_type;
template <>
inline constexpr Hdf5Type hdf5_type<std::int8_t> = Hdf5Type::Int8;
template <>
inline constexpr Hdf5Type hdf5_type<std::uint8_t> = Hdf5Type::UInt8;
template <>
inline constexpr Hdf5Type hdf5_type<std::int16_t> = Hdf5Type::Int16;
template <>
inline constexpr Hdf5Type hdf5_type<std::uint16_t> = Hdf5Type::UInt16;
template <>
inline constexpr Hdf5Type hdf5_type<std::int32_t> = Hdf5Type::Int32;
template <>
inline constexpr Hdf5Type hdf5_type<std::uint32_t> = Hdf5Type::UInt32;
template <>
inline constexpr Hdf5Type hdf5_type<std::int64_t> = Hdf5Type::Int64;
template <>
inline constexpr Hdf5Type hdf5_type<std::uint64_t> = Hdf5Type::UInt64;
template <>
inline constexpr Hdf5Type hdf5_type<float> = Hdf5Type::Float32;
template <>
inline constexpr Hdf5Type hdf5_type<double> = Hdf5Type::Float64;
/// Complex numbers are compounds {r, i} in files. Kokkos::complex has the layout of std::complex.
template <>
inline constexpr Hdf5Type hdf5_type<std::complex<float>> = Hdf5Type::Complex64;
template <>
inline constexpr Hdf5Type hdf5_type<std::complex<double>> = Hdf5Type::Complex128;

using Hdf5Shape = std::vector<std::int64_t>;

/// Elements of an array of that shape.
std::int64_t hdf5_elements(const Hdf5Shape& shape);
/// "[181, 2, 640]", for messages.
std::string hdf5_text(const Hdf5Shape& shape);

/// A box within a dataset: element `offset` is its first, `count` its shape; both have one number per axis.
struct Hdf5Slab {
  Hdf5Shape offset, count;
};

/// An HDF5 file that is open for reading. The library is not thread-safe: a lock shared by all files of the
/// program makes concurrent use correct, one call at a time.
/// Names are paths ("/exchange/data"); links are followed. Every member throws InputError, one sentence with
/// file and dataset, for what is missing, malformed or of another kind.
class Hdf5Reader {
public:
  explicit Hdf5Reader(std::filesystem::path path);
  /// An array of a file in another format.
  struct Array {
    std::string name; ///< as a dataset
    Hdf5Shape shape;
    Hdf5Type type;
    bool swapped;                       ///< the bytes are in the other order than the machine's
    std::int64_t offset;                ///< of its first byte in the file
    std::vector<std::byte> values = {}; ///< given, they take the place of the file's
  };
  /// A regular file in another format, as an HDF5 file with these datasets. Throws InputError where the file ends before they do.
  Hdf5Reader(std::filesystem::path path, const std::vector<Array>& arrays);
  Hdf5Reader(Hdf5Reader&& other) noexcept;
  Hdf5Reader& operator=(Hdf5Reader&&) = delete;
  ~Hdf5Reader();

  const std::filesystem::path& path() const { return path_; }
  /// Whether a dataset or group of that name is there.
  bool has(const std::string& name) const;
  bool has_dataset(const std::string& name) const;
  /// Names of the members of a group, in alphabetical order.
  std::vector<std::string> list(const std::string& group = "/") const;
  /// Empty for a scalar. A shape that the file is too small for is an error, so that memory of its size can be asked
  /// for.
  Hdf5Shape shape(const std::string& dataset) const;
  /// Places along the first axis (frames) that have values which were never written, in whole or in part: reading gives
  /// the fill value there. What a virtual dataset draws from nowhere was not written, either.
  std::vector<std::int64_t> never_written(const std::string& dataset) const;
  /// Whether its elements are compounds {r, i}.
  bool is_complex(const std::string& dataset) const;

  /// Fills `values` with a box of the dataset, in row-major order, converting the type. Integers beyond the
  /// range of T become its limit.
  template <class T>
  void read(const std::string& dataset, const Hdf5Slab& slab, std::span<T> values) const {
    read(dataset, slab, hdf5_type<T>, values.data(), values.size());
  }
  /// The whole dataset.
  template <class T>
  std::vector<T> read(const std::string& dataset) const {
    const Hdf5Shape all = shape(dataset);
    // What lies in other files has sizes that shape cannot judge.
    if (hdf5_elements(all) > std::max(most_unpacked(bytes_), std::int64_t(4) << 30) / std::int64_t(sizeof(T)))
      fail(dataset, "expected 4 GB at most, found shape " + hdf5_text(all));
    std::vector<T> values(static_cast<std::size_t>(hdf5_elements(all)));
    read(dataset, {Hdf5Shape(all.size(), 0), all}, std::span<T>(values));
    return values;
  }
  /// A dataset of one element.
  template <class T>
  T read_scalar(const std::string& dataset) const {
    const Hdf5Shape all = shape(dataset);
    if (hdf5_elements(all) != 1)
      fail(dataset, "expected one value, found shape " + hdf5_text(all));
    return read<T>(dataset)[0];
  }
  /// A numeric attribute of one element of a dataset or group; absent where there is none.
  std::optional<double> attribute(const std::string& object, const std::string& name) const;
  /// A text attribute; empty where there is none.
  std::string text_attribute(const std::string& object, const std::string& name) const;

  /// Throws InputError("file: dataset NAME: message").
  [[noreturn]] void fail(const std::string& dataset, const std::string& message) const;

private:
  friend class Hdf5Blocks;
  void read(const std::string& dataset, const Hdf5Slab& slab, Hdf5Type type, void* values,
            std::size_t size) const;

  std::filesystem::path path_;
  std::int64_t bytes_ = 0; ///< size of the file
  std::int64_t file_ = -1;
  mutable std::set<std::string> followed_ = {}; ///< datasets whose sources were looked at
};

/// A new HDF5 file that appears whole or not at all: written under a temporary name, renamed by commit().
/// Groups in the names of datasets are made where they are not there. Failures to write are
/// std::runtime_error; the path is checked as by AtomicFile.
class Hdf5Writer {
public:
  /// With Writers::All this is the first process; the others write what create_stored makes room for by an AtomicFile of
  /// that kind.
  explicit Hdf5Writer(std::filesystem::path path, AtomicFile::Writers writers = AtomicFile::Writers::One);
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;
  ~Hdf5Writer();

  const std::filesystem::path& path() const { return target_.path(); }
  void create_group(const std::string& name);
  /// An empty shape makes a scalar. What is never written reads as zero.
  template <class T>
  void create_dataset(const std::string& name, const Hdf5Shape& shape) {
    create_dataset(name, shape, hdf5_type<T>);
  }
  /// Makes a dataset of stored values, all of which have to be written by write_stored. Returns where in the file they
  /// begin.
  std::int64_t create_stored(const std::string& name, const Hdf5Shape& shape, StoredType type);
  /// Writes values of the machine's byte order from element `first` on (row-major) of a dataset made so. From any
  /// thread, beside others: they go to the file without passing through the library.
  void write_stored(const std::string& name, std::int64_t first, std::span<const std::byte> values);
  /// Writes a box of a dataset made before, row-major.
  template <class T>
  void write(const std::string& dataset, const Hdf5Slab& slab, std::span<const T> values) {
    write(dataset, slab, hdf5_type<T>, values.data(), values.size());
  }
  /// Makes and writes a dataset.
  template <class T>
  void write(const std::string& dataset, const Hdf5Shape& shape, std::span<const T> values) {
    create_dataset<T>(dataset, shape);
    write<T>(dataset, {Hdf5Shape(shape.size(), 0), shape}, values);
  }
  template <class T>
  void write_scalar(const std::string& dataset, T value) {
    write<T>(dataset, Hdf5Shape{}, std::span<const T>(&value, 1));
  }
  void write_attribute(const std::string& object, const std::string& name, double value);
  void write_attribute(const std::string& object, const std::string& name, const std::string& value);
  /// `name` becomes another name of what `target` names (which need not be there yet).
  void soft_link(const std::string& target, const std::string& name);
  /// Closes the file and renames it.
  void commit();

private:
  void create_dataset(const std::string& name, const Hdf5Shape& shape, Hdf5Type type);
  void write(const std::string& dataset, const Hdf5Slab& slab, Hdf5Type type, const void* values,
             std::size_t size);
  [[noreturn]] void fail(const std::string& what) const;
  void close() noexcept;

  struct Stored {
    std::int64_t offset, bytes_per_value; ///< in the file
  };

  AtomicFile target_;
  std::int64_t file_ = -1;
  std::map<std::string, Stored> stored_;
};

} // namespace Bracewell::Examples
