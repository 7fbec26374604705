// SPDX-License-Identifier: MIT
#include "signals.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

namespace Bracewell::Examples {
namespace {

constexpr std::array ending_signals{SIGINT, SIGTERM, SIGHUP};

/// A name that a handler can read: no memory is given or taken while it might.
struct Slot {
  std::atomic<bool> taken = false, complete = false;
  bool only_empty;
  char path[PATH_MAX];
};

std::array<Slot, 32> slots;
constexpr int ending = 1 << 30; ///< added to `held`: a signal ends the program
std::atomic<int> held = 0;      ///< how many SignalsHeld there are
std::atomic<int> waiting = 0;   ///< the last signal that came
thread_local int held_here = 0; ///< of them this thread's

thread_local const char* read_file = nullptr; ///< by a library that may fault over it

/// Removes a folder and what is in it, by system calls alone, as handlers may not ask for memory.
void remove_folder(int parent, const char* name, int depth) {
#ifdef __linux__
  const int folder = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0)
    return;
  struct Entry { // linux_dirent64, which no header declares
    std::uint64_t number;
    std::int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[1];
  };
  alignas(Entry) char block[4096];
  // Others may be in the middle of adding to it.
  for (int attempt = 0; attempt < 3; ++attempt) {
    ::lseek(folder, 0, SEEK_SET);
    for (long read; (read = ::syscall(SYS_getdents64, folder, block, sizeof block)) > 0;)
      for (long at = 0; at < read;) {
        const Entry* const entry = reinterpret_cast<const Entry*>(block + at);
        at += entry->bytes;
        const char* const own = block + (at - entry->bytes) + offsetof(Entry, name);
        if (std::strcmp(own, ".") == 0 || std::strcmp(own, "..") == 0)
          continue;
        if (::unlinkat(folder, own, 0) != 0 && depth > 0)
          remove_folder(folder, own, depth - 1);
      }
    if (::unlinkat(parent, name, AT_REMOVEDIR) == 0)
      break;
  }
  ::close(folder);
#else
  static_cast<void>(parent), static_cast<void>(name), static_cast<void>(depth);
#endif
}

void remove_unfinished() {
  constexpr int deepest = 4; // of folders in a Zarr group
  for (const auto& slot : slots)
    if (slot.complete && !slot.only_empty && ::unlink(slot.path) != 0)
      remove_folder(AT_FDCWD, slot.path, deepest);
  for (const auto& slot : slots)
    if (slot.complete && slot.only_empty)
      ::rmdir(slot.path);
}

/// Calls nothing but what handlers may call. While signals are held the last SignalsHeld does it: it looks at `waiting`
/// after `held`, this writes them in the other order.
extern "C" void remove_and_end(int signal) {
  waiting = signal;
  int nobody = 0;
  if (!held.compare_exchange_strong(nobody, ending))
    return;
  remove_unfinished();
  ::_exit(128 + signal);
}

void release() {
  if (--held == 0 && waiting != 0)
    remove_and_end(waiting);
}

/// The same for faults.
extern "C" void blame_file_and_end(int signal) {
  if (read_file == nullptr) {
    ::signal(signal, SIG_DFL); // what faulted does so once more, and ends the program
    return;
  }
  for (const char* const text : {static_cast<const char*>(program_invocation_short_name), ": ", read_file,
                                 ": is damaged: the library that reads it failed over it\n"})
    static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text)));
  remove_unfinished();
  ::_exit(2);
}

} // namespace

void remove_unfinished_on_signals() {
  for (const int signal : ending_signals) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) // nohup, and shells for what they run in the background
      continue;
    struct sigaction action {};
    action.sa_handler = remove_and_end;
    ::sigaction(signal, &action, nullptr);
  }
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGSEGV, blame_file_and_end);
  ::signal(SIGBUS, blame_file_and_end);
}

RemovedOnSignals::RemovedOnSignals(const std::filesystem::path& path, What what) {
  if (path.native().size() >= sizeof(Slot::path))
    return;
  for (std::size_t i = 0; i < slots.size() && !slot_; ++i)
    if (!slots[i].taken.exchange(true)) {
      std::strcpy(slots[i].path, path.c_str());
      slots[i].only_empty = what == What::EmptyFolder;
      slots[i].complete = true;
      slot_ = i;
    }
}

RemovedOnSignals::~RemovedOnSignals() {
  if (!slot_)
    return;
  slots[*slot_].complete = false;
  slots[*slot_].taken = false;
}

DamagedOnFault::DamagedOnFault(const std::filesystem::path& path)
    : before_(std::exchange(read_file, path.c_str())) {}

DamagedOnFault::~DamagedOnFault() { read_file = before_; }

SignalsHeld::SignalsHeld() {
  const bool first = held_here++ == 0;
  // A signal that waits for other threads would wait for ever for threads that take turns to hold it.
  if (held++ < ending && !(first && waiting != 0))
    return;
  release();
  for (;;) // another thread removes what is unfinished, or will, and would not see what this one makes
    ::pause();
}

SignalsHeld::~SignalsHeld() {
  --held_here;
  release();
}

} // namespace Bracewell::Examples
