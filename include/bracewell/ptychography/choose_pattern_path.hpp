// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>
#include <bracewell/ptychography/options.hpp>

#include <algorithm>
#include <iterator>

namespace Bracewell {

/// Detectors (pixels per side) for which PtychographyLoss compiles the fused kernel, which takes a second or two
/// each; problems of other sizes go the general path. FusedDetectors<> compiles none.
template <int... sizes>
struct FusedDetectors {
  /// Whether a size is in the list.
  static constexpr bool contains(int size) { return ((size == sizes) || ...); }

  static_assert(
      (std::ranges::count(Impl::PtychographyTuning::fused_sizes, sizes, &Impl::FusedSize::n) + ... + 0) ==
          sizeof...(sizes),
      "Bracewell::FusedDetectors: expected 40, 48, 64, 128, 160, 192, 256 or 512, found another size.");
};

/// All detectors that the fused kernel can be compiled for.
using EveryFusedDetector = FusedDetectors<40, 48, 64, 128, 160, 192, 256, 512>;

/// Pixels per side of the grid on which PtychographyLoss compares patterns: the detector, or with
/// options.reduced_grid the smallest fast size that holds every lag of |Psi|^2.
inline int compared_detector(const PtychographyShape& shape, const PtychographyOptions& options) {
  if (!options.reduced_grid)
    return shape.detector;
  return std::min(shape.detector, static_cast<int>(next_fast_size(2 * shape.probe - 1, true)));
}

/// The path that PtychographyLoss takes, never PatternPath::Automatic: Fused where the fused kernel can do the
/// problem and options.path does not say General. It can where it is built for compared_detector() (see
/// FusedDetectors), with one mode, whole positions, in the far field, without weights per pixel and
/// without a mask on patterns that are scaled one by one: with both, the mean of I is not the energy of the exit
/// wave.
/// @tparam Detectors       that PtychographyLoss was given
/// @param whole_positions  whether all positions are whole numbers (!ScanPositions::subpixel())
template <class Detectors = EveryFusedDetector>
PatternPath choose_pattern_path(const PtychographyShape& shape, const PtychographyOptions& options,
                                bool whole_positions = true) {
  const bool built = Detectors::contains(compared_detector(shape, options));
  const bool mean_is_energy = options.weights == PixelWeights::None ||
                              (options.weights == PixelWeights::Mask && options.scale == PatternScale::None);
  const bool can = built && mean_is_energy && shape.modes == 1 && whole_positions && !options.fresnel_number;
  return can && options.path != PatternPath::General ? PatternPath::Fused : PatternPath::General;
}

} // namespace Bracewell
