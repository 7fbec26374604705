// SPDX-License-Identifier: MIT
#pragma once

#include "hdf5.hpp"
#include "signals.hpp"

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <hdf5.h>

/// What hdf5.cpp and hdf5_blocks.cpp share of the library's C interface.
namespace Bracewell::Examples::Hdf5 {

static_assert(sizeof(hid_t) == sizeof(std::int64_t));

constexpr std::size_t widest_value = 32; ///< bytes of one: a complex number of two long doubles

/// Held during every call of the library. It also keeps the library from printing its errors, and tells the signals
/// which file is read: there are damaged ones that the library crashes over.
class Lock {
public:
  Lock() : guard_(mutex()) {
    // At the end of the program the library would try once more to write what could not be written, and crash.
    static const bool without_atexit = H5dont_atexit() >= 0;
    static_cast<void>(without_atexit);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  explicit Lock(const std::filesystem::path& read) : Lock() { damaged_.emplace(read); }

private:
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex shared;
    return shared;
  }
  std::lock_guard<std::recursive_mutex> guard_;
  std::optional<DamagedOnFault> damaged_;
};

/// An identifier of the library, closed at the end; false where the library gave none.
class Handle {
public:
  using Close = herr_t (*)(hid_t);
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (id_ >= 0)
      close_(id_);
  }
  /// Leaves closing to the caller.
  hid_t release() { return std::exchange(id_, -1); }
  explicit operator bool() const { return id_ >= 0; }
  operator hid_t() const { return id_; }

private:
  hid_t id_;
  Close close_;
};

/// Whether the parts of a number lie within it. The library takes a damaged file's word for that, and reads beyond.
bool is_sound(hid_t number);

inline std::vector<hsize_t> sizes(const Hdf5Shape& shape) { return {shape.begin(), shape.end()}; }

/// Throws InputError where there is none.
Handle open_dataset(const Hdf5Reader& reader, hid_t file, const std::string& name);
/// Throws InputError where it makes no sense.
Hdf5Shape shape_of(const Hdf5Reader& reader, const std::string& name, hid_t dataset);

} // namespace Bracewell::Examples::Hdf5
