// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <bracewell/reconstruct/mask.hpp>

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace Bracewell::Examples {

/// Correlations of two half maps, per shell.
struct MaskedCorrelations {
  std::vector<double> unmasked;
  std::vector<double> masked;
  std::vector<double> randomised; ///< masked, with random phases from `from` on
  /// What the mask adds taken off (Chen et al., Ultramicroscopy 135 (2013) 24): (masked - randomised) / (1 - randomised).
  std::vector<double> corrected;
  /// Standard error of `masked`, c: (1 - c^2) / sqrt(2 N - 1). N complex values of a shell are independent: half of its
  /// elements, times the mask's part of the box, divided by the copies of the symmetry, and less
  /// where few elements hold most of the power.
  std::vector<double> error;
  std::size_t from = 0; ///< the first shell where half maps without a mask agree to less than 0.8
};

/// @param halves  not masked
/// @param copies  of what is independent in them: operators of the symmetry
MaskedCorrelations masked_correlations(const Space& space, const Map& first, const Map& second,
                                       const SoftSphere& mask, std::size_t copies = 1);

/// A map with the power of the signal, weighted by its correlation with the truth, and sharpened.
struct SharpenedMap {
  Map map;
  double b_factor = 0; ///< square Angstrom; negative sharpens: exp(-B k^2 / 4)
  bool fitted =
      false; ///< by Guinier (Rosenthal & Henderson, J. Mol. Biol. 333 (2003) 721), from 10 Angstrom to 0.143
};

/// @param whole     of all particles, masked
/// @param halves    masked
/// @param curve     their correlation
/// @param transfer  part of the signal's power that the half maps have in common, per shell; empty: all
/// @param b_factor  absent: fitted; 0 where the half maps do not reach far enough
/// @param pixel_size  in Angstrom; 0: not known, nothing is fitted
SharpenedMap sharpen(const Space& space, const Map& whole, const Map& first, const Map& second,
                     std::span<const double> curve, std::span<const double> transfer,
                     const std::optional<double>& b_factor, double pixel_size);

/// Two maps divided by the root mean square of both in every shell up to the Nyquist limit, beyond which nothing is left.
std::array<Map, 2> flattened(const Space& space, const Map& first, const Map& second);

} // namespace Bracewell::Examples
