// SPDX-License-Identifier: MIT
#pragma once

#include "common/star.hpp"

#include <bracewell/geometry/matrix3.hpp>

#include <Eigen/Core>

#include <cstddef>
#include <vector>

/// Poses of particles as programs change them, and as tables have them.
namespace Bracewell::Examples {

/// Orientation and place of one particle.
struct PoseOfParticle {
  Matrix3<double> matrix;                         ///< as `project` takes it
  Eigen::Vector2d shift{Eigen::Vector2d::Zero()}; ///< pixels (row, column)
};

/// Makes columns of angles and origins for what will be found; those that are there keep their values.
void add_poses(Particles& particles);

/// The pose of a particle as its columns have it.
PoseOfParticle pose_of(const Particles& particles, std::size_t row);
/// Enters a pose.
void set_pose(Particles& particles, std::size_t row, const PoseOfParticle& pose);

/// Enters angles and origins of all particles into their table, in the columns and units that the file has them in.
void set_pose_columns(Particles& particles);

/// Angle of the rotation between two orientations, degrees: the least of the ones that symmetry makes the same.
double angle_between(const Matrix3<double>& a, const Matrix3<double>& b,
                     const std::vector<Matrix3<double>>& symmetry);

/// Of the orientations that symmetry makes one, whether this is the one with the smallest angle.
bool closest_to_identity(const Matrix3<double>& matrix, const std::vector<Matrix3<double>>& symmetry);

} // namespace Bracewell::Examples
