// SPDX-License-Identifier: MIT
#include "bracewell-refine/pose_search.hpp"

#include <algorithm>
#include <cmath>

namespace Bracewell::Examples {

PoseSearch::PoseSearch(const PoseOfParticle& start, const Eigen::Vector3d& levers)
    : levers_(levers), best_(start), trial_(start) {}

void PoseSearch::start_stage(const Limits& limits) {
  limits_ = limits;
  active_ = fresh_ = true;
  evaluations_ = 0;
  trial_ = best_;
}

void PoseSearch::report(const LossAtPose& loss) {
  Vector gradient;
  gradient << loss.rotation_gradient.cwiseQuotient(levers_), loss.shift_gradient;
  const bool usable = std::isfinite(loss.value) && gradient.allFinite();
  ++evaluations_;
  if (fresh_) {
    // A loss that does not depend on the pose leaves it as it is.
    if (!usable || !(loss.shift_curvature > 0)) {
      active_ = false;
      return;
    }
    fresh_ = false;
    value_ = loss.value;
    gradient_ = gradient;
    inverse_hessian_ = Eigen::Matrix<double, 5, 5>::Identity() / loss.shift_curvature;
    try_step(-inverse_hessian_ * gradient_);
    return;
  }
  const double slope = gradient_.dot(step_);
  if (usable) { // what a step that failed tells about the curvature is as good
    const Vector change = gradient - gradient_;
    const double curvature = step_.dot(change);
    if (curvature > 1e-8 * step_.norm() * change.norm()) {
      const Eigen::Matrix<double, 5, 5> projector =
          Eigen::Matrix<double, 5, 5>::Identity() - step_ * change.transpose() / curvature;
      inverse_hessian_ = (projector * inverse_hessian_ * projector.transpose()).eval() +
                         step_ * step_.transpose() / curvature;
    }
  }
  if (usable && loss.value <= value_ + 1e-4 * slope) {
    best_ = trial_;
    value_ = loss.value;
    gradient_ = gradient;
    try_step(-inverse_hessian_ * gradient_);
  } else {
    // The minimum of the parabola through both values and the slope, within bounds.
    const double rise = usable ? loss.value - value_ - slope : 0;
    const double fraction = rise > 0 ? -slope / (2 * rise) : 0;
    try_step(std::clamp(fraction, 0.1, 0.5) * step_);
  }
}

void PoseSearch::try_step(const Vector& step) {
  const double length = step.norm();
  active_ = length > limits_.tolerance && evaluations_ < limits_.evaluations;
  if (!active_)
    return;
  step_ = std::min(1.0, limits_.largest_step / length) * step;
  const Eigen::Vector3d w = step_.head<3>().cwiseQuotient(levers_);
  trial_.matrix = best_.matrix * rotation_matrix(RotationVector<double>{w[0], w[1], w[2]});
  trial_.shift = best_.shift + step_.tail<2>();
}

} // namespace Bracewell::Examples
