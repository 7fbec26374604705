// SPDX-License-Identifier: MIT
#include "signals.hpp"

#include <atomic>
#include <climits>
#include <cstring>

#include <unistd.h>

namespace Bracewell::Examples {
namespace {

constexpr std::array ending_signals{SIGINT, SIGTERM, SIGHUP};

/// A name that a handler can read: no memory is given or taken while it might.
struct Slot {
  std::atomic<bool> taken = false, complete = false;
  char path[PATH_MAX];
};

std::array<Slot, 32> slots;

/// Calls nothing but what handlers may call.
extern "C" void remove_and_end(int signal) {
  for (const auto& slot : slots)
    if (slot.complete)
      ::unlink(slot.path);
  ::_exit(128 + signal);
}

std::atomic<int> delayed = 0; ///< the signal that came, or 0

extern "C" void remember(int signal) { delayed = signal; }

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
}

RemovedOnSignals::RemovedOnSignals(const std::filesystem::path& path) {
  if (path.native().size() >= sizeof(Slot::path))
    return;
  for (std::size_t i = 0; i < slots.size() && !slot_; ++i)
    if (!slots[i].taken.exchange(true)) {
      std::strcpy(slots[i].path, path.c_str());
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

SignalsIgnored::SignalsIgnored() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (std::size_t i = 0; i < before_.size(); ++i)
    ::sigaction(ending_signals[i], &ignore, &before_[i]);
}

SignalsIgnored::~SignalsIgnored() {
  for (std::size_t i = 0; i < before_.size(); ++i)
    ::sigaction(ending_signals[i], &before_[i], nullptr);
}

SignalsDelayed::SignalsDelayed() {
  struct sigaction action {};
  action.sa_handler = remember;
  for (std::size_t i = 0; i < before_.size(); ++i) {
    ::sigaction(ending_signals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN)
      ::sigaction(ending_signals[i], &action, nullptr);
  }
}

SignalsDelayed::~SignalsDelayed() {
  for (std::size_t i = 0; i < before_.size(); ++i)
    ::sigaction(ending_signals[i], &before_[i], nullptr);
  if (const int signal = delayed.exchange(0); signal != 0)
    ::raise(signal);
}

} // namespace Bracewell::Examples
