// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace Bracewell::Examples {

/// An output file that appears whole or not at all: written under a temporary name in the target's folder,
/// renamed by commit(), removed where commit() was not reached.
class AtomicFile {
public:
  /// Throws InputError where the target's folder cannot be written to, or the target is there and is not a
  /// regular file.
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  const std::filesystem::path& path() const { return path_; }
  /// Where it is until commit(), for libraries that open files by name.
  const std::filesystem::path& temporary() const { return temporary_; }
  /// Appends. Throws std::runtime_error (disk full).
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Overwrites from byte `offset` on.
  void write_at(std::int64_t offset, std::span<const std::byte> bytes);
  /// Closes and renames: the target is replaced by what was written. Nothing can be written after.
  void commit();

private:
  void close_and_remove() noexcept;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

} // namespace Bracewell::Examples
