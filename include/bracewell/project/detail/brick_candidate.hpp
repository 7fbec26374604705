// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/bricks.hpp>
#include <bracewell/project/detail/stencil.hpp>

namespace Bracewell::Impl {

/// A pose, or (sign < 0) the mates of its samples, near one periodic image of the brick.
template <class T, int M, int D>
struct BrickCandidate {
  Pose<T, M, D> pose;
  std::int64_t batch, index;
  int sign;
  int origin[D];           ///< position of the brick's first element
  T low[D], high[D];       ///< bounds of the positions (of pose, not of the mates) near the brick
  T step[D];               ///< reciprocal of the change of position from column to column
  FrequencyRange<M> range; ///< of the samples that may lie near the brick
  bool bounded;            ///< see Reach

  /// Position of a sample, or its mate; false where there is none (fold).
  KOKKOS_INLINE_FUNCTION bool position(const HalfSpectrumLayout<D>& layout, const int (&k)[M],
                                       T (&q)[D]) const {
    pose.position(k, q);
    const bool usable = bounded || fold(layout, q);
    for (int d = 0; d < D; ++d)
      q[d] *= T(sign);
    return usable;
  }
};

} // namespace Bracewell::Impl
