// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/detail/pose_matrices.hpp>
#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/quaternion.hpp>
#include <bracewell/geometry/rotation_vector.hpp>
#include <bracewell/impl/checks.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// Matrices of poses, as `project` takes them, from RELION's angles: M = A^T, the transpose of RELION's
/// matrix (projection_matrix in geometry/euler.hpp).
/// @param angles    [B, P, 3]: rot, tilt, psi in degrees
/// @param matrices  [B, P, 3, 3], overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Angles, class Matrices>
void matrices_from_angles(const ExecutionSpace& space, const Angles& angles, const Matrices& matrices) {
  Impl::make_matrices<Impl::FromAngles>(space, {"matrices_from_angles"}, "angles", angles, matrices);
}

/// Matrices of poses from quaternions, whose length does not matter: M = rotation_matrix(q), an active
/// rotation of image frequencies to volume frequencies (geometry/quaternion.hpp).
/// @param quaternions  [B, P, 4]: w, x, y, z
/// @param matrices     [B, P, 3, 3], overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Quaternions, class Matrices>
void matrices_from_quaternions(const ExecutionSpace& space, const Quaternions& quaternions,
                               const Matrices& matrices) {
  Impl::make_matrices<Impl::FromQuaternions>(space, {"matrices_from_quaternions"}, "quaternions", quaternions,
                                             matrices);
}

/// Turns matrices by rotation vectors: M = M0 exp([w]x). w lies in the frame of the image. Its z component turns the
/// image in its plane; x and y tilt it about its axes. May be in place.
/// @param rotation_vectors  w [B, P, 3], radians
/// @param base              M0 [B, P, 3, 3]
/// @param matrices          M [B, P, 3, 3], overwritten; base itself or memory of its own
/// @throws Error on shapes that do not fit and memory shared with the rotation vectors
template <class ExecutionSpace, class RotationVectors, class Base, class Matrices>
void matrices_from_rotation_vectors(const ExecutionSpace& space, const RotationVectors& rotation_vectors,
                                    const Base& base, const Matrices& matrices) {
  const Array<const typename Matrices::non_const_value_type, typename ExecutionSpace::memory_space> from(
      base);
  Impl::make_matrices<Impl::FromRotationVectors>(space, {"matrices_from_rotation_vectors"},
                                                 "rotation_vectors", rotation_vectors, matrices, &from);
}

/// Chain rule from matrices to the angles of matrices_from_angles: dL/d(rot, tilt, psi), per degree.
/// @param angles            [B, P, 3]
/// @param matrix_gradients  dL/dM [B, P, 3, 3], for instance from project_gradients
/// @param gradients         [B, P, 3], overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Angles, class MatrixGradients, class Gradients>
void angle_gradients(const ExecutionSpace& space, const Angles& angles,
                     const MatrixGradients& matrix_gradients, const Gradients& gradients) {
  Impl::chain_gradients<Impl::FromAngles>(space, {"angle_gradients"}, "angles", angles, matrix_gradients,
                                          gradients);
}

/// Chain rule from matrices to the quaternions of matrices_from_quaternions; the gradient is orthogonal to
/// the quaternion, along which nothing changes.
/// @param quaternions       [B, P, 4]
/// @param matrix_gradients  dL/dM [B, P, 3, 3]
/// @param gradients         [B, P, 4], overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Quaternions, class MatrixGradients, class Gradients>
void quaternion_gradients(const ExecutionSpace& space, const Quaternions& quaternions,
                          const MatrixGradients& matrix_gradients, const Gradients& gradients) {
  Impl::chain_gradients<Impl::FromQuaternions>(space, {"quaternion_gradients"}, "quaternions", quaternions,
                                               matrix_gradients, gradients);
}

