// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/insert_sample.hpp>

namespace Bracewell::Impl {

/// Values of one copy of data, and of weight if there is one: an even number, which keeps complex numbers
/// aligned.
KOKKOS_INLINE_FUNCTION std::int64_t duplicated_copy_size(std::int64_t elements, bool weight) {
  return ((weight ? 3 : 2) * elements + 1) / 2 * 2;
}

/// Strategy::Duplicated, for hosts: every thread adds its share of the poses to a copy of the volumes of its
/// own; the copies are then summed in fixed order.
template <class Kernel, class T, int M, int D, Mates mates>
struct ScatterDuplicated {
  struct Add {};
  struct Sum {};

  Tiles<M> tiles;
  Amplitudes<T, M, D, mates> amplitudes;
  ScatterTarget<T> target;
  T* scratch; ///< [copies, copy_size()], data before weight
  int copies;

  KOKKOS_FUNCTION std::int64_t elements() const {
    return target.batches * amplitudes.samples.reconstruction.elements();
  }
  KOKKOS_FUNCTION std::int64_t values() const { return (target.weight ? 3 : 2) * elements(); }
  KOKKOS_FUNCTION std::int64_t copy_size() const {
    return duplicated_copy_size(elements(), target.weight != nullptr);
  }

  KOKKOS_FUNCTION void operator()(Add, int copy) const {
    const auto& samples = amplitudes.samples;
    T* const own = scratch + copy * copy_size();
    for (std::int64_t i = 0; i < copy_size(); ++i)
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
          scatter_sample<Kernel>(amplitudes, batch, index, pose, k, element, data, weight, target.absolute,
                                 [](auto* address, const auto& run) {
                                   for (const auto& value : run)
                                     *address++ += value;
                                 });
        });
    }
  }

  KOKKOS_FUNCTION void operator()(Sum, std::int64_t i) const {
    T* const output =
        i < 2 * elements() ? reinterpret_cast<T*>(target.data) + i : target.weight + (i - 2 * elements());
    T sum = 0;
    for (int copy = 0; copy < copies; ++copy)
      sum += scratch[copy * copy_size() + i];
    *output += sum;
  }
};

} // namespace Bracewell::Impl
