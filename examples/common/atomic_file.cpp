// SPDX-License-Identifier: MIT
#include "atomic_file.hpp"

#include "input_error.hpp"
#include "output_family.hpp"
#include "processes.hpp"
#include "views.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

namespace Bracewell::Examples {
namespace {

const std::int64_t page_bytes = ::sysconf(_SC_PAGESIZE);

std::string reason(int error) { return std::generic_category().message(error); }

std::string machine() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

Replacing& replacing() {
  static Replacing what;
  return what;
}

/// Whether the program made the file, or a table of particles aside another one of Bracewell's: its name is near the
/// beginning or the end.
bool is_own(const std::filesystem::path& path) {
  const std::string& made = creator();
  const std::string name =
      path.extension() == ".star" ? made.substr(0, made.find(' ') + 1) : std::string("bracewell-");
  constexpr std::streamoff most = 1 << 16;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  for (const std::streamoff begin : {std::streamoff(0), std::max<std::streamoff>(0, size - most)}) {
    std::string text(std::size_t(std::clamp<std::streamoff>(size - begin, 0, most)), '\0');
    file.seekg(begin);
    if (file.read(text.data(), std::streamsize(text.size())) && text.find(name) != std::string::npos)
      return true;
  }
  return false;
}

/// Throws InputError where the file is there and renaming another one to its name would fail, or must not be tried.
/// @param name  as it was given: links are resolved in `path`
void require_replaceable(const std::string& name, const std::filesystem::path& path,
                         const std::filesystem::path& folder) {
  struct stat file {
  }, around{};
  if (::stat(path.c_str(), &file) != 0 || ::stat(folder.c_str(), &around) != 0)
    return;
  bool locked = false, mounted = file.st_dev != around.st_dev;
#if defined(STATX_ATTR_IMMUTABLE) && defined(__linux__)
  struct statx more {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &more) == 0) {
    locked = (more.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
#if defined(STATX_ATTR_MOUNT_ROOT)
    mounted = mounted || (more.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#endif
  }
#endif
  const uid_t user = ::geteuid();
  const bool sticky =
      (around.st_mode & S_ISVTX) != 0 && user != 0 && user != file.st_uid && user != around.st_uid;
  const auto refuse = [&](const char* why) { throw InputError(name + ": cannot be replaced: " + why); };
  if (locked)
    refuse("it is immutable (lsattr)");
  if (mounted)
    refuse("it is a file system of its own (a mount)");
  if (sticky)
    refuse("it is another user's, and its folder lets only owners do that (sticky)");
  const Replacing& may = replacing();
  if (may.creator.empty() || may.all)
    return;
  if ((file.st_mode & S_IWUSR) == 0 || ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
    throw InputError(name + ": is there and write-protected; --overwrite replaces it");
  if (std::ranges::find(may.given, std::filesystem::path(name)) == may.given.end() && file.st_size > 0 &&
      !is_own(path))
    throw InputError(name + ": is there, and " + may.creator.substr(0, may.creator.find(' ')) +
                     " did not make it; --overwrite replaces it");
}

/// Makes pages of a file be there; returns what went wrong, or 0.
int take_pages(int file, std::int64_t offset, std::int64_t bytes) {
  int error = EINTR;
  while (error == EINTR)
    error = ::posix_fallocate(file, offset, bytes);
  return error;
}

} // namespace

/// A thread that takes pages.
struct AtomicFile::Reservation {
  std::int64_t begin, end;
  std::atomic<std::int64_t> reached = begin; ///< pages before are there, or will never be
  std::atomic<int> error = 0;
  std::jthread thread = {}; // the last member: ends first

