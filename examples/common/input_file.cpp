// SPDX-License-Identifier: MIT
#include "input_file.hpp"

#include "input_error.hpp"
#include "output_family.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace Bracewell::Examples {

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  OutputFamily::remember_input(path_);
  // Looked at before opening: opening a pipe would wait for its writer.
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (!std::filesystem::exists(status))
    throw InputError(path_.string() + ": cannot be opened: " +
                     (error ? error.message() : std::generic_category().message(ENOENT)));
  if (std::filesystem::is_directory(status))
    throw InputError(path_.string() + ": is a directory, not a file");
  if (!std::filesystem::is_regular_file(status))
    throw InputError(path_.string() + ": is not a regular file");

  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0)
    throw InputError(path_.string() + ": cannot be opened: " + std::generic_category().message(errno));
  struct stat properties {};
  if (::fstat(descriptor_, &properties) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    throw InputError(path_.string() + ": cannot be examined: " + std::generic_category().message(reason));
  }
  size_ = properties.st_size;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

void InputFile::read_at(std::int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const auto got = ::pread(descriptor_, out.data(), out.size(), offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw std::runtime_error(path_.string() +
                               ": cannot be read: " + std::generic_category().message(errno));
    if (got == 0 && offset < size_)
      throw std::runtime_error(path_.string() + ": became shorter while it was read: it ends at byte " +
                               std::to_string(offset) + ", " + std::to_string(size_) + " when it was opened");
    if (got == 0)
      throw InputError(path_.string() + ": ends at byte " + std::to_string(offset) + ", " +
                       std::to_string(out.size()) + " more bytes expected");
    out = out.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

void InputFile::read_at(std::int64_t offset, std::span<std::byte* const> parts, std::size_t bytes) const {
  constexpr std::size_t most = 256; // of the system's 1024
  std::array<struct iovec, most> places;
  while (!parts.empty()) {
    const std::size_t count = std::min(most, parts.size());
    std::ranges::transform(parts.first(count), places.begin(), [&](std::byte* part) {
      return iovec{part, bytes};
    });
    const auto got = ::preadv(descriptor_, places.data(), static_cast<int>(count), offset);
    // Whatever is wrong is said, or made up for, by the reading of what is missing.
    const auto done = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    std::size_t whole = done / bytes;
    if (whole < count) {
      read_at(offset + static_cast<std::int64_t>(done), {parts[whole] + done % bytes, bytes - done % bytes});
      ++whole;
    }
    parts = parts.subspan(whole);
    offset += static_cast<std::int64_t>(whole * bytes);
  }
}

std::string InputFile::read_text() const {
  std::string text(static_cast<std::size_t>(size_), '\0');
  read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

} // namespace Bracewell::Examples
