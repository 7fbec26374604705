// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/bricks.hpp>

namespace Bracewell::Impl {

/// Strategy::Owned on GPUs: a thread owns one element of the reconstruction and sums, in fixed order, the
/// samples whose windows hold it. The threads of a team own a brick; together they find the poses that reach
/// it.
template <class Space, class Kernel, class T, int M, int D, Mates mates>
struct GatherOwned {
  static constexpr int width = Kernel::width, team_size = 256;
  static constexpr int staged = 32; ///< entries prepared at a time
  static constexpr int scratch_level = 0;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;
  using Scratch = typename Space::scratch_memory_space;
  template <class Value>
  using Buffer = Kokkos::View<Value*, Scratch, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  Amplitudes<T, M, D, mates> amplitudes;
  ScatterTarget<T> target;
  Bricks<D> bricks;

  GatherOwned(const Amplitudes<T, M, D, mates>& amplitudes_, const ScatterTarget<T>& target_)
      : amplitudes(amplitudes_), target(target_), bricks{amplitudes_.samples.reconstruction, {}} {
    for (int d = 0; d < D; ++d)
      bricks.edge[d] = D == 2 ? 16 : (d == 2 ? 4 : 8);
  }

  /// A pose, or (sign < 0) the mates of its samples, that reach the brick.
  struct Entry {
    Pose<T, M, D> pose;
    Reach<T, M, D> reach;
    std::int64_t flat;
    int sign;
    KOKKOS_FUNCTION Entry(const Samples<T, M, D>& samples, std::int64_t flat_, int sign_)
        : pose(samples.pose(flat_ / samples.poses, flat_ % samples.poses)), reach(samples, pose, width),
          flat(flat_), sign(sign_) {}
  };

  struct Sum {
    Kokkos::complex<T> data{0};
    T weight = 0;
  };

