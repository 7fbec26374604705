// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/matrix3.hpp>

namespace Bracewell {

/// A quaternion w + x i + y j + z k that stands for the rotation by 2 acos(w) about (x, y, z). Of any length
/// but zero: its direction alone counts, so a gradient step leaves it valid.
template <class T>
struct Quaternion {
  T w; ///< real part
  T x; ///< along the axis
  T y; ///< along the axis
  T z; ///< along the axis
};

/// Rotation matrix of a quaternion: active, R v turns v (Shepperd, J. Guid. Control 1 (1978) 223). Whether it
/// is used as a projection matrix or as RELION's A = transpose of it is the caller's choice.
template <class T>
KOKKOS_FUNCTION Matrix3<T> rotation_matrix(const Quaternion<T>& q);

/// Derivatives of rotation_matrix with respect to w, x, y and z, of the direction alone: the gradient is
/// tangential, orthogonal to q.
template <class T>
KOKKOS_FUNCTION Kokkos::Array<Matrix3<T>, 4> rotation_matrix_derivatives(const Quaternion<T>& q);

/// Unit quaternion with w >= 0 of a rotation matrix, from its largest component (Shepperd 1978): accurate for
/// every rotation, half turns included.
template <class T>
KOKKOS_FUNCTION Quaternion<T> quaternion(const Matrix3<T>& R);

namespace Impl {

/// The homogeneous rotation matrix |q|^2 R(q), a quadratic form in q.
template <class T>
KOKKOS_FUNCTION Matrix3<T> unscaled_rotation(const Quaternion<T>& q) {
  const T ww = q.w * q.w, xx = q.x * q.x, yy = q.y * q.y, zz = q.z * q.z;
  return {{{ww + xx - yy - zz, 2 * (q.x * q.y - q.w * q.z), 2 * (q.x * q.z + q.w * q.y)},
           {2 * (q.x * q.y + q.w * q.z), ww - xx + yy - zz, 2 * (q.y * q.z - q.w * q.x)},
           {2 * (q.x * q.z - q.w * q.y), 2 * (q.y * q.z + q.w * q.x), ww - xx - yy + zz}}};
}

} // namespace Impl

template <class T>
KOKKOS_FUNCTION Matrix3<T> rotation_matrix(const Quaternion<T>& q) {
  const T scale = 1 / (q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
  Matrix3<T> R = Impl::unscaled_rotation(q);
  for (auto& row : R.elements)
    for (T& element : row)
      element *= scale;
  return R;
}

template <class T>
KOKKOS_FUNCTION Kokkos::Array<Matrix3<T>, 4> rotation_matrix_derivatives(const Quaternion<T>& q) {
  const T scale = 1 / (q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
  const Matrix3<T> R = rotation_matrix(q);
  // The quadratic form's derivatives, then the quotient rule: d(P / n) = (dP - R dn) / n.
  Kokkos::Array<Matrix3<T>, 4> derivatives = {
      Matrix3<T>{{{q.w, -q.z, q.y}, {q.z, q.w, -q.x}, {-q.y, q.x, q.w}}},
      Matrix3<T>{{{q.x, q.y, q.z}, {q.y, -q.x, -q.w}, {q.z, q.w, -q.x}}},
      Matrix3<T>{{{-q.y, q.x, q.w}, {q.x, q.y, q.z}, {-q.w, q.z, -q.y}}},
      Matrix3<T>{{{-q.z, -q.w, q.x}, {q.w, -q.z, q.y}, {q.x, q.y, q.z}}}};
  const T component[4] = {q.w, q.x, q.y, q.z};
  for (int p = 0; p < 4; ++p)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        derivatives[std::size_t(p)](i, j) =
            2 * scale * (derivatives[std::size_t(p)](i, j) - component[p] * R(i, j));
  return derivatives;
}

template <class T>
KOKKOS_FUNCTION Quaternion<T> quaternion(const Matrix3<T>& R) {
  const T trace = R(0, 0) + R(1, 1) + R(2, 2);
  Quaternion<T> q;
  if (trace >= R(0, 0) && trace >= R(1, 1) && trace >= R(2, 2)) {
    q = {1 + trace, R(2, 1) - R(1, 2), R(0, 2) - R(2, 0), R(1, 0) - R(0, 1)};
  } else if (R(0, 0) >= R(1, 1) && R(0, 0) >= R(2, 2)) {
    q = {R(2, 1) - R(1, 2), 1 + 2 * R(0, 0) - trace, R(0, 1) + R(1, 0), R(0, 2) + R(2, 0)};
  } else if (R(1, 1) >= R(2, 2)) {
    q = {R(0, 2) - R(2, 0), R(0, 1) + R(1, 0), 1 + 2 * R(1, 1) - trace, R(1, 2) + R(2, 1)};
  } else {
    q = {R(1, 0) - R(0, 1), R(0, 2) + R(2, 0), R(1, 2) + R(2, 1), 1 + 2 * R(2, 2) - trace};
  }
  const T length = Kokkos::sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
  const T scale = (q.w < 0 ? -1 : 1) / length;
  return {q.w * scale, q.x * scale, q.y * scale, q.z * scale};
}

} // namespace Bracewell
