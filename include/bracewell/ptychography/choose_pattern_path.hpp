// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/ptychography/detail/fused_sizes.hpp>
#include <bracewell/ptychography/detail/line_teams.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>
#include <bracewell/ptychography/options.hpp>

#include <algorithm>

namespace Bracewell {

/// The path that PtychographyLoss takes, never PatternPath::Automatic. A path that options.path names is taken if it can do the
/// problem; otherwise the answer is General. PatternPath::Automatic takes the first of Fused, KnownLines, Lines and General that
/// can do the problem, with three exceptions. Fused is passed over if KnownLines can do the problem. It is passed over if the
/// probe is larger than half the detector: on hosts always, and on GPUs if Lines can do the problem and the rows of a pattern
/// do not fit into the memory of a multiprocessor. It is also passed over if such rows do not fit and
/// options.patterns_at_once is below 32: a pattern then has one team, and most of the device has none.
///   Fused       compared_detector() of 40, 48, 64, 128, 160, 192, 256 or 512 pixels (on hosts 192 or 256, with probes of at
///               most half the detector), one mode, whole positions, far field, no weights per pixel, and no mask on patterns
///               that are scaled one by one: with both, the mean of I is not the energy of the exit wave
///   KnownLines  GPUs; probes as large as the detector, of 128 or 256 pixels, in the far field, of one slice, without
///               relaxation, factors and background
///   Lines       GPUs; detectors (and, with positions between pixels or to refine, relaxation, or several slices, probes)
///               that transforms_lines(), but for positions to refine in the near field, and for slice_shifts to refine
///   General     everything
/// @tparam ExecutionSpace, Real, Storage  of PtychographyLoss
/// @param whole_positions  whether all positions are whole numbers (!ScanPositions::subpixel())
template <class ExecutionSpace = Kokkos::DefaultExecutionSpace, class Real = float, class Storage = Real>
PatternPath choose_pattern_path(const PtychographyShape& shape, const PtychographyOptions& options,
                                bool whole_positions = true);

/// Whether PatternPath::Lines transforms lines of n pixels: n is a product of powers of 2, 3, 5 and 7, long enough for
/// several threads, and short enough for the threads of a team.
inline bool transforms_lines(int n) { return Impl::lines_fit_teams(n); }

/// Pixels per side of the grid on which PtychographyLoss compares patterns: the detector, or with
/// options.reduced_grid the smallest fast size that holds every lag of |Psi|^2.
inline int compared_detector(const PtychographyShape& shape, const PtychographyOptions& options) {
  if (!options.reduced_grid)
    return shape.detector;
  return std::min(shape.detector, static_cast<int>(next_fast_size(2 * shape.probe - 1, true)));
}

template <class ExecutionSpace, class Real, class Storage>
PatternPath choose_pattern_path(const PtychographyShape& shape, const PtychographyOptions& options,
                                bool whole_positions) {
  using Detectors = typename Impl::Compiled<ExecutionSpace, Storage>::Detectors;
  const int n = compared_detector(shape, options), m = shape.probe;
  const bool mean_is_energy = options.weights == PixelWeights::None ||
                              (options.weights == PixelWeights::Mask && options.scale == PatternScale::None);
  const bool plain = shape.slices == 1 && shape.relaxation == 0 && !options.pattern_factors &&
                     !options.detector_background && !options.fresnel_number;
  const bool same_probe = whole_positions && shape.relaxation == 0 && !options.refine_positions;
  const bool fused = plain && same_probe && mean_is_energy && shape.modes == 1 && Detectors::contains(n) &&
                     (Detectors::large_probes || 2 * m <= n);
  const bool lines = Detectors::template lines<ExecutionSpace> &&
                     !(options.refine_positions && options.fresnel_number) && !options.refine_slice_shifts &&
                     transforms_lines(n) && ((same_probe && shape.slices == 1) || transforms_lines(m));
  const bool known = lines && plain && Impl::lines_are_known<Detectors, ExecutionSpace, Real>(n, m);
  constexpr bool host = Impl::is_host<ExecutionSpace>;
  const bool few =
      options.patterns_at_once > 0 && options.patterns_at_once < Impl::PtychographyTuning::fused_patterns;
  const bool on_chip = !lines || (!host && Impl::window_on_chip<Detectors, ExecutionSpace, Real>(n, m));
  const bool fused_is_fast = !known && (2 * m <= n ? host || on_chip || !few : !host && on_chip);
  const auto asked = [&](PatternPath path, bool fast = true) {
    return options.path == path || (options.path == PatternPath::Automatic && fast);
  };
  if (fused && asked(PatternPath::Fused, fused_is_fast))
    return PatternPath::Fused;
  if (known && asked(PatternPath::KnownLines))
    return PatternPath::KnownLines;
  return lines && asked(PatternPath::Lines) ? PatternPath::Lines : PatternPath::General;
}

} // namespace Bracewell
