// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace Bracewell::Examples {

/// A line on stderr with percentage, rate and time left, drawn at once and redrawn at most ten times a second and erased at the
/// end. Silent where stderr is not a terminal.
class Progress {
public:
  /// `what` names the work ("inserting"), `unit` what is counted ("images").
  Progress(std::string what, std::string unit, std::int64_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Counts work done; from any thread. `detail` ends the line.
  void add(std::int64_t count, const std::string& detail = {});

private:
  void draw(std::int64_t done, double seconds, const std::string& detail) const;

  using Clock = std::chrono::steady_clock;
  std::string what_;
  std::string unit_;
  std::int64_t total_;
  bool visible_;
  Clock::time_point start_;
  std::atomic<std::int64_t> done_ = 0;
  std::atomic<std::int64_t> next_draw_ = 0; // tenths of a second since the start
};

/// The text of the progress line.
std::string progress_line(const std::string& what, const std::string& unit, std::int64_t done,
                          std::int64_t total, double seconds);

} // namespace Bracewell::Examples
