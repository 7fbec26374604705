// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/optimize/adam.hpp>
#include <bracewell/ptychography/options.hpp>
#include <bracewell/ptychography/probe_optics.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
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

/// How positions may move.
enum class PositionMoves {
  Single, ///< each by itself; the affine part of all is kept at zero
  Affine, ///< all by one affine map: scale, rotation and shear of the scan about its middle, which stays. The probe is known
  Both    ///< each by itself, and all by such a map
};

/// What a step changes, and by how much at most.
struct PtychographySolverOptions {
  PtychographySteps steps = PtychographySteps::Adam; ///< others: the amplitude loss on patterns as counted
  double object_rate =
      0.01; ///< of amplitude and phase (Adam), or of the object's step, about 1; 0: they stay
  double probe_rate = 0.001; ///< of probe pixels (without optics); 0: they stay
  double regularisation = 1; ///< alpha in (0, 1] of steps other than Adam
  /// Number of whole steps of Projections of object and probe before Adam, whose averages begin after them. All other unknowns
  /// keep their values meanwhile. For one slice. Rates of zero keep object and probe. From a start far from the solution these
  /// steps come nearer in fewer passes than Adam.
  std::int64_t projections_first = 0;
  /// If given, the probe is the image of a lens with five parameters (AberratedProbe). The solver trains the parameters in
  /// place of pixels.
  std::optional<ProbeOptics> optics = std::nullopt;
  /// Learning rates of the five parameters, each in its own unit, in the order of ProbeParameter; 0: it stays
  std::array<double, probe_parameter_count> aberration_rates = {1e-3, 1e-3, 1e-3, 1e-3, 1e-3};
  /// Pixels by which a step moves positions, about; 0: they stay. Else the loss is made with
  /// options.refine_positions.
  double position_rate = 0;
  double position_limit = 5; ///< pixels that a position may be moved by on each axis
  PositionMoves position_moves = PositionMoves::Single; ///< with position_rate
  double coefficient_rate = 0.01; ///< of coefficients, where the loss has a relaxation; 0: they stay
  double relaxation_rate = 0.001; ///< of its modes, which have about the values of the probe
  double factor_rate = 0.01;      ///< of factors of patterns, where the loss has them
  double background_rate = 0.1;   ///< of roots of the background, where the loss has one
  /// After every step amplitudes of the object are taken to the nearest ones between these two.
  std::array<double, 2> amplitude_limits = {-std::numeric_limits<double>::infinity(),
                                            std::numeric_limits<double>::infinity()};
  /// Radius in pixels of a disc around pixel (m/2, m/2) of the probe's window, beyond which its modes are zero after every step.
  /// Absent: there is none. Pixels of the probe alone
  std::optional<double> probe_support = {};
  /// After every step amplitude and phase are smoothed by their total variation (TotalVariation), each slice by itself, with the
  /// weight total_variation object_rate times the rate factor: so a step of Adam follows the patterns or becomes smooth, and
  /// values of 0.05 to 0.5 weigh these against each other. 0: neither is smoothed
  double total_variation = 0;
  AdamOptions adam = {};        ///< constants of the optimiser
  std::int64_t history = 10000; ///< the losses of so many steps are kept
};

/// Passes, batches and rates that reach the answer of most scans from a rough start: first whole steps of Projections, which
/// are fast, then Adam, which gets further, with rates that fall to zero. `bracewell-ptychography` takes them by default.
/// bench/quality/ptychography.py measures them.
/// @code
/// const auto schedule = PtychographySchedule::of(patterns.extent(0));
/// auto loss = PtychographySolver<Space, float>::loss_of_counts(space, shape, positions, patterns);
/// const auto options = schedule.options(root_mean_square_of_probe, loss.options().loss);
/// PtychographySolver<Space, float> solver(space, shape, std::move(loss), options);
/// for (int pass = 0; pass < schedule.passes; ++pass) {
///   solver.set_rate_factor(schedule.rate_factor(pass));
///   for (int b = 0; b < schedule.batches; ++b)
///     solver.step(space, batches[b]); // PatternBatches(space, patterns.extent(0), schedule.batches)
/// }
/// @endcode
struct PtychographySchedule {
  int passes = 200;          ///< over all patterns
  int batches = 1;           ///< steps of a pass
  int projection_passes = 0; ///< the first of the passes
  double object_rate = 0.04; ///< of Adam
  double probe_rate = 0.01;  ///< of Adam, as a part of the root mean square of the probe's pixels
  double position_rate = 0;  ///< pixels

  /// Of the amplitude loss on patterns as counted, with pixels of the probe or none. (For others take one batch, and Adam alone:
  /// the defaults.)
  /// @param patterns  of the scan
  /// @param passes    0: the schedule's own number
  /// @param batches   0: the schedule's own number, for steps of about 16 patterns. Smaller ones gain nothing, and cost time of
  ///   kernels on the whole object
  /// @param refine_positions  whether positions are sought, too, which take steps of about 32 patterns: of fewer ones objects
  ///   and positions follow noise
  static PtychographySchedule of(std::int64_t patterns, int passes = 0, int batches = 0,
                                 bool refine_positions = false) {
    PtychographySchedule schedule{.passes = passes > 0 ? passes : 60, .object_rate = 0.06, .probe_rate = 0.1};
    const std::int64_t at_once = refine_positions ? 32 : 16;
    schedule.batches =
        batches > 0 ? batches : static_cast<int>(std::clamp<std::int64_t>(patterns / at_once, 1, 64));
    schedule.position_rate = refine_positions ? 0.1 : 0;
    schedule.projection_passes = std::min(10, schedule.passes / 4);
    if (schedule.batches == 1) // of few patterns, in as many steps
      schedule.object_rate = 0.04, schedule.probe_rate = 0.02;
    return schedule;
  }

  /// Which loss patterns as counted should have. Poisson's loss is better for few counts, because their square roots are not
  /// nearly normal numbers. The amplitude loss is better for more counts, and it has projections.
  /// bench/quality/ptychography.py measures them.
  /// @param bright  counts in a bright pixel: sum m^2 / sum m of the mean pattern m
  static PatternLoss loss(double bright) {
    return bright < 3 ? PatternLoss::Poisson : PatternLoss::Amplitude;
  }

  /// For PtychographySolver::set_rate_factor: 1, and over the last half of Adam's passes down to almost 0.
  double rate_factor(int pass) const {
    const double left = double(passes - pass) / std::max(1, passes - projection_passes);
    return pass < projection_passes ? 1 : std::clamp(2 * left, 0.0, 1.0);
  }

  /// @param probe_value  root mean square of the probe's pixels
  /// @param loss         by Poisson's, of few counts, Adam goes alone at half the rates: long steps would follow noise
  PtychographySolverOptions options(double probe_value, PatternLoss loss = PatternLoss::Amplitude) const {
    const bool few = loss == PatternLoss::Poisson;
    return {.object_rate = object_rate / (few ? 2 : 1),
            .probe_rate = probe_rate * probe_value / (few ? 2 : 1),
            .regularisation = 0.1,
            .projections_first = few ? 0 : std::int64_t(projection_passes) * batches,
            .position_rate = position_rate,
            .history = std::max<std::int64_t>(1, std::int64_t(passes) * batches)};
  }
};

} // namespace Bracewell
