// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <bracewell/ptychography/probe.hpp>

#include <cmath>
#include <filesystem>

namespace Bracewell::Examples {

/// What the demonstration simulates: electrons of 300 kV, lengths in nanometres.
struct Demo {
  int probe = 48, detector = 64;
  int scan = 12, step = 8; ///< scan x scan positions, a step (pixels) apart
  double counts = 100;     ///< mean of a pattern
  ProbeOptics optics{.wavelength = 1.96875e-3, .pixel_size = 0.02, .convergence_angle = 0.02};
  std::array<double, probe_parameter_count> aberrations{12, 0.01, 2, 0.3, 0.05};
  double position_errors = 0; ///< pixels by which true positions lie off those written, at most, on each axis
  int modes = 1;              ///< of the probe; each has a quarter of the one before
  bool masked = false;        ///< a detector of two parts with a gap, and 3 % of dead pixels

  /// Pixels around the positions written that true ones reach.
  int margin() const { return position_errors > 0 ? static_cast<int>(std::ceil(position_errors)) + 1 : 0; }
};

/// Simulates a scan over an object of spokes, rings and particles: `folder`/scan.cxi with Poisson noise, and
/// truth.h5. Every window is drawn where it truly lies.
void simulate(const Space& space, const Demo& demo, const std::filesystem::path& folder);

} // namespace Bracewell::Examples
