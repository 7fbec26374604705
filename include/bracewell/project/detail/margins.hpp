// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

namespace Bracewell::Impl {

/// By how much bounds of samples' positions are widened, so that rounding never hides a sample from the
/// elements that it reaches. They are made for float, whose epsilon is 2^-23 = 1.2e-7; in double they are more
/// than enough. What lies within a margin is looked at and found to be outside: a margin costs time, never an
/// error.
template <class T>
struct Margin {
  /// Relative, of sums: a position is a sum of at most three products, which rounds by at most four halves of
  /// an epsilon of its bound; so do the bound and, with a ratio to take, the tilt of a plane. Eight epsilons.
  static constexpr T sum = T(1e-6);

  /// Absolute, beside `sum`: the distance of neighbouring floats between 2^13 and 2^14, and the longest axis,
  /// 32768, has no frequency above 2^14. Bounds are differences of such numbers and of brick or window widths.
  static constexpr T spacing = T(1e-3);

  /// A factor for lengths: norms and distances from planes. A distance n.c of a brick's centre |c| < 2^14 from
  /// a plane rounds by four halves of an epsilon of |n||c|, 0.004 |n|, a thousandth of what a brick and its
  /// windows span (|n| times 4 elements for most bricks).
  static constexpr T length = T(1.001);

  /// A factor for squares of lengths that leaves twice the margin of `length` (1.004 is 1.001^4). What a quick
  /// test accepts lies then within the bounds of the exact one too.
  static constexpr T squared_length = T(1.004);

  /// Columns a and b of a matrix have a sound pseudo-inverse where |a x b|^2 (in general: the determinant of
  /// their inner products) is beyond this part of |a|^2 |b|^2: a thousandth is an angle of two degrees. The
  /// quick test asks for twice that.
  static constexpr T conditioned = T(1e-3), plainly_conditioned = T(2e-3);

  /// Relative, of what a pseudo-inverse yields: it rounds by about an epsilon over `conditioned`.
  static constexpr T inverse = T(1e-4);

  /// Absolute, for the square root of an integer below 2^30: floats below 2^15 are 2^-9 = 0.002 apart, and the
  /// integer and its root both round. Far less than the columns that it counts.
  static constexpr T root = T(1e-2);

  /// Absolute, beside `sum`: columns of a PatchBox end on a plane whose slopes are in parts of 2^16. Each rounds
  /// by 2^-17 per column, and no box is more than 214 columns wide (1,280 elements, two columns of three side by
  /// side): 0.0016.
  static constexpr T slopes = T(2e-3);

  /// Samples two frequencies apart have no window in common where their positions differ by more than 1 on some
  /// axis, so by the square root of D at least: where the smallest squared singular value of the matrix is
  /// above D / 4. This much more makes that 1.007 on some axis (3D), for the rounding of both positions: four
  /// halves of an epsilon of 2^13 are 0.002.
  static constexpr double apart = 0.01;
};

} // namespace Bracewell::Impl
