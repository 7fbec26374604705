// SPDX-License-Identifier: MIT
#include "jobs.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ProgramBench {

void forget_cached_files(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const int file = entry.is_regular_file() ? ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
      continue;
    // Pages that the disk does not have yet stay.
    const bool forgotten = ::fdatasync(file) == 0 && ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0;
    ::close(file);
    if (!forgotten)
      throw std::runtime_error(entry.path().string() + " cannot be written to its disk");
  }
}

Usage run(const std::filesystem::path& folder, const Job& job) {
  const std::filesystem::path said = folder / "said.text";
  std::vector<char*> arguments;
  for (const std::string& argument : job.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  for (const std::string& output : job.outputs)
    std::filesystem::remove(folder / output);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    if (::chdir(folder.c_str()) == 0)
      ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  struct rusage used {};
  if (child < 0 || ::wait4(child, &status, 0, &used) != child)
    throw std::runtime_error(job.command[0] + " could not be run");
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  std::ifstream file(said);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error(job.name + ": " + job.command[0] + " ended with status " +
                             std::to_string(status) + ": " + text);
  const auto seconds = [](const timeval& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); };
  const std::size_t timings = std::min(text.find("timings: "), text.size());
  return {.wall = wall.count(),
          .processor = seconds(used.ru_utime) + seconds(used.ru_stime),
          .megabytes = 1.024e-3 * double(used.ru_maxrss),
          .timings = text.substr(timings, text.find('\n', timings) - timings)};
}

} // namespace ProgramBench
