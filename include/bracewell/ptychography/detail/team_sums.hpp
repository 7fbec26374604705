// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// A policy of teams. One function for all kernels.
template <class Space>
[[gnu::noinline]] Kokkos::TeamPolicy<Space> teams_of(const Space& space, std::int64_t teams, int size) {
  return Kokkos::TeamPolicy<Space>(space, static_cast<int>(teams), size);
}

/// A kernel of teams, which has a team_size.
template <class Space, class Kernel>
void launch_teams(const Label& label, const Space& space, std::int64_t teams, const Kernel& kernel) {
  launch_kernel(label, teams_of(space, teams, +Kernel::team_size), kernel);
}

/// Calls add(i, sums...) for 0 <= i < count by a team, in a fixed order; sums are zero before. Teams of hosts are one thread:
/// a loop takes a compiler a tenth of what Kokkos' reductions of several numbers take.
template <class Space, class Member, class Index, class Add, class... Sums>
KOKKOS_FORCEINLINE_FUNCTION void team_sums(const Member& member, Index count, const Add& add, Sums&... sums) {
  if constexpr (is_host<Space>)
    for (Index i = 0; i < count; ++i)
      add(i, sums...);
  else
    Kokkos::parallel_reduce(Kokkos::TeamThreadRange(member, count), add, sums...);
}

/// Sums of two numbers of every thread of a team, in a fixed order; the first thread writes them.
template <class Space, class Member>
KOKKOS_FORCEINLINE_FUNCTION void write_team_sums(const Member& member, double first, double second,
                                                 double* to) {
  double sums[2] = {0, 0};
  team_sums<Space>(
      member, member.team_size(),
      [&](int, double& a, double& b) {
        a += first;
        b += second;
      },
      sums[0], sums[1]);
  if (member.team_rank() == 0) {
    to[0] = sums[0];
    to[1] = sums[1];
  }
}

} // namespace Bracewell::Impl
