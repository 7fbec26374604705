// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/LU>

#include <cmath>
#include <cstddef>
#include <vector>

namespace Bracewell::Examples {

/// The constant, cosine and sine of the angle that fit values of views best: how a point goes along the detector.
struct WaveFit {
  Eigen::Vector3d factors;
  double variance_of_constant; ///< for values whose errors have the variance 1

  WaveFit(const std::vector<double>& angles, const std::vector<double>& values) {
    Eigen::Matrix3d normal = Eigen::Matrix3d::Zero();
    Eigen::Vector3d right = Eigen::Vector3d::Zero();
    for (std::size_t p = 0; p < angles.size(); ++p) {
      const Eigen::Vector3d own = waves(angles[p]);
      normal += own * own.transpose();
      right += values[p] * own;
    }
    factors = normal.ldlt().solve(right);
    variance_of_constant = std::abs(normal.inverse()(0, 0));
  }

  double constant() const { return factors[0]; }
  double at(double angle) const { return waves(angle).dot(factors); }

private:
  static Eigen::Vector3d waves(double angle) { return {1, std::cos(angle), std::sin(angle)}; }
};

} // namespace Bracewell::Examples
