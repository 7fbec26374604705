// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>

namespace Bracewell {

/// Poses of projections, and what else belongs to each of them. An axis of extent 1 is shared by all batches
/// or poses.
template <class T, class MemorySpace>
struct Poses {
  /// [B|1, P|1, d, d], d the dimension of the reconstruction: maps projection frequencies (x, y[, z]) to
  /// reconstruction frequencies. Any matrix: anisotropic magnification, for instance, is a factor of it. For
  /// RELION's angles it is the transpose of RELION's matrix (geometry/euler.hpp).
  Array<const T, MemorySpace> matrices;
  /// [B|1, P|1, m], m the dimension of the projections, in pixels of the projection, ordered like its array
  /// axes ((depth,) row, column): positive moves the image to higher index. Optional.
  Array<const T, MemorySpace> shifts = {};
  /// [B|1, P|1, (d,) h, w/2+1], real: multiplies every sample on its way out (project) and in (backproject),
  /// for instance a CTF. Optional.
  Array<const T, MemorySpace> filters = {};
};

/// The poses that fit spectra of a type (a View or a HalfSpectrum), for operators that run on ExecutionSpace.
template <class ExecutionSpace, class Spectra>
using PosesFor = Poses<Impl::real_of<Spectra>, typename ExecutionSpace::memory_space>;

} // namespace Bracewell
