// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/project/detail/insert_sample.hpp>

#include <algorithm>

namespace Bracewell::Impl {

/// Strategy::Duplicated, for hosts: every thread adds its share of the poses to a copy of the volumes of its
/// own; the copies are then summed in fixed order.
template <class Kernel, class T, int M, int D, Mates mates>
struct InsertDuplicated {
  Tiles<M> tiles;
  Amplitudes<T, M, D, mates> amplitudes;
  InsertionTarget<T> target;
  T* scratch; ///< [copies, copy_size], data before weight
  std::int64_t copies, copy_size;

  /// scratch: scratch_size values.
  template <class ExecutionSpace>
  InsertDuplicated(const ExecutionSpace& space, const Amplitudes<T, M, D, mates>& amplitudes_,
                   const InsertionTarget<T>& target_, T* scratch_, std::int64_t scratch_size)
      : tiles(Tiles<M>::make(space, amplitudes_.samples.projection,
                             amplitudes_.samples.batches * amplitudes_.samples.poses)),
        amplitudes(amplitudes_), target(target_), scratch(scratch_), copies(space.concurrency()),
        copy_size(scratch_size / copies) {}

  template <class ExecutionSpace>
  void launch(const ExecutionSpace& space, const std::string& label, const std::string& sum_label) {
    launch_host_tasks(space, label, copies, *this);
    launch_host_tasks(space, sum_label, (numbers() + numbers_together - 1) / numbers_together, Sum{*this});
  }

  /// Adds to one copy.
  void operator()(std::int64_t copy) const {
    const auto& samples = amplitudes.samples;
    T* const own = scratch + copy * copy_size;
    for (std::int64_t i = 0; i < copy_size; ++i)
      own[i] = 0;
    const std::int64_t poses = samples.batches * samples.poses;
    for (std::int64_t flat = poses * copy / copies; flat < poses * (copy + 1) / copies; ++flat) {
      const std::int64_t batch = flat / samples.poses, index = flat % samples.poses;
      const auto pose = samples.pose(batch, index);
      const std::int64_t begin = batch * target.batch_stride;
      auto* const data = reinterpret_cast<Kokkos::complex<T>*>(own) + begin;
      T* const weight = target.weight ? own + 2 * elements() + begin : nullptr;
      for (int tile = 0; tile < tiles.per_pose; ++tile)
        tiles.template for_each<1>(tile, 0, [&](const int(&k)[M], std::int64_t element) {
          insert_sample<Kernel>(amplitudes, batch, index, pose, k, element, data, weight, target.absolute,
                                [](auto* address, const auto& run) {
                                  for (const auto& value : run)
                                    *address++ += value;
                                });
        });
    }
  }

private:
  static constexpr std::int64_t numbers_together = 4096;

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
