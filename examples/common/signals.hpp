// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace Bracewell::Examples {

/// From now on SIGINT, SIGTERM and SIGHUP remove unfinished files and end the program with exit code 128 + the
/// signal; those that the program was started to ignore stay ignored. A file beyond the limit on sizes is an
/// error as a full disk is, not a signal. A fault within a library that reads a file is that file's (DamagedOnFault).
void remove_unfinished_on_signals();

/// An unfinished file, or folder, that has a name: the signals remove it while this lives.
class RemovedOnSignals {
public:
  enum class What { Everything, EmptyFolder };

  /// @param what  EmptyFolder: a folder in which others may put files stays where it has any
  explicit RemovedOnSignals(const std::filesystem::path& path, What what = What::Everything);
  RemovedOnSignals(const RemovedOnSignals&) = delete;
  RemovedOnSignals& operator=(const RemovedOnSignals&) = delete;
  ~RemovedOnSignals();

private:
  std::optional<std::size_t> slot_;
};

/// While this lives a fault of this thread (SIGSEGV, SIGBUS) means that the file is damaged: a library that followed it
/// left its memory. The program ends with one sentence and exit code 2. The path has to live as long.
class DamagedOnFault {
public:
  explicit DamagedOnFault(const std::filesystem::path& path);
  DamagedOnFault(const DamagedOnFault&) = delete;
  DamagedOnFault& operator=(const DamagedOnFault&) = delete;
  ~DamagedOnFault();

private:
  const char* before_;
};

/// The signals wait while this lives: for what must not be left half done, is short and waits for no other thread. A thread
/// that asks for it while a signal waits for others goes no further.
class SignalsHeld {
public:
  SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld();
};

} // namespace Bracewell::Examples
