// SPDX-License-Identifier: MIT
#pragma once

#include "common/views.hpp"

namespace Bracewell::Examples {

/// What a solver finds: its own arrays, or as many of somebody else's, to keep what it has found so far.
struct SolverViews {
  DeviceView<float**> amplitude, phase;
  DeviceView<Kokkos::complex<float>***> probe;
  DeviceView<float*> aberrations;
  DeviceView<float**> displacements; ///< [N, 2], or none

  /// A solver's own.
  template <class Solver>
  static SolverViews of(const Solver& solver) {
    return {solver.amplitude(), solver.phase(), solver.probe(), solver.aberrations(), solver.displacements()};
  }

  /// Memory for a copy.
  SolverViews like() const {
    return {allocate<DeviceView<float**>>("amplitude", amplitude.extent(0), amplitude.extent(1)),
            allocate<DeviceView<float**>>("phase", amplitude.extent(0), amplitude.extent(1)),
            allocate<decltype(probe)>("probe", probe.extent(0), probe.extent(1), probe.extent(2)),
            allocate<DeviceView<float*>>("aberrations", aberrations.extent(0)),
            allocate<DeviceView<float**>>("displacements", displacements.extent(0), 2)};
  }

  void copy_to(const Space& space, const SolverViews& other) const {
    Kokkos::deep_copy(space, other.amplitude, amplitude);
    Kokkos::deep_copy(space, other.phase, phase);
    Kokkos::deep_copy(space, other.probe, probe);
    Kokkos::deep_copy(space, other.aberrations, aberrations);
    if (displacements.size() > 0)
      Kokkos::deep_copy(space, other.displacements, displacements);
  }
};

} // namespace Bracewell::Examples
