// SPDX-License-Identifier: MIT
#pragma once

#include "common/input_error.hpp"

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

/// What the tests of files share.
namespace IoTest {

/// Whether a sanitizer takes memory and addresses beside the program's.
#if defined(__has_feature) // clang's way
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

namespace fs = std::filesystem;

/// A folder of its own for a test, removed at the end.
class TemporaryFolder {
public:
  explicit TemporaryFolder(const fs::path& parent = fs::temp_directory_path()) {
    static std::atomic<int> count = 0;
    path_ = parent / ("bracewell-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    fs::create_directories(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  const fs::path& path() const { return path_; }
  fs::path operator/(std::string_view name) const { return path_ / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

private:
  fs::path path_;
};

using Bytes = std::vector<std::uint8_t>;

inline void write_bytes(const fs::path& path, std::span<const std::uint8_t> bytes) {
  fs::remove(
      path); // a new file need not reach the disk, a truncated one is flushed to it by some file systems
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(file.flush());
}

inline void write_text(const fs::path& path, std::string_view text) {
  write_bytes(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

inline Bytes read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

inline std::string read_text(const fs::path& path) {
  const Bytes bytes = read_bytes(path);
  return std::string(bytes.begin(), bytes.end());
}

/// The message of the InputError that `action` throws; fails where it throws none.
template <class Action>
std::string input_error(Action action) {
  try {
    action();
  } catch (const Bracewell::Examples::InputError& error) {
    return error.what();
  }
  FAIL("expected an InputError, none was thrown");
  return {};
}

/// A file of the collection of public data, in the folder that BRACEWELL_TEST_DATA names; skips the test where
/// it is not there. To be called outside of CHECK, which takes the skip for a failure.
inline fs::path shared_data(std::string_view name) {
  const char* folder = std::getenv("BRACEWELL_TEST_DATA");
  const fs::path path = fs::path(folder != nullptr ? folder : "") / "data" / name;
  if (folder == nullptr || !fs::exists(path))
    SKIP("the public data are not there: " << path << " (BRACEWELL_TEST_DATA names their folder)");
  return path;
}

/// An MRC file made by hand: words are numbered from 1 as in the MRC2014 specification.
class HandMadeMrc {
public:
  explicit HandMadeMrc(bool big_endian = false) : bytes(1024), big_endian_(big_endian) {
    integers(17, {1, 2, 3}); // MAPC, MAPR, MAPS
    std::memcpy(&bytes[4 * 52], "MAP ", 4);
    bytes[4 * 53] = bytes[4 * 53 + 1] = big_endian ? 0x11 : 0x44;
  }

  HandMadeMrc& size(std::int32_t columns, std::int32_t rows, std::int32_t sections, std::int32_t mode) {
    return integers(1, {columns, rows, sections, mode});
  }
  HandMadeMrc& integers(std::size_t word, std::initializer_list<std::int32_t> values) {
    for (const std::int32_t value : values)
      put(4 * (word++ - 1), static_cast<std::uint32_t>(value), 4);
    return *this;
  }
  HandMadeMrc& reals(std::size_t word, std::initializer_list<float> values) {
    for (const float value : values)
      put(4 * (word++ - 1), std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  HandMadeMrc& without_stamp() {
    std::memset(&bytes[4 * 52], 0, 8);
    return *this;
  }
  /// Appends a value of 1, 2 or 4 bytes.
  HandMadeMrc& append(std::uint32_t bits, std::size_t count) {
    bytes.resize(bytes.size() + count);
    put(bytes.size() - count, bits, count);
    return *this;
  }
  HandMadeMrc& append_reals(std::span<const float> values) {
    for (const float value : values)
      append(std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  fs::path write(const fs::path& path) const {
    write_bytes(path, bytes);
    return path;
  }

  Bytes bytes;

private:
  void put(std::size_t at, std::uint32_t bits, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      bytes[at + (big_endian_ ? count - 1 - i : i)] = static_cast<std::uint8_t>(bits >> 8 * i);
  }

  bool big_endian_;
};

} // namespace IoTest
