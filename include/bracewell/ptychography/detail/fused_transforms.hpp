// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/ptychography/detail/fused_sizes.hpp>

#include <vector>

namespace Bracewell::Impl {

/// The transforms of FusedSizes by groups of lanes: inner and outer sums, and the exchange between them. On
/// hosts a thread does the work of all lanes, one after the other.
template <bool host, class T, class Sizes>
struct FusedTransforms {
  static constexpr int lanes = Sizes::lanes, per_lane = Sizes::per_lane, leading = Sizes::leading;
  static constexpr bool own_factors = !host && Sizes::outer_sums == 1, same_factors = lanes == per_lane;
  using Number = PlainComplex<T>;

  /// A group of lanes, as one of them sees it.
  struct LaneGroup {
    Number* exchange;    ///< of the group
    const Number* table; ///< see FusedSizes
    int lane, group;
    Number outer[own_factors ? Sizes::outer_factors : 1];
    Number inner[own_factors && !same_factors ? Sizes::inner_factors : 1];
  };

  /// Factors that a lane keeps in registers.
  KOKKOS_FORCEINLINE_FUNCTION static void load_factors(LaneGroup& at, const Number* table) {
    if constexpr (own_factors) {
      BRACEWELL_UNROLL
      for (int f = 0; f < Sizes::outer_factors; ++f)
        at.outer[f] = table[(at.lane < per_lane ? at.lane : 0) * Sizes::outer_factors + f];
      if constexpr (!same_factors) {
        BRACEWELL_UNROLL
        for (int f = 0; f < Sizes::inner_factors; ++f)
          at.inner[f] = table[per_lane * Sizes::outer_factors + at.lane * Sizes::inner_factors + f];
      }
    }
  }

  /// step(lane): on GPUs side by side, on hosts one after the other. What it leaves in the exchange can be
  /// read by the next step.
  template <class Step>
  KOKKOS_FORCEINLINE_FUNCTION static void for_lanes(const LaneGroup& at, const Step& step) {
    if constexpr (host) {
      for (int lane = 0; lane < lanes; ++lane)
        step(lane);
    } else {
      step(at.lane);
      synchronise_lanes();
    }
  }

  /// step(line) for the rows or columns of a group among `groups`. Groups of a warp do the same number of them,
  /// some maybe from `count` on: they meet at every exchange. Neighbouring lines go to `side` groups that have
  /// them `lanes` apart: where the groups among 16 neighbouring lanes do, these run over different banks.
  template <int groups, int side, class Step>
  KOKKOS_FORCEINLINE_FUNCTION static void for_lines(const LaneGroup& at, int count, const Step& step) {
    for (int group = at.group; line<side>(host ? group : group - group % Sizes::groups) < count;
         group += groups)
      step(line<side>(group));
  }
  template <int side>
  KOKKOS_FORCEINLINE_FUNCTION static int line(int group) {
    const int first = group / side;
    return first / lanes * (side * lanes) + first % lanes + group % side * lanes;
  }

  /// Inner sums of a lane, into the exchange.
  KOKKOS_FORCEINLINE_FUNCTION static void inner_forward(const LaneGroup& at, int lane,
                                                        Number (&x)[per_lane]) {
    RegisterFFT<per_lane, false>::template run_leading<leading>(x);
    BRACEWELL_UNROLL
    for (int k = 0; k < per_lane; ++k)
      at.exchange[k * Sizes::pitch + lane * Sizes::stride] = x[k];
  }
  /// Outer sums of a lane for one k.
  KOKKOS_FORCEINLINE_FUNCTION static void outer_forward(const LaneGroup& at, int k, Number (&y)[lanes]) {
    BRACEWELL_UNROLL
    for (int t = 0; t < lanes; ++t)
      y[t] = at.exchange[k * Sizes::pitch + t * Sizes::stride];
    RegisterFFT<lanes, false>::run_shifted(y, own_factors ? at.outer : at.table + k * Sizes::outer_factors);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void outer_adjoint(const LaneGroup& at, int k, Number (&y)[lanes]) {
    RegisterFFT<lanes, true>::run(y);
    BRACEWELL_UNROLL
    for (int t = 0; t < lanes; ++t)
      at.exchange[k * Sizes::pitch + t * Sizes::stride] = y[t];
  }
  KOKKOS_FORCEINLINE_FUNCTION static void inner_adjoint(const LaneGroup& at, int lane,
                                                        Number (&x)[per_lane]) {
    BRACEWELL_UNROLL
    for (int k = 0; k < per_lane; ++k)
      x[k] = at.exchange[k * Sizes::pitch + lane * Sizes::stride];
    const Number* const inner = at.table + per_lane * Sizes::outer_factors + lane * Sizes::inner_factors;
    RegisterFFT<per_lane, true>::run_shifted(x, !own_factors ? inner : same_factors ? at.outer : at.inner);
  }
};

/// Factors of the inner sums of the adjoint for the first `count` numbers of a line, behind each other.
template <class Sizes, class T>
void write_inner_factors(int count, PlainComplex<T>* to) {
  for (int t = 0; t < count; ++t, to += Sizes::inner_factors)
    RegisterFFT<Sizes::per_lane, true>::write_factors(double(t) / Sizes::lanes, to);
}

/// The factors of FusedSizes. Waits.
template <class T, class Space, class Sizes>
Kokkos::View<PlainComplex<T>*, Kokkos::LayoutRight, typename Space::memory_space>
make_fused_table(const Space& space, Sizes) {
  std::vector<PlainComplex<T>> table(Sizes::table);
  PlainComplex<T>* next = table.data();
  for (int k = 0; k < Sizes::per_lane; ++k, next += Sizes::outer_factors)
    RegisterFFT<Sizes::lanes, false>::write_factors(double(k) / Sizes::per_lane, next);
  write_inner_factors<Sizes>(Sizes::lanes, next);
  return device_copy(space, "Bracewell::PtychographyLoss::table", table);
}

} // namespace Bracewell::Impl
