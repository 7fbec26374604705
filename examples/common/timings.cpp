// SPDX-License-Identifier: MIT
#include "timings.hpp"

#include "processes.hpp"
#include "views.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

namespace Bracewell::Examples {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 160> text;
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

/// A number of every process, for all. Collective.
std::vector<double> of_processes(double value) {
  std::vector<double> all(static_cast<std::size_t>(process_count()));
  all[static_cast<std::size_t>(processes().rank())] = value;
  processes().sum(Space(), host_view(all));
  return all;
}

/// The times of stages in words.
std::string described(const std::vector<StageTime>& times) {
  std::string text;
  for (std::size_t s = 0; s < times.size(); ++s) {
    const StageTime& stage = times[s];
    const double all = stage.elapsed * stage.threads;
    const auto share = [all](double seconds) { return all > 0 ? 100 * seconds / all : 0; };
    text += (text.empty() ? "" : "; ") + stage.name;
    if (stage.threads > 1)
      text += formatted(" on %d threads", stage.threads);
    text += formatted(" %.0f %% busy", share(stage.busy));
    if (stage.bytes > 0)
      text += formatted(", %.3g GB/s", 1e-9 * double(stage.bytes) / stage.elapsed);
    if (s > 0)
      text += formatted(", %.0f %% waiting for ", share(stage.waited_for_before)) + times[s - 1].name;
    if (s + 1 < times.size())
      text += formatted(", %.0f %% waiting for ", share(stage.waited_for_after)) + times[s + 1].name;
  }
  return text;
}

} // namespace

void Timings::end_phase() {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - phase_start_).count();
  constexpr double nothing = 1e-3; // between phases
  if (!name_.empty() && (seconds > nothing || !stages_.empty())) {
    text_ += (text_.empty() ? ": " : "; ") + name_ + formatted(" %.3g s", seconds);
    if (!stages_.empty())
      text_ += " (" + described(stages_) + ")";
  }
  phase_start_ = now;
  name_.clear();
  stages_.clear();
}

void Timings::phase(const std::string& name) {
  end_phase();
  name_ = name;
}

void Timings::stages(const std::vector<StageTime>& times) {
  seconds_of_stages_ += times.empty() ? 0 : times.front().elapsed;
  if (stages_.empty())
    stages_ = times;
  else
    for (std::size_t s = 0; s < times.size(); ++s) {
      stages_[s].busy += times[s].busy;
      stages_[s].waited_for_before += times[s].waited_for_before;
      stages_[s].waited_for_after += times[s].waited_for_after;
      stages_[s].bytes += times[s].bytes;
      stages_[s].elapsed += times[s].elapsed;
    }
}

void Timings::share(const std::string& unit, std::int64_t count) {
  unit_ = unit;
  count_ += count;
}

/// What every process took for its part of the work, and of it. Collective.
std::string Timings::compared() const {
  const auto seconds = of_processes(seconds_of_stages_), counts = of_processes(double(count_));
  const auto slowest = std::ranges::max_element(seconds);
  std::string text =
      formatted("; stages of %zu processes %.3g s on average, of the slowest, %d, %.3g s", seconds.size(),
                std::accumulate(seconds.begin(), seconds.end(), 0.0) / double(seconds.size()),
                int(slowest - seconds.begin()), *slowest);
  if (unit_.empty())
    return text;
  const auto [fewest, most] = std::ranges::minmax_element(counts);
  return text + "; most " + unit_ +
         formatted(", %.0f, in process %d, fewest, %.0f, in %d", *most, int(most - counts.begin()), *fewest,
                   int(fewest - counts.begin()));
}

std::string Timings::text() {
  end_phase();
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return formatted("timings: %.3g s", seconds) + text_ + (process_count() > 1 ? compared() : "");
}

} // namespace Bracewell::Examples
