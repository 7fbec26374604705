// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace Bracewell::Impl {

/// Numbers that a team has in scratch memory, for `together` modes or exchanges.
template <class Kernel>
constexpr int numbers_of_team(int together) {
  return Kernel::numbers + (together - 1) * Kernel::of_mode;
}

/// Teams that a multiprocessor should hold of a kernel: as many as their registers, and an exchange of each, let it.
template <class T, class Kernel>
constexpr int teams_on_chip(int together = 1) {
  using Tuning = PtychographyTuning;
  const std::size_t bytes =
      numbers_of_team<Kernel>(together) * sizeof(Kokkos::complex<T>) + 2 * Tuning::system_bytes;
  constexpr int registers = sizeof(T) * std::max(16, +Kernel::per_lane); // that numbers take
  constexpr int threads = Kernel::on_chip * 16 * sizeof(float) / registers;
  return std::clamp<int>(threads / Kernel::threads, 1, std::max<int>(1, Tuning::chip_bytes / bytes));
}

/// Modes whose sums leave a multiprocessor the teams that launch_known_lines() promises, without which Kokkos refuses to
/// launch.
template <class T, class Kernel>
constexpr int most_of_bundle() {
  int most = 1;
  while (most < Kernel::most_together && teams_on_chip<T, Kernel>(most + 1) == teams_on_chip<T, Kernel>())
    ++most;
  return most;
}

/// Portions of `count` patterns, for so many teams, about, and bundles of modes.
template <class Kernel>
std::int64_t portions_of_patterns(int teams, int bundles, std::int64_t count) {
  return std::clamp<std::int64_t>(teams / (bundles * Kernel::Sizes::blocks), 1, count);
}

/// Launches a kernel whose teams have scratch memory for `together` modes or exchanges.
template <class T, class Space, class Kernel>
void launch_known_lines(const Space& space, const char* label, std::int64_t teams, const Kernel& kernel,
                        int together = 1) {
  using Policy = Kokkos::TeamPolicy<
      Space, Kokkos::LaunchBounds<Kernel::threads, resident_teams<Space>(teams_on_chip<T, Kernel>())>>;
  Policy policy(space, static_cast<int>(teams), +Kernel::threads);
  policy.set_scratch_size(
      0, Kokkos::PerTeam(numbers_of_team<Kernel>(together) * static_cast<int>(sizeof(Kokkos::complex<T>))));
  Kokkos::parallel_for(label, policy, kernel);
}

} // namespace Bracewell::Impl
