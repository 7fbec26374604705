// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/host_tasks.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

namespace Impl {
template <class T>
struct ComplexObject;
template <class T>
struct ObjectGradients;
} // namespace Impl

/// object = amplitude exp(i phase), pixel by pixel.
/// @param amplitude  View of T, any rank
/// @param phase      the same shape, radians
/// @param object     View of Kokkos::complex<T>, the same shape; overwritten
/// @throws Error on shapes that differ, and outputs that share memory with each other or an argument
template <class ExecutionSpace, class AmplitudeView, class PhaseView, class ObjectView>
void complex_object(const ExecutionSpace& space, const AmplitudeView& amplitude, const PhaseView& phase,
                    const ObjectView& object) {
  using T = Impl::real_of<AmplitudeView>;
  using Memory = typename ExecutionSpace::memory_space;
  const Array<const T, Memory> a(amplitude), p(phase);
  const Array<Kokkos::complex<T>, Memory> o(object);
  const Impl::Arguments check{"complex_object"};
  check.given("amplitude", a);
  check.same_shape("phase", p, a);
  check.same_shape("object", o, a);
  check.disjoint({{"object", o}}, {{"amplitude", a}, {"phase", p}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::complex_object");
  Impl::launch_kernel(
      "Bracewell::complex_object::evaluate",
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, a.size()),
      Impl::ComplexObject<T>{a.data, p.data, o.data});
}

/// Outputs of complex_object_gradients; what is not given is not computed.
template <class T, class MemorySpace>
struct ObjectGradientOutputs {
  Array<T, MemorySpace> amplitude = {}; ///< dL/d amplitude
  Array<T, MemorySpace> phase = {};     ///< dL/d phase
};

/// Gradients of a real loss L with respect to amplitude and phase, from G = dL/dRe(object) + i
/// dL/dIm(object): with u = exp(-i phase) G, dL/damplitude = Re u and dL/dphase = amplitude Im u.
/// @param gradient  View of Kokkos::complex<T>, shape of amplitude
/// @param outputs   .amplitude, .phase: overwritten
/// @throws Error on shapes that differ, and outputs that share memory with each other or an argument
template <class ExecutionSpace, class AmplitudeView, class PhaseView, class GradientView>
void complex_object_gradients(const ExecutionSpace& space, const AmplitudeView& amplitude,
                              const PhaseView& phase, const GradientView& gradient,
                              const ObjectGradientOutputs<Impl::real_of<AmplitudeView>,
                                                          typename ExecutionSpace::memory_space>& outputs) {
  using T = Impl::real_of<AmplitudeView>;
  using Memory = typename ExecutionSpace::memory_space;
  const Array<const T, Memory> a(amplitude), p(phase);
  const Array<const Kokkos::complex<T>, Memory> g(gradient);
  const Impl::Arguments check{"complex_object_gradients"};
  check.given("amplitude", a);
  check.same_shape("phase", p, a);
  check.same_shape("gradient", g, a);
  if (outputs.amplitude)
    check.same_shape("outputs.amplitude", outputs.amplitude, a);
  if (outputs.phase)
    check.same_shape("outputs.phase", outputs.phase, a);
  check.disjoint({{"outputs.amplitude", outputs.amplitude}, {"outputs.phase", outputs.phase}},
                 {{"amplitude", a}, {"phase", p}, {"gradient", g}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::complex_object_gradients");
  Impl::launch_kernel(
      "Bracewell::complex_object_gradients::evaluate",
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, a.size()),
      Impl::ObjectGradients<T>{a.data, p.data, g.data, outputs.amplitude.data, outputs.phase.data});
}

namespace Impl {

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

} // namespace Impl

} // namespace Bracewell
