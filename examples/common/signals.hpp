// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <optional>

namespace Bracewell::Examples {

/// From now on SIGINT, SIGTERM and SIGHUP remove unfinished files and end the program with exit code 128 + the
/// signal; those that the program was started to ignore stay ignored. A file beyond the limit on sizes is an
/// error as a full disk is, not a signal.
void remove_unfinished_on_signals();

/// An unfinished file that has a name: the signals remove it while this lives.
class RemovedOnSignals {
public:
  explicit RemovedOnSignals(const std::filesystem::path& path);
  RemovedOnSignals(const RemovedOnSignals&) = delete;
  RemovedOnSignals& operator=(const RemovedOnSignals&) = delete;
  ~RemovedOnSignals();

private:
  std::optional<std::size_t> slot_;
};

/// The signals have no effect while this lives: for what must not be left half done, and is short.
class SignalsIgnored {
public:
  SignalsIgnored();
  SignalsIgnored(const SignalsIgnored&) = delete;
  SignalsIgnored& operator=(const SignalsIgnored&) = delete;
  ~SignalsIgnored();

private:
  std::array<struct sigaction, 3> before_{};
};

/// The signals wait while this lives, and have their effect at its end: for what is short in a run that goes on.
class SignalsDelayed {
public:
  SignalsDelayed();
  SignalsDelayed(const SignalsDelayed&) = delete;
  SignalsDelayed& operator=(const SignalsDelayed&) = delete;
  ~SignalsDelayed();

private:
  std::array<struct sigaction, 3> before_{};
};

} // namespace Bracewell::Examples
