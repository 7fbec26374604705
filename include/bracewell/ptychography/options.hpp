// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace Bracewell {

/// What the modelled pattern J and the measured one t are compared by, per pixel.
enum class PatternLoss {
  LeastSquares, ///< (J - t)^2
  Amplitude,    ///< (sqrt(J) - sqrt(t))^2
  Poisson       ///< J + b - t + t log(t / (J + b)), the deviance / 2, with a background b > 0
};

/// How a modelled intensity I_j becomes J_j.
enum class PatternScale {
  PerPattern, ///< J_j = I_j C / mean(I_j), and the measured pattern likewise: only shapes are compared
  None        ///< J_j = I_j: object and probe carry the counts
};

/// What is known of single detector pixels.
enum class PixelWeights {
  None,    ///< every pixel counts fully
  Mask,    ///< weights 0 and 1
  PerPixel ///< any weights >= 0, stored per pattern
};

/// How the patterns are computed.
enum class PatternPath {
  Automatic,  ///< by choose_pattern_path
  Fused,      ///< one kernel holds a pattern on the chip from the exit wave to its gradient
  KnownLines, ///< as Lines, by kernels that are compiled for the length of the lines
  Lines,      ///< kernels that transform rows or columns, each joined with what comes before and after it
  General     ///< through the FFT library: any size
};

/// Sizes of a ptychographic experiment, in pixels.
struct PtychographyShape {
  std::array<std::int64_t, 2> object; ///< rows, columns
  int probe;                          ///< m: the probe is m x m
  int detector;                       ///< n >= m: a pattern is n x n
  int modes = 1;                      ///< mutually incoherent probe modes
  int slices = 1;                     ///< of the object, along the beam
  int relaxation = 0;                 ///< modes by which the probe of a pattern differs from the common probe

  /// Whether all sizes are the same.
  bool operator==(const PtychographyShape&) const = default;
};

/// What patterns are compared with, and how.
struct PtychographyOptions {
  PatternLoss loss = PatternLoss::LeastSquares;  ///< how a pattern is compared with its model
  PatternScale scale = PatternScale::PerPattern; ///< of modelled intensities
  /// C: mean of a scaled pattern (PatternScale::PerPattern). 0: C_j is the mean of measured pattern j. Then t are the counts,
  /// and J has as many. Poisson's loss is then the loss of the best factor of each pattern.
  double counts = 1;
  double background = 1e-3;                  ///< b of PatternLoss::Poisson, in units of J
  PixelWeights weights = PixelWeights::None; ///< of pixels in the loss
  bool reduced_grid = false; ///< compare on the smallest grid that holds every lag of |Psi|^2: exact, least
                             ///< squares without weights only
  /// Near field: detector and probe have the same pixels, n = m. The Fresnel transfer function exp(-i pi |k|^2 / F)
  /// propagates the wave, with k in cycles per window and F = window^2 / (wavelength distance).
  std::optional<double> fresnel_number = {};
  /// Fresnel numbers of the probe's window for the ways from each slice of the object to the next.
  std::vector<double> slice_fresnel_numbers = {};
  /// Pixels (row, column) by which a beam moves on the way from each slice to the next, distance tan(angle) / pixel, where the
  /// specimen is tilted: the way's transfer function is exp(-i pi |k|^2 / F - 2 pi i k.s / m) then. Empty: there is no tilt.
  std::vector<std::array<double, 2>> slice_shifts = {};
  bool refine_positions = false;             ///< positions are inputs of evaluate, which gives their gradient
  bool refine_slice_shifts = false;          ///< so are slice_shifts, of two slices or more
  bool pattern_factors = false;              ///< I_j is multiplied by a factor of pattern j
  bool detector_background = false;          ///< an intensity per detector pixel is added to all patterns
  PatternPath path = PatternPath::Automatic; ///< which kernels compute patterns
  /// Patterns of most calls of evaluate, by which choose_pattern_path chooses. 0: enough to fill the device.
  std::int64_t patterns_at_once = 0;
  /// Patterns are computed in groups that need about this. Absent: as was measured to be fast, 640 MiB or, in
  /// PatternPath::Lines and KnownLines, a fortieth of the device's memory if that is more.
  std::optional<std::size_t> workspace_bytes = {};
  /// Bytes of the device that measured patterns may take. The other patterns lie in page-locked memory of the host. They come
  /// in groups beside the work, two groups at a time, and evaluate waits for them. Absent: all are on the device.
  std::optional<std::size_t> target_bytes = {};
};

} // namespace Bracewell
