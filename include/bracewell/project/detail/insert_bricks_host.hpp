// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/vector.hpp>
#include <bracewell/project/detail/brick_candidate.hpp>
#include <bracewell/project/detail/brick_tuning.hpp>
#include <bracewell/project/detail/bricks.hpp>
#include <bracewell/project/detail/insert_sample.hpp>
#include <bracewell/project/detail/window_block.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

namespace Bracewell::Impl {

/// Strategy::Owned and Strategy::Atomic on hosts: a thread takes a brick of the stored half spectrum, finds the samples
/// whose windows reach it, a block of neighbours at a time, and adds their taps to a buffer, in fixed order. Owned: it
/// takes all poses. Atomic: where bricks are few for the threads, it takes a share of them, and adds the buffer to the
/// volume by atomic additions.
template <class Space, class Kernel, class T, int M, int D, Mates mates>
struct InsertBricksHost {
  static constexpr int width = Kernel::width, edge = owned_edge_on_host<D>;
  static constexpr int margin = width - 1, stride = edge + 2 * margin; ///< rows of windows need no clipping
  static constexpr int lines = D == 2 ? edge : edge * edge, voxels = lines * stride;
  static constexpr int parts = mates == Mates::Both ? 3 : 2; ///< of an element: real, imaginary, weight
  using Windows = WindowBlock<Kernel, T, M, D, mates>;
  using Candidate = BrickCandidate<T, M, D>;

  /// What a sample adds to a row of taps, but for the weights of the row.
  struct Taps {
    T row[2][parts * width]; ///< the second for absolute weights, where that of the row is negative
  };

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

  /// As many shares as keep all threads busy.
  void share(const Space& space) {
    const std::int64_t tasks = space.concurrency() == 1 ? 1 : 4 * std::int64_t(space.concurrency());
    shares = std::clamp<std::int64_t>(tasks / bricks_of_all(), 1, poses_of_volume());
  }

  /// Adds to all volumes.
  void launch(const Space& space, const std::string& label) const {
    launch_host_tasks(space, label, shares * bricks_of_all(), *this);
  }

