// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// Sums of two numbers of every thread of a team, in a fixed order; the first thread writes them.
template <class Space, class Member>
KOKKOS_FORCEINLINE_FUNCTION void write_team_sums(const Member& member, double first, double second,
                                                 double* to) {
  double sums[2] = {0, 0};
  Kokkos::parallel_reduce(
      Kokkos::TeamThreadRange(member, member.team_size()),
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
