// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/project/detail/insertion/insertion_block.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace Bracewell::Impl {

/// Strategy::Duplicated, for hosts: every thread adds its share of the poses to a copy of the volumes of its
/// own; the copies are then summed in fixed order.
template <class Kernel, class T, int M, int D, Mates mates>
struct InsertDuplicated {
  using Block = InsertionBlock<Kernel, T, M, D, mates>;
  static constexpr int width = Block::width;

  Amplitudes<T, M, D, mates> amplitudes;
  InsertionTarget<T> target;
  T* scratch; ///< [copies, copy_size], data before weight
  std::int64_t copies, copy_size;

  template <class ExecutionSpace>
  void launch(const ExecutionSpace& space, const char* label) const {
    launch_host_tasks(space, {label, "::duplicated"}, copies, *this);
    launch_host_tasks(space, {label, "::sum"}, (numbers() + numbers_together - 1) / numbers_together,
                      Sum{*this});
  }

  /// Adds to one copy.
  void operator()(std::int64_t copy) const {
    const auto& samples = amplitudes.samples;
    T* const own = scratch + copy * copy_size;
    std::fill(own, own + copy_size, T(0));
    const std::int64_t poses = samples.batches * samples.poses;
    for (std::int64_t flat = poses * copy / copies; flat < poses * (copy + 1) / copies; ++flat)
      add_pose(flat, own);
  }

private:
  static constexpr std::int64_t numbers_together = 4096;

  void add_pose(std::int64_t flat, T* copy) const {
    const auto& samples = amplitudes.samples;
    const auto& layout = samples.projection;
    const std::int64_t batch = flat / samples.poses, index = flat % samples.poses;
    const auto pose = samples.pose(batch, index);
    const std::int64_t begin = batch * target.batch_stride;
    T* const data = copy + 2 * begin;
    T* const weight = target.weight ? copy + 2 * elements() + begin : nullptr;
    for (std::int64_t row = 0; row < layout.elements(); row += layout.columns()) {
      int k[M];
      layout.frequency(row, k);
      Block block;
      for (const int last = samples.last_column(k); k[0] <= last; k[0] += Block::size) {
        block.place(samples, pose, pose.folds, k, last, 0);
        block.set(amplitudes, target, batch, index, k, row + k[0]);
        for (int i = 0; i < block.count; ++i)
          if (block.usable[i])
            add_taps(block, i, data, weight);
      }
    }
  }

  void add_taps(const Block& block, int i, T* data, T* weight) const {
    const auto& layout = amplitudes.samples.reconstruction;
    TapWindow<width, D, mates> window{.layout = layout, .first = {}, .mirrored = block.windows.side[i] < 0};
    for (int d = 0; d < D; ++d)
      window.first[d] = block.windows.first[d][i];
    if (window.direct())
      block.add(i, {0, 0, 0}, {1, width, D == 3 ? width : 1}, target.absolute, data, weight,
                [&](int y, [[maybe_unused]] int z) {
                  int tap[D] = {window.first[0], window.first[1] + y};
                  if constexpr (D == 3)
                    tap[2] = window.first[2] + z;
                  return layout.row(tap) + window.first[0];
                });
    else
      add_at_edge(block, i, window, data, weight);
  }

  /// Tap by tap, for windows that touch a self-mated column or leave the stored half.
  [[gnu::noinline]] void add_at_edge(const Block& block, int i, const TapWindow<width, D, mates>& window,
                                     T* data, T* weight) const {
    for (int z = 0; z < (D == 3 ? width : 1); ++z)
      for (int y = 0; y < width; ++y) {
        int row[D - 1] = {y};
        if constexpr (D == 3)
          row[1] = z;
        const T across = block.row_weight(i, y, z);
        window.for_each_stored(row, [&](std::int64_t element, int x, bool mated) {
          data[2 * element] += across * block.data[i][2 * x];
          data[2 * element + 1] += (mated ? -across : across) * block.data[i][2 * x + 1];
          if (weight)
            weight[element] += (target.absolute ? std::abs(across) : across) * block.weight[i][x];
        });
      }
  }

  struct Sum {
    const InsertDuplicated& copies;

    void operator()(std::int64_t part) const {
      const std::int64_t end = std::min((part + 1) * numbers_together, copies.numbers());
      for (std::int64_t i = part * numbers_together; i < end; ++i)
        copies.sum(i);
    }
  };

  std::int64_t elements() const { return target.batches * amplitudes.samples.reconstruction.elements(); }
  std::int64_t numbers() const { return (target.weight ? 3 : 2) * elements(); }

  void sum(std::int64_t i) const {
    const std::int64_t data = 2 * elements();
    T* const output = i < data ? reinterpret_cast<T*>(target.data) + i : target.weight + (i - data);
    T total = 0;
    for (std::int64_t copy = 0; copy < copies; ++copy)
      total += scratch[copy * copy_size + i];
    *output += total;
  }
};

} // namespace Bracewell::Impl
