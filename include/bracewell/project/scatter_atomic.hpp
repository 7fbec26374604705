// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/project/scatter_samples.hpp>

namespace Bracewell::Impl {

/// Strategy::Atomic: one thread per sample, atomic additions to its taps. The order of additions, and so the
/// last bits, vary.
template <class Kernel, class T, int M, int D, Mates mates>
struct ScatterAtomic {
  Tiles<M> tiles;
  Amplitudes<T, M, D, mates> amplitudes;
  ScatterTarget<T> target;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto& samples = amplitudes.samples;
    const std::int64_t flat = tiles.first_pose + team.league_rank() / tiles.per_pose;
    const auto tile = tiles.tile(team.league_rank() % tiles.per_pose);
    const std::int64_t batch = flat / samples.poses, index = flat % samples.poses;
    const auto pose = samples.pose(batch, index);
    const std::int64_t begin = batch * target.batch_stride;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tiles.elements), [&](int i) {
      int k[M];
      std::int64_t element;
      if (tiles.element(tile, i, k, element))
        scatter_sample<Kernel>(amplitudes, batch, index, pose, k, element, target.data + begin,
                               target.weight ? target.weight + begin : nullptr, target.absolute,
                               [](auto* address, const auto& run) { atomic_add_run(address, run); });
    });
  }
};

} // namespace Bracewell::Impl
