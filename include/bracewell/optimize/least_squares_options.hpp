// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <array>
#include <cstdint>
#include <functional>

namespace Bracewell {

/// How LeastSquaresSolver finds images x whose projections A x are near to data b. B is the back-projection.
enum class LeastSquaresMethod {
  /// Conjugate gradients on the normal equations (Hestenes and Stiefel, 1952; CGLS): the least squares of fewest
  /// iterations. The number of iterations regularises.
  ConjugateGradients,
  /// x <- x + relaxation C B w R (b - A x), R and C the reciprocal sums of rows and columns, A 1 and B w (Gilbert, J.
  /// Theor. Biol. 36, 1972; Gregor and Benson, IEEE Trans. Med. Imaging 27, 2008).
  SIRT,
  /// Least squares, a multiple of the total variation of every image and, where it is asked for, no value below zero:
  /// FISTA (Beck and Teboulle, SIAM J. Imaging Sci. 2(1), 2009), its proximal map by their fast gradient projection.
  TotalVariation
};

/// What memory of a LeastSquaresSolver depends on.
struct LeastSquaresShape {
  std::array<std::int64_t, 3> data = {};   ///< of sinograms [slices, angles, width], for instance
  std::array<std::int64_t, 3> images = {}; ///< of images [slices, rows, columns]
  LeastSquaresMethod method = LeastSquaresMethod::ConjugateGradients; ///< that it solves by
  /// Every slice, of as many images as of data, is a problem of its own, with steps of its own: slices do not know of
  /// each other, and calls take any number of them up to this. false: all are one problem.
  bool independent = true;
  /// The pair has normal(space, images, results), backproject(project(images)), which ConjugateGradients and
  /// TotalVariation ask in place of the two: without weights and discrepancy, which that does not know.
  bool normal = false;
};

/// A run of a LeastSquaresSolver.
struct LeastSquaresOptions {
  int iterations = 20; ///< at most
  /// Discrepancy principle: a problem ends with the first iterate whose sum of weight (b - A x)^2 is at most the square
  /// of it. Of noise of variance 1 / weight that is the root of the number of values. 0: none ends early, and the
  /// host waits for nothing.
  double discrepancy = 0;
  double relaxation = 1;      ///< of SIRT, from 0 to 2
  bool nonnegative = false;   ///< of SIRT and TotalVariation
  double total_variation = 0; ///< its factor, beside half of the squares whose gradient is B w (A x - b)
  int inner_iterations = 4;   ///< of the proximal map of total variation, which go on from those before
  std::function<void(int made)> progress =
      {}; ///< called after every iteration, which the device may still work on
};

} // namespace Bracewell
