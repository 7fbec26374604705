// SPDX-License-Identifier: MIT
#include "atomic_file.hpp"

#include "input_error.hpp"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace Bracewell::Examples {
namespace {

std::string reason() { return std::generic_category().message(errno); }

} // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.empty())
    throw InputError("an output file has an empty name");
  const std::string name = path_.string();
  std::error_code error;
  // Replacing a symbolic link would leave its target behind: write through it.
  if (std::filesystem::is_symlink(path_, error))
    path_ = std::filesystem::weakly_canonical(path_, error);
  const auto status = std::filesystem::status(path_, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw InputError(name + ": cannot be written: it is there and is not a regular file");
  if (!path_.has_filename())
    throw InputError(name + ": cannot be written: it names a folder");

  const auto folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
  for (int number = 0; descriptor_ < 0; ++number) {
    temporary_ =
        folder / (".bracewell-" + std::to_string(::getpid()) + "-" + std::to_string(number) + ".tmp");
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST)
      throw InputError(name + ": cannot be written: no file can be made in folder " + folder.string() + ": " +
                       reason());
  }
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

AtomicFile::~AtomicFile() { close_and_remove(); }

void AtomicFile::close_and_remove() noexcept {
  if (descriptor_ < 0)
    return;
  ::close(std::exchange(descriptor_, -1));
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write_at(size_, bytes);
  size_ += static_cast<std::int64_t>(bytes.size());
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  if (descriptor_ < 0)
    throw std::logic_error(path_.string() + ": written to after it was closed");
  while (!bytes.empty()) {
    const auto written = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      throw std::runtime_error(path_.string() + ": cannot be written: " + reason());
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
}

void AtomicFile::commit() {
  if (descriptor_ < 0)
    throw std::logic_error(path_.string() + ": closed twice");
  // Network file systems report a full disk only here.
  const bool closed = ::close(std::exchange(descriptor_, -1)) == 0;
  if (!closed || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const std::string why = reason();
    ::unlink(temporary_.c_str());
    throw std::runtime_error(path_.string() + ": cannot be written: " + why);
  }
}

} // namespace Bracewell::Examples
