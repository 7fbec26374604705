// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/project/detail/bricks.hpp>
#include <bracewell/project/detail/insertion/insertion_block.hpp>
#include <bracewell/project/detail/tuning.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace Bracewell::Impl {

/// Strategy::Owned and Strategy::Atomic on hosts: a thread takes a brick of the stored half spectrum, finds the samples
/// whose windows reach it, a block of neighbours at a time, and adds their taps to a buffer, in fixed order. Owned: it
/// takes all poses. Atomic: where bricks are few for the threads, it takes a share of them, and adds the buffer to the
/// volume by atomic additions.
template <class Space, class Kernel, class T, int M, int D, Mates mates>
struct InsertBricksHost {
  static constexpr int width = Kernel::width, edge = owned_edge_on_host<D>;
  static constexpr int margin = width - 1, stride = edge + 2 * margin; ///< rows of windows need no clipping
  static constexpr int rows = D == 2 ? edge : edge * edge, voxels = rows * stride;
  using Block = InsertionBlock<Kernel, T, M, D, mates>;
  using Candidate = BrickCandidate<T, M, D>;

  Amplitudes<T, M, D, mates> amplitudes;
  InsertionTarget<T> target;
  Bricks<D> bricks;
  std::int64_t shares = 1; ///< of the poses of a volume

  InsertBricksHost(const Amplitudes<T, M, D, mates>& amplitudes_, const InsertionTarget<T>& target_)
      : amplitudes(amplitudes_), target(target_), bricks{amplitudes_.samples.reconstruction, {}} {
    for (int& e : bricks.edge)
      e = edge;
  }

  std::int64_t bricks_of_all() const { return target.batches * bricks.count(); }
  /// Poses that are added to a volume.
  std::int64_t poses_of_volume() const {
    return (target.batches == 1 ? amplitudes.samples.batches : 1) * amplitudes.samples.poses;
  }

  /// Mates::Single has none, which compilers are told: there is no room for them.
  bool weighted() const { return mates == Mates::Both && target.weight; }

  /// As many shares as keep all threads busy.
  void share(const Space& space) {
    const std::int64_t tasks = space.concurrency() == 1 ? 1 : 4 * std::int64_t(space.concurrency());
    shares = std::clamp<std::int64_t>(tasks / bricks_of_all(), 1, poses_of_volume());
  }

  /// Adds to all volumes.
  void launch(const Space& space, const Label& label) const {
    launch_host_tasks(space, label, shares * bricks_of_all(), *this);
  }

  void operator()(std::int64_t task) const {
    alignas(64) T sums[(mates == Mates::Both ? 3 : 2) * voxels]; // complex, then weights: at most 135 KB
    const std::int64_t share = task / bricks_of_all(), brick = task % bricks_of_all();
    const std::int64_t volume = brick / bricks.count(), poses = poses_of_volume();
    int first[D];
    bricks.first(static_cast<int>(brick % bricks.count()), first);
    bool touched = false;
    const std::int64_t begin = volume * poses;
    for (std::int64_t i = poses * share / shares; i < poses * (share + 1) / shares; ++i)
      add_pose(begin + i, first, sums, touched);
    if (touched)
      store(volume, first, sums);
  }

  void add_pose(std::int64_t flat, const int (&first)[D], T* sums, bool& touched) const {
    const auto& samples = amplitudes.samples;
    const auto pose = samples.pose(flat / samples.poses, flat % samples.poses);
    const Reach<T, M, D> reach(samples, pose, width);
    T inverse[M][D], half[D];
    reach.invert(pose.matrix, inverse);
    int last[D];
    for (int d = 0; d < D; ++d) {
      half[d] = T(edge - 1) / 2 + T(width) / 2;
      last[d] = first[d] + edge - 1;
    }
    int from[D], to[D];
    bricks.reached_images(reach.extent, first, last, width, from, to);
    bricks.for_each_image(from, to, [&](const int(&image)[D]) {
      for (int sign = 1; sign >= -1; sign -= 2) {
        Candidate candidate;
        candidate.pose = pose;
        candidate.batch = flat / samples.poses;
        candidate.index = flat % samples.poses;
        candidate.sign = sign;
        candidate.bounded = reach.bounded;
        T centre[D];
        for (int d = 0; d < D; ++d) {
          candidate.origin[d] = first[d] - image[d] * samples.reconstruction.size[d];
          centre[d] = T(sign) * (T(candidate.origin[d]) + T(edge - 1) / 2);
        }
        if (!reach.near_plane(centre, half))
          continue;
        auto range = FrequencyRange<M>::all(samples);
        if (reach.bounded)
          range.narrow(reach, inverse, centre, half);
        if (range.empty())
          continue;
        candidate.bound(reach, centre, half);
        candidate.range = range;
        add_range(candidate, first[0], sums, touched);
      }
    });
  }

