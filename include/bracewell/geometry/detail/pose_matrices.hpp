// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/geometry/euler.hpp>
#include <bracewell/geometry/quaternion.hpp>
#include <bracewell/geometry/rotation_vector.hpp>
#include <bracewell/impl/checks.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cstdint>
#include <string>

namespace Bracewell::Impl {

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

/// x, y, z of a rotation vector.
template <class T>
struct FromRotationVectors {
  static constexpr int parameters = 3, gradients = 3;
  KOKKOS_FUNCTION static RotationVector<T> load(const T* p) { return {p[0], p[1], p[2]}; }
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
      result[std::size_t(axis)] =
          M * cross_matrix(RotationVector<T>{T(axis == 0), T(axis == 1), T(axis == 2)});
    return result;
  }
};

/// Matrices R of parameters, or M0 R where there is a base.
template <class Parametrisation, class T>
struct MakeMatrices {
  const T *parameters, *base; ///< base: null: none
  T* matrices;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const Matrix3<T> own = Parametrisation::matrix(parameters + i * Parametrisation::parameters);
    store_matrix(base ? load_matrix(base + 9 * i) * own : own, matrices + 9 * i);
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

/// The transpose of the derivatives of MakeMatrices: dL/dR = transpose(M0) dL/dM.
template <class Parametrisation, class T>
struct ChainGradients {
  const T *parameters, *base, *cotangents;
  T* gradients;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const Matrix3<T> cotangent = load_matrix(cotangents + 9 * i);
    const auto gradient = chain(base ? transpose(load_matrix(base + 9 * i)) * cotangent : cotangent,
                                Parametrisation::derivatives(parameters + i * Parametrisation::parameters));
    for (int p = 0; p < Parametrisation::gradients; ++p)
      gradients[i * Parametrisation::gradients + p] = gradient[std::size_t(p)];
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
void for_each_pose(const ExecutionSpace& space, const std::string& label, std::int64_t poses,
                   const Functor& functor) {
  if (poses > 0)
    Kokkos::parallel_for(
        label, Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, poses),
        functor);
}

/// What rotations turn; null: none.
template <class T, class ExecutionSpace>
using BaseMatrices = const Array<const T, typename ExecutionSpace::memory_space>*;

/// The body of matrices_from_...: Views of parameters to matrices.
template <template <class> class Parametrisation, class ExecutionSpace, class Parameters, class Matrices>
void make_matrices(const ExecutionSpace& space, const Arguments& arguments, const char* parameters_name,
                   const Parameters& parameters_view, const Matrices& matrices_view,
                   BaseMatrices<typename Matrices::non_const_value_type, ExecutionSpace> base = nullptr) {
  using T = typename Matrices::non_const_value_type;
  using From = Parametrisation<T>;
  const std::string label = std::string("Bracewell::") + arguments.function;
  const Kokkos::Profiling::ScopedRegion region(label);
  const Array<const T, typename ExecutionSpace::memory_space> parameters(parameters_view);
  const Array<T, typename ExecutionSpace::memory_space> matrices(matrices_view);
  require_poses(arguments, parameters_name, parameters, parameters, From::parameters);
  if (base)
    require_poses(arguments, "base", *base, parameters, 9);
  require_poses(arguments, "matrices", matrices, parameters, 9);
  arguments.disjoint({{"matrices", matrices}}, {{parameters_name, parameters}});
  if (base && base->data != matrices.data)
    arguments.disjoint({{"matrices", matrices}}, {{"base", *base}});
  for_each_pose(space, label + "::make", parameters.extents[0] * parameters.extents[1],
                MakeMatrices<From, T>{parameters.data, base ? base->data : nullptr, matrices.data});
}

/// The body of ..._gradients, the chain rule from matrices to their parameters.
template <template <class> class Parametrisation, class ExecutionSpace, class Parameters, class Cotangents,
          class Gradients>
void chain_gradients(const ExecutionSpace& space, const Arguments& arguments, const char* parameters_name,
                     const Parameters& parameters_view, const Cotangents& cotangents_view,
                     const Gradients& gradients_view,
                     BaseMatrices<typename Gradients::non_const_value_type, ExecutionSpace> base = nullptr) {
  using T = typename Gradients::non_const_value_type;
  using From = Parametrisation<T>;
  const std::string label = std::string("Bracewell::") + arguments.function;
  const Kokkos::Profiling::ScopedRegion region(label);
  const Array<const T, typename ExecutionSpace::memory_space> parameters(parameters_view),
      cotangents(cotangents_view);
  const Array<T, typename ExecutionSpace::memory_space> gradients(gradients_view);
  require_poses(arguments, parameters_name, parameters, parameters, From::parameters);
  if (base)
    require_poses(arguments, "base", *base, parameters, 9);
  require_poses(arguments, "matrix_gradients", cotangents, parameters, 9);
  require_poses(arguments, "gradients", gradients, parameters, From::gradients);
  arguments.disjoint({{"gradients", gradients}},
                     {{parameters_name, parameters}, {"matrix_gradients", cotangents}});
  if (base)
    arguments.disjoint({{"gradients", gradients}}, {{"base", *base}});
  for_each_pose(
      space, label + "::chain", parameters.extents[0] * parameters.extents[1],
      ChainGradients<From, T>{parameters.data, base ? base->data : nullptr, cotangents.data, gradients.data});
}

} // namespace Bracewell::Impl
