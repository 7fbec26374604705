// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/detail/stencil.hpp>
#include <bracewell/project/detail/tiles.hpp>

namespace Bracewell::Impl {

/// The volumes that samples are inserted into; an extent-1 batch axis has stride 0.
template <class T>
struct InsertionTarget {
  Kokkos::complex<T>* data = nullptr; ///< [B|1, ...]
  T* weight = nullptr;                ///< [B|1, ...]; null: none
  std::int64_t batches = 1;           ///< of the volumes
  std::int64_t batch_stride = 0;
  bool absolute = false; ///< insert weights with absolute kernel values
};

/// The transpose of Sampler: adds its amplitude to the taps around its position. Positions that
/// are not finite add nothing.
template <class Kernel, class Amplitudes, class T, int M, int D, class Add>
KOKKOS_INLINE_FUNCTION void insert_sample(const Amplitudes& amplitudes, std::int64_t batch,
                                          std::int64_t index, const Pose<T, M, D>& pose, const int (&k)[M],
                                          std::int64_t element, Kokkos::complex<T>* data, T* weight,
                                          bool absolute, const Add& add) {
  const auto& samples = amplitudes.samples;
  if (!samples.inside(k))
    return;
  T q[D];
  pose.position(k, q);
  Stencil<Kernel, D, Amplitudes::mates, T> stencil;
  if (!stencil.place(samples.reconstruction, q, pose.folds))
    return;
  const Kokkos::complex<T> value = amplitudes.value(batch, index, element, k, samples.phase(pose, k),
                                                    amplitudes.read(batch, index, element, k));
  stencil.scatter(data, value, add);
  if (weight == nullptr)
    return;
  if (absolute)
    stencil.make_absolute();
  stencil.scatter(weight, amplitudes.weight(batch, index, element, k), add);
}

/// Strategy::Atomic on GPUs, for few samples: one thread per sample, atomic additions to its taps. The order of
/// additions, and so the last bits, vary.
template <class Kernel, class Amplitudes>
struct InsertAtomic {
  using T = typename Amplitudes::Real;
  static constexpr int M = Amplitudes::projected_dimensions, D = Amplitudes::dimensions;

  Amplitudes amplitudes;
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
