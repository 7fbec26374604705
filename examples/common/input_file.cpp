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

std::string other_format(std::string_view beginning, const std::filesystem::path& path) {
  using namespace std::string_view_literals;
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? char(letter + 32) : letter;
  });
  const bool tiff = beginning.starts_with("II*\0"sv) || beginning.starts_with("MM\0*"sv) ||
                    beginning.starts_with("II+\0"sv) || beginning.starts_with("MM\0+"sv);
  if (tiff && ending == ".eer")
    return "this is an EER movie: motion correction and extraction of particles come first";
  if (tiff)
    return "this is a TIFF file: e2proc2d.py or IMOD's tif2mrc make an MRC stack of it";
  if (beginning.starts_with("\x89HDF\r\n\x1a\n"sv))
    return "this is an HDF5 file (EMAN2's .hdf?): e2proc2d.py or e2proc3d.py make an MRC file of it";
  if (beginning.starts_with("SQLite format 3\0"sv))
    return "this is an SQLite database (cisTEM's?): export its particles as a RELION STAR file";
  if (beginning.starts_with("\x1f\x8b"sv))
    return "is compressed with gzip; unpack it first";
  if (beginning.starts_with("BZh"sv) || beginning.starts_with("\xfd\x37zXZ"sv) ||
      beginning.starts_with("\x28\xb5\x2f\xfd"sv))
    return "is compressed; unpack it first";
  if (beginning.starts_with("PK\3\4"sv))
    return "this is a ZIP archive; unpack it first";
  if (beginning.starts_with("\xff\xfe"sv) || beginning.starts_with("\xfe\xff"sv))
    return "this is a text in UTF-16; save it as UTF-8";
  if (beginning.starts_with("\x80\2"sv) || beginning.starts_with("\x80\3"sv) ||
      beginning.starts_with("\x80\4"sv) || beginning.starts_with("\x80\5"sv))
    return "this is a pickle of Python (cryoDRGN's poses?): write a RELION STAR file (cryodrgn write_star)";
  if (ending == ".par")
    return "this is a table of Frealign or cisTEM: export the particles as a RELION STAR file";
  if (ending == ".lst" || beginning.starts_with("#LST"sv))
    return "this is a list of EMAN's: e2refinetorelion3d.py makes a RELION STAR file of it";
  if (beginning.starts_with("\x93NUMPY"sv))
    return "this is a NumPy array (cryoSPARC's .cs?)";
  if (beginning.starts_with("\x89PNG"sv) || beginning.starts_with("\xff\xd8\xff"sv))
    return "this is a picture";
  return {};
}

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
