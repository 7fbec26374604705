// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/detail/pattern_term.hpp>

namespace Bracewell::Impl {

/// Where pixel (row, column) of pattern j lies among the targets: row by row, or as the fused kernel reads
/// them: columns one after the other, and of each the frequencies k + per_lane g (k < per_lane) that a lane
/// holds in groups of four neighbouring g.
struct PatternLayout {
  int n, per_lane = 0; ///< per_lane = 0: row by row
  static constexpr int group = 4;

  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t j, int row, int column) const {
    if (per_lane == 0)
      return (j * n + row) * n + column;
    const int k = row % per_lane, g = row / per_lane;
    return (j * n + column) * n + (g / group * per_lane + k) * group + g % group;
  }
};

/// Measured patterns as a plan keeps them.
template <class T, class Storage>
struct Targets {
  const Storage* values; ///< [N, n, n]
  const T* means;        ///< [N]: mean of t; 0 for patterns without counts, which do not count (null: all do)
  const T* units;        ///< [N]: of counts in half precision, 0 where roots are stored; or null
  const T* pixel_weights;  ///< [N, n, n] or null
  const double* constants; ///< [N]: what the reduced grid leaves out of sum (J - t)^2 / n^2, or null
  T counts;                ///< C, or 0 where patterns are not scaled
  bool masked;             ///< some pixels may not count
  bool in_order = false;   ///< values and pixel weights are those of the selection, in its order

  /// Where values and pixel weights have the i-th pattern of the selection, j of the scan.
  KOKKOS_INLINE_FUNCTION std::int64_t row(std::int64_t i, std::int64_t j) const { return in_order ? i : j; }

  /// The loss of pattern j from what was summed over its pixels.
  KOKKOS_INLINE_FUNCTION double loss(std::int64_t j, double sum, T norm, double pixels) const {
    return double(norm) * (sum + (constants && means[j] > 0 ? constants[j] * pixels : 0));
  }
};

} // namespace Bracewell::Impl
