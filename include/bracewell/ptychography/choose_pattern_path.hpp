// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/radix_passes.hpp>
#include <bracewell/ptychography/detail/fused_sizes.hpp>
#include <bracewell/ptychography/options.hpp>

#include <algorithm>
#include <iterator>
#include <vector>

namespace Bracewell {

/// Detectors (pixels per side) for which PtychographyLoss compiles the fused kernel, which takes a second or two
/// each; problems of other sizes go the general path. FusedDetectors<> compiles none.
template <int... sizes>
struct FusedDetectors {
  /// Whether PatternPath::Lines is compiled for an execution space: for GPUs; on hosts General is about as fast. Lists
  /// that derive from this one can say otherwise.
  template <class ExecutionSpace>
  static constexpr bool lines = !Impl::is_host<ExecutionSpace>;
  /// Whether a size is in the list.
  static constexpr bool contains(int size) { return ((size == sizes) || ...); }
  /// Whether kernels over lines of this size are compiled that know it, for GPUs; others take it as an argument. Lists that
  /// derive from this one can say otherwise, of sizes 64, 128, 192, 256 and 512 (in single precision).
  static constexpr bool knows_lines(int size) { return contains(size) && (size == 128 || size == 256); }

  static_assert(
      (std::ranges::count(Impl::PtychographyTuning::fused_sizes, sizes, &Impl::FusedSize::n) + ... + 0) ==
          sizeof...(sizes),
      "Bracewell::FusedDetectors: expected 40, 48, 64, 128, 160, 192, 256 or 512, found another size.");
};

/// All detectors that the fused kernel can be compiled for.
using EveryFusedDetector = FusedDetectors<40, 48, 64, 128, 160, 192, 256, 512>;

/// The default of PtychographyLoss: on GPUs all; on hosts those for which the fused kernel takes less time than General,
/// with probes of at most half the detector.
template <class ExecutionSpace>
using DefaultFusedDetectors =
    std::conditional_t<Impl::is_host<ExecutionSpace>, FusedDetectors<192, 256>, EveryFusedDetector>;

/// Pixels per side of the grid on which PtychographyLoss compares patterns: the detector, or with
/// options.reduced_grid the smallest fast size that holds every lag of |Psi|^2.
inline int compared_detector(const PtychographyShape& shape, const PtychographyOptions& options) {
  if (!options.reduced_grid)
    return shape.detector;
  return std::min(shape.detector, static_cast<int>(next_fast_size(2 * shape.probe - 1, true)));
}

namespace Impl {
/// Whether the fused kernel keeps its window in the memory of a multiprocessor; otherwise lines are faster.
template <class Detectors, class Space, class T>
bool window_on_chip([[maybe_unused]] int n, [[maybe_unused]] int m) {
  bool result = false;
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<Space, Kokkos::Cuda>)
    visit_fused_sizes<Detectors>(n, m, [&](auto sizes) {
      constexpr std::size_t available = PtychographyTuning::chip_bytes - PtychographyTuning::system_bytes;
      result = choose_window_memory<T>(sizes, m, available) == WindowMemory::Chip;
    });
#endif
  return result;
}

/// Whether kernels over lines are compiled for patterns of this size (KnownLinesPlan).
template <class Detectors, class Space, class T>
constexpr bool lines_are_known(int n, int m) {
  return !is_host<Space> && m == n && Detectors::knows_lines(n) && (n <= 256 || sizeof(T) <= 4) &&
         std::ranges::count(PtychographyTuning::line_sizes, n, &FusedSize::n) > 0;
}
} // namespace Impl

/// Whether PatternPath::Lines transforms lines of n pixels: a product of powers of 2, 3, 5 and 7, neither too short to
/// be shared by threads nor too long for those of a team.
inline bool transforms_lines(int n) {
  const std::vector<int> radices = Impl::choose_radices(n, Impl::RadixPasses<float>::most);
  return radices.size() > 1 && n <= 1024 &&
         n / *std::ranges::min_element(radices) <= Impl::PtychographyTuning::line_threads;
}

/// The path that PtychographyLoss takes, never PatternPath::Automatic: the one that options.path names if it can do the
/// problem, otherwise the first of Fused, Lines and General that can; but Lines instead of Fused where the rows of a
/// pattern do not fit into the memory of a multiprocessor, and where probes are as large as the detector and kernels over
/// lines know its size.
///   Fused    where it is built for compared_detector() (see FusedDetectors), with one mode, whole positions, in the
///            far field, without weights per pixel and without a mask on patterns that are scaled one by one: with both,
///            the mean of I is not the energy of the exit wave
///   Lines    where it is compiled (FusedDetectors), for detectors (and, with positions between pixels or to refine,
///            relaxation, or several slices, probes) that transforms_lines(), but for positions to refine in the near field
///   General  everything
/// @tparam Detectors, ExecutionSpace, Real  of PtychographyLoss
/// @param whole_positions  whether all positions are whole numbers (!ScanPositions::subpixel())
template <class Detectors = DefaultFusedDetectors<Kokkos::DefaultExecutionSpace>,
          class ExecutionSpace = Kokkos::DefaultExecutionSpace, class Real = float>
PatternPath choose_pattern_path(const PtychographyShape& shape, const PtychographyOptions& options,
                                bool whole_positions = true) {
  const int n = compared_detector(shape, options);
  const bool mean_is_energy = options.weights == PixelWeights::None ||
                              (options.weights == PixelWeights::Mask && options.scale == PatternScale::None);
  const bool plain = shape.slices == 1 && shape.relaxation == 0 && !options.refine_positions &&
                     !options.pattern_factors && !options.detector_background && !options.fresnel_number;
  const bool detectors_alone =
      whole_positions && shape.relaxation == 0 && !options.refine_positions && shape.slices == 1;
  const bool fused = plain && Detectors::contains(n) && mean_is_energy && shape.modes == 1 && whole_positions;
  const bool lines = Detectors::template lines<ExecutionSpace> &&
                     !(options.refine_positions && options.fresnel_number) && transforms_lines(n) &&
                     (detectors_alone || transforms_lines(shape.probe));
  const bool few_pixels = !Impl::is_host<ExecutionSpace> || 2 * shape.probe <= n;
  const bool fast =
      few_pixels && (!lines || (Impl::window_on_chip<Detectors, ExecutionSpace, Real>(n, shape.probe) &&
                                !Impl::lines_are_known<Detectors, ExecutionSpace, Real>(n, shape.probe)));
  const bool automatic = options.path == PatternPath::Automatic;
  if (fused && (options.path == PatternPath::Fused || (automatic && fast)))
    return PatternPath::Fused;
  return lines && (options.path == PatternPath::Lines || automatic) ? PatternPath::Lines
                                                                    : PatternPath::General;
}

} // namespace Bracewell
