// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// What the steps of a problem depend on.
struct ProblemState {
  double gamma;    ///< |s|^2, s the gradient that the last step of conjugate gradients saw
  double step;     ///< along the direction, or of the gradient
  double kept;     ///< how much of the last direction stays
  double residual; ///< weighted sum of squares
  double largest;  ///< value, or eigenvalue
  int done;
};

/// A factor of every value: weights of data, or a mask that all problems share; 1 where there is none.
template <class T>
struct Factors {
  const T* values = nullptr;
  std::int64_t period = 1; ///< of the values

  KOKKOS_FUNCTION T operator()(std::int64_t i) const { return values ? values[i % period] : T(1); }
};

/// residual = data - projections in place of these; its square is summed, and it is weighted then.
template <class T>
struct TakeResidual {
  const T* data;
  T* projections;
  Factors<T> weights;
  bool weighted; ///< what is left behind

  KOKKOS_FUNCTION Sums<1> operator()(int, std::int64_t i) const {
    const T weight = weights(i);
    const T residual = weight == T(0) ? T(0) : data[i] - projections[i]; // a value left out may be no number
    projections[i] = weighted ? weight * residual : residual;
    return {{double(residual) * residual * weight}};
  }
};

/// Whether a problem has reached its discrepancy.
struct KeepResidual {
  ProblemState* states;
  double discrepancy; ///< squared

  KOKKOS_FUNCTION void operator()(int problem, const Sums<1>& sums) const {
    states[problem].residual = sums.values[0];
    if (discrepancy > 0 && sums.values[0] <= discrepancy)
      states[problem].done = 1;
  }
};

/// The square of the gradient, which the mask cuts.
template <class T>
struct MaskGradient {
  T* gradient;
  Factors<T> mask;

  KOKKOS_FUNCTION Sums<1> operator()(int, std::int64_t i) const {
    const T value = gradient[i] *= mask(i);
    return {{double(value) * value}};
  }
};

struct KeepGamma {
  ProblemState* states;

  KOKKOS_FUNCTION void operator()(int problem, const Sums<1>& sums) const {
    ProblemState& state = states[problem];
    state.kept = state.gamma > 0 ? sums.values[0] / state.gamma : 0;
    state.gamma = sums.values[0];
    if (!(state.gamma > 0))
      state.done = 1;
  }
};

/// direction = gradient + kept direction.
template <class T>
struct RenewDirection {
  const ProblemState* states;
  const T* gradient;
  T* direction;
  std::int64_t size;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    direction[i] = gradient[i] + T(states[i / size].kept) * direction[i];
  }
};

/// Weighted products a . b and a . c.
template <class T>
struct Products {
  const T *a, *b, *c;
  Factors<T> weights;

  KOKKOS_FUNCTION Sums<2> operator()(int, std::int64_t i) const {
    const double value = double(a[i]) * weights(i);
    return {{value * b[i], value * c[i]}};
  }
};

/// The step that is best along the direction, whatever the scale of the gradient.
struct KeepStep {
  ProblemState* states;

  KOKKOS_FUNCTION void operator()(int problem, const Sums<2>& sums) const {
    ProblemState& state = states[problem];
    if (!(sums.values[0] > 0))
      state.done = 1;
    state.step = state.done ? 0 : sums.values[1] / sums.values[0];
  }
};

/// values += step directions.
template <class T>
struct AddStep {
  const ProblemState* states;
  T* values;
  const T* directions;
  std::int64_t size;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    values[i] += T(states[i / size].step) * directions[i];
  }
};

/// residual -= step directions; its weighted square is summed, and the weighted residual takes the place of the
/// direction.
template <class T>
struct StepResidual {
  const ProblemState* states;
  T *residual, *directions;
  Factors<T> weights;

  KOKKOS_FUNCTION Sums<1> operator()(int problem, std::int64_t i) const {
    const T value = residual[i] -= T(states[problem].step) * directions[i];
    directions[i] = weights(i) * value;
    return {{double(value) * value * weights(i)}};
  }
};

/// Reciprocals of sums of rows or columns, for SIRT: nothing where they are next to nothing.
template <class T>
struct Reciprocals {
  T* values;
  const double* largest;
  Factors<T> factors;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    values[i] = values[i] > T(0.01 * *largest) ? factors(i) / values[i] : T(0);
  }
};

template <class T>
struct Largest {
  const T* values;
  KOKKOS_FUNCTION void operator()(std::int64_t i, double& largest) const {
    largest = Kokkos::max(largest, double(values[i]));
  }
};

template <class T>
struct MultiplyFactors {
  T* values;
  Factors<T> factors;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { values[i] *= factors(i); }
};

/// values = from - values.
template <class T>
struct SubtractFrom {
  const T* from;
  T* values;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { values[i] = from[i] - values[i]; }
};

/// image += factor change, not below zero where that is asked for.
template <class T>
struct SirtStep {
  const ProblemState* states;
  T* image;
  const T *change, *columns;
  Factors<T> mask;
  std::int64_t size;
  T relaxation;
  bool nonnegative;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (states[i / size].done || !(mask(i) > T(0)))
      return;
    const T value = image[i] + relaxation * columns[i] * change[i];
    image[i] = nonnegative && value < T(0) ? T(0) : value;
  }
};

/// The largest eigenvalue, of |v|^2 and v . N v.
struct KeepRayleigh {
  ProblemState* states;
  KOKKOS_FUNCTION void operator()(int problem, const Sums<2>& sums) const {
    const double value = sums.values[0] > 0 ? sums.values[1] / sums.values[0] : 0;
    states[problem].largest = value;
    // Rayleigh quotients come near from below.
    states[problem].step = value > 0 ? 1 / (1.05 * value) : 0;
  }
};

template <class T>
struct NextVector {
  const ProblemState* states;
  T* vector;
  const T* product;
  std::int64_t size;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const double largest = states[i / size].largest;
    vector[i] = largest > 0 ? T(product[i] / largest) : T(0);
  }
};

} // namespace Bracewell::Impl