  void add_range(const Candidate& candidate, int first_column, T* sums, bool& touched) const {
    const auto& range = candidate.range;
    int k[M];
    for (int c = 0; c < M; ++c)
      k[c] = range.low[c];
    while (k[M - 1] <= range.high[M - 1]) {
      int last;
      find_columns(candidate, k, last);
      for (; k[0] <= last; k[0] += Block::size)
        add_block(candidate, k, last, first_column, sums, touched);
      int c = 1; // the next row of the box
      while (c < M - 1 && k[c] == range.high[c]) {
        k[c] = range.low[c];
        ++c;
      }
      ++k[c];
    }
  }

  /// Of the row of k: columns k[0] ... last have all samples that reach the brick.
  void find_columns(const Candidate& candidate, int (&k)[M], int& last) const {
    last = -1;
    T low = T(candidate.range.low[0]),
      high = T(std::min(candidate.range.high[0], amplitudes.samples.last_column(k)));
    candidate.narrow_columns(k, low, high);
    if (!(low <= high))
      return;
    k[0] = static_cast<int>(low) + (low > std::trunc(low) ? 1 : 0); // not negative
    last = static_cast<int>(high);
  }

  /// Samples k, k + (1, 0), ... up to column `last`.
  [[gnu::noinline]] void add_block(const Candidate& candidate, const int (&k)[M], int last, int first_column,
                                   T* sums, bool& touched) const {
    Block block;
    block.place(amplitudes.samples, candidate.pose, !candidate.bounded, k, last, candidate.sign);
    auto& first = block.windows.first; // as the brick counts
    move_to_brick(candidate.origin, first, block.usable);
    block.set(amplitudes, target, candidate.batch, candidate.index, k,
              amplitudes.samples.projection.row(k) + k[0]);
    for (int i = 0; i < block.count; ++i) {
      if (!block.usable[i])
        continue;
      if (mates == Mates::Single && candidate.sign < 0)
        leave_out_mates(first_column + first[0][i], block.data[i]);
      if (!touched)
        std::fill(sums, sums + (weighted() ? 3 : 2) * voxels, T(0));
      touched = true;
      add_taps(block, i, sums);
    }
  }

  /// Windows as the brick counts; which of them reach it.
  KOKKOS_FORCEINLINE_FUNCTION static void move_to_brick(const int (&origin)[D], int (&first)[D][Block::size],
                                                        int (&usable)[Block::size]) {
    for (int d = 0; d < D; ++d)
      for (int i = 0; i < Block::size; ++i)
        first[d][i] -= origin[d];
    for (int d = 0; d < D; ++d) // a loop of its own, which GCC vectorises
      for (int i = 0; i < Block::size; ++i)
        usable[i] &= unsigned(first[d][i] + width - 1) < unsigned(edge + width - 1); // -width < first < edge
  }

  /// Of the mates of samples, where frequencies of self-mated columns are stored themselves.
  void leave_out_mates(int column, T (&data)[2 * width]) const {
    for (int x = 0; x < width; ++x)
      if (bricks.layout.self_mated(column + x))
        data[2 * x] = data[2 * x + 1] = 0;
  }

  void add_taps(const Block& block, int i, T* sums) const {
    const auto& first = block.windows.first;
    int from[3] = {0, 0, 0}, to[3] = {1, 1, 1};
    for (int d = 1; d < D; ++d) {
      from[d] = std::max(0, -first[d][i]);
      to[d] = std::min(width, edge - first[d][i]);
    }
    block.add(i, from, to, target.absolute, sums, weighted() ? sums + 2 * voxels : nullptr,
              [&](int y, [[maybe_unused]] int z) {
                int row = first[1][i] + y;
                if constexpr (D == 3)
                  row += (first[2][i] + z) * edge;
                return row * stride + first[0][i] + margin;
              });
  }

  void store(std::int64_t volume, const int (&first)[D], const T* sums) const {
    const auto& layout = bricks.layout;
    for (int row = 0; row < rows; ++row) {
      int tap[D] = {first[0]}, rest = row;
      bool stored = true;
      for (int d = 1; d < D; ++d) {
        tap[d] = first[d] + rest % edge;
        rest /= edge;
        stored = stored && tap[d] <= layout.size[d] / 2;
      }
      if (!stored)
        continue;
      const std::int64_t begin = volume * target.batch_stride + layout.row(tap) + first[0];
      const int sum = row * stride + margin;
      const int columns = Kokkos::min(int(edge), layout.columns() - first[0]);
      add_row(reinterpret_cast<T*>(target.data + begin), sums + 2 * sum, 2 * columns);
      if (weighted())
        add_row(target.weight + begin, sums + 2 * voxels + sum, columns);
    }
  }

  void add_row(T* to, const T* sums, int count) const {
    if (shares > 1)
      for (int i = 0; i < count; ++i)
        Kokkos::atomic_add(to + i, sums[i]);
    else
      for (int i = 0; i < count; ++i)
        to[i] += sums[i];
  }
};

} // namespace Bracewell::Impl
