// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/quaternion.hpp>

namespace Bracewell {

/// A rotation by |v| radians about the direction of v = (x, y, z).
template <class T>
struct RotationVector {
  T x; ///< in radians
  T y; ///< in radians
  T z; ///< in radians
};

/// Exponential map: 1 + a K + b K^2 with K = v x, a = sin t / t, b = (1 - cos t) / t^2, t = |v| (Rodrigues).
template <class T>
KOKKOS_FUNCTION Matrix3<T> rotation_matrix(const RotationVector<T>& v);

/// Derivatives of rotation_matrix with respect to the components of v, at any v. At v = 0 they span the
/// tangent space: times R0, they are the derivatives of a rotation R0 perturbed as rotation_matrix(v) R0.
template <class T>
KOKKOS_FUNCTION Kokkos::Array<Matrix3<T>, 3> rotation_matrix_derivatives(const RotationVector<T>& v);

/// Rotation vector of a rotation matrix, its logarithm: its length is at most pi. It goes by way of the quaternion, so
/// neither small rotations nor half turns lose digits. An exact half turn has either of two directions.
template <class T>
KOKKOS_FUNCTION RotationVector<T> rotation_vector(const Matrix3<T>& R);

namespace Impl {

/// sin t / t, (1 - cos t) / t^2 and their derivatives with respect to t, divided by t.
template <class T>
struct RodriguesCoefficients {
  T a, b, da, db;

  KOKKOS_FUNCTION explicit RodriguesCoefficients(T t2) {
    if (t2 < 1) { // the closed forms cancel: power series, to the last bit of double within 10 terms
      a = b = da = db = 0;
      T term = 1; // (-t^2)^k / (2 k + 1)!
      T before = 0;
      for (int k = 0; k < 11; ++k) {
        a += term;
        b += term / T(2 * k + 2);
        da -= T(2 * k) * before;
        db -= T(2 * k) * before / T(2 * k + 2);
        before = term / T((2 * k + 2) * (2 * k + 3));
        term = -t2 * before;
      }
    } else {
      const T t = Kokkos::sqrt(t2), cos = Kokkos::cos(t), sin_half = Kokkos::sin(t / 2);
      a = Kokkos::sin(t) / t;
      b = 2 * sin_half * sin_half / t2;
      da = (cos - a) / t2;
      db = (a - 2 * b) / t2;
    }
  }
};

/// The matrix of the cross product v x.
template <class T>
KOKKOS_FUNCTION Matrix3<T> cross_matrix(const RotationVector<T>& v) {
  return {{{0, -v.z, v.y}, {v.z, 0, -v.x}, {-v.y, v.x, 0}}};
}

} // namespace Impl

template <class T>
KOKKOS_FUNCTION Matrix3<T> rotation_matrix(const RotationVector<T>& v) {
  const Impl::RodriguesCoefficients<T> c(v.x * v.x + v.y * v.y + v.z * v.z);
  const Matrix3<T> K = Impl::cross_matrix(v), K2 = K * K;
  Matrix3<T> R;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      R(i, j) = T(i == j) + c.a * K(i, j) + c.b * K2(i, j);
  return R;
}

template <class T>
KOKKOS_FUNCTION Kokkos::Array<Matrix3<T>, 3> rotation_matrix_derivatives(const RotationVector<T>& v) {
  const Impl::RodriguesCoefficients<T> c(v.x * v.x + v.y * v.y + v.z * v.z);
  const Matrix3<T> K = Impl::cross_matrix(v), K2 = K * K;
  const T component[3] = {v.x, v.y, v.z};
  Kokkos::Array<Matrix3<T>, 3> derivatives;
  for (int p = 0; p < 3; ++p) {
    const Matrix3<T> dK = Impl::cross_matrix(RotationVector<T>{T(p == 0), T(p == 1), T(p == 2)});
    const Matrix3<T> left = dK * K, right = K * dK;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        derivatives[std::size_t(p)](i, j) = c.a * dK(i, j) + c.b * (left(i, j) + right(i, j)) +
                                            component[p] * (c.da * K(i, j) + c.db * K2(i, j));
  }
  return derivatives;
}

template <class T>
KOKKOS_FUNCTION RotationVector<T> rotation_vector(const Matrix3<T>& R) {
  const Quaternion<T> q = quaternion(R);
  const T squared_sine = q.x * q.x + q.y * q.y + q.z * q.z;
  // Where the square underflows, angle / sine is 2 to the last bit.
  const T tiny = Kokkos::Experimental::norm_min_v<T> / Kokkos::Experimental::epsilon_v<T>;
  const T sine = Kokkos::sqrt(squared_sine);
  const T scale = squared_sine < tiny ? T(2) : 2 * Kokkos::atan2(sine, q.w) / sine;
  return {q.x * scale, q.y * scale, q.z * scale};
}

} // namespace Bracewell
