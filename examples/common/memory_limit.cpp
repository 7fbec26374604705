// SPDX-License-Identifier: MIT
#include "memory_limit.hpp"

#include "input_error.hpp"
#include "processes.hpp"

#include <cmath>
#include <cstdint>
#include <fstream>

#include <unistd.h>

namespace Bracewell::Examples {
namespace {

constexpr double megabyte = 1e6;

std::string megabytes(double bytes) {
  return std::to_string(std::int64_t(std::ceil(bytes / megabyte))) + " MB";
}

} // namespace

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * double(::sysconf(_SC_PAGESIZE));
}

double memory_limit(const std::optional<double>& megabytes) {
  return megabytes ? *megabytes * megabyte
                   : 0.5 * double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE)) /
                         process_count_on_host();
}

void require_memory(const std::string& work, double needed, double limit) {
  if (needed > limit)
    throw InputError("--memory-limit " + megabytes(limit) + ": " + work + " needs " + megabytes(needed));
}

} // namespace Bracewell::Examples