/// Chain rule from matrices to their tangent space: dL/dw at w = 0 of M exp([w]x), per radian, the direction
/// that matrices_from_rotation_vectors steps along.
/// @param matrices          M [B, P, 3, 3]
/// @param matrix_gradients  dL/dM [B, P, 3, 3]
/// @param gradients         [B, P, 3], overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Matrices, class MatrixGradients, class Gradients>
void rotation_vector_gradients(const ExecutionSpace& space, const Matrices& matrices,
                               const MatrixGradients& matrix_gradients, const Gradients& gradients) {
  Impl::chain_gradients<Impl::TangentSpace>(space, {"rotation_vector_gradients"}, "matrices", matrices,
                                            matrix_gradients, gradients);
}

/// The same at any w, not 0 alone: dL/dw of M = M0 exp([w]x), per radian, for optimisers that hold w while M0
/// stays.
/// @param rotation_vectors  w [B, P, 3], radians
/// @param base              M0 [B, P, 3, 3]
/// @param matrix_gradients  dL/dM [B, P, 3, 3], at the matrices of matrices_from_rotation_vectors
/// @param gradients         [B, P, 3], overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class RotationVectors, class Base, class MatrixGradients, class Gradients>
void rotation_vector_gradients(const ExecutionSpace& space, const RotationVectors& rotation_vectors,
                               const Base& base, const MatrixGradients& matrix_gradients,
                               const Gradients& gradients) {
  const Array<const typename Gradients::non_const_value_type, typename ExecutionSpace::memory_space> from(
      base);
  Impl::chain_gradients<Impl::FromRotationVectors>(space, {"rotation_vector_gradients"}, "rotation_vectors",
                                                   rotation_vectors, matrix_gradients, gradients, &from);
}

/// Matrices of images in their plane, for alignment in 2D: M = (cos psi, -sin psi; sin psi, cos psi), which is
/// the upper left part of projection_matrix of the Euler angles (0, 0, psi).
/// @param angles    psi [B, P], degrees
/// @param matrices  [B, P, 2, 2], overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Angles, class Matrices>
void matrices_from_plane_angles(const ExecutionSpace& space, const Angles& angles, const Matrices& matrices) {
  using T = typename Matrices::value_type;
  using Memory = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"matrices_from_plane_angles"};
  const Array<const T, Memory> from(angles);
  const Array<T, Memory> to(matrices);
  arguments.require(from && from.rank == 2, "angles", "[B, P]", [&] { return from.shape(); });
  arguments.shape("matrices", to, {from.extents[0], from.extents[1], 2, 2});
  arguments.disjoint({{"matrices", to}}, {{"angles", from}});
  const Kokkos::Profiling::ScopedRegion region("Bracewell::matrices_from_plane_angles");
  Impl::for_each_pose(space, "Bracewell::matrices_from_plane_angles::make", from.size(),
                      Impl::MakePlaneMatrices<T>{from.data, to.data});
}

/// Chain rule from matrices to the angles of matrices_from_plane_angles, per degree.
/// @param angles            psi [B, P], degrees
/// @param matrix_gradients  dL/dM [B, P, 2, 2], for instance from project_gradients
/// @param gradients         [B, P], overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Angles, class MatrixGradients, class Gradients>
void plane_angle_gradients(const ExecutionSpace& space, const Angles& angles,
                           const MatrixGradients& matrix_gradients, const Gradients& gradients) {
  using T = typename Gradients::value_type;
  using Memory = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"plane_angle_gradients"};
  const Array<const T, Memory> at(angles), cotangents(matrix_gradients);
  const Array<T, Memory> to(gradients);
  arguments.require(at && at.rank == 2, "angles", "[B, P]", [&] { return at.shape(); });
  arguments.shape("matrix_gradients", cotangents, {at.extents[0], at.extents[1], 2, 2});
  arguments.same_shape("gradients", to, at);
  arguments.disjoint({{"gradients", to}}, {{"angles", at}, {"matrix_gradients", cotangents}});
  const Kokkos::Profiling::ScopedRegion region("Bracewell::plane_angle_gradients");
  Impl::for_each_pose(space, "Bracewell::plane_angle_gradients::chain", at.size(),
                      Impl::ChainPlaneGradients<T>{at.data, cotangents.data, to.data});
}

} // namespace Bracewell
