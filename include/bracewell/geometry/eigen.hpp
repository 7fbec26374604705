// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/quaternion.hpp>

#include <Eigen/Geometry>

namespace Bracewell {

/// The matrix as an Eigen expression on the same memory, which it must not outlive.
template <class T>
auto as_eigen(Matrix3<T>& matrix) {
  return Eigen::Map<Eigen::Matrix<T, 3, 3, Eigen::RowMajor>>(&matrix.elements[0][0]);
}
/// The same, read only.
template <class T>
auto as_eigen(const Matrix3<T>& matrix) {
  return Eigen::Map<const Eigen::Matrix<T, 3, 3, Eigen::RowMajor>>(&matrix.elements[0][0]);
}

/// A copy of any fixed 3x3 Eigen expression.
template <class Derived>
Matrix3<typename Derived::Scalar> matrix3(const Eigen::MatrixBase<Derived>& expression) {
  Matrix3<typename Derived::Scalar> matrix;
  as_eigen(matrix) = expression;
  return matrix;
}

/// A copy of an Eigen quaternion.
template <class T>
Quaternion<T> quaternion(const Eigen::Quaternion<T>& q) {
  return {q.w(), q.x(), q.y(), q.z()};
}
/// A copy as an Eigen quaternion.
template <class T>
Eigen::Quaternion<T> as_eigen(const Quaternion<T>& q) {
  return {q.w, q.x, q.y, q.z};
}

} // namespace Bracewell
