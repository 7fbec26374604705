// SPDX-License-Identifier: MIT
#include "memory_limit.hpp"

#include "input_error.hpp"
#include "processes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>

#include <sys/resource.h>
#include <unistd.h>

namespace Bracewell::Examples {
namespace {

constexpr double megabyte = 1e6;

std::string megabytes(double bytes) {
  return std::to_string(std::int64_t(std::ceil(bytes / megabyte))) + " MB";
}

/// The machine's memory, or less where control groups (of version 1 or 2, this process' and those above it) or the limits of
/// the shell (ulimit -v, -d) allow less.
double machine_bytes() {
  double bytes = double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE));
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA})
    if (struct rlimit limit{}; ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      bytes = std::min(bytes, double(limit.rlim_cur));
  const auto heed = [&](const std::filesystem::path& file) {
    double limit = 0;
    if (std::ifstream(file) >> limit && limit > 0) // not a number: "max"
      bytes = std::min(bytes, limit);
  };
  for_each_control_group("memory", [&](const std::filesystem::path& folder) {
    heed(folder / "memory.max");
    heed(folder / "memory.limit_in_bytes");
  });
  return bytes;
}

} // namespace

void for_each_control_group(const std::string& controller,
                            const std::function<void(const std::filesystem::path&)>& visit) {
  std::ifstream groups(
      "/proc/self/cgroup"); // lines of "number:controllers:path", of version 2 without controllers
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos)
      continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    std::filesystem::path root = "/sys/fs/cgroup", group = line.substr(second + 1);
    if (!names.empty()) {
      if ((',' + names + ',').find(',' + controller + ',') == std::string::npos)
        continue;
      root /= std::filesystem::exists(root / names) ? names : controller;
    }
    for (group = group.relative_path(); !group.empty(); group = group.parent_path())
      visit(root / group);
    visit(root); // of a container, whose own group is mounted here
  }
}

double allowed_processors() {
  double processors = std::numeric_limits<double>::infinity();
  for_each_control_group("cpu", [&](const std::filesystem::path& folder) {
    double quota = 0, period = 0; // microseconds; without a limit "max", or -1
    const bool found = (std::ifstream(folder / "cpu.max") >> quota >> period) ||
                       ((std::ifstream(folder / "cpu.cfs_quota_us") >> quota) &&
                        (std::ifstream(folder / "cpu.cfs_period_us") >> period));
    if (found && quota > 0 && period > 0)
      processors = std::min(processors, quota / period);
  });
  return processors;
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * double(::sysconf(_SC_PAGESIZE));
}

double memory_limit(const std::optional<double>& megabytes) {
  return megabytes ? *megabytes * megabyte : 0.5 * machine_bytes() / process_count_on_host();
}

void require_memory(const std::string& work, double needed, double limit) {
  if (needed > limit)
    throw InputError("--memory-limit " + megabytes(limit) + ": " + work + " needs " + megabytes(needed));
}

} // namespace Bracewell::Examples
