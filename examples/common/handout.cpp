// SPDX-License-Identifier: MIT
#include "handout.hpp"

#include "processes.hpp"
#include "views.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <utility>

namespace Bracewell::Examples {
namespace {

/// Sizes fall with what is left. A process holds several parts, which were read ahead: all of these together should be
/// half of its share of the rest at most.
std::vector<Share> parts_of(Share things, std::int64_t most, std::int64_t group, int processes) {
  group = std::min(group, most);
  const auto whole = [&](std::int64_t size) { return std::max(size / group, std::int64_t(1)) * group; };
  const std::int64_t count = things.size();
  const std::int64_t held = 2 * std::int64_t(processes) * (io_threads() + 1);
  const std::int64_t least = std::min((most + 7) / 8, (count + processes - 1) / processes);
  std::vector<Share> parts;
  for (std::int64_t begin = things.begin, end; begin < things.end; begin = end) {
    const std::int64_t left = things.end - begin;
    end = begin + std::min(left, whole(processes == 1 ? most : std::clamp(left / held, least, most)));
    parts.push_back({begin, end});
  }
  return parts;
}

} // namespace

/// A number in the memory of the first process that others read and add to: without its help, or where it serves them.
class Handout::Counter {
public:
#if defined(BRACEWELL_ENABLE_MPI)
  explicit Counter(bool of_all) {
    if (!of_all || process_count() == 1)
      return;
    int threads = MPI_THREAD_SINGLE;
    MPI_Query_thread(&threads);
    if (threads < MPI_THREAD_SERIALIZED)
      throw std::runtime_error("this MPI cannot be called by several threads, in turn");
    std::int64_t* value = nullptr;
    MPI_Win_allocate(is_first_process() ? sizeof *value : 0, sizeof *value, MPI_INFO_NULL, MPI_COMM_WORLD,
                     &value, &window_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    if (is_first_process())
      *value = 0;
    MPI_Win_sync(window_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() {
    if (window_ == MPI_WIN_NULL || std::uncaught_exceptions() > 0) // the others are elsewhere
      return;
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  /// Adds to it; returns what it was before.
  std::int64_t add(std::int64_t value) {
    if (window_ == MPI_WIN_NULL)
      return std::exchange(own_, own_ + value);
    std::int64_t before = 0;
    MPI_Fetch_and_op(&value, &before, MPI_INT64_T, 0, 0, MPI_SUM, window_);
    MPI_Win_flush(0, window_);
    return before;
  }

  /// Whether this process has the number, and others ask for it.
  bool has_others() const { return window_ != MPI_WIN_NULL && is_first_process(); }
  /// Lets MPI answer those who ask, where the network does not by itself.
  static void serve() {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  }

private:
  MPI_Win window_ = MPI_WIN_NULL;
#else
  explicit Counter(bool) {}
  std::int64_t add(std::int64_t value) { return std::exchange(own_, own_ + value); }
  static bool has_others() { return false; }
  static void serve() {}

private:
#endif
  std::int64_t own_ = 0; ///< of this process alone
};

Handout::Handout(std::int64_t count, std::int64_t most, std::int64_t group)
    : parts_(parts_of({0, count}, most, group, process_count())), counter_(std::make_unique<Counter>(true)),
      end_(std::int64_t(parts_.size())) {}

Handout::Handout(Share own, std::int64_t most, std::int64_t group)
    : parts_(parts_of(own, most, group, 1)), counter_(std::make_unique<Counter>(false)),
      end_(std::int64_t(parts_.size())) {}

Handout::~Handout() = default;

/// One thread at a time calls MPI: this one until the last part is taken.
void Handout::serve(const std::stop_token& end) {
  for (; !end.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    const std::lock_guard lock(mutex_);
    if (!end.stop_requested())
      Counter::serve();
  }
}

bool Handout::take(std::int64_t item) {
  const std::lock_guard lock(mutex_);
  if (counter_->has_others() && !server_.joinable())
    server_ = std::jthread([this](const std::stop_token& end) { serve(end); });
  const auto count = std::int64_t(parts_.size());
  while (std::int64_t(taken_.size()) <= item) {
    const std::int64_t next = counter_->add(1);
    if (next + 1 >= count)
      server_.request_stop();
    if (next >= count)
      return false;
    taken_.push_back(next);
  }
  return true;
}

Share Handout::part(std::int64_t item) const {
  const std::lock_guard lock(mutex_);
  return parts_[std::size_t(taken_[std::size_t(item)])];
}

std::int64_t Handout::passed_over(std::int64_t item) const {
  const std::lock_guard lock(mutex_);
  const auto part = [&](std::int64_t i) { return parts_[std::size_t(taken_[std::size_t(i)])]; };
  return part(item).begin - (item > 0 ? part(item - 1).end : parts_.front().begin);
}

std::int64_t Handout::taken() const {
  const std::lock_guard lock(mutex_);
  std::int64_t sum = 0;
  for (const std::int64_t part : taken_)
    sum += parts_[std::size_t(part)].size();
  return sum;
}

void Handout::stop() {
  const std::lock_guard lock(mutex_);
  end_ = std::min(end_, counter_->add(std::int64_t(parts_.size())));
}

std::int64_t Handout::handed_out() const {
  const auto end = std::int64_t(sum_over_processes(is_first_process() ? double(end_) : 0));
  return end > 0 ? parts_[std::size_t(end - 1)].end : 0;
}

} // namespace Bracewell::Examples
