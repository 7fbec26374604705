// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/distributed/communicator.hpp>

#include <Kokkos_Core.hpp>

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

namespace Bracewell::Examples {

/// Whether this process says and writes what a run says and writes.
bool is_first_process();

/// How many processes mpirun started this program as; 1 without.
int process_count();

/// How many of them share this process' host, and its memory.
int process_count_on_host();

/// Throws InputError where there are several processes: for work that is not shared out among them.
void require_one_process();

/// The processes, for sums. Collective at the first call; Kokkos' end ends it.
const Communicator<Kokkos::DefaultExecutionSpace>& processes();

/// Collective.
double sum_over_processes(double value);

/// Sums of Views over processes, in place, and where they are `in_order` of ranks, with the same bits for as many of them.
/// Collective.
template <class... Views>
void sum_over_processes(const Kokkos::DefaultExecutionSpace& space, bool in_order, const Views&... views) {
  if (in_order)
    processes().reduce_in_order(space, views...);
  else
    processes().sum(space, views...);
}

/// What the first process has. Collective.
std::string text_of_first_process(const std::string& text);

/// The life of MPI, if this program was built with it and started by mpirun or the like. Processes other than the
/// first say nothing on stdout and stderr meanwhile.
class ProcessGroup {
public:
  ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;
  ~ProcessGroup();

  /// Whether all processes say the same. Collective.
  bool agree(bool value) const;
  /// Of a failure in this process: calls say(stderr) unless one with a lower rank fails at this time, too, or another one
  /// has spoken, and ends all processes with the code. Returns where there are no others.
  void fail(int code, const std::function<void(std::ostream&)>& say);

private:
  class Silence;
  std::unique_ptr<Silence> silence_;
};

} // namespace Bracewell::Examples
