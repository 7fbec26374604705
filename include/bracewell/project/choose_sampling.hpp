// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/tuning.hpp>

#include <cstdint>

namespace Bracewell {

/// How spectra are sampled; each way has a kernel, and a label, of its own.
enum class Sampling {
  Rows,         ///< row by row of the projections, in blocks that vectors hold: `::rows`, hosts
  Tiles,        ///< tile by tile of the projections, one sample per lane: `::tiles`, GPUs
  Bricks,       ///< brick by brick of the volume, from scratch memory: `::bricks`, GPUs
  PaddedCopies, ///< from copies whose windows are all alike, of a PreparedReference: `::padded`, GPUs
  PoseSums,     ///< with the sums that are the gradients of poses, in one pass: `::poses`
};

/// What the choice depends on.
struct SamplingWork {
  int dimensions;                   ///< of the reconstruction
  int projection_dimensions;        ///< of a projection
  int width;                        ///< taps of the kernel on an axis
  int value_bytes;                  ///< of a real number: 4 or 8
  std::int64_t batches;             ///< of reconstructions and projections
  std::int64_t poses;               ///< of a batch
  std::int64_t projection_elements; ///< stored elements of a projection
  std::int64_t elements;            ///< stored elements of a reconstruction
  bool host = false;                ///< the execution space shares the host's memory
  bool prepared = false;            ///< reconstructions are a PreparedReference
  bool values = true;               ///< projections are wanted
  bool weights = false;             ///< a weight volume is sampled, too (backproject_gradients)
  bool pose_gradients = false;      ///< gradients of matrices or shifts are wanted
};

namespace Impl {

/// Whether copying bricks to scratch memory pays: where windows are wide (of four taps; more do not fit), poses many enough to pay for it, and
/// bricks many enough for all multiprocessors.
constexpr bool bricks_pay(const SamplingWork& work) {
  using Tuning = ProjectionTuning;
  return work.projection_dimensions == 2 && work.dimensions == 3 && work.width == 4 &&
         work.value_bytes == 4 && work.values && work.poses >= Tuning::brick_poses &&
         work.batches * work.elements >=
             (work.weights ? Tuning::weighted_brick_elements : Tuning::brick_elements);
}

} // namespace Impl

/// The kernel that project, project_gradients and backproject_gradients launch for such work: on hosts Rows; on
/// GPUs PaddedCopies of what is prepared, Bricks where they pay, else Tiles (measured on an H200:
/// docs/lab/projection.md); PoseSums wherever gradients of poses are wanted.
constexpr Sampling choose_sampling(const SamplingWork& work) {
  if (work.pose_gradients)
    return Sampling::PoseSums;
  if (work.host)
    return Sampling::Rows;
  if (work.prepared)
    return Sampling::PaddedCopies;
  return Impl::bricks_pay(work) ? Sampling::Bricks : Sampling::Tiles;
}

} // namespace Bracewell
