// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/project/detail/insertion/insertion_block.hpp>

#include <algorithm>
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
            block.add_to_spectrum(samples.reconstruction, i, target.absolute, data, weight);
      }
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
