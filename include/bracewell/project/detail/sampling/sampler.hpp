// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/detail/stencil.hpp>

namespace Bracewell::Impl {

/// Samples a volume (a reconstruction, or the cotangents of back-projected data and weight) at a stored frequency of a
/// pose. The kernels that sample stored spectra hold one of these, and say in which order its poses and frequencies
/// are visited; `sample_tiles` does nothing else.
template <class Kernel_, class T, int M, int D, Mates mates_, class Stored_ = Kokkos::complex<T>>
struct Sampler {
  using Kernel = Kernel_;
  using Real = T;
  using Stored = Stored_;
  static constexpr int projected_dimensions = M, dimensions = D;
  static constexpr Mates mates = mates_;

  Amplitudes<T, M, D, mates> amplitudes; ///< `values` is read only for the sums over a pose
  StoredSpectra<Stored> volumes = {};    ///< none: no values
  StoredSpectra<T> weight_volumes = {};  ///< none: no weights
  bool absolute = false;

  /// Sampled volume times phase and factor; null: not wanted (with Mates::Both, or beside sums over a pose).
  Kokkos::complex<T>* values = nullptr;
  T* weights = nullptr; ///< sampled weight volume times scale; null: not wanted (always with Mates::Single)

  /// What belongs to one pose: its volumes, outputs, and filter if there is one.
  struct OfPose {
    Pose<T, M, D> pose;
    const Stored* volume;
    const T* weight_volume;
    Kokkos::complex<T>* values;
    T* weights;
    const T* filter;
  };

  KOKKOS_INLINE_FUNCTION OfPose of_pose(std::int64_t flat) const {
    const auto& samples = amplitudes.samples;
    std::int64_t batch, index;
    samples.split(flat, batch, index);
    const std::int64_t output = flat * samples.projection.elements();
    return {samples.pose(batch, index),     volumes(batch),
            weight_volumes(batch),          computed_once(values, output),
            computed_once(weights, output), samples.filters ? samples.filters(batch, index) : nullptr};
  }

  template <class Index>
  KOKKOS_INLINE_FUNCTION void sample(const OfPose& at, const int (&k)[M], Index element) const {
    const auto& samples = amplitudes.samples;
    const bool valued = mates == Mates::Single || values, weighted = mates == Mates::Both && weights;
    Kokkos::complex<T> value(0);
    T weight(0);
    if (samples.inside(k)) {
      T q[D];
      at.pose.position(k, q);
      Stencil<Kernel, D, mates, T> stencil;
      if (stencil.place(samples.reconstruction, q, at.pose.folds)) {
        if (valued) {
          value = volumes.gain.restored(amplitudes.scale(k) * stencil.gather(at.volume)) * at.pose.phase(k);
          if (at.filter)
            value *= at.filter[element];
        }
        if (weighted) {
          if (absolute)
            stencil.make_absolute();
          weight = amplitudes.scale(k) * stencil.gather(at.weight_volume);
        }
      } else {
        weight = Kokkos::Experimental::quiet_NaN_v<T>;
        value = Kokkos::complex<T>(weight, weight);
      }
    }
    if (valued)
      store_streaming(at.values + element, value);
    if (weighted)
      at.weights[element] = weight;
  }
};

} // namespace Bracewell::Impl
