// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/optimize/adam.hpp>
#include <bracewell/ptychography/probe_optics.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace Bracewell {

/// How object and probe take a step. Positions go by Adam.
enum class PtychographySteps {
  /// Along the gradients of any loss (Kingma and Ba, arXiv:1412.6980)
  Adam,
  /// ePIE (Maiden and Rodenburg, Ultramicroscopy 109, 1256 (2009)) and rPIE (Maiden, Johnson and Li, Optica 4, 736 (2017))
  /// for the patterns of a step together: with psi'_j the exit wave whose modulus on the detector is the measured one, and
  /// S(r) = sum_j |p(r - y_j)|^2,
  ///   O += rate sum_j conj(p) (psi'_j - psi_j) / ((1 - alpha) S + alpha max S),
  /// and the probe likewise from the same psi_j, with O for p. Of one pattern this is the step of the papers, ePIE with alpha
  /// = options.regularisation = 1. Modes are summed in S.
  Projections,
  /// The same directions, with the lengths of LSQ-ML (Odstrcil, Menzel and Guizar-Sicairos, Optics Express 26, 3108 (2018)),
  /// common to the patterns of the step: directions dO and dp times rate times the lengths a, b that make least
  ///   sum_j ||psi'_j - psi_j - a dO p - b O dp||^2.
  LeastSquares
};

/// What a step changes, and by how much at most.
struct PtychographySolverOptions {
  PtychographySteps steps = PtychographySteps::Adam; ///< others: the amplitude loss on patterns as counted
  double object_rate =
      0.01; ///< of amplitude and phase (Adam), or of the object's step, about 1; 0: they stay
  double probe_rate = 0.001; ///< of probe pixels (without optics); 0: they stay
  double regularisation = 1; ///< alpha in (0, 1] of steps other than Adam
  /// Given, the probe is that of a lens with five parameters (AberratedProbe), which are trained in place of
  /// its pixels.
  std::optional<ProbeOptics> optics = std::nullopt;
  /// Learning rates of the five parameters, each in its own unit, in the order of ProbeParameter; 0: it stays
  std::array<double, probe_parameter_count> aberration_rates = {1e-3, 1e-3, 1e-3, 1e-3, 1e-3};
  /// Pixels by which a step moves positions, about; 0: they stay. Else the loss is made with
  /// options.refine_positions.
  double position_rate = 0;
  double position_limit = 5;    ///< pixels that a position may be moved by on each axis
  AdamOptions adam = {};        ///< constants of the optimiser
  std::int64_t history = 10000; ///< the losses of so many steps are kept
};

} // namespace Bracewell
