// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace Bracewell::Examples {

/// Most bytes that are believed to come out of a file of that size: a compressed one has no more than a thousand
/// times as many, and small files may state what they do not store.
constexpr std::int64_t most_unpacked(std::int64_t file_bytes) {
  return (std::int64_t(64) << 20) + 1100 * file_bytes;
}

/// What a file is that begins so, with the way out, where it is none of those that particles, images and maps are read
/// from: "this is an HDF5 file ..."; else empty. Its name's ending counts where its bytes do not tell.
std::string other_format(std::string_view beginning, const std::filesystem::path& path = {});

/// A regular file open for reading at any position, which no OutputFamily writes to. Reading is thread-safe: there is no shared file position.
class InputFile {
public:
  /// Throws InputError where the file is missing, cannot be opened or is not a regular file.
  explicit InputFile(std::filesystem::path path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::filesystem::path& path() const { return path_; }
  /// Bytes, when the file was opened.
  std::int64_t size() const { return size_; }
  /// Fills `out` from byte `offset` on. Throws InputError beyond size(), and std::runtime_error where the file
  /// became shorter or cannot be read.
  void read_at(std::int64_t offset, std::span<std::byte> out) const;
  /// The same into parts of `bytes` each, one after the other in the file.
  void read_at(std::int64_t offset, std::span<std::byte* const> parts, std::size_t bytes) const;
  /// The whole file.
  std::string read_text() const;

private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

} // namespace Bracewell::Examples
