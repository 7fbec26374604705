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
  PaddedCopies, ///< from copies whose windows are all alike, in memory that the caller gives: `::padded`, GPUs
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
  std::int64_t reconstructions = 1; ///< batches, or 1 that they share
  bool host = false;                ///< the execution space shares the host's memory
  bool scratch = false;             ///< there is memory for padded copies: `project` alone takes it
  bool values = true;               ///< projections are wanted
  bool weights = false;             ///< a weight volume is sampled, too (backproject_gradients)
  bool pose_gradients = false;      ///< gradients of matrices or shifts are wanted
};

namespace Impl {

/// Whether sampling padded copies pays for making them: in 2D where samples outweigh a launch; in 3D where
/// they are as many as elements, for windows of two taps several times as many, and these in no volume that
/// fits the L1 cache.
constexpr bool copies_pay(const SamplingWork& work) {
  using Tuning = ProjectionTuning;
  const std::int64_t samples = work.batches * work.poses * work.projection_elements,
                     copied = work.reconstructions * work.elements;
  if (work.dimensions == 2)
    return samples * work.width >= Tuning::copied_image_samples_times_width &&
           samples >= Tuning::copied_image_samples_per_element * copied;
  if (work.width > 2)
    return samples >= Tuning::copied_volume_samples_per_element * copied;
  return samples >= Tuning::narrow_copied_volume_samples_per_element * copied &&
         work.elements >= Tuning::narrow_copied_volume_elements;
}

/// Whether copying bricks to scratch memory pays: where windows are wide, poses many enough to pay for it, and
/// bricks many enough for all multiprocessors.
constexpr bool bricks_pay(const SamplingWork& work) {
  using Tuning = ProjectionTuning;
  return work.projection_dimensions == 2 && work.dimensions == 3 && work.width > 2 && work.value_bytes == 4 &&
         work.values && work.poses >= Tuning::brick_poses &&
         work.batches * work.elements >=
             (work.weights ? Tuning::weighted_brick_elements : Tuning::brick_elements);
}

} // namespace Impl

/// The kernel that project, project_gradients and backproject_gradients launch for such work: on hosts Rows; on
/// GPUs PaddedCopies where there is memory for them and they pay, Bricks where they do, else Tiles (measured on
/// an H200: docs/internals/projection.md); PoseSums wherever gradients of poses are wanted.
constexpr Sampling choose_sampling(const SamplingWork& work) {
  if (work.pose_gradients)
    return Sampling::PoseSums;
  if (work.host)
    return Sampling::Rows;
  if (work.scratch && work.batches * work.poses < std::int64_t(1) << 31 && Impl::copies_pay(work))
    return Sampling::PaddedCopies;
  return Impl::bricks_pay(work) ? Sampling::Bricks : Sampling::Tiles;
}

} // namespace Bracewell
