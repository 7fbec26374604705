// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/options.hpp>

namespace Bracewell {

/// What the choice of a gridding strategy depends on.
struct GriddingWork {
  double points, slices, cells; ///< cells of one grid
  int width, dimensions;        ///< of the kernel
  bool host;                    ///< the execution space shares the host's memory
};

/// Estimated cost of spreading in units of 1e-9 seconds of an NVIDIA H200, or of one core of a host.
/// Constants from docs/performance.md.
inline double gridding_cost(GriddingStrategy strategy, const GriddingWork& work) {
  double taps = 1;
  for (int d = 0; d < work.dimensions; ++d)
    taps *= work.width;
  const double zero_fill = work.cells * work.slices * (work.host ? 1 : 2e-3);
  if (strategy == GriddingStrategy::Atomic)
    return zero_fill + work.points * work.slices * taps * (work.host ? 5 : 6e-3);
  const double lanes = work.host ? 16 : 32; // whole lanes are paid for
  const double chunks = static_cast<double>(static_cast<std::int64_t>((work.slices + lanes - 1) / lanes));
  return zero_fill + work.points * chunks * (work.host ? 40 + 2 * taps : 0.3);
}

/// Tiles or Atomic, whichever is expected to be faster. (PrunedGather is never the fastest: it visits two
/// samples for every one that it adds, and computes the weights anew for every grid point.)
inline GriddingStrategy choose_gridding_strategy(const GriddingWork& work) {
  return gridding_cost(GriddingStrategy::Tiles, work) <= gridding_cost(GriddingStrategy::Atomic, work)
             ? GriddingStrategy::Tiles
             : GriddingStrategy::Atomic;
}

} // namespace Bracewell
