// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>

namespace Bracewell {

/// What PtychographyLoss::evaluate models patterns with: object and probe, and what PtychographyShape and
/// PtychographyOptions announce beside them.
template <class Real, class MemorySpace>
struct PtychographyInputs {
  Array<const Kokkos::complex<Real>, MemorySpace> object; ///< O [rows, columns] or [slices, rows, columns]
  Array<const Kokkos::complex<Real>, MemorySpace> probe;  ///< p [m, m] or [modes, m, m]
  /// [N, 2] (row, column), pixels, with options.refine_positions; by default the positions of the plan. Windows stay where
  /// they are, see PtychographyLoss::move_windows.
  Array<const double, MemorySpace> positions = {};
  Array<const Real, MemorySpace> factors = {};             ///< h [N], with options.pattern_factors
  Array<const Real, MemorySpace> detector_background = {}; ///< B [n, n], in the unit of I, with the option
  Array<const Kokkos::complex<Real>, MemorySpace> coefficients = {}; ///< a [N, C], with C = shape.relaxation
  Array<const Kokkos::complex<Real>, MemorySpace> relaxation = {};   ///< v [C, m, m]
  /// s [slices - 1, 2] (row, column), pixels, with options.refine_slice_shifts; not given: options.slice_shifts
  Array<const double, MemorySpace> slice_shifts = {};
  /// Number N of patterns that sums are divided by for the mean loss and its gradients; 0: the patterns of the call. Results of
  /// calls, or of processes, with the same N add up to the results of all their patterns.
  std::int64_t mean_of = 0;
};

/// What PtychographyLoss::evaluate writes; what is not given is not computed. All are overwritten. Gradients have
/// the shapes of what they belong to; they are zero for patterns that are not in the call.
template <class Real, class MemorySpace>
struct PtychographyOutputs {
  Array<double, MemorySpace> loss = {};                           ///< one number, a View of rank 0 or [1]
  Array<double, MemorySpace> pattern_losses = {};                 ///< [patterns]: their sum is the loss
  Array<Kokkos::complex<Real>, MemorySpace> object_gradient = {}; ///< [rows, columns], [slices, ...]
  Array<Kokkos::complex<Real>, MemorySpace> probe_gradient = {};  ///< [m, m] or [modes, m, m]
  Array<Real, MemorySpace> position_gradient = {};   ///< [N, 2], per pixel, with options.refine_positions
  Array<Real, MemorySpace> factor_gradient = {};     ///< [N]
  Array<Real, MemorySpace> background_gradient = {}; ///< [n, n]
  Array<Kokkos::complex<Real>, MemorySpace> coefficient_gradient = {}; ///< [N, C]; of real a, its real part
  Array<Kokkos::complex<Real>, MemorySpace> relaxation_gradient = {};  ///< [C, m, m]
  Array<Real, MemorySpace> slice_shift_gradient = {};                  ///< [slices - 1, 2], per pixel
};

} // namespace Bracewell
