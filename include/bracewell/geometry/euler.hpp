// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/matrix3.hpp>

namespace Bracewell {

/// RELION's Euler angles in degrees: passive rotations about Z, Y, Z.
template <class T>
struct EulerAngles {
  T rot;  ///< about Z, first (rlnAngleRot)
  T tilt; ///< about Y (rlnAngleTilt)
  T psi;  ///< about Z, last (rlnAnglePsi)
};

/// RELION's matrix A = Rz(psi) Ry(tilt) Rz(rot) of passive rotations (Heymann, Chagoyen & Belnap, J. Struct.
/// Biol. 151 (2005) 196): rows 0 and 1 are the image's x and y axes in the frame of the volume.
template <class T>
KOKKOS_FUNCTION Matrix3<T> euler_matrix(const EulerAngles<T>& angles);

/// The matrix that `project` and `backproject` take for a particle's angles: the transpose of euler_matrix.
/// It maps image frequencies to frequencies of the volume.
template <class T>
KOKKOS_FUNCTION Matrix3<T> projection_matrix(const EulerAngles<T>& angles);

/// Angles of a rotation A = euler_matrix(angles): tilt in [0, 180], rot and psi in [-180, 180]. Where tilt is
/// 0 or 180 only psi + rot or psi - rot is defined, and rot is 0 as in RELION.
template <class T>
KOKKOS_FUNCTION EulerAngles<T> euler_angles(const Matrix3<T>& A);

/// Derivatives of projection_matrix with respect to rot, tilt and psi, per degree.
template <class T>
KOKKOS_FUNCTION Kokkos::Array<Matrix3<T>, 3> projection_matrix_derivatives(const EulerAngles<T>& angles);

namespace Impl {

template <class T>
KOKKOS_FUNCTION T degrees(T radians) {
  return radians * (180 / Kokkos::numbers::pi_v<T>);
}

/// Sine and cosine of an angle in degrees.
template <class T>
struct SinCos {
  T sin, cos;
  KOKKOS_FUNCTION explicit SinCos(T angle) {
    const T radians = angle * (Kokkos::numbers::pi_v<T> / 180);
    sin = Kokkos::sin(radians);
    cos = Kokkos::cos(radians);
  }
};

} // namespace Impl

template <class T>
KOKKOS_FUNCTION Matrix3<T> euler_matrix(const EulerAngles<T>& angles) {
  const Impl::SinCos<T> a(angles.rot), b(angles.tilt), g(angles.psi);
  return {{{g.cos * b.cos * a.cos - g.sin * a.sin, g.cos * b.cos * a.sin + g.sin * a.cos, -g.cos * b.sin},
           {-g.sin * b.cos * a.cos - g.cos * a.sin, -g.sin * b.cos * a.sin + g.cos * a.cos, g.sin * b.sin},
           {b.sin * a.cos, b.sin * a.sin, b.cos}}};
}

template <class T>
KOKKOS_FUNCTION Matrix3<T> projection_matrix(const EulerAngles<T>& angles) {
  return transpose(euler_matrix(angles));
}

template <class T>
KOKKOS_FUNCTION EulerAngles<T> euler_angles(const Matrix3<T>& A) {
  const T sin_tilt = Kokkos::hypot(A(2, 0), A(2, 1));
  const bool gimbal_lock = sin_tilt <= 16 * Kokkos::Experimental::epsilon_v<T>;
  const T cos_rot = gimbal_lock ? T(1) : A(2, 0) / sin_tilt;
  const T sin_rot = gimbal_lock ? T(0) : A(2, 1) / sin_tilt;
  // psi from A Rz(rot)^T, whose second column is (sin psi, cos psi, 0): accurate for every tilt.
  const T sin_psi = cos_rot * A(0, 1) - sin_rot * A(0, 0);
  const T cos_psi = cos_rot * A(1, 1) - sin_rot * A(1, 0);
  return {Impl::degrees(Kokkos::atan2(sin_rot, cos_rot)),
          gimbal_lock ? T(A(2, 2) > 0 ? 0 : 180) : Impl::degrees(Kokkos::atan2(sin_tilt, A(2, 2))),
          Impl::degrees(Kokkos::atan2(sin_psi, cos_psi))};
}

template <class T>
KOKKOS_FUNCTION Kokkos::Array<Matrix3<T>, 3> projection_matrix_derivatives(const EulerAngles<T>& angles) {
  const Impl::SinCos<T> a(angles.rot), b(angles.tilt), g(angles.psi);
  const Matrix3<T> A = euler_matrix(angles);
  Kokkos::Array<Matrix3<T>, 3> derivatives;
  for (int i = 0; i < 3; ++i) {
    const T across = i == 0 ? g.cos : -g.sin; // of psi, for rows 0 and 1
    derivatives[0](0, i) = -A(i, 1);
    derivatives[0](1, i) = A(i, 0);
    derivatives[1](0, i) = i == 2 ? b.cos * a.cos : -across * b.sin * a.cos;
    derivatives[1](1, i) = i == 2 ? b.cos * a.sin : -across * b.sin * a.sin;
    derivatives[1](2, i) = i == 2 ? -b.sin : -across * b.cos;
    derivatives[2](i, 0) = A(1, i);
    derivatives[2](i, 1) = -A(0, i);
  }
  for (auto& derivative : derivatives)
    for (auto& row : derivative.elements)
      for (T& element : row)
        element *= Kokkos::numbers::pi_v<T> / 180;
  return derivatives;
}

} // namespace Bracewell
