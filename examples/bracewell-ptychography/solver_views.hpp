// SPDX-License-Identifier: MIT
#pragma once

#include "common/views.hpp"

namespace Bracewell::Examples {

/// What a solver finds: its own arrays, or as many of somebody else's, to keep what it has found so far.
struct SolverViews {
  DeviceView<float**> amplitude, phase;
  DeviceView<Kokkos::complex<float>***> probe;
  DeviceView<float*> aberrations;
  DeviceView<float**> displacements;                 ///< [N, 2], or none
  DeviceView<Kokkos::complex<float>**> coefficients; ///< [N, C], or none
  DeviceView<Kokkos::complex<float>***> relaxation;  ///< [C, m, m], or none
  DeviceView<float*> factors;                        ///< [N], or none
  DeviceView<float**> background_roots;              ///< [n, n], or none

  /// A solver's own.
  template <class Solver>
  static SolverViews of(const Solver& solver) {
    return {solver.amplitude(),   solver.phase(),         solver.probe(),
            solver.aberrations(), solver.displacements(), solver.coefficients(),
            solver.relaxation(),  solver.factors(),       solver.background_roots()};
  }

  /// Memory for a copy.
  SolverViews like() const {
    return {allocate<DeviceView<float**>>("amplitude", amplitude.extent(0), amplitude.extent(1)),
            allocate<DeviceView<float**>>("phase", amplitude.extent(0), amplitude.extent(1)),
            allocate<decltype(probe)>("probe", probe.extent(0), probe.extent(1), probe.extent(2)),
            allocate<DeviceView<float*>>("aberrations", aberrations.extent(0)),
            allocate<DeviceView<float**>>("displacements", displacements.extent(0), 2),
            allocate<decltype(coefficients)>("coefficients", coefficients.extent(0), coefficients.extent(1)),
            allocate<decltype(relaxation)>("relaxation", relaxation.extent(0), relaxation.extent(1),
                                           relaxation.extent(2)),
            allocate<DeviceView<float*>>("factors", factors.extent(0)),
            allocate<DeviceView<float**>>("background roots", background_roots.extent(0),
                                          background_roots.extent(1))};
  }

  void copy_to(const Space& space, const SolverViews& other) const {
    copy_values(space, other.amplitude, amplitude);
    copy_values(space, other.phase, phase);
    copy_values(space, other.probe, probe);
    copy_values(space, other.aberrations, aberrations);
    const auto where_any = [&](const auto& to, const auto& from) {
      if (from.size() > 0)
        copy_values(space, to, from);
    };
    where_any(other.displacements, displacements);
    where_any(other.coefficients, coefficients);
    where_any(other.relaxation, relaxation);
    where_any(other.factors, factors);
    where_any(other.background_roots, background_roots);
  }
};

} // namespace Bracewell::Examples
