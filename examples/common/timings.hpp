// SPDX-License-Identifier: MIT
#pragma once

#include "pipeline.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// Where the time of a program went, for --timings.
class Timings {
public:
  /// What is done beside nothing else, from now until the next phase, or the end.
  void phase(const std::string& name);
  /// The stages of a pipeline that ran in this phase, once or several times.
  void stages(const std::vector<StageTime>& times);
  /// What this process took of work that is handed out: so many "slices", added to those before.
  void share(const std::string& unit, std::int64_t count);
  /// One line, which ends the last phase: "timings: 3.1 s: plan 0.2 s; insert 2.8 s (read on 4 threads 61 % busy,
  /// 3.2 GB/s, 38 % waiting for insert; ...)". Of several processes, who call it together, phases and stages are those
  /// of this one, and "stages of 4 processes 2.5 s on average, of the slowest, 3, 2.7 s" follows, and for work that was
  /// handed out "most slices, 40, in process 0, fewest, 24, in 3".
  std::string text();

private:
  using Clock = std::chrono::steady_clock;
  void end_phase();
  std::string compared() const;

  Clock::time_point start_ = Clock::now(), phase_start_ = start_;
  std::string name_, text_;
  std::vector<StageTime> stages_; ///< of this phase
  double seconds_of_stages_ = 0;
  std::string unit_; ///< of share()
  std::int64_t count_ = 0;
};

} // namespace Bracewell::Examples
