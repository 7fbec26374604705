// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/project/choose.hpp>
#include <bracewell/project/detail/insertion/insert_bricks_host.hpp>
#include <bracewell/project/detail/insertion/insert_duplicated.hpp>
#include <bracewell/project/detail/insertion/insert_owned_gpu.hpp>
#include <bracewell/project/detail/insertion/insert_patches.hpp>
#include <bracewell/project/detail/insertion/insert_sample.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/options.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <type_traits>

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
template <class Kernel, class ExecutionSpace, class Amplitudes, class Scratch>
void launch_insertion_once(const ExecutionSpace& space, const ProjectionArguments& arguments,
                           const char* label, Insertion insertion, const Amplitudes& amplitudes,
                           const InsertionTarget<typename Amplitudes::Real>& target, const Scratch& scratch,
                           const std::function<void()>& begin) {
  using T = typename Amplitudes::Real;
  constexpr int M = Amplitudes::projected_dimensions, D = Amplitudes::dimensions;
  constexpr Mates mates = Amplitudes::mates;
  constexpr bool host = is_host<ExecutionSpace>;
  switch (insertion) {
  case Insertion::Atomic:
    begin();
    if constexpr (!host)
      InsertAtomic<Kernel, Amplitudes>{amplitudes, target}.launch(space, {label, "::atomic"});
    break;
  case Insertion::Patches:
    begin();
    if constexpr (M == 2 && !host) {
      if (!target.weight)
        InsertPatches<ExecutionSpace, Kernel, Amplitudes, false>(space, amplitudes, target)
            .launch(space, {label, "::patches"});
      else if constexpr (mates == Mates::Both)
        InsertPatches<ExecutionSpace, Kernel, Amplitudes, true>(space, amplitudes, target)
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

/// Poses that launch_insertion adds to a volume in float before their sums go on in double. An element gets a few
/// samples of each, and sums of so few do not drift. Large volumes take more poses: the pass over the volume then takes at
/// most 1/128 of the additions.
template <class Kernel, class T, int M, int D>
std::int64_t poses_of_block(const Samples<T, M, D>& samples) {
  std::int64_t taps = samples.projection.elements();
  for (int d = 0; d < D; ++d)
    taps *= Kernel::width;
  return std::max<std::int64_t>(128, 128 * samples.reconstruction.elements() / taps);
}

/// What blocks of poses add to, one memory: totals in double, and for each block of a launch a volume in float. Data
/// (two numbers an element) lies before weights.
struct BlockVolumes {
  double* total;
  float* block;                       ///< data of all blocks, then weights of all
  std::int64_t blocks, data, weights; ///< numbers of data and of weights of one volume

  /// Adds blocks to their totals; they are zero afterwards.
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const bool is_data = i < data;
    const std::int64_t stride = is_data ? data : weights;
    float* const first = is_data ? block + i : block + blocks * data + (i - data);
    double sum = total[i];
    for (std::int64_t b = 0; b < blocks; ++b) {
      sum += double(first[b * stride]);
      first[b * stride] = 0;
    }
    total[i] = sum;
  }
};

/// Adds totals, which are zero afterwards, to what the caller gave.
struct AddTotals {
  BlockVolumes volumes;
  float *data, *weight;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    float& to = i < volumes.data ? data[i] : weight[i - volumes.data];
    to = static_cast<float>(double(to) + volumes.total[i]);
    volumes.total[i] = 0;
  }
};

/// [B, P] poses as [1, B P], where their arrays lie so.
template <class Amplitudes>
void join_batches(Amplitudes& amplitudes) {
  auto& samples = amplitudes.samples;
  std::array arrays{&samples.matrices, &samples.shifts, &samples.filters, &amplitudes.weights};
  for (const auto* array : arrays)
    if (*array && samples.poses > 1 && array->batch_stride != samples.poses * array->pose_stride)
      return;
  if (samples.poses == 1)
    for (auto* array : arrays)
      array->pose_stride = array->batch_stride;
  samples.poses *= samples.batches;
  samples.batches = 1;
}

/// launch_insertion for many poses in float. Each block of poses is added to a volume of zeros, and this volume to one in
/// double. The error does not grow with the number of poses. The volumes take three times the memory of the caller's. On
/// GPUs small volumes take several blocks side by side, which are enough samples to be busy with.
template <class Kernel, class ExecutionSpace, class Amplitudes, class Scratch>
void insert_in_blocks(const ExecutionSpace& space, const ProjectionArguments& arguments, const char* label,
                      Insertion insertion, const Amplitudes& amplitudes, const InsertionTarget<float>& target,
                      const Scratch& scratch, std::int64_t most, std::function<void()> begin) {
  Amplitudes joined = amplitudes;
  const bool shared = target.batches == 1; // by all batches of poses
  if (shared)
    join_batches(joined);
  const auto& all = joined.samples;
  const std::int64_t elements = all.reconstruction.elements(), numbers = (target.weight ? 3 : 2) * elements;
  const std::int64_t blocks =
      is_host<ExecutionSpace>
          ? 1
          : std::clamp<std::int64_t>((1 << 17) / (most * all.projection.elements()), 1, 64);
  const auto memory =
      device_vector<double>(space, "Bracewell::insertion::blocks", numbers + (blocks * numbers + 1) / 2);
  const BlockVolumes volumes{memory.data(), reinterpret_cast<float*>(memory.data() + numbers), blocks,
                             2 * elements, numbers - 2 * elements};
  clear(space, "Bracewell::insertion::zero", memory.data(), static_cast<std::int64_t>(memory.size()));
  const Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>> each(space, 0, numbers);

  const std::int64_t batches = shared ? std::max<std::int64_t>(most / all.poses, 1) : 1;
  for (std::int64_t batch = 0; batch < all.batches; batch += batches) {
    for (std::int64_t pose = 0, now; pose < all.poses; pose += now) {
      const std::int64_t of_block = std::min(most, all.poses - pose);
      const std::int64_t at_once = std::min(blocks, (all.poses - pose) / of_block);
      now = at_once * of_block;
      Amplitudes some = joined;
      some.samples.batches = at_once > 1 ? at_once : std::min(batches, all.batches - batch);
      some.samples.poses = of_block;
      for (auto* of_poses :
           {&some.samples.matrices, &some.samples.shifts, &some.samples.filters, &some.weights})
        if (*of_poses) {
          of_poses->data = (*of_poses)(batch, pose);
          if (at_once > 1)
            of_poses->batch_stride = of_block * of_poses->pose_stride;
        }
      some.values = joined.address(batch, pose, 0);
      const InsertionTarget<float> target_of_blocks{
          .data = reinterpret_cast<Kokkos::complex<float>*>(volumes.block),
          .weight = target.weight ? volumes.block + blocks * volumes.data : nullptr,
          .batches = at_once,
          .batch_stride = at_once > 1 ? elements : 0,
          .absolute = target.absolute};
      launch_insertion_once<Kernel>(space, arguments, label, insertion, some, target_of_blocks, scratch,
                                    begin);
      begin = [] {};
      if (is_host<ExecutionSpace> && numbers < 32768) // threads would wait for each other longer
        for (std::int64_t i = 0; i < numbers; ++i)
          volumes(i);
      else
        Kokkos::parallel_for("Bracewell::insertion::add_blocks", each, volumes);
    }
    if (!shared || batch + batches >= all.batches)
      Kokkos::parallel_for("Bracewell::insertion::add_totals", each,
                           AddTotals{volumes,
                                     reinterpret_cast<float*>(target.data + batch * target.batch_stride),
                                     target.weight + (target.weight ? batch * target.batch_stride : 0)});
  }
}

/// Inserts samples as choose_insertion says: the checks that are the kernel's own, then begin(), then the kernel, in
/// blocks of poses where many add to a volume in float.
template <class Kernel, class ExecutionSpace, class Amplitudes, class Scratch, class Begin>
void launch_insertion(const ExecutionSpace& space, const ProjectionArguments& arguments, const char* label,
                      Insertion insertion, const Amplitudes& amplitudes,
                      const InsertionTarget<typename Amplitudes::Real>& target, const Scratch& scratch,
                      const Begin& begin) {
  if constexpr (std::is_same_v<typename Amplitudes::Real, float>) {
    const auto& samples = amplitudes.samples;
    const std::int64_t most = poses_of_block<Kernel>(samples);
    // On GPUs the memory takes as long as the insertion of a few blocks.
    const std::int64_t enough = (is_host<ExecutionSpace> ? 2 : 16) * most;
    if (samples.poses * (target.batches == 1 ? samples.batches : 1) > enough) {
      if (insertion ==
          Insertion::Duplicated) // for a volume less than it checks: for all, before anything is written
        arguments.scratch("scratch", scratch,
                          scratch_size(space, Strategy::Duplicated,
                                       target.batches * samples.reconstruction.elements(),
                                       target.weight != nullptr),
                          "for Strategy::Duplicated");
      return insert_in_blocks<Kernel>(space, arguments, label, insertion, amplitudes, target, scratch, most,
                                      begin);
    }
  }
  launch_insertion_once<Kernel>(space, arguments, label, insertion, amplitudes, target, scratch, begin);
}

} // namespace Bracewell::Impl
