// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/detail/taps.hpp>

namespace Bracewell::Impl {

/// What every sample scatters into a reconstruction, or is multiplied with in a gradient with respect to its
/// pose. Mates::Single: the conjugate-phased cotangent. Mates::Both: half the multiplicity times the
/// conjugate-phased projection and weight, inserted at +k and, conjugated, at -k.
template <class T, int M, int D, Mates mates_>
struct Amplitudes {
  using Real = T;
  static constexpr int projected_dimensions = M, dimensions = D;
  static constexpr Mates mates = mates_;

  Samples<T, M, D> samples;
  const Kokkos::complex<T>* values = nullptr; ///< [B, P, ...]
  PerPose<T> weights = {};                    ///< [B|1, P|1, ...]
  bool skip_redundant = false;

  /// Half the multiplicity of a sample where it is inserted with its mate.
  KOKKOS_INLINE_FUNCTION T scale(const int (&k)[M]) const {
    if constexpr (mates == Mates::Both)
      return T(0.5) * static_cast<T>(samples.projection.multiplicity(k[0]));
    else
      return T(1);
  }

  /// What a sampled value is multiplied by, besides its phase.
  KOKKOS_INLINE_FUNCTION T factor(std::int64_t batch, std::int64_t pose, std::int64_t element,
                                  const int (&k)[M]) const {
    return scale(k) * samples.filter(batch, pose, element);
  }

  KOKKOS_INLINE_FUNCTION const Kokkos::complex<T>* address(std::int64_t batch, std::int64_t pose,
                                                           std::int64_t element) const {
    return values + (batch * samples.poses + pose) * samples.projection.elements() + element;
  }

  /// `read`: what stands at `address`.
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> value(std::int64_t batch, std::int64_t pose, std::int64_t element,
                                                  const int (&k)[M], const Kokkos::complex<T>& phase,
                                                  const Kokkos::complex<T>& read) const {
    if (skip_redundant && samples.redundant(k))
      return Kokkos::complex<T>(0);
    return factor(batch, pose, element, k) * read * conjugate(phase);
  }
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> value(std::int64_t batch, std::int64_t pose, std::int64_t element,
                                                  const int (&k)[M], const Kokkos::complex<T>& phase) const {
    return value(batch, pose, element, k, phase, *address(batch, pose, element));
  }

  KOKKOS_INLINE_FUNCTION T weight(std::int64_t batch, std::int64_t pose, std::int64_t element,
                                  const int (&k)[M]) const {
    return scale(k) * weights(batch, pose)[element];
  }
};

} // namespace Bracewell::Impl
