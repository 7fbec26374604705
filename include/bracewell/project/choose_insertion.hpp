// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/insert_atomic.hpp>
#include <bracewell/project/detail/insert_duplicated.hpp>
#include <bracewell/project/detail/insert_owned_gpu.hpp>
#include <bracewell/project/detail/insert_owned_host.hpp>
#include <bracewell/project/detail/insert_patches.hpp>
#include <bracewell/project/detail/problem.hpp>

#include <string>

namespace Bracewell {

/// What Strategy::Automatic means: on hosts Owned, because an atomic addition costs more than finding the
/// samples of a brick; on GPUs Atomic, the fastest for all kernels and sizes (measured on an H200:
/// docs/performance.md). Duplicated is never chosen: it needs memory that only the caller can give.
template <class ExecutionSpace>
constexpr Strategy choose_strategy(Strategy asked) {
  if (asked != Strategy::Automatic)
    return asked;
  return Impl::is_host<ExecutionSpace> ? Strategy::Owned : Strategy::Atomic;
}

/// Scratch values (of the real type) that Strategy::Duplicated needs for volumes of `elements` stored
/// elements over all batches: a copy of data, and of weight if there is one, per thread. The other strategies
/// need none.
template <class ExecutionSpace>
std::int64_t duplicated_scratch_size(const ExecutionSpace& space, std::int64_t elements, bool weight) {
  return space.concurrency() * Impl::duplicated_copy_size(elements, weight);
}

/// Bytes that backproject, or the gradient of the reconstruction in project_gradients, needs beside its
/// arguments when it accumulates with `strategy` into volumes of `elements` stored elements over all batches:
/// the scratch of Strategy::Duplicated, nothing else. Owned, and Atomic on GPUs, sum in the scratch memory of
/// their teams, whose size does not depend on the data. project and backproject_gradients need nothing
/// (projection_scratch_size says what project can make use of).
template <class T, class ExecutionSpace>
std::int64_t accumulation_bytes(const ExecutionSpace& space, Strategy strategy, std::int64_t elements,
                                bool weight) {
  const bool duplicated = strategy == Strategy::Duplicated; // which Automatic never means
  return duplicated ? std::int64_t(sizeof(T)) * duplicated_scratch_size(space, elements, weight) : 0;
}

namespace Impl {

/// Whether to sum patches of samples in scratch memory before they are added to the volume: once there are
/// enough of them, 8 x 16 samples each, to keep a GPU busy; a thousand for two taps an axis in 3D, fewer for
/// more, and in 2D, where additions sample by sample meet on fewer elements (measured on an H200:
/// docs/performance.md).
inline bool patches_pay(std::int64_t concurrency, int dimension, int width, std::int64_t samples) {
  return samples * width * width * (dimension == 2 ? 4 : 1) / 2 >= concurrency;
}

/// Scatters all samples into the target with the strategy asked for.
template <class Kernel, class ExecutionSpace, class T, int M, int D, Mates mates, class MemorySpace>
void scatter(const ExecutionSpace& space, const ProjectionArguments& arguments, const std::string& label,
             Strategy asked, const Amplitudes<T, M, D, mates>& amplitudes, const ScatterTarget<T>& target,
             const Array<T, MemorySpace>& scratch) {
  const auto& samples = amplitudes.samples;
  const std::int64_t poses = samples.batches * samples.poses;
  const auto tiles = Tiles<M>::make(space, samples.projection, poses);
  const Strategy strategy = choose_strategy<ExecutionSpace>(asked);
  if (poses == 0)
    return;
  if (strategy == Strategy::Atomic) {
    if constexpr (M == 2 && !is_host<ExecutionSpace>) {
      const bool pays =
          patches_pay(space.concurrency(), D, Kernel::width, poses * samples.projection.elements());
      if (pays && !samples.curved() && samples.poses <= std::numeric_limits<int>::max()) {
        if (!target.weight)
          return InsertPatches<ExecutionSpace, Kernel, T, D, mates, false>(space, amplitudes, target)
              .launch(space, label + "::patches");
        if constexpr (mates == Mates::Both)
          return InsertPatches<ExecutionSpace, Kernel, T, D, mates, true>(space, amplitudes, target)
              .launch(space, label + "::patches");
      }
    }
    launch_tiles(space, label + "::atomic", ScatterAtomic<Kernel, T, M, D, mates>{amplitudes, target}, tiles,
                 poses);
  } else if (strategy == Strategy::Owned) {
    using Owned =
        std::conditional_t<is_host<ExecutionSpace>, InsertOwnedHost<ExecutionSpace, Kernel, T, M, D, mates>,
                           InsertOwnedGpu<ExecutionSpace, Kernel, T, M, D, mates>>;
    const Owned functor(amplitudes, target);
    const std::int64_t league = target.batches * functor.bricks.count();
    arguments.require(league <= std::numeric_limits<int>::max(), "options.strategy", "at most 2^31 bricks",
                      [&] { return std::to_string(league); });
    functor.launch(space, label + "::owned");
  } else if constexpr (is_host<ExecutionSpace>) {
    using Functor = ScatterDuplicated<Kernel, T, M, D, mates>;
    const Functor functor{tiles, amplitudes, target, scratch.data, space.concurrency()};
    const std::int64_t needed = functor.copies * functor.copy_size();
    arguments.scratch("scratch", scratch, needed, "for Strategy::Duplicated");
    Kokkos::parallel_for(label + "::duplicated",
                         Kokkos::RangePolicy<ExecutionSpace, typename Functor::Add>(space, 0, functor.copies)
                             .set_chunk_size(1),
                         functor);
    Kokkos::parallel_for(
        label + "::sum",
        Kokkos::RangePolicy<ExecutionSpace, typename Functor::Sum, Kokkos::IndexType<std::int64_t>>(
            space, 0, functor.values()),
        functor);
  } else {
    arguments.require(false, "options.strategy", "Atomic or Owned on a GPU", "Duplicated");
  }
}

} // namespace Impl
} // namespace Bracewell
