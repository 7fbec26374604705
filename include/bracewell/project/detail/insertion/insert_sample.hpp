// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/detail/stencil.hpp>
#include <bracewell/project/detail/tiles.hpp>

namespace Bracewell::Impl {

/// The volumes that samples are inserted into; an extent-1 batch axis has stride 0.
template <class T>
struct InsertionTarget {
  Kokkos::complex<T>* data = nullptr; ///< [B|1, ...]
  T* weight = nullptr;                ///< [B|1, ...]; null: none
  std::int64_t batches = 1;           ///< of the volumes
  std::int64_t batch_stride = 0;
  bool absolute = false; ///< insert weights with absolute kernel values
};

/// The transpose of Sampler: adds its amplitude to the taps around its position. Positions that
/// are not finite add nothing.
template <class Kernel, class T, int M, int D, Mates mates, class Add>
KOKKOS_INLINE_FUNCTION void insert_sample(const Amplitudes<T, M, D, mates>& amplitudes, std::int64_t batch,
                                          std::int64_t index, const Pose<T, M, D>& pose, const int (&k)[M],
                                          std::int64_t element, Kokkos::complex<T>* data, T* weight,
                                          bool absolute, const Add& add) {
  const auto& samples = amplitudes.samples;
  if (!samples.inside(k))
    return;
  T q[D];
  pose.position(k, q);
  Stencil<Kernel, D, mates, T> stencil;
  if (!stencil.place(samples.reconstruction, q, pose.folds))
    return;
  const Kokkos::complex<T> value = amplitudes.value(batch, index, element, k, samples.phase(pose, k));
  stencil.scatter(data, value, add);
  if (weight == nullptr)
    return;
  if (absolute)
    stencil.make_absolute();
  stencil.scatter(weight, amplitudes.weight(batch, index, element, k), add);
}

} // namespace Bracewell::Impl
