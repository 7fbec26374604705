// SPDX-License-Identifier: MIT
// Preloaded into a program (LD_PRELOAD), stands in for file systems and disks that fail or are slow. FAULT says how:
//   nameless       no file can be opened with O_TMPFILE
//   read:NAME      reading the file whose path ends with NAME fails, beyond its first kilobyte (header)
//   shorter:NAME   it ends there
//   vanished:NAME  it cannot be opened a second time
//   slow           every read and write takes none to three milliseconds longer, by turns
//   slow:COUNT     it takes so many milliseconds longer
//   full:COUNT     all writes but the first COUNT find the disk full
//   lasting:COUNT  MPI_Abort takes so many milliseconds longer
// or when the program ends by SIGTERM:
//   ended:NAME:COUNT  as it opens a file after COUNT times another one was renamed to NAME
//   made              as soon as it has made a file, or a folder, of a new name (no file can be opened with O_TMPFILE)
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

/// Whether FAULT is this word alone.
bool is(const std::string& kind) {
  const char* const fault = std::getenv("FAULT");
  return fault && kind == fault;
}

/// What follows "KIND:" in FAULT; empty for another kind.
std::string target(const std::string& kind) {
  const char* const fault = std::getenv("FAULT");
  const std::string text = fault ? fault : "";
  return text.starts_with(kind + ":") ? text.substr(kind.size() + 1) : "";
}

bool concerns(const std::string& path, const std::string& kind) {
  const std::string name = target(kind);
  return !name.empty() && path.ends_with(name);
}

std::atomic<bool> ends = false; ///< at the next opening of a file

std::string path_of(int descriptor) {
  char path[4096];
  const auto length = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path, sizeof path);
  return {path, static_cast<std::size_t>(length > 0 ? length : 0)};
}

template <class Function>
Function* original(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// The milliseconds of "KIND:COUNT", where FAULT is that kind.
void sleep_for(const std::string& kind) {
  if (const std::string count = target(kind); !count.empty())
    ::usleep(1000 * static_cast<useconds_t>(std::stoi(count)));
}

/// On a slow disk.
void linger() {
  sleep_for("slow");
  static std::atomic<unsigned> calls = 0;
  if (is("slow"))
    ::usleep(1000 * (5 * calls++ % 4));
}

/// What reading returns where it fails.
std::optional<ssize_t> failed_read(int descriptor, off_t offset) {
  if (offset < 1024)
    return std::nullopt;
  const std::string path = path_of(descriptor);
  if (concerns(path, "read")) {
    errno = EIO;
    return -1;
  }
  if (concerns(path, "shorter"))
    return 0;
  return std::nullopt;
}

} // namespace

extern "C" int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (ends)
    std::raise(SIGTERM);
  if ((flags & O_TMPFILE) == O_TMPFILE && (is("nameless") || is("made"))) {
    errno = EOPNOTSUPP;
    return -1;
  }
  static int opened = 0;
  if (concerns(path, "vanished") && opened++ > 0) {
    errno = ENOENT;
    return -1;
  }
  static auto* const real = original(&::open, "open");
  const int result = real(path, flags, mode);
  if (result >= 0 && (flags & O_EXCL) != 0 && is("made"))
    std::raise(SIGTERM);
  return result;
}

// Names of the C library and of MPI. NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)

// What these are called where the C library checks sizes and flags (_FORTIFY_SOURCE, as Ubuntu's compilers set it).
extern "C" int __open_2(const char* path, int flags) { return open(path, flags); }

extern "C" ssize_t __pread_chk(int descriptor, void* buffer, size_t size, off_t offset, size_t) {
  return pread(descriptor, buffer, size, offset);
}

// Open MPI's communicators are pointers, others' numbers: each is handed on as it comes.
extern "C" int MPI_Abort(void* communicator, int code) {
  sleep_for("lasting");
  static auto* const real = original(&::MPI_Abort, "MPI_Abort");
  return real(communicator, code);
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

extern "C" int mkdir(const char* path, mode_t mode) {
  static auto* const real = original(&::mkdir, "mkdir");
  const int result = real(path, mode);
  if (result == 0 && is("made"))
    std::raise(SIGTERM);
  return result;
}

extern "C" int rename(const char* from, const char* to) {
  static auto* const real = original(&::rename, "rename");
  const int result = real(from, to);
  static std::atomic<int> renamed = 0;
  const std::string wanted = target("ended");
  if (const auto colon = wanted.find(':');
      colon != std::string::npos && std::string(to).ends_with(wanted.substr(0, colon)))
    ends = ++renamed == std::stoi(wanted.substr(colon + 1));
  return result;
}

extern "C" ssize_t pread(int descriptor, void* buffer, size_t size, off_t offset) {
  if (const auto failed = failed_read(descriptor, offset))
    return *failed;
  linger();
  static auto* const real = original(&::pread, "pread");
  return real(descriptor, buffer, size, offset);
}

extern "C" ssize_t preadv(int descriptor, const struct iovec* parts, int count, off_t offset) {
  if (const auto failed = failed_read(descriptor, offset))
    return *failed;
  linger();
  static auto* const real = original(&::preadv, "preadv");
  return real(descriptor, parts, count, offset);
}

extern "C" ssize_t pwrite(int descriptor, const void* buffer, size_t size, off_t offset) {
  static std::atomic<int> written = 0;
  if (const std::string count = target("full"); !count.empty() && written++ >= std::stoi(count)) {
    errno = ENOSPC;
    return -1;
  }
  linger();
  static auto* const real = original(&::pwrite, "pwrite");
  return real(descriptor, buffer, size, offset);
}
