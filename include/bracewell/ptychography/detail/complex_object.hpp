// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// object = amplitude exp(i phase).
template <class T>
struct ComplexObject {
  const T *amplitude, *phase;
  Kokkos::complex<T>* object;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    object[i] =
        Kokkos::complex<T>(amplitude[i] * Kokkos::cos(phase[i]), amplitude[i] * Kokkos::sin(phase[i]));
  }
};

/// Gradients with respect to amplitude and phase.
template <class T>
struct ObjectGradients {
  const T *amplitude, *phase;
  const Kokkos::complex<T>* gradient;
  T *amplitude_gradient, *phase_gradient;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const T c = Kokkos::cos(phase[i]), s = Kokkos::sin(phase[i]);
    const T re = gradient[i].real(), im = gradient[i].imag();
    if (amplitude_gradient)
      amplitude_gradient[i] = c * re + s * im;
    if (phase_gradient)
      phase_gradient[i] = amplitude[i] * (c * im - s * re);
  }
};

} // namespace Bracewell::Impl