  bool holds(std::int64_t offset, std::int64_t bytes) const {
    return offset >= begin && offset + bytes <= end;
  }
  /// Returns what went wrong, or 0.
  int wait_for(std::int64_t place) const {
    for (std::int64_t at = reached; at < place; at = reached)
      reached.wait(at);
    return error;
  }
};

void set_replacing(Replacing what) { replacing() = std::move(what); }

void let_replace(const std::filesystem::path& path) { replacing().given.push_back(path); }

const std::string& creator() { return replacing().creator; }

AtomicFile::AtomicFile(std::filesystem::path path, Writers writers)
    : path_(std::move(path)), writers_(process_count() > 1 ? writers : Writers::One) {
  if (path_.empty())
    throw InputError("an output file has an empty name");
  alone_ = OutputFamily::alone(path_);
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
  require_replaceable(name, path_, folder());
  if (writers_ == Writers::All)
    open_together();
  else if (!open_nameless())
    open_named();
#ifdef __linux__
  struct statfs properties {};
  in_memory_ = ::fstatfs(descriptor_, &properties) == 0 && properties.f_type == TMPFS_MAGIC;
  fills_pages_ = in_memory_ && io_threads() > 1; // one thread alone writes faster than it fills pages
#endif
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)), named_(std::exchange(other.named_, false)),
      closed_(std::exchange(other.closed_, true)), alone_(other.alone_), writers_(other.writers_),
      in_memory_(other.in_memory_), fills_pages_(other.fills_pages_),
      reservation_(std::move(other.reservation_)), removed_on_signals_(std::move(other.removed_on_signals_)),
      size_(other.size_) {}

AtomicFile::~AtomicFile() {
  reservation_.reset();
  if (descriptor_ >= 0)
    ::close(descriptor_);
  if (named_)
    ::unlink(temporary_.c_str());
}

std::filesystem::path AtomicFile::folder() const {
  return path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
}

/// Whether the file system and the kernel can.
bool AtomicFile::open_nameless() {
#ifdef O_TMPFILE
  descriptor_ = ::open(folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    return false;
  temporary_ = "/proc/self/fd/" + std::to_string(descriptor_);
  if (::access(temporary_.c_str(), F_OK) == 0)
    return true;
  ::close(std::exchange(descriptor_, -1)); // nothing else could give it a name
#endif
  return false;
}

/// The first process makes the file, without a name where all are on its host and can open it.
void AtomicFile::open_together() {
  const auto identity = [&] { // a process of another host, or container, can have the same number
    struct stat properties {};
    return ::fstat(descriptor_, &properties) == 0
               ? machine() + ":" + std::to_string(properties.st_dev) + ":" + std::to_string(properties.st_ino)
               : std::string();
  };
  std::string name, file;
  if (is_first_process() && open_nameless()) {
    name = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(descriptor_);
    file = identity();
  }
  name = text_of_first_process(name);
  file = text_of_first_process(file);
  const bool opened = !file.empty() && (is_first_process() || (open_existing(name) && identity() == file));
  if (sum_over_processes(opened ? 1 : 0) == process_count())
    return;
  if (descriptor_ >= 0)
    ::close(std::exchange(descriptor_, -1));
  if (is_first_process())
    open_named();
  name = text_of_first_process(temporary_.string());
  if (!is_first_process() && !open_existing(name))
    throw InputError(path_.string() + ": cannot be written by process " + std::to_string(processes().rank()) +
                     " on " + machine() + ": " + reason(errno));
}

bool AtomicFile::open_existing(const std::string& name) {
  temporary_ = name;
  descriptor_ = name.empty() ? -1 : ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  return descriptor_ >= 0;
}

std::filesystem::path AtomicFile::hidden_name(int number) const {
  constexpr std::size_t longest = 100; // names have 255 bytes at most
  return folder() /
         ("." + path_.filename().string().substr(0, longest) + ".bracewell-" + machine().substr(0, longest) +
          "-" + std::to_string(::getpid()) + "-" + std::to_string(number) + ".tmp");
}

void AtomicFile::open_named() {
  const SignalsHeld wait; // until they know of the file
  for (int number = 0; descriptor_ < 0; ++number) {
    temporary_ = hidden_name(number);
    descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST)
      throw InputError(path_.string() + ": cannot be written: no file can be made in folder " +
                       folder().string() + ": " + reason(errno));
  }
  named_ = true;
  removed_on_signals_ = std::make_unique<RemovedOnSignals>(temporary_);
}

void AtomicFile::fail(int error) const {
  throw std::runtime_error(path_.string() + ": cannot be written: " + reason(error));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write_at(size_, bytes);
  size_ += static_cast<std::int64_t>(bytes.size());
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  if (closed_)
    throw std::logic_error(path_.string() + ": written to after it was closed");
  constexpr std::size_t large = 1 << 20;
  if (fills_pages_ && bytes.size() >= large)
    return write_mapped(offset, bytes);
  while (!bytes.empty()) {
    const auto written = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
}

void AtomicFile::reserve(std::int64_t offset, std::int64_t bytes) {
  if (!in_memory_ || writers_ == Writers::All || reservation_ || bytes <= 0)
    return;
  fills_pages_ = true;
  reservation_.reset(new Reservation{.begin = offset, .end = offset + bytes});
  reservation_->thread =
      std::jthread([file = descriptor_, &all = *reservation_](const std::stop_token& stop) {
        constexpr std::int64_t together = 32 << 20;
        for (std::int64_t at = all.begin; at < all.end && !stop.stop_requested();) {
          const std::int64_t next = std::min(all.end, at + together);
          all.error = take_pages(file, at, next - at);
          at = all.error == 0 ? next : all.end;
          all.reached = at;
          all.reached.notify_all();
        }
      });
}

// A file system in memory lets one thread at a time write to a file, but all that like fill its pages.
void AtomicFile::write_mapped(std::int64_t offset, std::span<const std::byte> bytes) {
  const std::int64_t begin = offset / page_bytes * page_bytes;
  const auto length = static_cast<std::size_t>(offset - begin) + bytes.size();
  // Without memory for it, writing to a page would end the program.
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (const int error = reservation_ && reservation_->holds(offset, size)
                            ? reservation_->wait_for(offset + size)
                            : take_pages(descriptor_, offset, size))
    fail(error);
  void* const pages = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, begin);
  if (pages == MAP_FAILED)
    fail(errno);
  std::memcpy(static_cast<std::byte*>(pages) + (offset - begin), bytes.data(), bytes.size());
  ::munmap(pages, length);
}

void AtomicFile::commit() {
  if (std::exchange(closed_, true))
    throw std::logic_error(path_.string() + ": closed twice");
  reservation_.reset();
  if (writers_ == Writers::All) {
    // The others' data are in the file, and what their file system has to say of it was said, before it gets its name.
    if (!is_first_process() && ::close(std::exchange(descriptor_, -1)) != 0)
      fail(errno);
    processes().barrier();
    if (!is_first_process())
      return;
  }
  if (!alone_ && OutputFamily::take(*this))
    return;
  const SignalsHeld wait;
  close();
  rename();
}

void AtomicFile::close() {
  // A link cannot replace a file, which renaming can.
  for (int number = 0; !named_; ++number) {
    const auto name = hidden_name(number);
    if (::linkat(AT_FDCWD, temporary_.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      named_ = true;
      removed_on_signals_ = std::make_unique<RemovedOnSignals>(temporary_);
    } else if (errno != EEXIST) {
      fail(errno);
    }
  }
  // Network file systems report a full disk only here.
  if (::close(std::exchange(descriptor_, -1)) != 0)
    fail(errno);
}

void AtomicFile::rename() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail(errno);
  named_ = false;
  removed_on_signals_.reset();
}

} // namespace Bracewell::Examples
