// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/project/detail/insertion/insert_sample.hpp>
#include <bracewell/project/detail/insertion/patch_box.hpp>
#include <bracewell/project/detail/tuning.hpp>

#include <algorithm>
#include <limits>

namespace Bracewell::Impl {

/// Strategy::Atomic on GPUs, for many samples. A warp takes a patch of a projection. Neighbouring samples
/// share most of their taps: it sums them in scratch memory and adds the sums to the reconstruction, a few
/// atomic additions for every sample instead of width^D. In scratch none are needed: lanes take samples whose
/// frequencies differ by multiples of two, which have no window in common, and add them tap by tap.
template <class Space, class Kernel, class Amplitudes, bool weighted>
struct InsertPatches {
  using T = typename Amplitudes::Real;
  static constexpr int D = Amplitudes::dimensions;
  static constexpr Mates mates = Amplitudes::mates;
  static constexpr bool host = is_host<Space>; ///< for tests
  static constexpr int width = Kernel::width, scratch_level = host ? 1 : 0;
  static constexpr int lanes = host ? 1 : 32;
  using Tuning = PatchTuning<Space, T, D, width, weighted>;
  static constexpr int columns = Tuning::columns, rows = Tuning::rows, capacity = Tuning::elements;
  static constexpr int per_lane = columns * rows / lanes; ///< samples of a patch
  using Box = PatchBox<T, D, width>;
  using Workspace = PatchSums<T, width, capacity, lanes, weighted>;
  using Policy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<128, Tuning::resident>>;
  using Team = typename Policy::member_type;

  Amplitudes amplitudes;
  InsertionTarget<T> target;
  int patches_per_team = 1;     ///< one below the other: the pose is loaded once
  int across, down;             ///< teams of a pose
  std::int64_t first_strip = 0; ///< strip: what a team takes; counted over all batches

  InsertPatches(const Space& space, const Amplitudes& amplitudes_, const InsertionTarget<T>& target_)
      : amplitudes(amplitudes_), target(target_) {
    const auto& samples = amplitudes.samples;
    across = (samples.projection.columns() + columns - 1) / columns;
    const int patches = (samples.projection.size[1] + rows - 1) / rows;
    const std::int64_t threads = samples.batches * samples.poses * across * patches * lanes;
    while (patches_per_team < Tuning::most_per_team && threads / patches_per_team >= 8 * space.concurrency())
      patches_per_team *= 2;
    down = (patches + patches_per_team - 1) / patches_per_team;
  }

  /// Teams that run at the same time take the same patch of different poses: what they reach is a part of the
  /// reconstruction that caches can hold. More teams than a league can count are launched one after another.
  void launch(const Space& space, const Label& label) {
    const std::int64_t poses = amplitudes.samples.poses, strips = amplitudes.samples.batches * across * down;
    const std::int64_t most = std::numeric_limits<int>::max() / poses;
    for (; first_strip < strips; first_strip += most) {
      Policy policy(space, static_cast<int>(std::min(most, strips - first_strip) * poses), 1, +lanes);
      policy.set_scratch_size(+scratch_level,
                              Kokkos::PerTeam(static_cast<int>(sizeof(Workspace) + alignof(Workspace))));
      Kokkos::parallel_for(label, policy, *this);
    }
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& workspace = *static_cast<Workspace*>(
        team.team_scratch(+scratch_level).get_shmem_aligned(sizeof(Workspace), alignof(Workspace)));
    const int rank = team.league_rank();
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)),
                         [&](int lane) { add_patch(rank, lane, workspace); });
  }

