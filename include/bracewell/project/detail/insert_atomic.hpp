// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/impl/label.hpp>
#include <bracewell/project/detail/insert_sample.hpp>

namespace Bracewell::Impl {

/// Strategy::Atomic on GPUs, for few samples: one thread per sample, atomic additions to its taps. The order of
/// additions, and so the last bits, vary.
template <class Kernel, class T, int M, int D, Mates mates>
struct InsertAtomic {
  Amplitudes<T, M, D, mates> amplitudes;
  InsertionTarget<T> target;

  struct OfPose {
    std::int64_t batch, index;
    Pose<T, M, D> pose;
  };

  KOKKOS_INLINE_FUNCTION OfPose of_pose(std::int64_t flat) const {
    OfPose at;
    amplitudes.samples.split(flat, at.batch, at.index);
    at.pose = amplitudes.samples.pose(at.batch, at.index);
    return at;
  }

  KOKKOS_INLINE_FUNCTION void sample(const OfPose& at, const int (&k)[M], std::int64_t element) const {
    const std::int64_t begin = at.batch * target.batch_stride;
    insert_sample<Kernel>(amplitudes, at.batch, at.index, at.pose, k, element, target.data + begin,
                          target.weight ? target.weight + begin : nullptr, target.absolute,
                          [](auto* address, const auto& values) { atomic_add_neighbours(address, values); });
  }

  template <class ExecutionSpace>
  void launch(const ExecutionSpace& space, const Label& label) const {
    const std::int64_t poses = amplitudes.samples.batches * amplitudes.samples.poses;
    launch_tiles(space, label, *this, Tiles<M>::make(space, amplitudes.samples.projection, poses), poses);
  }
};

} // namespace Bracewell::Impl
