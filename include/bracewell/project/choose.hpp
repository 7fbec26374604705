// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/tuning.hpp>
#include <bracewell/project/options.hpp>

#include <cstdint>
#include <limits>

namespace Bracewell {

/// How spectra are sampled; each way has a kernel, and a label, of its own.
enum class Sampling {
  Rows,         ///< row by row of the projections, in blocks that vectors hold: `::rows`, hosts
  Tiles,        ///< tile by tile of the projections, one sample per lane: `::tiles`, GPUs
  PaddedCopies, ///< from copies whose windows are all alike, of a PreparedReference: `::padded`, GPUs
  PoseSums,     ///< with the sums that are the gradients of poses, in one pass: `::poses`
};

/// What the choice depends on.
struct SamplingWork {
  bool host = false;           ///< the execution space shares the host's memory
  bool prepared = false;       ///< reconstructions are a PreparedReference
  bool pose_gradients = false; ///< gradients of matrices or shifts are wanted
};

/// Chooses the kernel of project, project_gradients and backproject_gradients. It takes Rows on hosts. On GPUs it takes
/// PaddedCopies for a PreparedReference, and otherwise Tiles (measured on an H200: docs/lab/projection.md). For gradients of
/// poses it takes PoseSums.
constexpr Sampling choose_sampling(const SamplingWork& work) {
  if (work.pose_gradients)
    return Sampling::PoseSums;
  if (work.host)
    return Sampling::Rows;
  if (work.prepared)
    return Sampling::PaddedCopies;
  return Sampling::Tiles;
}

/// How samples are added to volumes. AtomicHost and OwnedHost are one kernel, which differs in what threads share; each
/// other way has a kernel of its own.
enum class Insertion {
  Atomic,     ///< Strategy::Atomic sample by sample, on GPUs: `::atomic`
  Patches,    ///< Strategy::Atomic of sums over patches of projections, on GPUs: `::patches`
  AtomicHost, ///< Strategy::Atomic of sums over bricks in memory, by threads, which share poses too: `::atomic`
  OwnedHost,  ///< Strategy::Owned by threads, into bricks in memory: `::owned`
  OwnedGpu,   ///< Strategy::Owned by teams, into bricks in registers: `::owned`
  Duplicated, ///< Strategy::Duplicated, hosts: `::duplicated`, then `::sum`
};

/// What the choice depends on.
struct InsertionWork {
  int dimensions;                          ///< of the reconstruction
  int projection_dimensions;               ///< of a projection
  int width;                               ///< taps of the kernel on an axis
  std::int64_t batches;                    ///< of reconstructions and projections
  std::int64_t poses;                      ///< of a batch
  std::int64_t projection_elements;        ///< stored elements of a projection
  std::int64_t threads;                    ///< of the execution space: its concurrency()
  bool host = false;                       ///< the execution space shares the host's memory
  bool curved = false;                     ///< projections are on an Ewald sphere
  Strategy strategy = Strategy::Automatic; ///< that the user asks for
};

namespace Impl {

/// Whether to sum patches of samples in scratch memory before they are added to the volume. This pays if there are
/// enough patches, of 8 x 16 samples each, to keep a GPU busy: a thousand for two taps an axis in 3D. Wider kernels and
/// 2D need fewer, because additions sample by sample meet on fewer elements there.
constexpr bool patches_pay(const InsertionWork& work) {
  const std::int64_t samples = work.batches * work.poses * work.projection_elements;
  const std::int64_t factor = work.dimensions == 2 ? ProjectionTuning::patch_samples_factor_2d : 1;
  return samples * work.width * work.width * factor / 2 >= work.threads;
}

} // namespace Impl

/// Chooses the kernel of backproject, and of project_gradients for the gradient of the reconstruction.
/// Strategy::Automatic means Owned on hosts; Atomic there only shares sums among threads if there are fewer bricks than
/// threads. On GPUs it means Atomic, the fastest for all kernels and sizes (measured on an H200: docs/lab/projection.md).
/// It never chooses Duplicated, which needs threads of a host, and memory that only the caller can give.
constexpr Insertion choose_insertion(const InsertionWork& work) {
  Strategy strategy = work.strategy;
  if (strategy == Strategy::Automatic)
    strategy = work.host ? Strategy::Owned : Strategy::Atomic;
  if (strategy == Strategy::Duplicated)
    return Insertion::Duplicated;
  if (strategy == Strategy::Owned)
    return work.host ? Insertion::OwnedHost : Insertion::OwnedGpu;
  if (work.host)
    return Insertion::AtomicHost;
  const bool patches = work.projection_dimensions == 2 && !work.curved &&
                       work.poses <= std::numeric_limits<int>::max() && Impl::patches_pay(work);
  return patches ? Insertion::Patches : Insertion::Atomic;
}

} // namespace Bracewell