private:
  /// Frequencies low ... high of one pose.
  struct Patch {
    std::int64_t batch, index;
    int low[2], high[2];

    /// Of a sample of a lane: first those with even distances from `low`; false beyond the patch.
    KOKKOS_INLINE_FUNCTION bool frequency(int lane, int i, int (&k)[2]) const {
      i = i * lanes + lane;
      const int parity = i / (columns * rows / 4);
      k[0] = low[0] + i % (columns / 2) * 2 + parity % 2;
      k[1] = low[1] + i / (columns / 2) % (rows / 2) * 2 + parity / 2;
      return k[0] <= high[0] && k[1] <= high[1];
    }
  };

  KOKKOS_INLINE_FUNCTION void add_patch(int rank, int lane, Workspace& workspace) const {
    const auto& samples = amplitudes.samples;
    const auto& layout = samples.projection;
    const int poses = static_cast<int>(samples.poses), local_strip = rank / poses;
    const std::int64_t strip = first_strip + local_strip;
    Patch patch;
    patch.index = rank - local_strip * poses;
    patch.batch = strip / (std::int64_t(across) * down);
    const int of_batch = static_cast<int>(strip - patch.batch * (across * down));
    const int height = patches_per_team * rows, top = of_batch / across * height - (layout.size[1] - 1) / 2;
    const int bottom = Kokkos::min(top + height - 1, layout.size[1] / 2);
    patch.low[0] = of_batch % across * columns;
    patch.high[0] = Kokkos::min(patch.low[0] + columns, layout.columns()) - 1;
    const auto pose = samples.pose(patch.batch, patch.index);
    const bool boxed = !pose.folds && !pose.curved && sets_apart(pose);
    int step = boxed ? +rows : 0; // rows of a box
    for (patch.low[1] = top; patch.low[1] <= bottom; patch.low[1] = patch.high[1] + 1) {
      patch.high[1] = Kokkos::min(patch.low[1] + (step == 0 ? +rows : step) - 1, bottom);
      const int nearest[2] = {patch.low[0], Kokkos::max(0, Kokkos::max(patch.low[1], -patch.high[1]))};
      if (!samples.inside(nearest))
        continue;
      if (step == 0) {
        add_directly(patch, pose, lane);
        continue;
      }
      const Box box(pose, patch.low, patch.high);
      if (box.elements() > capacity) {
        step /= 2;
        patch.high[1] = patch.low[1] - 1; // again, with fewer rows
      } else {
        add_box(patch, pose, box, lane, workspace);
      }
    }
  }

  /// Samples two frequencies apart never have the same window: the smallest singular value of the matrix is
  /// large enough.
  KOKKOS_INLINE_FUNCTION static bool sets_apart(const Pose<T, 2, D>& pose) {
    const T least = T(0.25 * D + Margin<T>::apart);
    T a = -least, b = -least, product = 0;
    for (int d = 0; d < D; ++d) {
      a += pose.matrix[d][0] * pose.matrix[d][0];
      b += pose.matrix[d][1] * pose.matrix[d][1];
      product += pose.matrix[d][0] * pose.matrix[d][1];
    }
    return a > 0 && a * b > product * product;
  }

  KOKKOS_INLINE_FUNCTION void add_directly(const Patch& patch, const Pose<T, 2, D>& pose, int lane) const {
    const std::int64_t volume = patch.batch * target.batch_stride;
    T* const weights = weighted ? target.weight + volume : nullptr;
    for (int i = 0; i < per_lane; ++i) {
      int k[2];
      if (patch.frequency(lane, i, k))
        insert_sample<Kernel>(
            amplitudes, patch.batch, patch.index, pose, k, amplitudes.samples.projection.row(k) + k[0],
            target.data + volume, weights, target.absolute,
            [](auto* address, const auto& values) { atomic_add_neighbours(address, values); });
    }
  }

  KOKKOS_INLINE_FUNCTION void add_box(const Patch& patch, const Pose<T, 2, D>& pose, const Box& box, int lane,
                                      Workspace& workspace) const {
    const auto& samples = amplitudes.samples;
    Kokkos::complex<T> value[per_lane];
    T weight[per_lane] = {};
    BRACEWELL_UNROLL_FOR (int i = 0; i < per_lane; ++i) { // reads take long: all of them first
      int k[2];
      if (!patch.frequency(lane, i, k) || !samples.inside(k))
        k[0] = k[1] = 0;
      const std::int64_t at = samples.projection.row(k) + k[0];
      value[i] = amplitudes.read(patch.batch, patch.index, at, k);
      if constexpr (weighted)
        weight[i] = amplitudes.weight(patch.batch, patch.index, at, k);
    }
    for (int i = lane; i < box.elements(); i += lanes) {
      workspace.values[i] = Kokkos::complex<T>(0);
      if constexpr (weighted)
        workspace.weights[i] = 0;
    }
    synchronise_lanes();
    for (int i = 0; i < per_lane; ++i) {
      int k[2];
      const bool inside = patch.frequency(lane, i, k) && samples.inside(k);
      const std::int64_t at = inside ? samples.projection.row(k) + k[0] : 0;
      add_sample(box, k, inside ? -1 : capacity + lane,
                 amplitudes.value(patch.batch, patch.index, at, k, samples.phase(pose, k), value[0]),
                 weighted ? weight[0] : T(0), workspace);
      BRACEWELL_UNROLL_FOR (int next = 1; next < per_lane;
                            ++next) { // in registers, which an index cannot choose from
        value[next - 1] = value[next];
        weight[next - 1] = weight[next];
      }
    }
    StorePatch<Workspace, T, D, width, mates, weighted>{samples.reconstruction, target}(
        box, patch.batch * target.batch_stride, lane, workspace);
    synchronise_lanes();
  }

  /// idle: where a lane without a sample adds, else negative.
  BRACEWELL_REGISTER_FUNCTION void add_sample(const Box& box, const int (&k)[2], int idle,
                                              const Kokkos::complex<T>& value, T sample_weight,
                                              Workspace& workspace) const {
    T q[D], weight[D][width];
    int tap[D];
    multiply(box.matrix, k, q);
    for (int b = 0; b < D; ++b) {
      T fraction;
      split(q[b], tap[b], fraction);
      tap[b] -= width / 2 - 1 + (b < D - 1 ? box.first[b] : 0);
      Kernel::weights(fraction, weight[b]);
    }
    BRACEWELL_UNROLL_FOR (int row = 0; row < (D == 3 ? width : 1); ++row) {
      BRACEWELL_UNROLL_FOR (int i = 0; i < width; ++i) {
        int column[D - 1];
        column[0] = tap[0] + i;
        T across_weight = weight[0][i];
        if constexpr (D == 3) {
          column[1] = tap[1] + row;
          across_weight *= weight[1][row];
        }
        const int first_tap = box.index(column) * box.deep + tap[D - 1] - box.lowest(column);
        const int start = idle < 0 ? first_tap : idle;
        BRACEWELL_UNROLL_FOR (int j = 0; j < width; ++j) {
          const T product = across_weight * weight[D - 1][j];
          workspace.values[start + j] += product * value;
          if constexpr (weighted)
            workspace.weights[start + j] +=
                (target.absolute ? Kokkos::abs(product) : product) * sample_weight;
          synchronise_lanes();
        }
      }
    }
  }
};

} // namespace Bracewell::Impl
