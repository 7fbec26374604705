// SPDX-License-Identifier: MIT
#include "pipeline.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

namespace Bracewell::Examples {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Where all stages are. One lock for all: items are large.
class Run {
public:
  Run(std::int64_t items, const std::vector<Stage>& stages, const std::function<bool(std::int64_t)>& take)
      : items_(items), stages_(stages), take_(take), progress_(stages.size()), times_(stages.size()) {
    for (std::size_t s = 0; s < stages.size(); ++s)
      times_[s] = {
          .name = stages[s].name, .threads = std::max(1, stages[s].threads), .bytes = stages[s].bytes};
  }

  /// One thread of stage s.
  void work(std::size_t s) {
    std::unique_lock lock(mutex_);
    while (!failure_ && progress_[s].begun < items_) {
      const std::int64_t item = progress_[s].begun++;
      if (!wait(lock, s, item))
        return;
      lock.unlock();
      const auto start = Clock::now();
      std::exception_ptr failure;
      bool taken = true;
      try {
        taken = s > 0 || !take_ || take_(item);
        if (taken)
          stages_[s].work(item);
      } catch (...) {
        failure = std::current_exception();
      }
      const double busy = seconds_since(start);
      lock.lock();
      times_[s].busy += busy;
      if (failure && !failure_)
        failure_ = failure;
      if (taken)
        progress_[s].end(item);
      else
        items_ = std::min(items_, item);
      changed_.notify_all();
    }
  }

  /// All stages end their items.
  void stop(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_)
      failure_ = std::move(failure);
    changed_.notify_all();
  }

  std::vector<StageTime> finish(double elapsed) {
    if (failure_)
      std::rethrow_exception(failure_);
    for (StageTime& time : times_)
      time.elapsed = elapsed;
    return times_;
  }

private:
  struct Progress {
    std::int64_t begun = 0;             ///< items that threads took
    std::int64_t ended = 0;             ///< all items before this one
    std::set<std::int64_t> ended_early; ///< beyond

    void end(std::int64_t item) {
      ended_early.insert(item);
      while (ended_early.erase(ended) > 0)
        ++ended;
    }
  };

  /// Until the stage may begin the item; false where another stage failed, or there is no such item.
  bool wait(std::unique_lock<std::mutex>& lock, std::size_t s, std::int64_t item) {
    const auto until = [&](double& waited, const auto& ready) {
      const auto start = Clock::now();
      changed_.wait(lock, [&] { return failure_ || item >= items_ || ready(); });
      waited += seconds_since(start);
    };
    until(times_[s].waited_for_before, [&] { return s == 0 || item < progress_[s - 1].ended; });
    until(times_[s].waited_for_after,
          [&] { return s + 1 == stages_.size() || item < progress_[s + 1].ended + stages_[s].slots; });
    return !failure_ && item < items_;
  }

  std::int64_t items_;
  const std::vector<Stage>& stages_;
  const std::function<bool(std::int64_t)>& take_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Progress> progress_;
  std::vector<StageTime> times_;
  std::exception_ptr failure_;
};

} // namespace

std::vector<StageTime> run_stages(std::int64_t items, const std::vector<Stage>& stages,
                                  const std::function<bool(std::int64_t)>& take) {
  const auto here = [](const Stage& stage) { return stage.threads == 0; };
  if (std::ranges::count_if(stages, here) > 1)
    throw std::logic_error("two stages of a pipeline want the same thread");
  const auto start = Clock::now();
  Run run(items, stages, take);
  {
    std::vector<std::jthread> threads; // joined at the end
    try {
      for (std::size_t s = 0; s < stages.size(); ++s)
        for (int thread = 0; thread < stages[s].threads; ++thread)
          threads.emplace_back([&run, s] { run.work(s); });
    } catch (...) { // no more threads: those that there are would wait for them
      run.stop(std::current_exception());
    }
    for (std::size_t s = 0; s < stages.size(); ++s)
      if (here(stages[s]))
        run.work(s);
  }
  return run.finish(seconds_since(start));
}

} // namespace Bracewell::Examples
