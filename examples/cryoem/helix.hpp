// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

namespace Bracewell::Examples {

/// A helix along z.
struct Helix {
  double rise = 0;  ///< pixels
  double twist = 0; ///< degrees, positive for a right-handed one
  int subunits = 1; ///< that a segment shows, odd
  /// Where rise and twist are looked for, at most so far from those given; 0: they are as given.
  double rise_range = 0, twist_range = 0;
};

/// Correlation of a map with itself moved by one, two and three subunits, in the middle 30 % along z and within 0.45 of
/// the box from the axis.
double helical_agreement(const Space& space, const Map& map, double rise, double twist);

/// Rise and twist within their ranges with which the map agrees best: a grid of 11 x 11 that shrinks four times.
Helix search_helix(const Space& space, const Map& map, Helix helix);

} // namespace Bracewell::Examples
