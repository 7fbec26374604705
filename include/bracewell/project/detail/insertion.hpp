// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/project/choose_insertion.hpp>
#include <bracewell/project/detail/insert_atomic.hpp>
#include <bracewell/project/detail/insert_bricks_host.hpp>
#include <bracewell/project/detail/insert_duplicated.hpp>
#include <bracewell/project/detail/insert_owned_gpu.hpp>
#include <bracewell/project/detail/insert_patches.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/memory.hpp>

namespace Bracewell::Impl {

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
