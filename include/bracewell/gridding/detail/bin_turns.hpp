// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// What orders the tasks of one launch on the device: a task begins after those before it, and a bin without
/// slots says when its tile is on the grid.
struct BinTurns {
  std::uint32_t* begun;       ///< tasks; behind it [bins, slices], whether a bin has finished
  const std::uint32_t* first; ///< where the samples of every bin begin
  std::uint32_t alone;        ///< samples of a bin without slots, at most

  /// Of the next task to begin, the number. Tasks that wait for others find these begun, whatever the order in
  /// which a device starts teams.
  KOKKOS_FUNCTION std::uint32_t next() const { return Kokkos::atomic_fetch_add(begun, 1u); }
  KOKKOS_FUNCTION bool has_turn(std::uint32_t bin) const {
    const std::uint32_t samples = first[bin + 1] - first[bin];
    return samples > 0 && samples <= alone;
  }
  KOKKOS_FUNCTION void finish(std::int64_t i) const {
    Kokkos::memory_fence();
    Kokkos::atomic_store(begun + 1 + i, 1u);
  }
  KOKKOS_FUNCTION void wait_for(std::int64_t i) const {
    while (Kokkos::atomic_load(begun + 1 + i) == 0) {
    }
    Kokkos::memory_fence();
  }
};

} // namespace Bracewell::Impl
