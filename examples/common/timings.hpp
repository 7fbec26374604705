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
  /// The stages of a pipeline that ran in this phase.
  void stages(const std::vector<StageTime>& times);
  /// One line, which ends the last phase: "timings: 3.1 s: plan 0.2 s; insert 2.8 s (read on 4 threads 61 % busy,
  /// 3.2 GB/s, 38 % waiting for insert; ...)". Of several processes, who call it together, phases and stages are those
  /// of this one, and "stages of 4 processes 2.5 s on average, of the slowest, 3, 2.7 s" follows.
  std::string text();

private:
  using Clock = std::chrono::steady_clock;
  void end_phase();

  Clock::time_point start_ = Clock::now(), phase_start_ = start_;
  std::string name_, stages_, text_;
  double seconds_of_stages_ = 0;
};

} // namespace Bracewell::Examples
