// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/pose_columns.hpp"

#include <bracewell/geometry/rotation_vector.hpp>

#include <Eigen/Core>

namespace Bracewell::Examples {

/// What is known about the loss at a pose.
struct LossAtPose {
  double value;
  Eigen::Vector3d rotation_gradient; ///< per radian, in the tangent space of M exp([w]x)
  Eigen::Vector2d shift_gradient;    ///< per pixel
  double shift_curvature;            ///< estimate of the second derivative along a shift
};

/// Minimises the loss of one particle over its pose, by BFGS with backtracking (Nocedal & Wright, Numerical
/// Optimization (2006), chapters 3 and 6): five parameters, so that the inverse Hessian is kept whole. Ask
/// for the loss at trial(), report() it, until active() is false.
///
/// All parameters are lengths in pixels: a rotation counts by the distance that it moves density, its lever
/// times the angle. The Hessian is then close to the curvature along a shift times one, which is what every
/// stage starts from.
class PoseSearch {
public:
  struct Limits {
    double largest_step; ///< pixels
    double tolerance;    ///< pixels; the search ends where the next step would be shorter
    int evaluations;     ///< at most
  };

  /// @param levers  root mean square distance of the density from the image's x, y and z axes, pixels
  PoseSearch(const PoseOfParticle& start, const Eigen::Vector3d& levers);

  /// Begins anew at the best pose, for another loss.
  void start_stage(const Limits& limits);
  bool active() const { return active_; }
  const PoseOfParticle& trial() const { return trial_; }
  void report(const LossAtPose& loss);

  const PoseOfParticle& best() const { return best_; }
  /// The loss there; none before the first report of a stage that can be used.
  double value() const { return fresh_ ? 0 : value_; }

private:
  using Vector = Eigen::Matrix<double, 5, 1>;

  void try_step(const Vector& step);

  Eigen::Vector3d levers_;
  Limits limits_{};
  bool active_ = false;
  bool fresh_ = true; ///< nothing is known about this stage's loss yet
  int evaluations_ = 0;
  PoseOfParticle best_, trial_;
  double value_ = 0; ///< at best_
  Vector gradient_;  ///< at best_
  Vector step_;      ///< from best_ to trial_
  Eigen::Matrix<double, 5, 5> inverse_hessian_;
};

} // namespace Bracewell::Examples