  void operator()(std::int64_t task) const {
    alignas(64) T sums[parts * voxels]; // at most 135 KB
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
      for (const int sign : {1, -1}) {
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
        for (int d = 0; d < D; ++d) {
          const T around = half[d] + reach.bulge[d] + Margin<T>::spacing + Margin<T>::sum * reach.extent[d];
          candidate.low[d] = centre[d] - around;
          candidate.high[d] = centre[d] + around;
          const T change = pose.matrix[d][0];
          candidate.step[d] = std::abs(change) > T(1e-30) ? 1 / change : T(1e30);
        }
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
      for (; k[0] <= last; k[0] += Windows::size)
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
    int left = amplitudes.samples.squared_radius;
    for (int c = 1; c < M; ++c)
      left -= k[c] * k[c];
    last = -1;
    if (left < 0)
      return;
    T low = T(candidate.range.low[0]),
      high = T(std::min(candidate.range.high[0], static_cast<int>(std::sqrt(double(left)))));
    if (candidate.bounded)
      for (int d = 0; d < D; ++d) {
        T at = 0;
        for (int c = 1; c < M; ++c)
          at += candidate.pose.matrix[d][c] * T(k[c]);
        const T a = (candidate.low[d] - at) * candidate.step[d],
                b = (candidate.high[d] - at) * candidate.step[d];
        low = std::max(low, std::min(a, b) - Margin<T>::spacing - Margin<T>::sum * std::abs(a));
        high = std::min(high, std::max(a, b) + Margin<T>::spacing + Margin<T>::sum * std::abs(b));
      }
    if (!(low <= high))
      return;
    k[0] = static_cast<int>(low) + (low > std::trunc(low) ? 1 : 0); // not negative
    last = static_cast<int>(high);
  }

  /// Samples k, k + (1, 0), ... up to column `last`.
  void add_block(const Candidate& candidate, const int (&k)[M], int last, int first_column, T* sums,
                 bool& touched) const {
    constexpr int size = Windows::size;
    const auto& samples = amplitudes.samples;
    const int count = std::min(size, last + 1 - k[0]);
    T position[D][size];
    int reaches[size];
    Windows::find_positions(candidate.pose, k, last, position);
    fold_positions(candidate.bounded, count, position, reaches);
    for (auto& axis : position)
      for (T& q : axis)
        q *= T(candidate.sign);
    int first[D][size];
    T weight[D][width][size];
    Windows::place_windows(position, first, weight);
    move_to_brick(candidate.origin, first, reaches);
    T phase[2][size];
    find_phases(candidate.pose, k, phase);
    const std::int64_t row = samples.projection.row(k);
    Taps taps[size];
    for (int i = 0; i < count; ++i) {
      if (!reaches[i])
        continue;
      int own[M];
      for (int c = 0; c < M; ++c)
        own[c] = c == 0 ? k[0] + i : k[c];
      set_taps(candidate, own, row + own[0], {phase[0][i], phase[1][i]}, i, weight,
               first_column + first[0][i], taps[i]);
    }
    for (int i = 0; i < count; ++i) {
      if (!reaches[i])
        continue;
      if (!touched)
        std::fill(sums, sums + parts * voxels, T(0));
      touched = true;
      add_taps(taps[i], i, first, weight, sums);
    }
  }

  /// Brings positions that are not bounded back by whole periods. Those that have no place do not reach the brick.
  KOKKOS_FORCEINLINE_FUNCTION void fold_positions(bool bounded, int count, T (&position)[D][Windows::size],
                                                  int (&reaches)[Windows::size]) const {
    for (int i = 0; i < Windows::size; ++i)
      reaches[i] = i < count;
    for (int i = 0; i < count && !bounded; ++i) {
      T q[D];
      for (int d = 0; d < D; ++d)
        q[d] = position[d][i];
      reaches[i] = fold(amplitudes.samples.reconstruction, q);
      for (int d = 0; d < D; ++d)
        position[d][i] = reaches[i] ? q[d] : T(0);
    }
  }

  /// Windows as the brick counts; which of them reach it.
  template <class Origin>
  KOKKOS_FORCEINLINE_FUNCTION static void move_to_brick(const Origin& origin, int (&first)[D][Windows::size],
                                                        int (&reaches)[Windows::size]) {
    for (int d = 0; d < D; ++d)
      for (int i = 0; i < Windows::size; ++i) {
        first[d][i] -= origin[d];
        reaches[i] &= int(first[d][i] > -width) & int(first[d][i] < edge);
      }
  }

  /// Of samples k, k + (1, 0), ...
  template <class AnyPose>
  KOKKOS_FORCEINLINE_FUNCTION static void find_phases(const AnyPose& pose, const int (&k)[M],
                                                      T (&phase)[2][Windows::size]) {
    for (int i = 0; i < Windows::size; ++i) {
      int own[M];
      for (int c = 0; c < M; ++c)
        own[c] = c == 0 ? k[0] + i : k[c];
      const Kokkos::complex<T> one = pose.phase(own);
      phase[0][i] = one.real();
      phase[1][i] = one.imag();
    }
  }

  void set_taps(const Candidate& candidate, const int (&k)[M], std::int64_t element,
                const Kokkos::complex<T>& phase, int i, const T (&weight)[D][width][Windows::size],
                int first_column, Taps& taps) const {
    const bool mate = candidate.sign < 0;
    const std::int64_t batch = candidate.batch, index = candidate.index;
    const Kokkos::complex<T> value =
        amplitudes.value(batch, index, element, k, amplitudes.samples.shifts ? phase : Kokkos::complex<T>(1));
    const T sample_weight = target.weight ? amplitudes.weight(batch, index, element, k) : T(0);
    for (int x = 0; x < width; ++x) {
      const bool left_out = mates == Mates::Single && mate && bricks.layout.self_mated(first_column + x);
      const T along = left_out ? T(0) : weight[0][x][i];
      taps.row[0][parts * x] = along * value.real();
      taps.row[0][parts * x + 1] = along * (mate ? -value.imag() : value.imag());
      if constexpr (parts == 3)
        taps.row[0][parts * x + 2] = (target.absolute ? std::abs(along) : along) * sample_weight;
    }
    if (parts == 3 && target.absolute)
      for (int t = 0; t < parts * width; ++t)
        taps.row[1][t] = t % parts == 2 ? -taps.row[0][t] : taps.row[0][t];
  }

  void add_taps(const Taps& taps, int i, const int (&first)[D][Windows::size],
                const T (&weight)[D][width][Windows::size], T* sums) const {
    using Pairs = typename Vector<T, 2 * width>::type;
    using Rest = typename Vector<T, width>::type; // of three parts
    int from[3] = {0, 0, 0}, to[3] = {1, 1, 1};
    for (int d = 1; d < D; ++d) {
      from[d] = std::max(0, -first[d][i]);
      to[d] = std::min(width, edge - first[d][i]);
    }
    for (int z = from[2]; z < to[2]; ++z)
      for (int y = from[1]; y < to[1]; ++y) {
        int line = first[1][i] + y;
        T across = weight[1][y][i];
        if constexpr (D == 3) {
          line += (first[2][i] + z) * edge;
          across *= weight[2][z][i];
        }
        T* const at = sums + parts * (line * stride + first[0][i] + margin);
        const T* const row = taps.row[parts == 3 && target.absolute && across < 0 ? 1 : 0];
        add_row<Pairs>(at, across, row);
        if constexpr (parts == 3)
          add_row<Rest>(at + 2 * width, across, row + 2 * width);
      }
  }

  template <class Row>
  static void add_row(T* at, T factor, const T* values) {
    Row sum, row;
    std::memcpy(&sum, at, sizeof sum);
    std::memcpy(&row, values, sizeof row);
    sum += factor * row;
    std::memcpy(at, &sum, sizeof sum);
  }

  void store(std::int64_t volume, const int (&first)[D], const T* sums) const {
    const auto& layout = bricks.layout;
    for (int line = 0; line < lines; ++line) {
      int tap[D] = {first[0]}, rest = line;
      bool stored = true;
      for (int d = 1; d < D; ++d) {
        tap[d] = first[d] + rest % edge;
        rest /= edge;
        stored = stored && tap[d] <= layout.size[d] / 2;
      }
      if (!stored)
        continue;
      const std::int64_t begin = volume * target.batch_stride + layout.row(tap) + first[0];
      const T* const sum = sums + parts * (line * stride + margin);
      const int columns = Kokkos::min(int(edge), layout.columns() - first[0]);
      if (shares > 1) {
        add_atomically(begin, columns, sum);
        continue;
      }
      for (int x = 0; x < columns; ++x) {
        target.data[begin + x] += Kokkos::complex<T>(sum[parts * x], sum[parts * x + 1]);
        if (parts == 3 && target.weight)
          target.weight[begin + x] += sum[parts * x + 2];
      }
    }
  }

  [[gnu::noinline]] void add_atomically(std::int64_t begin, int columns, const T* sum) const {
    T* const data = reinterpret_cast<T*>(target.data + begin);
    for (int x = 0; x < columns; ++x, sum += parts) {
      Kokkos::atomic_add(data + 2 * x, sum[0]);
      Kokkos::atomic_add(data + 2 * x + 1, sum[1]);
      if (parts == 3 && target.weight)
        Kokkos::atomic_add(target.weight + begin + x, sum[2]);
    }
  }
};

} // namespace Bracewell::Impl
