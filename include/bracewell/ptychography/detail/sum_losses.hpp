// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// Sum of the losses of all patterns by one team, in fixed order.
template <class Space>
struct SumLosses {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::sum_threads;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  const double* losses;
  std::int64_t count;
  double* loss;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count), [&](std::int64_t i, double& partial) { partial += losses[i]; },
        sum);
    Kokkos::single(Kokkos::PerTeam(team), [&]() { *loss = sum; });
  }
};

} // namespace Bracewell::Impl
