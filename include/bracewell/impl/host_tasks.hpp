// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Who may want to end a thread's calls early, as Python's Ctrl-C does.
struct HostInterrupt {
  virtual ~HostInterrupt() = default;
  /// Whether to leave the tasks that remain: asked before each of them, by any thread.
  virtual bool asked() = 0;
  /// Throws where that was so: asked by the thread of the calls, when all tasks have ended.
  virtual void leave() = 0;
};
inline thread_local HostInterrupt* host_interrupt = nullptr; ///< of this thread's calls

/// A functor of an index whose type the kernel does not know.
struct HostTask {
  const void* functor;
  void (*call)(const void* functor, std::int64_t i);
  HostInterrupt* interrupt = host_interrupt;

  void operator()(std::int64_t i) const {
    if (interrupt == nullptr || !interrupt->asked())
      call(functor, i);
  }
};

/// task(i) for 0 <= i < count, as threads become free. One function per space, not a part of its callers.
template <class Space>
[[gnu::noinline]] void launch_host_task(const Space& space, const Label& label, std::int64_t count,
                                        const HostTask& task) {
  using Policy =
      Kokkos::RangePolicy<Space, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(label, Policy(space, 0, count).set_chunk_size(1), task);
  if (task.interrupt != nullptr)
    task.interrupt->leave();
}

/// functor(i) for 0 <= i < count on hosts: tasks of a microsecond or more, which threads take as they become free. All
/// functors share one kernel: each of its own takes a compiler 0.3 s. Each call works on a copy, of which compilers know
/// that nothing else writes to it. Serial and OpenMP return when the kernel has ended, before the functor does.
template <class Space, class Functor>
void launch_host_tasks(const Space& space, const Label& label, std::int64_t count, const Functor& functor) {
  launch_host_task(space, label, count, {&functor, [](const void* task, std::int64_t i) {
                                           const Functor copy = *static_cast<const Functor*>(task);
                                           copy(i);
                                         }});
}

} // namespace Bracewell::Impl
