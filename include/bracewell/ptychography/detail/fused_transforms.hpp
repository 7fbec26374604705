// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/line_steps.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/fused_sizes.hpp>

#include <vector>

namespace Bracewell::Impl {

/// A line of FusedSizes and its transforms, as one of its lanes sees them: inner and outer sums, and the exchange between
/// them. These are the two steps of StepPasses. On hosts a thread does the work of all lanes, one after the other.
template <bool host, class T, class Sizes>
struct FusedLine {
  static constexpr int lanes = Sizes::lanes, per_lane = Sizes::per_lane, leading = Sizes::leading;
  static constexpr bool own_factors = !host && Sizes::outer_sums == 1, same_factors = lanes == per_lane;
  using Number = PlainComplex<T>;
  using Passes = StepPasses<T, Sizes>;

  Number* exchange;    ///< of the line
  const Number* table; ///< see FusedSizes
  int lane, group;     ///< `group`: of lanes, or the line of the team
  /// Factors that a lane keeps in registers.
  Number outer_factors[own_factors ? Sizes::outer_factors : 1];
  Number inner_factors[own_factors && !same_factors ? Sizes::inner_factors : 1];

  FusedLine() = default;
  /// @param own  the table from which the lane's own factors are read
  KOKKOS_FORCEINLINE_FUNCTION FusedLine(int rank, Number* scratch, const Number* table_, const Number* own)
      : exchange(scratch + Sizes::begin(rank)), table(table_), lane(Sizes::lane(rank)),
        group(host ? 0 : Sizes::line(rank)) {
    if constexpr (own_factors) {
      BRACEWELL_UNROLL_FOR (int f = 0; f < Sizes::outer_factors; ++f)
        outer_factors[f] = own[(lane < per_lane ? lane : 0) * Sizes::outer_factors + f];
      if constexpr (!same_factors) {
        BRACEWELL_UNROLL_FOR (int f = 0; f < Sizes::inner_factors; ++f)
          inner_factors[f] = own[per_lane * Sizes::outer_factors + lane * Sizes::inner_factors + f];
      }
    }
  }

  /// step(lane): on GPUs side by side, on hosts one after the other. What it leaves in the exchange can be
  /// read by the next step.
  template <class Step>
  KOKKOS_FORCEINLINE_FUNCTION void for_lanes(const Step& step) const {
    if constexpr (host) {
      for (int each = 0; each < lanes; ++each)
        step(each);
    } else {
      step(lane);
      synchronise_lanes();
    }
  }

  /// step(line) for the rows or columns of a group among `groups`. Groups of a warp do the same number of them,
  /// some maybe from `count` on: they meet at every exchange. Neighbouring lines go to `side` groups that have
  /// them `lanes` apart: where the groups among 16 neighbouring lanes do, these run over different banks.
  template <int groups, int side, class Step>
  KOKKOS_FORCEINLINE_FUNCTION void for_lines(int count, const Step& step) const {
    for (int each = group; line_of<side>(host ? each : each - each % Sizes::groups) < count; each += groups)
      step(line_of<side>(each));
  }
  template <int side>
  KOKKOS_FORCEINLINE_FUNCTION static int line_of(int group) {
    const int first = group / side;
    return first / lanes * (side * lanes) + first % lanes + group % side * lanes;
  }

  /// Inner sums of a lane, into the exchange.
  KOKKOS_FORCEINLINE_FUNCTION void inner_forward(int own, Number (&x)[per_lane]) const {
    RegisterFFT<per_lane, false>::template run_leading<leading>(x);
    Passes::template put<0>(exchange, own, x);
  }
  /// Outer sums of a lane for one k.
  KOKKOS_FORCEINLINE_FUNCTION void outer_forward(int k, Number (&y)[lanes]) const {
    Passes::template get<1>(exchange, k, y);
    RegisterFFT<lanes, false>::run_shifted(y, own_factors ? outer_factors : table + k * Sizes::outer_factors);
  }
  KOKKOS_FORCEINLINE_FUNCTION void outer_adjoint(int k, Number (&y)[lanes]) const {
    RegisterFFT<lanes, true>::run(y);
    Passes::template put<1>(exchange, k, y);
  }
  KOKKOS_FORCEINLINE_FUNCTION void inner_adjoint(int own, Number (&x)[per_lane]) const {
    Passes::template get<0>(exchange, own, x);
    const Number* const of_lane = table + per_lane * Sizes::outer_factors + own * Sizes::inner_factors;
    RegisterFFT<per_lane, true>::run_shifted(x, !own_factors   ? of_lane
                                                : same_factors ? outer_factors
                                                               : inner_factors);
  }
};

/// The factors of FusedSizes. Waits.
template <class T, class Space, class Sizes>
Kokkos::View<PlainComplex<T>*, Kokkos::LayoutRight, typename Space::memory_space>
make_fused_table(const Space& space, Sizes) {
  std::vector<PlainComplex<T>> table(Sizes::table);
  PlainComplex<T>* next = table.data();
  for (int k = 0; k < Sizes::per_lane; ++k, next += Sizes::outer_factors)
    RegisterFFT<Sizes::lanes, false>::write_factors(double(k) / Sizes::per_lane, next);
  for (int t = 0; t < Sizes::lanes; ++t, next += Sizes::inner_factors)
    RegisterFFT<Sizes::per_lane, true>::write_factors(double(t) / Sizes::lanes, next);
  return device_copy(space, "Bracewell::PtychographyLoss::table", table);
}

} // namespace Bracewell::Impl
