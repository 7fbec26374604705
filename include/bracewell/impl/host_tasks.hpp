// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

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

/// Throws where the caller wants to end: between kernels, by the thread that begins them.
inline void leave_if_asked() {
  if (host_interrupt != nullptr && host_interrupt->asked())
    host_interrupt->leave();
}

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

/// A functor of a team, or of an index, whose type the kernel does not know.
template <class Member>
struct HostTeam {
  const void* functor;
  void (*call)(const void* functor, const Member& member);

  void operator()(const Member& member) const { call(functor, member); }
};
struct HostBlock {
  const void* functor;
  void (*call)(const void* functor, std::int64_t begin, std::int64_t end);
  std::int64_t begin, end, block;

  void operator()(std::int64_t i) const {
    const std::int64_t first = begin + i * block;
    call(functor, first, std::min(first + block, end));
  }
};

template <class Policy>
[[gnu::noinline]] void launch_host_teams(const Policy& policy, const Label& label,
                                         const HostTeam<typename Policy::member_type>& kernel) {
  Kokkos::parallel_for(label, policy, kernel);
}

/// Indices in blocks: one to a thread, as Kokkos shares them out, or with a dynamic schedule as large as the policy says.
template <class Policy>
[[gnu::noinline]] void launch_host_blocks(const Policy& policy, const Label& label, const void* functor,
                                          void (*call)(const void*, std::int64_t, std::int64_t)) {
  const auto begin = std::int64_t(policy.begin()), end = std::int64_t(policy.end());
  const std::int64_t count = end - begin, threads = policy.space().concurrency();
  const std::int64_t block = std::is_same_v<typename Policy::schedule_type::type, Kokkos::Dynamic>
                                 ? std::int64_t(policy.chunk_size())
                                 : std::max<std::int64_t>(1, (count + threads - 1) / threads);
  Kokkos::parallel_for(label, Policy(policy.space(), 0, (count + block - 1) / block).set_chunk_size(1),
                       HostBlock{functor, call, begin, end, block});
}

/// Kokkos::parallel_for. On hosts functors share a kernel per schedule, because a compiler takes 0.1 s for each kernel.
template <class Policy, class Functor>
void launch_kernel(const Label& label, const Policy& policy, const Functor& functor) {
  using Space = typename Policy::execution_space;
  using Schedule = Kokkos::Schedule<typename Policy::schedule_type::type>;
  if constexpr (!is_host<Space>)
    Kokkos::parallel_for(label, policy, functor);
  else if constexpr (requires { policy.league_size(); }) {
    using Teams = Kokkos::TeamPolicy<Space, Schedule>;
    using Member = typename Teams::member_type;
    launch_host_teams<Teams>(policy, label, {&functor, [](const void* kernel, const Member& member) {
                                               (*static_cast<const Functor*>(kernel))(member);
                                             }});
  } else {
    using Index = typename Policy::index_type;
    launch_host_blocks(policy, label, &functor, [](const void* kernel, std::int64_t begin, std::int64_t end) {
      const Functor copy = *static_cast<const Functor*>(kernel);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion" // of functors that take an int, as in Kokkos' own loop
      for (std::int64_t i = begin; i < end; ++i)
        copy(static_cast<Index>(i));
#pragma GCC diagnostic pop
    });
  }
}

} // namespace Bracewell::Impl
