// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/quaternion.hpp>
#include <bracewell/geometry/rotation_vector.hpp>
#include <bracewell/impl/checks.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {
namespace Impl {

template <class T>
KOKKOS_FUNCTION Matrix3<T> load_matrix(const T* elements) {
  Matrix3<T> matrix;
  for (int i = 0; i < 9; ++i)
    matrix(i / 3, i % 3) = elements[i];
  return matrix;
}

template <class T>
KOKKOS_FUNCTION void store_matrix(const Matrix3<T>& matrix, T* elements) {
  for (int i = 0; i < 9; ++i)
    elements[i] = matrix(i / 3, i % 3);
}

/// rot, tilt, psi.
template <class T>
struct FromAngles {
  static constexpr int parameters = 3, gradients = 3;
  KOKKOS_FUNCTION static EulerAngles<T> load(const T* p) { return {p[0], p[1], p[2]}; }
  KOKKOS_FUNCTION static Matrix3<T> matrix(const T* p) { return projection_matrix(load(p)); }
  KOKKOS_FUNCTION static auto derivatives(const T* p) { return projection_matrix_derivatives(load(p)); }
};

/// w, x, y, z.
template <class T>
struct FromQuaternions {
  static constexpr int parameters = 4, gradients = 4;
  KOKKOS_FUNCTION static Quaternion<T> load(const T* p) { return {p[0], p[1], p[2], p[3]}; }
  KOKKOS_FUNCTION static Matrix3<T> matrix(const T* p) { return rotation_matrix(load(p)); }
  KOKKOS_FUNCTION static auto derivatives(const T* p) { return rotation_matrix_derivatives(load(p)); }
};

/// The tangent space of M <- M exp([w]x) at w = 0; the parameters are M itself.
template <class T>
struct TangentSpace {
  static constexpr int parameters = 9, gradients = 3;
  KOKKOS_FUNCTION static auto derivatives(const T* p) {
    const Matrix3<T> M = load_matrix(p);
    Kokkos::Array<Matrix3<T>, 3> result;
    for (int axis = 0; axis < 3; ++axis)
      result[axis] = M * cross_matrix(RotationVector<T>{T(axis == 0), T(axis == 1), T(axis == 2)});
    return result;
  }
};

template <class Parametrisation, class T>
struct MakeMatrices {
  const T* parameters;
  T* matrices;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    store_matrix(Parametrisation::matrix(parameters + i * Parametrisation::parameters), matrices + 9 * i);
  }
};

template <class T>
struct RotateMatrices {
  const T* vectors;
  const T* base;
  T* matrices;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const T* v = vectors + 3 * i;
    store_matrix(load_matrix(base + 9 * i) * rotation_matrix(RotationVector<T>{v[0], v[1], v[2]}),
                 matrices + 9 * i);
  }
};

/// dL/dw of M0 exp([w]x), by way of dL/d exp([w]x) = transpose(M0) dL/dM.
template <class T>
struct ChainRotatedGradients {
  const T* vectors;
  const T* base;
  const T* cotangents;
  T* gradients;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const T* v = vectors + 3 * i;
    const auto gradient = chain(transpose(load_matrix(base + 9 * i)) * load_matrix(cotangents + 9 * i),
                                rotation_matrix_derivatives(RotationVector<T>{v[0], v[1], v[2]}));
    for (int p = 0; p < 3; ++p)
      gradients[3 * i + p] = gradient[p];
  }
};

/// Rotations of images by psi.
template <class T>
struct MakePlaneMatrices {
  const T* angles;
  T* matrices;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const SinCos<T> psi(angles[i]);
    T* M = matrices + 4 * i;
    M[0] = M[3] = psi.cos;
    M[1] = -psi.sin;
    M[2] = psi.sin;
  }
};
template <class T>
struct ChainPlaneGradients {
  const T* angles;
  const T* cotangents;
  T* gradients;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const SinCos<T> psi(angles[i]);
    const T* g = cotangents + 4 * i;
    gradients[i] = ((g[2] - g[1]) * psi.cos - (g[0] + g[3]) * psi.sin) * (Kokkos::numbers::pi_v<T> / 180);
  }
};

template <class Parametrisation, class T>
struct ChainGradients {
  const T* parameters;
  const T* cotangents;
  T* gradients;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto gradient = chain(load_matrix(cotangents + 9 * i),
                                Parametrisation::derivatives(parameters + i * Parametrisation::parameters));
    for (int p = 0; p < Parametrisation::gradients; ++p)
      gradients[i * Parametrisation::gradients + p] = gradient[p];
  }
};

