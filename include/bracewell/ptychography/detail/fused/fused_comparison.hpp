// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/ptychography/detail/fused_sizes.hpp>

namespace Bracewell::Impl {

/// Targets of the frequencies k + per_lane g of a column, as a lane reads them.
template <class Storage, class Sizes>
struct FusedTargets {
  struct alignas(sizeof(Storage) * PatternLayout::group) Four {
    Storage value[PatternLayout::group];
  };
  Four fours[Sizes::lanes / PatternLayout::group];

  KOKKOS_FORCEINLINE_FUNCTION static FusedTargets read(const Storage* targets, int column, int k) {
    const Storage* const first = targets + (std::int64_t(column) * Sizes::n + k * PatternLayout::group);
    FusedTargets result;
    BRACEWELL_UNROLL_FOR (int g = 0; g < Sizes::lanes / PatternLayout::group; ++g)
      result.fours[g] = *reinterpret_cast<const Four*>(first + g * PatternLayout::group * Sizes::per_lane);
    return result;
  }

  KOKKOS_FORCEINLINE_FUNCTION Storage operator[](int g) const {
    return fours[g / PatternLayout::group].value[g % PatternLayout::group];
  }
};

/// Compares what a lane has of |Psi|^2 with the targets, and multiplies Psi by the derivative of the loss.
template <class T, class Storage, class Sizes>
struct FusedComparison {
  using Number = PlainComplex<T>;

  // References: copies would be made before the transform, and take registers that it needs.
  const PatternLoss& loss;
  const bool& masked;
  const T& background;
  const T& scale;       ///< of the intensity, to J
  const T& target_unit; ///< of counts in half precision
  const T& unit;        ///< of the derivative, so that half precision holds it

  /// Adds to sums.first the loss, and to sums.second the moment l'(J) I.
  template <class Sum>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(const FusedTargets<Storage, Sizes>& measured,
                                              Number (&psi)[Sizes::lanes], TeamSums<Sum>& sums) const {
    visit_loss_in_kernel(loss, [&](auto kind) {
      if (masked)
        compare<decltype(kind)::value, true>(measured, psi, sums);
      else
        compare<decltype(kind)::value, false>(measured, psi, sums);
    });
  }

private:
  template <PatternLoss kind, bool some_masked, class Sum>
  KOKKOS_FORCEINLINE_FUNCTION void compare(const FusedTargets<Storage, Sizes>& measured,
                                           Number (&psi)[Sizes::lanes], TeamSums<Sum>& sums) const {
    const PatternTerm<kind, T, Storage> term{background, target_unit};
    T sum = 0, moment = 0;
    BRACEWELL_UNROLL_FOR (int g = 0; g < Sizes::lanes; ++g) {
      const T t = static_cast<T>(measured[g]);
      Number& wave = psi[g];
      const T intensity = wave.re * wave.re + wave.im * wave.im;
      T value, slope;
      term(scale * intensity, t, value, slope);
      if constexpr (some_masked) {
        value = t >= 0 ? value : T(0);
        slope = t >= 0 ? slope : T(0);
      }
      sum += value;
      moment += slope * intensity;
      const T factor = slope * unit;
      wave = {wave.re * factor, wave.im * factor};
    }
    sums.first += sum;
    sums.second += moment;
  }
};

} // namespace Bracewell::Impl
