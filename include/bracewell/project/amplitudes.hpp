// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/samples.hpp>
#include <bracewell/rfft/access.hpp>

namespace Bracewell::Impl {

/// What every sample scatters into a reconstruction, or is multiplied with in a gradient with respect to its
/// pose. Mates::Single: the conjugate-phased cotangent. Mates::Both: half the multiplicity times the
/// conjugate-phased projection and weight, inserted at +k and, conjugated, at -k.
template <class T, int M, int D, Mates mates>
struct Amplitudes {
  Samples<T, M, D> samples;
  const Kokkos::complex<T>* values = nullptr; ///< [B, P, ...]
  const T* weights = nullptr;                 ///< [B|1, P|1, ...]; null: none
  std::int64_t weight_batch_stride = 0, weight_pose_stride = 0;
  bool skip_redundant = false;

  /// Half the multiplicity of a sample where it is inserted with its mate.
  KOKKOS_INLINE_FUNCTION T scale(const int (&k)[M]) const {
    if constexpr (mates == Mates::Both)
      return T(0.5) * static_cast<T>(samples.projection.multiplicity(k[0]));
    else
      return T(1);
  }

  KOKKOS_INLINE_FUNCTION bool used(const int (&k)[M]) const {
    return !(skip_redundant && samples.redundant(k));
  }

  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> value(std::int64_t batch, std::int64_t pose, std::int64_t element,
                                                  const int (&k)[M], const Kokkos::complex<T>& phase) const {
    const std::int64_t elements = samples.projection.elements();
    if (!used(k))
      return Kokkos::complex<T>(0);
    return scale(k) * values[(batch * samples.poses + pose) * elements + element] * conjugate(phase);
  }

  KOKKOS_INLINE_FUNCTION T weight(std::int64_t batch, std::int64_t pose, std::int64_t element,
                                  const int (&k)[M]) const {
    return scale(k) * weights[batch * weight_batch_stride + pose * weight_pose_stride + element];
  }
};

} // namespace Bracewell::Impl
