// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/impl/vector.hpp>
#include <bracewell/project/detail/brick_tuning.hpp>
#include <bracewell/project/detail/bricks.hpp>
#include <bracewell/project/detail/insert_sample.hpp>

#include <cstring>

namespace Bracewell::Impl {

/// Strategy::Owned on hosts: a thread owns a brick of the stored half spectrum, finds the samples whose
/// windows reach it and adds their taps to a buffer, in fixed order.
template <class Space, class Kernel, class T, int M, int D, Mates mates>
struct InsertOwnedHost {
  static constexpr int width = Kernel::width, edge = owned_edge_on_host<D>;
  static constexpr int margin = width - 1, stride = edge + 2 * margin; ///< rows of windows need no clipping
  static constexpr int lines = D == 2 ? edge : edge * edge, voxels = lines * stride;
  using Row = typename Vector<T, width>::type;

  Amplitudes<T, M, D, mates> amplitudes;
  InsertionTarget<T> target;
  Bricks<D> bricks;

  InsertOwnedHost(const Amplitudes<T, M, D, mates>& amplitudes_, const InsertionTarget<T>& target_)
      : amplitudes(amplitudes_), target(target_), bricks{amplitudes_.samples.reconstruction, {}} {
    for (int& e : bricks.edge)
      e = edge;
  }

  /// Adds to all volumes.
  void launch(const Space& space, const std::string& label) const {
    launch_host_tasks(space, label, target.batches * bricks.count(), *this);
  }

  void operator()(std::int64_t brick) const {
    const auto& samples = amplitudes.samples;
    alignas(64) T sums[3 * voxels]; // real parts, imaginary parts, weights: at most 135 KB
    const std::int64_t volume = brick / bricks.count();
    int first[D];
    bricks.first(static_cast<int>(brick % bricks.count()), first);
    bool touched = false;
    const bool one_for_all = target.batches == 1;
    const std::int64_t begin = one_for_all ? 0 : volume * samples.poses;
    const std::int64_t end = one_for_all ? samples.batches * samples.poses : begin + samples.poses;
    for (std::int64_t flat = begin; flat < end; ++flat)
      add_pose(flat, first, sums, touched);
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
        T centre[D];
        for (int d = 0; d < D; ++d)
          centre[d] = T(sign) * (T(first[d] - image[d] * samples.reconstruction.size[d]) + T(edge - 1) / 2);
        if (!reach.near_plane(centre, half))
          continue;
        auto range = FrequencyRange<M>::all(samples);
        if (reach.bounded)
          range.narrow(reach, inverse, centre, half);
        if (range.empty())
          continue;
        int origin[D];
        for (int d = 0; d < D; ++d)
          origin[d] = first[d] - image[d] * samples.reconstruction.size[d];
        add_range(flat, pose, range, sign, !reach.bounded, origin, first[0], sums, touched);
      }
    });
  }

  void add_range(std::int64_t flat, const Pose<T, M, D>& pose, const FrequencyRange<M>& range, int sign,
                 bool folds, const int (&origin)[D], int first_column, T* sums, bool& touched) const {
    const auto& samples = amplitudes.samples;
    const std::int64_t batch = flat / samples.poses, index = flat % samples.poses;
    int k[M];
    for (int c = 0; c < M; ++c)
      k[c] = range.low[c];
    while (k[M - 1] <= range.high[M - 1]) {
      const std::int64_t row = samples.projection.row(k);
      for (k[0] = range.low[0]; k[0] <= range.high[0]; ++k[0]) {
        if (!samples.inside(k))
          continue;
        T q[D];
        pose.position(k, q);
        if (folds && !fold(samples.reconstruction, q))
          continue;
        int first[D];
        T weight[D][width];
        if (!place(q, sign, origin, first, weight))
          continue;
        if (!touched)
          for (int i = 0; i < 3 * voxels; ++i)
            sums[i] = 0;
        touched = true;
        Kokkos::complex<T> value = amplitudes.value(batch, index, row + k[0], k, samples.phase(pose, k));
        if (sign < 0)
          value = conjugate(value);
        add_taps(first, weight, value, target.weight ? amplitudes.weight(batch, index, row + k[0], k) : T(0),
                 sign < 0, first_column, sums);
      }
      int c = 1; // the next row of the box
      while (c < M - 1 && k[c] == range.high[c]) {
        k[c] = range.low[c];
        ++c;
      }
      ++k[c];
    }
  }

  /// The window of sign times q in the brick, and its weights; false where it does not reach it.
  static bool place(const T (&q)[D], int sign, const int (&origin)[D], int (&first)[D],
                    T (&weight)[D][width]) {
    T fraction[D];
    bool reaches = true;
    for (int d = 0; d < D; ++d) {
      const T position = T(sign) * q[d], lower = Kokkos::floor(position);
      first[d] = static_cast<int>(lower) - (width / 2 - 1) - origin[d];
      reaches = reaches && first[d] > -width && first[d] < edge;
      fraction[d] = position - lower;
    }
    if (reaches)
      for (int d = 0; d < D; ++d)
        Kernel::weights(fraction[d], weight[d]);
    return reaches;
  }

  void add_taps(const int (&first)[D], const T (&weight)[D][width], const Kokkos::complex<T>& value,
                T sample_weight, bool mate, int first_column, T* sums) const {
    T along[width], magnitude[width];
    for (int x = 0; x < width; ++x) {
      const bool left_out =
          mates == Mates::Single && mate && bricks.layout.self_mated(first_column + first[0] + x);
      along[x] = left_out ? T(0) : weight[0][x];
      magnitude[x] = target.absolute ? Kokkos::abs(along[x]) : along[x];
    }
    Row row, weights;
    std::memcpy(&row, along, sizeof row);
    std::memcpy(&weights, magnitude, sizeof weights);
    weights *= sample_weight;
    const Row real = value.real() * row, imaginary = value.imag() * row;
    int from[3] = {0, 0, 0}, to[3] = {1, 1, 1};
    for (int d = 1; d < D; ++d) {
      from[d] = Kokkos::max(0, -first[d]);
      to[d] = Kokkos::min(width, edge - first[d]);
    }
    for (int z = from[2]; z < to[2]; ++z)
      for (int y = from[1]; y < to[1]; ++y) {
        int line = first[1] + y;
        T across = weight[1][y];
        if constexpr (D == 3) {
          line += (first[2] + z) * edge;
          across *= weight[2][z];
        }
        T* const at = sums + line * stride + first[0] + margin;
        add_row(at, across * real);
        add_row(at + voxels, across * imaginary);
        if (target.weight)
          add_row(at + 2 * voxels, (target.absolute ? Kokkos::abs(across) : across) * weights);
      }
  }

  static void add_row(T* at, const Row& values) {
    Row sum;
    std::memcpy(&sum, at, sizeof sum);
    sum += values;
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
      const T* const sum = sums + line * stride + margin;
      const int columns = Kokkos::min(int(edge), layout.columns() - first[0]);
      for (int x = 0; x < columns; ++x) {
        target.data[begin + x] += Kokkos::complex<T>(sum[x], sum[voxels + x]);
        if (target.weight)
          target.weight[begin + x] += sum[2 * voxels + x];
      }
    }
  }
};

} // namespace Bracewell::Impl
