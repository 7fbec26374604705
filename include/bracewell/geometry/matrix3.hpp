// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell {

/// Three components (x, y, z).
template <class T>
using Vector3 = Kokkos::Array<T, 3>;

/// A 3x3 matrix, row-major; acts on column vectors of components (x, y, z). Usable on devices.
template <class T>
struct Matrix3 {
  T elements[3][3] = {}; ///< [row][column]

  /// An element.
  KOKKOS_FUNCTION T& operator()(int row, int column) { return elements[row][column]; }
  /// An element.
  KOKKOS_FUNCTION const T& operator()(int row, int column) const { return elements[row][column]; }

  /// The rotation that turns nothing.
  KOKKOS_FUNCTION static Matrix3 identity() { return {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}; }
};

/// The product of two matrices.
template <class T>
KOKKOS_FUNCTION Matrix3<T> operator*(const Matrix3<T>& a, const Matrix3<T>& b) {
  Matrix3<T> product;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      product(i, j) = a(i, 0) * b(0, j) + a(i, 1) * b(1, j) + a(i, 2) * b(2, j);
  return product;
}

/// A matrix applied to a column vector.
template <class T>
KOKKOS_FUNCTION Vector3<T> operator*(const Matrix3<T>& a, const Vector3<T>& v) {
  Vector3<T> product;
  for (int i = 0; i < 3; ++i)
    product[std::size_t(i)] = a(i, 0) * v[0] + a(i, 1) * v[1] + a(i, 2) * v[2];
  return product;
}

/// The transpose, of a rotation its inverse.
template <class T>
KOKKOS_FUNCTION Matrix3<T> transpose(const Matrix3<T>& a) {
  Matrix3<T> result;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      result(i, j) = a(j, i);
  return result;
}

/// Chain rule from a matrix to its parameters: sum over elements of dL/dM(i, j) dM(i, j)/dp, for every
/// parameter p.
/// @param cotangent    dL/dM, for instance one matrix of the gradients of `project`
/// @param derivatives  dM/dp, from a function *_derivatives
template <class T, std::size_t N>
KOKKOS_FUNCTION Kokkos::Array<T, N> chain(const Matrix3<T>& cotangent,
                                          const Kokkos::Array<Matrix3<T>, N>& derivatives) {
  Kokkos::Array<T, N> gradient;
  for (std::size_t p = 0; p < N; ++p) {
    gradient[p] = 0;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        gradient[p] += cotangent(i, j) * derivatives[p](i, j);
  }
  return gradient;
}

} // namespace Bracewell
