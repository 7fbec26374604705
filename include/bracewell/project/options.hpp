// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/strategy.hpp>

#include <optional>

namespace Bracewell {

/// Kernel values that carry weights into the weight volume. Signed is the default: data and weight then see
/// the same kernel and their quotient is unbiased (a Catmull-Rom insertion with absolute weights has a gain
/// of 0.63); where sampling is sparse the quotient needs a floor, which `normalise` has. Absolute is the
/// torch-projectors paper's rule.
enum class KernelWeights { Signed, Absolute };

/// Options of project, backproject and their gradients.
struct ProjectionOptions {
  /// Padded over unpadded box: projection frequency k samples the reconstruction at M (oversampling k). By
  /// default 1, for boxes whose smallest sides are the same; where they differ it has to be given (1 for
  /// projections that show a part of the frequencies).
  std::optional<double> oversampling = std::nullopt;
  /// Samples with |k| <= radius (projection frequencies) are computed, others are zero; by default the
  /// largest radius that stays within both Nyquist limits: min(n) / 2 and min(N) / (2 oversampling).
  std::optional<double> radius = std::nullopt;
  /// 3D -> 2D: radius R of the Ewald sphere in projection frequencies (box size times pixel size over
  /// wavelength): frequency k is sampled at M (oversampling (kx, ky, |k|^2 / (2 R))). A negative R bends the
  /// other way; a flat plane by default.
  std::optional<double> ewald_radius = std::nullopt;
  KernelWeights kernel_weights = KernelWeights::Signed; ///< what carries weights into the weight volume
  /// Of insertion. Owned also sums what the samples of a pose give to the gradients of its matrix and shift in one order,
  /// where few poses are slower (matrices and shifts of several poses are still added up in any).
  Strategy strategy = Strategy::Automatic;
  /// project_gradients only: leave out the samples on column 0 whose Friedel mate is stored too
  /// (torch-projectors paper, section 2.3): right for a loss written on the full spectrum whose cotangent
  /// counts every frequency once.
  bool skip_redundant = false;
};

} // namespace Bracewell
