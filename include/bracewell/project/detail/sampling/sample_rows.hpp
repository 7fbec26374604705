// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/project/detail/sampling/sampler.hpp>
#include <bracewell/project/detail/window_block.hpp>

#include <algorithm>
#include <cstdint>

namespace Bracewell::Impl {

/// Samples on hosts, row by row of the projections, blocks of neighbouring samples at a time.
template <class Sampler>
struct SampleRows {
  using T = typename Sampler::Real;
  static constexpr int M = Sampler::projected_dimensions, D = Sampler::dimensions;
  using Block = WindowBlock<typename Sampler::Kernel, T, M, D, Sampler::mates>;

  Sampler sampler;
  int parts = 1; ///< work items per pose

  /// In a few work items per thread or more.
  template <class ExecutionSpace>
  void launch(const ExecutionSpace& space, const Label& label) {
    const auto& samples = sampler.amplitudes.samples;
    const std::int64_t rows = samples.projection.elements() / samples.projection.columns(),
                       poses = samples.batches * samples.poses;
    parts = static_cast<int>(std::clamp<std::int64_t>(8 * space.concurrency() / poses, 1, rows));
    launch_host_tasks(space, label, poses * parts, *this);
  }

  void operator()(std::int64_t item) const {
    const auto& samples = sampler.amplitudes.samples;
    const auto& layout = samples.projection;
    const std::int64_t flat = item / parts, part = item % parts;
    const std::int64_t batch = flat / samples.poses, index = flat % samples.poses;
    const auto at = sampler.of_pose(flat);
    const std::int64_t rows = layout.elements() / layout.columns();
    for (std::int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
      int k[M];
      layout.frequency(row * layout.columns(), k);
      if (at.pose.folds)
        for (; k[0] < layout.columns(); ++k[0])
          sampler.sample(at, k, row * layout.columns() + k[0]);
      else
        add_row(batch, index, at.pose, k, row * layout.columns());
    }
  }

private:
  /// Columns of the row that begins at element `begin`.
  void add_row(std::int64_t batch, std::int64_t index, const Pose<T, M, D>& pose, int (&k)[M],
               std::int64_t begin) const {
    const auto& samples = sampler.amplitudes.samples;
    const int columns = samples.projection.columns(), last = samples.last_column(k);
    for (; k[0] <= last; k[0] += Block::size)
      add_block(batch, index, pose, k, last, begin + k[0]);
    const std::int64_t output = (batch * samples.poses + index) * samples.projection.elements() + begin;
    if (sampler.values)
      std::fill(sampler.values + output + last + 1, sampler.values + output + columns, Kokkos::complex<T>(0));
    if (sampler.weights)
      std::fill(sampler.weights + output + last + 1, sampler.weights + output + columns, T(0));
  }

  void add_block(std::int64_t batch, std::int64_t index, const Pose<T, M, D>& pose, const int (&k)[M],
                 int last, std::int64_t element) const {
    const auto& amplitudes = sampler.amplitudes;
    const auto& samples = amplitudes.samples;
    const std::int64_t output = (batch * samples.poses + index) * samples.projection.elements() + element;
    const int count = std::min(int(Block::size), last + 1 - k[0]);
    Block block;
    block.place(pose, k, last);
    int own[Block::size][M];
    for (int i = 0; i < Block::size; ++i)
      for (int c = 0; c < M; ++c)
        own[i][c] = c == 0 ? std::min(k[0] + i, last) : k[c];
    if (sampler.values) {
      T sum[2][Block::size], phase[2][Block::size];
      block.gather(samples.reconstruction, sampler.volumes(batch), sum);
      for (int i = 0; i < Block::size; ++i) {
        const Kokkos::complex<T> one = pose.phase(own[i]);
        phase[0][i] = one.real();
        phase[1][i] = one.imag();
      }
      for (int i = 0; i < count; ++i)
        sampler.values[output + i] =
            sampler.volumes.gain.restored(amplitudes.factor(batch, index, element + i, own[i]) *
                                          Kokkos::complex<T>(sum[0][i], sum[1][i])) *
            Kokkos::complex<T>(phase[0][i], phase[1][i]);
    }
    if (sampler.weights) {
      if (sampler.absolute)
        block.make_absolute();
      T sum[1][Block::size];
      block.gather(samples.reconstruction, sampler.weight_volumes(batch), sum);
      for (int i = 0; i < count; ++i)
        sampler.weights[output + i] = amplitudes.scale(own[i]) * sum[0][i];
    }
  }
};

} // namespace Bracewell::Impl
