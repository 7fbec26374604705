// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/detail/lines/known_lines.hpp>
#include <bracewell/ptychography/detail/patterns/pattern_sums.hpp>
#include <bracewell/ptychography/detail/sums/object_gradient.hpp>

namespace Bracewell::Impl {

/// Of a window of n rows that begins in `row` the rows that one which begins in `next` does not have.
template <int n>
KOKKOS_FORCEINLINE_FUNCTION HeldRows rows_before(int row, int next) {
  const int step = Kokkos::max(-n, Kokkos::min(+n, next - row));
  return step >= 0 ? HeldRows{0, static_cast<std::int16_t>(step)}
                   : HeldRows{static_cast<std::int16_t>(n + step), n};
}

/// From the derivatives at the detector, transformed back along the rows, to those with respect to the exit waves, G
/// (less the wave factor times the exit wave); leaves conj(p) G, summed over the modes of a bundle, in place of the first of
/// their waves, and what the gradient of the probe needs: sums of conj(O) G over portions of the patterns; or of shifted
/// probes, of which all modes are a bundle, transforms of conj(O) G along its columns in place of the probes. There a team
/// goes through a stretch of patterns, and leaves each pixel's sum where the last of those that share it is (HeldRows).
/// @tparam together  whether bundles have several modes: their sums of conj(O) G wait in scratch memory
template <class Space, class T, class Sizes, bool shifted, bool together = false>
struct GradientColumns : KnownColumns<Space, T, Sizes, shifted> {
  using Base = KnownColumns<Space, T, Sizes, shifted>;
  using typename Base::Number, typename Base::Line, typename Base::Complex, typename Base::Part,
      typename Base::Member;
  static constexpr int n = Base::n, per_lane = Base::per_lane, lanes = Line::lanes,
                       outer_sums = Line::outer_sums,
                       on_chip = shifted ? PtychographyTuning::shifted_gradient_threads
                                         : PtychographyTuning::gradient_threads;
  /// What a mode may have in scratch memory beside the exchanges: sums, or a probe that is the same for all patterns.
  static constexpr int of_mode = per_lane * Base::threads;
  static constexpr int exchanges = together ? 1 : Base::exchanges;
  static constexpr bool keeps_probe =
      !shifted && !together &&
      (exchanges * Sizes::exchange + of_mode) * sizeof(Number) <= PtychographyTuning::line_bytes;
  /// Modes whose sums there is room for.
  static constexpr int most_together =
      (static_cast<int>(PtychographyTuning::line_bytes / sizeof(Number)) - Sizes::exchange) / of_mode;
  static constexpr int numbers = exchanges * Sizes::exchange + (keeps_probe || together ? of_mode : 0);

  QuickDivision bundles;
  int of_bundle; ///< modes
  const PatternSums<T>* patterns;
  Complex* sums; ///< [portions, modes, n, n]
  int stretches; ///< of the patterns, about equally long
  HeldRows* held;
  bool want_object, want_probe;

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const typename Base::Scratch memory(member.team_scratch(0), +numbers);
    Line at(member.team_rank(), memory.data(), this->table);
    if constexpr (shifted)
      stretch_of_patterns(member, at, memory.data());
    else if constexpr (together)
      portion_of_bundle(member, at, memory.data());
    else
      portion(member, at, memory.data());
  }

private:
  KOKKOS_FORCEINLINE_FUNCTION static void use_exchange(const Member& member, Line& at, Number* memory,
                                                       int number) {
    at.exchange = memory + (Sizes::begin(member.team_rank()) + number % exchanges * Sizes::exchange);
  }