/// Checks an array [B, P, parameters] or, for 9 parameters, [B, P, 3, 3] against the leading axes of `like`.
template <class A, class B, class MemorySpace>
void require_poses(const Arguments& arguments, const char* argument, const Array<A, MemorySpace>& array,
                   const Array<B, MemorySpace>& like, int parameters) {
  bool fits = like.rank >= 2 && array.rank == (parameters == 9 ? 4 : 3);
  if (fits) {
    fits = array.extents[0] == like.extents[0] && array.extents[1] == like.extents[1] &&
           array.extents[2] == (parameters == 9 ? 3 : parameters) &&
           (parameters != 9 || array.extents[3] == 3);
  }
  const auto expected = [&] {
    const std::string leading =
        like.rank >= 2 ? std::to_string(like.extents[0]) + ", " + std::to_string(like.extents[1]) : "B, P";
    return "[" + leading + ", " + (parameters == 9 ? "3, 3" : std::to_string(parameters)) + "]";
  };
  arguments.require(fits, argument, expected, [&] { return array.shape(); });
}

template <class ExecutionSpace, class Functor>
void for_each_pose(const ExecutionSpace& space, const char* label, std::int64_t poses,
                   const Functor& functor) {
  if (poses > 0)
    Kokkos::parallel_for(
        label, Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, poses),
        functor);
}

template <template <class> class Parametrisation, class T, class ExecutionSpace, class MemorySpace>
void make_matrices(const ExecutionSpace& space, const Arguments& arguments, const char* label,
                   const char* parameters_name, const Array<const T, MemorySpace>& parameters,
                   const Array<T, MemorySpace>& matrices) {
  require_poses(arguments, parameters_name, parameters, parameters, Parametrisation<T>::parameters);
  require_poses(arguments, "matrices", matrices, parameters, 9);
  arguments.disjoint({{"matrices", matrices}}, {{parameters_name, parameters}});
  for_each_pose(space, label, parameters.extents[0] * parameters.extents[1],
                MakeMatrices<Parametrisation<T>, T>{parameters.data, matrices.data});
}

template <template <class> class Parametrisation, class T, class ExecutionSpace, class MemorySpace>
void chain_gradients(const ExecutionSpace& space, const Arguments& arguments, const char* label,
                     const char* parameters_name, const Array<const T, MemorySpace>& parameters,
                     const Array<const T, MemorySpace>& cotangents, const Array<T, MemorySpace>& gradients) {
  require_poses(arguments, parameters_name, parameters, parameters, Parametrisation<T>::parameters);
  require_poses(arguments, "matrix_gradients", cotangents, parameters, 9);
  require_poses(arguments, "gradients", gradients, parameters, Parametrisation<T>::gradients);
  arguments.disjoint({{"gradients", gradients}},
                     {{parameters_name, parameters}, {"matrix_gradients", cotangents}});
  for_each_pose(space, label, parameters.extents[0] * parameters.extents[1],
                ChainGradients<Parametrisation<T>, T>{parameters.data, cotangents.data, gradients.data});
}

} // namespace Impl

/// Matrices of poses, as `project` takes them, from RELION's angles: M = A^T, the transpose of RELION's
/// matrix (projection_matrix in geometry/euler.hpp).
/// @param angles    [B, P, 3]: rot, tilt, psi in degrees
/// @param matrices  [B, P, 3, 3], overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Angles, class Matrices>
void matrices_from_angles(const ExecutionSpace& space, const Angles& angles, const Matrices& matrices) {
  using T = typename Matrices::non_const_value_type;
  using Memory = typename ExecutionSpace::memory_space;
  const Kokkos::Profiling::ScopedRegion region("Bracewell::matrices_from_angles");
  Impl::make_matrices<Impl::FromAngles, T>(space, {"matrices_from_angles"},
                                           "Bracewell::matrices_from_angles::make", "angles",
                                           Array<const T, Memory>(angles), Array<T, Memory>(matrices));
}

/// Matrices of poses from quaternions, whose length does not matter: M = rotation_matrix(q), an active
/// rotation of image frequencies to those of the volume (geometry/quaternion.hpp).
/// @param quaternions  [B, P, 4]: w, x, y, z
/// @param matrices     [B, P, 3, 3], overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Quaternions, class Matrices>
void matrices_from_quaternions(const ExecutionSpace& space, const Quaternions& quaternions,
                               const Matrices& matrices) {
  using T = typename Matrices::non_const_value_type;
  using Memory = typename ExecutionSpace::memory_space;
  const Kokkos::Profiling::ScopedRegion region("Bracewell::matrices_from_quaternions");
  Impl::make_matrices<Impl::FromQuaternions, T>(
      space, {"matrices_from_quaternions"}, "Bracewell::matrices_from_quaternions::make", "quaternions",
      Array<const T, Memory>(quaternions), Array<T, Memory>(matrices));
}

