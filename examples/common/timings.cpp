// SPDX-License-Identifier: MIT
#include "timings.hpp"

#include "processes.hpp"

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

/// What every process took for its part of the work. Collective.
std::string compared(double seconds) {
  const int count = process_count();
  std::vector<double> all(static_cast<std::size_t>(count));
  all[static_cast<std::size_t>(processes().rank())] = seconds;
  processes().sum(Kokkos::DefaultExecutionSpace(),
                  Kokkos::View<double*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(all.data(), all.size()));
  const auto slowest = std::ranges::max_element(all);
  return formatted("; stages of %d processes %.3g s on average, of the slowest, %d, %.3g s", count,
                   std::accumulate(all.begin(), all.end(), 0.0) / count, int(slowest - all.begin()),
                   *slowest);
}

} // namespace

void Timings::end_phase() {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - phase_start_).count();
  constexpr double nothing = 1e-3; // between phases
  if (!name_.empty() && (seconds > nothing || !stages_.empty())) {
    text_ += (text_.empty() ? ": " : "; ") + name_ + formatted(" %.3g s", seconds);
    if (!stages_.empty())
      text_ += " (" + stages_ + ")";
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
  for (std::size_t s = 0; s < times.size(); ++s) {
    const StageTime& stage = times[s];
    const double all = stage.elapsed * stage.threads;
    const auto share = [all](double seconds) { return all > 0 ? 100 * seconds / all : 0; };
    stages_ += (stages_.empty() ? "" : "; ") + stage.name;
    if (stage.threads > 1)
      stages_ += formatted(" on %d threads", stage.threads);
    stages_ += formatted(" %.0f %% busy", share(stage.busy));
    if (stage.bytes > 0)
      stages_ += formatted(", %.3g GB/s", 1e-9 * double(stage.bytes) / stage.elapsed);
    if (s > 0)
      stages_ += formatted(", %.0f %% waiting for ", share(stage.waited_for_before)) + times[s - 1].name;
    if (s + 1 < times.size())
      stages_ += formatted(", %.0f %% waiting for ", share(stage.waited_for_after)) + times[s + 1].name;
  }
}

std::string Timings::text() {
  end_phase();
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return formatted("timings: %.3g s", seconds) + text_ +
         (process_count() > 1 ? compared(seconds_of_stages_) : "");
}

} // namespace Bracewell::Examples