  static std::size_t scratch_bytes() {
    return Buffer<Entry>::shmem_size(staged) + Buffer<int>::shmem_size(team_size);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto& samples = amplitudes.samples;
    const Buffer<Entry> entries(team.team_scratch(+scratch_level), staged);
    const Buffer<int> listed(team.team_scratch(+scratch_level), team_size);
    const std::int64_t volume = team.league_rank() / bricks.count();
    int first[D], last[D], voxel[D];
    bricks.first(static_cast<int>(team.league_rank() % bricks.count()), first);
    const int rank = team.team_rank();
    // Compact warps: 4 x 4 x 2 elements in 3D, 8 x 4 in 2D.
    if constexpr (D == 3) {
      voxel[0] = first[0] + (rank & 3) + (rank >> 3 & 4);
      voxel[1] = first[1] + (rank >> 2 & 3) + (rank >> 4 & 4);
      voxel[2] = first[2] + (rank >> 4 & 1) + (rank >> 6 & 2);
    } else {
      voxel[0] = first[0] + (rank & 7) + (rank >> 2 & 8);
      voxel[1] = first[1] + (rank >> 3 & 3) + (rank >> 4 & 12);
    }
    for (int d = 0; d < D; ++d)
      last[d] = first[d] + bricks.edge[d] - 1;
    const bool shared = target.batches == 1;
    const std::int64_t begin = shared ? 0 : volume * samples.poses;
    const std::int64_t end = shared ? samples.batches * samples.poses : begin + samples.poses;
    Sum sum;
    bool touched = false;
    for (std::int64_t chunk = begin; chunk < end; chunk += team_size / 2) {
      const int candidates = 2 * static_cast<int>(Kokkos::min<std::int64_t>(team_size / 2, end - chunk));
      int count = 0;
      Kokkos::parallel_scan(
          Kokkos::TeamThreadRange(team, candidates),
          [&](int i, int& slot, bool final) {
            const bool reaches = brick_reached(Entry(samples, chunk + i / 2, i % 2 ? -1 : 1), first, last);
            if (final && reaches)
              listed(slot) = i;
            slot += reaches;
          },
          count);
      team.team_barrier();
      touched = touched || count > 0;
      for (int group = 0; group < count; group += staged) {
        const int size = Kokkos::min(int(staged), count - group);
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, size), [&](int i) {
          const int candidate = listed(group + i);
          entries(i) = Entry(samples, chunk + candidate / 2, candidate % 2 ? -1 : 1);
        });
        team.team_barrier();
        for (int i = 0; i < size; ++i)
          add_entry(entries(i), voxel, sum);
        team.team_barrier();
      }
    }
    bool stored = touched;
    for (int d = 0; d < D; ++d)
      stored = stored && voxel[d] <= bricks.layout.size[d] / 2;
    if (!stored)
      return;
    const std::int64_t i = volume * target.batch_stride + bricks.layout.row(voxel) + voxel[0];
    target.data[i] += sum.data;
    if (target.weight)
      target.weight[i] += sum.weight;
  }

  KOKKOS_INLINE_FUNCTION bool brick_reached(const Entry& entry, const int (&first)[D],
                                            const int (&last)[D]) const {
    bool reached = false;
    bricks.for_each_image(entry.reach.extent, first, last, width, [&](const int(&image)[D]) {
      T centre[D], half = 0;
      for (int d = 0; d < D; ++d) {
        centre[d] = T(entry.sign) * (T(first[d] + last[d]) / 2 - T(image[d] * bricks.layout.size[d]));
        half = Kokkos::max(half, T(last[d] - first[d] + width) / 2);
      }
      auto range = FrequencyRange<M>::all(amplitudes.samples);
      if (entry.reach.bounded)
        range.narrow(entry.reach, centre, half);
      reached = reached || (near_plane(entry.reach, centre, half) && !range.empty());
    });
    return reached;
  }

  KOKKOS_INLINE_FUNCTION void add_entry(const Entry& entry, const int (&voxel)[D], Sum& sum) const {
    if (mates == Mates::Single && entry.sign < 0 && bricks.layout.self_mated(voxel[0]))
      return;
    bricks.for_each_image(entry.reach.extent, voxel, voxel, width, [&](const int(&image)[D]) {
      T centre[D];
      for (int d = 0; d < D; ++d)
        centre[d] = T(entry.sign * (voxel[d] - image[d] * bricks.layout.size[d]));
      if (!near_plane(entry.reach, centre, T(width) / 2))
        return;
      auto range = FrequencyRange<M>::all(amplitudes.samples);
      if (entry.reach.bounded)
        range.narrow(entry.reach, centre, T(width) / 2);
      if (!range.empty())
        add_range(entry, range, centre, sum);
    });
  }

  /// Adds the samples of a range, weighted by their distances from the element.
  KOKKOS_INLINE_FUNCTION void add_range(const Entry& entry, const FrequencyRange<M>& range,
                                        const T (&centre)[D], Sum& sum) const {
    const auto& samples = amplitudes.samples;
    const std::int64_t batch = entry.flat / samples.poses, index = entry.flat % samples.poses;
    int k[M];
    for (int c = 0; c < M; ++c)
      k[c] = range.low[c];
    while (k[M - 1] <= range.high[M - 1]) {
      const std::int64_t row = samples.projection.row(k);
      for (k[0] = range.low[0]; k[0] <= range.high[0]; ++k[0]) {
        T distance[D];
        entry.pose.position(k, distance);
        bool near = samples.inside(k);
        for (int d = 0; d < D; ++d) {
          const T n = static_cast<T>(samples.reconstruction.size[d]);
          if (!entry.reach.bounded)
            distance[d] -= n * Kokkos::floor(distance[d] / n + T(0.5));
          distance[d] -= centre[d];
          near = near && Kokkos::abs(distance[d]) < T(width) / 2;
        }
        if (!near)
          continue;
        T factor = Kernel::value(distance[0]);
        for (int d = 1; d < D; ++d)
          factor *= Kernel::value(distance[d]);
        const Kokkos::complex<T> value =
            amplitudes.value(batch, index, row + k[0], k, samples.phase(entry.pose, k));
        sum.data += factor * (entry.sign < 0 ? conjugate(value) : value);
        if (target.weight)
          sum.weight += (target.absolute ? Kokkos::abs(factor) : factor) *
                        amplitudes.weight(batch, index, row + k[0], k);
      }
      int c = 1; // the next row of the box
      while (c < M - 1 && k[c] == range.high[c]) {
        k[c] = range.low[c];
        ++c;
      }
      ++k[c];
    }
  }
};

} // namespace Bracewell::Impl