  /// x: G of a thread, less the wave factor times its exit wave o p.
  KOKKOS_FORCEINLINE_FUNCTION static void subtract(T factor, const Number (&o)[per_lane],
                                                   const Number (&p)[per_lane], Number (&x)[per_lane]) {
    if (factor == 0)
      return;
    BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j) {
      const Number psi = times<false>(o[j], p[j]);
      x[j] = {x[j].re - factor * psi.re, x[j].im - factor * psi.im};
    }
  }

  /// A portion of the patterns, of one mode.
  KOKKOS_FORCEINLINE_FUNCTION void portion(const Member& member, Line& at, Number* memory) const {
    const Part part(this->modes, member.league_rank());
    const int count = static_cast<int>(this->selection.count);
    const Complex* const given = this->probes + this->given(at, part, 0);
    Number* const kept = memory + (exchanges * Sizes::exchange + member.team_rank());
    Number p[per_lane], o[per_lane], x[per_lane], sum[per_lane] = {}, y[outer_sums][lanes];
    if constexpr (keeps_probe) {
      Line::template load_inner<n>(given, p);
      BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j)
        kept[j * Base::threads] = p[j];
    }
    for (int i = part.slice, number = 0; i < count; i += this->portions, ++number) {
      Complex* const wave = this->waves + this->element(at, part, i);
      Line::template load_outer<wave_block>(wave, y);
      if (i + this->portions < count)
        this->prefetch_columns(member, this->waves, i + this->portions, part.mode, part.first);
      use_exchange(member, at, memory, number);
      at.outer_adjoint(y);
      this->load_object(at, part, i, o); // on its way
      member.team_barrier();
      at.inner_adjoint(x);
      if constexpr (keeps_probe) {
        BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j)
          p[j] = kept[j * Base::threads];
      } else {
        Line::template load_inner<n>(given, p);
      }
      subtract(patterns[i].wave_factor, o, p, x);
      BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j) {
        const Number product = times<true>(x[j], p[j]), term = times<true>(x[j], o[j]);
        if (want_object)
          wave[lanes * j * wave_block] = Complex(product.re, product.im);
        sum[j] = sum[j] + term;
      }
      if constexpr (exchanges == 1)
        member.team_barrier();
    }
    if (want_probe)
      Line::template store_inner<n>(sums + this->given(at, part, part.slice), sum);
  }

  /// A portion of the patterns, of a bundle of modes.
  KOKKOS_FORCEINLINE_FUNCTION void portion_of_bundle(const Member& member, Line& at, Number* memory) const {
    Part part(bundles, member.league_rank());
    const int first = part.mode * of_bundle, modes = Kokkos::min(of_bundle, this->modes.by() - first),
              count = static_cast<int>(this->selection.count);
    part.mode = first;
    const Complex* const given = this->probes + this->given(at, part, 0);
    Number* const kept = memory + (Sizes::exchange + member.team_rank());
    for (int k = 0; k < modes * per_lane; ++k)
      kept[k * Base::threads] = {0, 0};
    for (int i = part.slice; i < count; i += this->portions) {
      Complex* const waves = this->waves + this->element(at, part, i);
      Number o[per_lane], product[per_lane] = {};
      this->load_object(at, part, i, o);
      for (int mode = 0; mode < modes; ++mode) {
        Number p[per_lane], x[per_lane], y[outer_sums][lanes];
        Line::template load_outer<wave_block>(waves + mode * (n * n), y);
        if (mode + 1 < modes)
          this->prefetch_columns(member, this->waves, i, first + mode + 1, part.first);
        else if (i + this->portions < count)
          this->prefetch_columns(member, this->waves, i + this->portions, first, part.first);
        at.outer_adjoint(y);
        Line::template load_inner<n>(given + mode * (n * n), p); // on its way
        member.team_barrier();
        at.inner_adjoint(x);
        subtract(patterns[i].wave_factor, o, p, x);
        Number* const sum = kept + mode * of_mode;
        BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j) {
          product[j] = product[j] + times<true>(x[j], p[j]);
          sum[j * Base::threads] = sum[j * Base::threads] + times<true>(x[j], o[j]);
        }
        member.team_barrier();
      }
      if (want_object)
        Line::template store_inner<wave_block>(waves, product);
    }
    for (int mode = 0; want_probe && mode < modes; ++mode) {
      Number x[per_lane];
      BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j)
        x[j] = kept[mode * of_mode + j * Base::threads];
      part.mode = first + mode;
      Line::template store_inner<n>(sums + this->given(at, part, part.slice), x);
    }
  }

  /// All modes of the patterns of a stretch.
  KOKKOS_FORCEINLINE_FUNCTION void stretch_of_patterns(const Member& member, Line& at, Number* memory) const {
    const std::int64_t number =
        stretches - 1 - member.league_rank() / Sizes::blocks; // of the stretch: the last one first
    const int first = static_cast<int>(number * this->selection.count / stretches),
              last = static_cast<int>((number + 1) * this->selection.count / stretches);
    Part part(this->modes, member.league_rank());
    const int own = part.first + at.group;
    Number sum[per_lane] = {};
    for (int i = first; i < last; ++i) {
      const bool more = i + 1 < last;
      add_pattern(member, at, memory, part, i, more, sum);
      const auto now = this->corner(i), next = this->corner(more ? i + 1 : i);
      const bool stays = more && Base::unwrapped(own, now.column) == Base::unwrapped(own, next.column);
      const HeldRows rows = stays ? rows_before<n>(now.row, next.row) : HeldRows{0, n};
      if (want_object) {
        part.mode = 0;
        Complex* const to = this->waves + this->element(at, part, i);
        BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j) {
          const int row = Base::unwrapped(at.lane + lanes * j, now.row) - now.row;
          if (row >= rows.begin && row < rows.end) {
            to[lanes * j * wave_block] = Complex(sum[j].re, sum[j].im);
            sum[j] = {0, 0};
          }
        }
        if (at.lane == 0)
          held[std::int64_t(i) * n + own] = rows;
      }
    }
  }

  /// Adds conj(p) G of all modes of a pattern. more: the next one follows.
  KOKKOS_FORCEINLINE_FUNCTION void add_pattern(const Member& member, Line& at, Number* memory, Part part,
                                               int i, bool more, Number (&sum)[per_lane]) const {
    const T factor = patterns[i].wave_factor;
    Number o[per_lane], p[per_lane], x[per_lane];
    this->load_object(at, part, i, o);
    for (part.mode = 0; part.mode < this->modes.by(); ++part.mode) {
      Complex* const wave = this->waves + this->element(at, part, i);
      Complex* const probe = this->probes + this->element(at, part, i);
      Number s[outer_sums][lanes], y[outer_sums][lanes];
      Line::template load_outer<wave_block>(probe, s);
      Line::template load_outer<wave_block>(wave, y);
      const bool last = part.mode + 1 == this->modes.by();
      if (!last || more) {
        const int next = i + last, mode = last ? 0 : part.mode + 1;
        this->prefetch_columns(member, this->probes, next, mode, part.first);
        this->prefetch_columns(member, this->waves, next, mode, part.first);
      }
      use_exchange(member, at, memory, 1);
      at.outer_adjoint(s);
      member.team_barrier();
      at.inner_adjoint(p);
      if constexpr (exchanges == 1)
        member.team_barrier();
      use_exchange(member, at, memory, 0);
      at.outer_adjoint(y);
      member.team_barrier();
      at.inner_adjoint(x);
      subtract(factor, o, p, x);
      BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j) {
        sum[j] = sum[j] + times<true>(x[j], p[j]);
        x[j] = times<true>(x[j], o[j]);
      }
      if (want_probe) {
        at.inner_forward(x);
        member.team_barrier();
        at.outer_forward(
            [&](int c, const Number(&z)[lanes]) { Line::template store_outer<wave_block>(probe, c, z); });
      }
      member.team_barrier();
    }
  }
};

} // namespace Bracewell::Impl
