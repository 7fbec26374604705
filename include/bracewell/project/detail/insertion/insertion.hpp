// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/project/choose_insertion.hpp>
#include <bracewell/project/detail/insertion/insert_bricks_host.hpp>
#include <bracewell/project/detail/insertion/insert_duplicated.hpp>
#include <bracewell/project/detail/insertion/insert_owned_gpu.hpp>
#include <bracewell/project/detail/insertion/insert_patches.hpp>
#include <bracewell/project/detail/insertion/insert_sample.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/options.hpp>

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

/// The work of inserting samples, for choose_insertion.
template <class Kernel, class ExecutionSpace, class T, int M, int D>
InsertionWork insertion_work(const ExecutionSpace& space, const Samples<T, M, D>& samples,
                             Strategy strategy) {
  return {.dimensions = D,
          .projection_dimensions = M,
          .width = Kernel::width,
          .batches = samples.batches,
          .poses = samples.poses,
          .projection_elements = samples.projection.elements(),
          .threads = space.concurrency(),
          .host = is_host<ExecutionSpace>,
          .curved = samples.curved(),
          .strategy = strategy};
}

/// Launches the kernel that choose_insertion has named; before that, the checks that are its own, then begin().
template <class Kernel, class ExecutionSpace, class Amplitudes, class Scratch, class Begin>
void launch_insertion(const ExecutionSpace& space, const ProjectionArguments& arguments, const char* label,
                      Insertion insertion, const Amplitudes& amplitudes,
                      const InsertionTarget<typename Amplitudes::Real>& target, const Scratch& scratch,
                      const Begin& begin) {
  using T = typename Amplitudes::Real;
  constexpr int M = Amplitudes::projected_dimensions, D = Amplitudes::dimensions;
  constexpr Mates mates = Amplitudes::mates;
  constexpr bool host = is_host<ExecutionSpace>;
  switch (insertion) {
  case Insertion::Atomic:
    begin();
    if constexpr (!host)
      InsertAtomic<Kernel, T, M, D, mates>{amplitudes, target}.launch(space, {label, "::atomic"});
    break;
  case Insertion::Patches:
    begin();
    if constexpr (M == 2 && !host) {
      if (!target.weight)
        InsertPatches<ExecutionSpace, Kernel, T, D, mates, false>(space, amplitudes, target)
            .launch(space, {label, "::patches"});
      else if constexpr (mates == Mates::Both)
        InsertPatches<ExecutionSpace, Kernel, T, D, mates, true>(space, amplitudes, target)
            .launch(space, {label, "::patches"});
    }
    break;
  case Insertion::AtomicHost:
  case Insertion::OwnedHost:
  case Insertion::OwnedGpu: {
    using Bricks = std::conditional_t<host, InsertBricksHost<ExecutionSpace, Kernel, T, M, D, mates>,
                                      InsertOwnedGpu<ExecutionSpace, Kernel, T, M, D, mates>>;
    Bricks functor(amplitudes, target);
    const std::int64_t league = target.batches * functor.bricks.count();
    if (league > std::numeric_limits<int>::max())
      arguments.refuse("options.strategy", "at most 2^31 bricks, found %lld", static_cast<long long>(league));
    begin();
    const bool atomic = insertion == Insertion::AtomicHost;
    if constexpr (host)
      if (atomic)
        functor.share(space);
    functor.launch(space, {label, atomic ? "::atomic" : "::owned"});
    break;
  }
  case Insertion::Duplicated:
    if (!host)
      fail(arguments.function, "options.strategy", "Atomic or Owned on a GPU", "Duplicated");
    if constexpr (host) {
      const std::int64_t needed = scratch_size(space, Strategy::Duplicated,
                                               target.batches * amplitudes.samples.reconstruction.elements(),
                                               target.weight != nullptr);
      arguments.scratch("scratch", scratch, needed, "for Strategy::Duplicated");
      begin();
      const std::int64_t copies = space.concurrency();
      InsertDuplicated<Kernel, T, M, D, mates>{amplitudes, target, scratch.data, copies, needed / copies}
          .launch(space, label);
    }
    break;
  }
}

} // namespace Bracewell::Impl
