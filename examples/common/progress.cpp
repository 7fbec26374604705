// SPDX-License-Identifier: MIT
#include "progress.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include <unistd.h>

namespace Bracewell::Examples {
namespace {

std::string duration(double seconds) {
  const auto whole = static_cast<long>(std::min(std::ceil(seconds), 3.6e6));
  std::array<char, 64> text;
  if (whole < 60)
    std::snprintf(text.data(), text.size(), "%ld s", whole);
  else if (whole < 3600)
    std::snprintf(text.data(), text.size(), "%ld min %02ld s", whole / 60, whole % 60);
  else
    std::snprintf(text.data(), text.size(), "%ld h %02ld min", whole / 3600, whole / 60 % 60);
  return text.data();
}

} // namespace

std::string progress_line(const std::string& what, const std::string& unit, std::int64_t done,
                          std::int64_t total, double seconds) {
  const double fraction = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
  std::string line = what + " " + std::to_string(static_cast<int>(std::floor(100 * fraction))) + " % of " +
                     std::to_string(total) + " " + unit;
  if (done > 0 && seconds > 0) {
    std::array<char, 64> rate;
    std::snprintf(rate.data(), rate.size(), ", %.4g/s", static_cast<double>(done) / seconds);
    line += rate.data();
    if (done < total)
      line += ", " + duration(seconds * (1 / fraction - 1)) + " left";
  }
  return line;
}

Progress::Progress(std::string what, std::string unit, std::int64_t total)
    : what_(std::move(what)), unit_(std::move(unit)), total_(total), visible_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()) {
  if (visible_)
    draw(0, 0, {});
}

Progress::~Progress() {
  if (visible_)
    std::fputs("\r\033[K", stderr);
}

void Progress::add(std::int64_t count, const std::string& detail) {
  const std::int64_t done = done_ += count;
  if (!visible_)
    return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const auto tenths = static_cast<std::int64_t>(10 * seconds);
  std::int64_t next = next_draw_;
  // The thread that moves the time of the next drawing is the one that draws.
  if (tenths >= next && next_draw_.compare_exchange_strong(next, tenths + 1))
    draw(done, seconds, detail);
}

void Progress::draw(std::int64_t done, double seconds, const std::string& detail) const {
  const std::string line = "\r" + progress_line(what_, unit_, done, total_, seconds) +
                           (detail.empty() ? "" : ", " + detail) + "\033[K";
  std::fputs(line.c_str(), stderr);
}

} // namespace Bracewell::Examples
