// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/ptychography/options.hpp>

#include <type_traits>

namespace Bracewell::Impl {

/// Calls action with the loss as a type, on the host: whoever launches a kernel for each of the losses.
template <class Action>
void visit_loss(PatternLoss kind, const Action& action) {
  switch (kind) {
  case PatternLoss::LeastSquares:
    return action(std::integral_constant<PatternLoss, PatternLoss::LeastSquares>());
  case PatternLoss::Amplitude:
    return action(std::integral_constant<PatternLoss, PatternLoss::Amplitude>());
  case PatternLoss::Poisson:
    return action(std::integral_constant<PatternLoss, PatternLoss::Poisson>());
  }
}

/// The same within a kernel: the fused one, which exists in enough versions without.
template <class Action>
KOKKOS_FORCEINLINE_FUNCTION void visit_loss_in_kernel(PatternLoss kind, const Action& action) {
  switch (kind) {
  case PatternLoss::LeastSquares:
    return action(std::integral_constant<PatternLoss, PatternLoss::LeastSquares>());
  case PatternLoss::Amplitude:
    return action(std::integral_constant<PatternLoss, PatternLoss::Amplitude>());
  case PatternLoss::Poisson:
    return action(std::integral_constant<PatternLoss, PatternLoss::Poisson>());
  }
}

/// How targets are stored. Half precision holds the square root, with the sign of t: intensities span more
/// than its range, and those on a reduced grid can be negative. On the full grid a negative number marks a
/// pixel that does not count.
template <class T, class Storage>
struct TargetStorage {
  bool root;

  static constexpr bool holds_root(PatternLoss kind) {
    return kind == PatternLoss::Amplitude || sizeof(Storage) < sizeof(T);
  }
  KOKKOS_INLINE_FUNCTION Storage operator()(T t) const {
    return static_cast<Storage>(root ? Kokkos::copysign(Kokkos::sqrt(Kokkos::abs(t)), t) : t);
  }
};

/// What the slopes of PatternTerm have to be multiplied by.
KOKKOS_INLINE_FUNCTION constexpr int slope_unit(PatternLoss kind) {
  return kind == PatternLoss::LeastSquares ? 2 : 1;
}

/// One pixel's share of a loss: modelled intensity J, measured t.
template <PatternLoss kind, class T, class Storage>
struct PatternTerm {
  T background; ///< of PatternLoss::Poisson
  T unit;       ///< of counts in half precision; 0 where roots are stored

  /// Part of its caller on hosts as well: whether products and sums are contracted must not depend on who calls.
  /// @param value, slope  the loss of this pixel and its derivative with respect to J, divided by slope_unit
  KOKKOS_FORCEINLINE_FUNCTION void operator()(T J, T stored, T& value, T& slope) const {
    T t = stored; // the root of it for the amplitude loss
    if constexpr (sizeof(Storage) < sizeof(T)) {
      if (kind == PatternLoss::Amplitude)
        t = unit > 0 ? Kokkos::sqrt(stored * unit) : stored;
      else
        t = unit > 0 ? stored * unit : stored * Kokkos::abs(stored);
    }
    if constexpr (kind == PatternLoss::LeastSquares) {
      value = (J - t) * (J - t);
      slope = J - t;
    } else if constexpr (kind == PatternLoss::Amplitude) {
      const T inverse = J > 0 ? Kokkos::rsqrt(J) : T(0), difference = J * inverse - t;
      value = difference * difference;
      slope = J > 0 ? 1 - t * inverse : T(0);
    } else {
      const T expected = J + background, ratio = t / expected;
      value = expected - t + (t > 0 ? t * Kokkos::log(ratio) : T(0));
      slope = 1 - ratio;
    }
  }
};

/// Where pixel (row, column) of pattern j lies among the targets: row by row, or as the fused kernel reads
/// them: columns one after the other, and of each the frequencies k + per_lane g (k < per_lane) that a lane
/// holds in groups of four neighbouring g.
struct PatternLayout {
  int n, per_lane = 0; ///< per_lane = 0: row by row
  static constexpr int group = 4;

  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t j, int row, int column) const {
    if (per_lane == 0)
      return (j * n + row) * n + column;
    const int k = row % per_lane, g = row / per_lane;
    return (j * n + column) * n + (g / group * per_lane + k) * group + g % group;
  }
};

/// What modelled intensities are multiplied by where patterns are scaled: `wanted` over their sum. A model without light has
/// 0: its loss is that of J = 0, its gradient 0. A sum that is no number makes the loss none.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T scale_of(T wanted, T sum) {
  return sum > 0 ? wanted / sum : sum <= 0 ? T(0) : sum;
}

/// Measured patterns as a plan keeps them.
template <class T, class Storage>
struct Targets {
  const Storage* values; ///< [N, n, n]
  const T* means;        ///< [N]: mean of t; 0 for patterns without counts, which do not count (null: all do)
  const T* units;        ///< [N]: of counts in half precision, 0 where roots are stored; or null
  const T* pixel_weights;  ///< [N, n, n] or null
  const double* constants; ///< [N]: what the reduced grid leaves out of sum (J - t)^2 / n^2, or null
  T counts;                ///< C, where there are no means
  bool scaled;             ///< J_j = I_j mean(j) / mean(I_j)
  bool masked;             ///< some pixels may not count
  bool in_order = false;   ///< values and pixel weights are those of the selection, in its order

  /// Where values and pixel weights have the i-th pattern of the selection, j of the scan.
  KOKKOS_INLINE_FUNCTION std::int64_t row(std::int64_t i, std::int64_t j) const { return in_order ? i : j; }

  /// Of t, and of J where patterns are scaled.
  KOKKOS_INLINE_FUNCTION T mean(std::int64_t j) const { return means ? means[j] : counts; }

  /// The loss of pattern j from what was summed over its pixels.
  KOKKOS_INLINE_FUNCTION double loss(std::int64_t j, double sum, T norm, double pixels) const {
    return double(norm) * (sum + (constants && means[j] > 0 ? constants[j] * pixels : 0));
  }
};

/// The weight of a pixel that is stored at `index`.
template <class T, class Storage>
KOKKOS_FORCEINLINE_FUNCTION T pixel_weight(const Targets<T, Storage>& targets, std::int64_t index, T target) {
  return targets.pixel_weights ? targets.pixel_weights[index] : targets.masked && target < 0 ? T(0) : T(1);
}

} // namespace Bracewell::Impl