/// Steps in the tangent space: M = M0 exp([w]x). w lies in the frame of the image: its z component turns the
/// image in its plane, x and y tilt it about its axes. May be in place.
/// @param rotation_vectors  w [B, P, 3], radians
/// @param base              M0 [B, P, 3, 3]
/// @param matrices          M [B, P, 3, 3], overwritten; base itself or memory of its own
/// @throws Error on shapes that do not fit and memory shared with the rotation vectors
template <class ExecutionSpace, class RotationVectors, class Base, class Matrices>
void matrices_from_rotation_vectors(const ExecutionSpace& space, const RotationVectors& rotation_vectors,
                                    const Base& base, const Matrices& matrices) {
  using T = typename Matrices::non_const_value_type;
  using Memory = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"matrices_from_rotation_vectors"};
  const Array<const T, Memory> vectors(rotation_vectors), from(base);
  const Array<T, Memory> to(matrices);
  Impl::require_poses(arguments, "rotation_vectors", vectors, vectors, 3);
  Impl::require_poses(arguments, "base", from, vectors, 9);
  Impl::require_poses(arguments, "matrices", to, vectors, 9);
  arguments.disjoint({{"matrices", to}}, {{"rotation_vectors", vectors}});
  if (to.data != from.data)
    arguments.disjoint({{"matrices", to}}, {{"base", from}});
  const Kokkos::Profiling::ScopedRegion region("Bracewell::matrices_from_rotation_vectors");
  Impl::for_each_pose(space, "Bracewell::matrices_from_rotation_vectors::turn",
                      vectors.extents[0] * vectors.extents[1],
                      Impl::RotateMatrices<T>{vectors.data, from.data, to.data});
}

/// Chain rule from matrices to the angles of matrices_from_angles: dL/d(rot, tilt, psi), per degree.
/// @param angles            [B, P, 3]
/// @param matrix_gradients  dL/dM [B, P, 3, 3], for instance from project_gradients
/// @param gradients         [B, P, 3], overwritten
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Angles, class MatrixGradients, class Gradients>
void angle_gradients(const ExecutionSpace& space, const Angles& angles,
                     const MatrixGradients& matrix_gradients, const Gradients& gradients) {
  using T = typename Gradients::non_const_value_type;
  using Memory = typename ExecutionSpace::memory_space;
  const Kokkos::Profiling::ScopedRegion region("Bracewell::angle_gradients");
  Impl::chain_gradients<Impl::FromAngles, T>(
      space, {"angle_gradients"}, "Bracewell::angle_gradients::chain", "angles",
      Array<const T, Memory>(angles), Array<const T, Memory>(matrix_gradients), Array<T, Memory>(gradients));
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
  using T = typename Gradients::non_const_value_type;
  using Memory = typename ExecutionSpace::memory_space;
  const Kokkos::Profiling::ScopedRegion region("Bracewell::quaternion_gradients");
  Impl::chain_gradients<Impl::FromQuaternions, T>(
      space, {"quaternion_gradients"}, "Bracewell::quaternion_gradients::chain", "quaternions",
      Array<const T, Memory>(quaternions), Array<const T, Memory>(matrix_gradients),
      Array<T, Memory>(gradients));
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
  using T = typename Gradients::non_const_value_type;
  using Memory = typename ExecutionSpace::memory_space;
  const Kokkos::Profiling::ScopedRegion region("Bracewell::rotation_vector_gradients");
  Impl::chain_gradients<Impl::TangentSpace, T>(
      space, {"rotation_vector_gradients"}, "Bracewell::rotation_vector_gradients::chain", "matrices",
      Array<const T, Memory>(matrices), Array<const T, Memory>(matrix_gradients),
      Array<T, Memory>(gradients));
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
  using T = typename Gradients::value_type;
  using Memory = typename ExecutionSpace::memory_space;
  constexpr Impl::Arguments arguments{"rotation_vector_gradients"};
  const Array<const T, Memory> vectors(rotation_vectors), from(base), cotangents(matrix_gradients);
  const Array<T, Memory> to(gradients);
  Impl::require_poses(arguments, "rotation_vectors", vectors, vectors, 3);
  Impl::require_poses(arguments, "base", from, vectors, 9);
  Impl::require_poses(arguments, "matrix_gradients", cotangents, vectors, 9);
  Impl::require_poses(arguments, "gradients", to, vectors, 3);
  arguments.disjoint({{"gradients", to}},
                     {{"rotation_vectors", vectors}, {"base", from}, {"matrix_gradients", cotangents}});
  const Kokkos::Profiling::ScopedRegion region("Bracewell::rotation_vector_gradients");
  Impl::for_each_pose(space, "Bracewell::rotation_vector_gradients::chain_rotated",
                      vectors.extents[0] * vectors.extents[1],
                      Impl::ChainRotatedGradients<T>{vectors.data, from.data, cotangents.data, to.data});
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
