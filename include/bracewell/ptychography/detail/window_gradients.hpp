// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/plain_complex.hpp>
#include <bracewell/ptychography/detail/known_gradients.hpp>

namespace Bracewell::Impl {

/// GradientColumns at whole positions, where the sums of a probe have room on the chip. A team has columns of the object,
/// wrapped as those of shifted probes, and goes through a run of patterns: conj(p) G of a pixel is summed in registers and
/// left where the last window of the run that has the pixel has it (HeldRows, of columns of the window), conj(O) G in
/// scratch memory. Waves are not wrapped: the team reads the columns that it needs, and transforms them to the rows that
/// its threads have, by factors for each.
template <class Space, class T, class Sizes>
struct WindowGradients : KnownColumns<Space, T, Sizes, false> {
  using Base = KnownColumns<Space, T, Sizes, false>;
  using typename Base::Number, typename Base::Line, typename Base::Complex, typename Base::Part;
  static constexpr int n = Base::n, per_lane = Base::per_lane, lanes = Line::lanes,
                       outer_sums = Line::outer_sums;
  static constexpr int chip_team_size = Base::threads, chip_teams = 1;
  static constexpr std::size_t bytes = (Sizes::exchange + n * n + n * Sizes::inner_factors) * sizeof(Number);

  /// Numbers of the probe that a thread loads at a time: with more, registers are spilled.
  static constexpr int together = 4;

  const Number* rotations; ///< inner factors for every row
  const PatternSums<T>* patterns;
  Complex* sums; ///< [runs, blocks, modes, n, n]
  int runs;      ///< of the patterns, about equally long
  HeldRows* held;
  bool want_object, want_probe;

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, void* scratch) const {
    Number* const memory = static_cast<Number*>(scratch);
    const Part part(this->modes, static_cast<int>(team.number()));
    const Line at(team.rank(), memory, this->table);
    const int own = part.first + at.group;
    const std::int64_t count = this->selection.count;
    const int begin = static_cast<int>(part.slice * count / runs),
              end = static_cast<int>((part.slice + 1) * count / runs);
    Number *const probe_sums = memory + Sizes::exchange, *const factors = probe_sums + n * n;
    set_up(team.rank(), probe_sums, factors);
    Number o[per_lane], sum[per_lane] = {};
    auto now = this->corner(begin);
    read_object(at, own, now, o);
    fetch(at, column_of(begin, part, own, now.column));
    for (int i = begin; i < end; ++i) {
      const bool more = i + 1 < end;
      const auto next = this->corner(more ? i + 1 : i);
      const T factor = patterns[i].wave_factor;
      const int column = Base::unwrapped(own, now.column) - now.column,
                first = Base::unwrapped(at.lane, now.row) - now.row;
      Complex* const wave = column_of(i, part, own, now.column);
      take_wave(at);
      if (i + 2 < end)
        prefetch_wave(team, i + 2, part, this->corner(i + 2).column);
      Number x[per_lane];
      team.barrier();
      at.read_inner(first, x);
      team.barrier();
      if (more)
        fetch(at, column_of(i + 1, part, own, next.column)); // on its way
      Line::inner_adjoint_from(first, factors, x);
      const Complex* const probe = this->probes + part.mode * (n * n);
      const unsigned pixel = first * n + column;
      add_products(probe, pixel, factor, o, x, sum, probe_sums);
      const bool stays = more && Base::unwrapped(own, now.column) == Base::unwrapped(own, next.column);
      const HeldRows rows = stays ? rows_before<n>(now.row, next.row) : HeldRows{0, n};
      leave_rows(at, own, next, first, rows, wave, o, sum);
      if (want_object && part.mode == 0 && at.lane == 0)
        held[std::int64_t(i) * n + column] = rows;
      now = next;
    }
    team.barrier();
    if (!want_probe)
      return;
    Complex* const to =
        sums + ((std::int64_t(part.slice) * Sizes::blocks + part.first / Sizes::lines) * this->modes.by() +
                part.mode) *
                   (n * n);
    for (int k = team.rank(); k < n * n; k += chip_team_size)
      to[k] = Complex(probe_sums[k].re, probe_sums[k].im);
  }

private:
  /// Row of the window of number j of a thread, whose first is in row `first`; and the pixel, if it is pixel `first`.
  KOKKOS_FORCEINLINE_FUNCTION static int row_of(int first, int j) {
    return static_cast<int>(static_cast<unsigned>(first + lanes * j) % n);
  }
  KOKKOS_FORCEINLINE_FUNCTION static unsigned pixel_of(unsigned first, int j) {
    return (first + lanes * n * j) % (n * n);
  }

  /// The column of a wave that is over the object's column of a thread, in the window that begins in column `corner`.
  KOKKOS_FORCEINLINE_FUNCTION Complex* column_of(int i, const Part& part, int own, int corner) const {
    return this->waves + ((std::int64_t(i) * this->modes.by() + part.mode) * (n * n) +
                          in_blocks<wave_block>(Base::unwrapped(own, corner) - corner, n));
  }

  /// Copies what a thread has of a wave to its places in the exchange.
  KOKKOS_FORCEINLINE_FUNCTION static void fetch(const Line& at, const Complex* wave) {
    const Complex* const from = wave + at.lane * wave_block;
    BRACEWELL_UNROLL
    for (int c = 0; c < outer_sums; ++c)
      BRACEWELL_UNROLL
    for (int g = 0; g < lanes; ++g)
      copy_ahead(reinterpret_cast<Complex*>(at.exchange +
                                            ((at.lane + lanes * c) * Sizes::pitch + g * Sizes::stride)),
                 from + Line::outer(c, g) * wave_block);
  }

  KOKKOS_FORCEINLINE_FUNCTION void set_up(int rank, Number* probe_sums, Number* factors) const {
    for (int k = rank; k < n * n; k += chip_team_size)
      probe_sums[k] = {0, 0};
    for (int k = rank; k < n * Sizes::inner_factors; k += chip_team_size)
      factors[k] = rotations[k];
  }

  /// The object's numbers of a thread in the window that begins at `corner`.
  template <class Corner>
  KOKKOS_FORCEINLINE_FUNCTION void read_object(const Line& at, int own, const Corner& corner,
                                               Number (&o)[per_lane]) const {
    const Complex* const object = this->object + Base::unwrapped(own, corner.column);
    const int columns = static_cast<int>(this->scan.columns);
    BRACEWELL_UNROLL
    for (int j = 0; j < per_lane; ++j)
      o[j] = plain(object[Base::unwrapped(at.lane + lanes * j, corner.row) * columns]);
  }

  /// The outer part of the transform of the wave that has arrived.
  KOKKOS_FORCEINLINE_FUNCTION static void take_wave(const Line& at) {
    Number y[outer_sums][lanes];
    wait_for_copies();
    BRACEWELL_UNROLL
    for (int c = 0; c < outer_sums; ++c)
      BRACEWELL_UNROLL
    for (int g = 0; g < lanes; ++g)
      y[c][g] = at.exchange[(at.lane + lanes * c) * Sizes::pitch + g * Sizes::stride];
    at.outer_adjoint(y);
  }

  /// Adds conj(p) G to `sum` and conj(O) G to those of the probe, whose pixel of number 0 is `pixel`.
  KOKKOS_FORCEINLINE_FUNCTION static void add_products(const Complex* probe, unsigned pixel, T factor,
                                                       const Number (&o)[per_lane], Number (&x)[per_lane],
                                                       Number (&sum)[per_lane], Number* probe_sums) {
    BRACEWELL_UNROLL
    for (int from = 0; from < per_lane; from += together) {
      Number p[together];
      BRACEWELL_UNROLL
      for (int k = 0; k < together; ++k)
        p[k] = plain(probe[pixel_of(pixel, from + k)]);
      if (factor != 0) {
        BRACEWELL_UNROLL
        for (int k = 0; k < together; ++k) {
          const int j = from + k;
          const Number psi = times<false>(o[j], p[k]);
          x[j] = {x[j].re - factor * psi.re, x[j].im - factor * psi.im};
        }
      }
      BRACEWELL_UNROLL
      for (int k = 0; k < together; ++k) {
        const int j = from + k;
        sum[j] = sum[j] + times<true>(x[j], p[k]);
        Number& of_probe = probe_sums[pixel_of(pixel, j)];
        of_probe = of_probe + times<true>(x[j], o[j]);
      }
    }
  }

  /// Leaves the sums of rows that the next window has no more in the wave, and begins with the object's rows that come.
  template <class Corner>
  KOKKOS_FORCEINLINE_FUNCTION void leave_rows(const Line& at, int own, const Corner& next, int first,
                                              const HeldRows& rows, Complex* wave, Number (&o)[per_lane],
                                              Number (&sum)[per_lane]) const {
    if (rows.begin >= rows.end)
      return;
    const Complex* const object = this->object + Base::unwrapped(own, next.column);
    const int columns = static_cast<int>(this->scan.columns);
    BRACEWELL_UNROLL
    for (int j = 0; j < per_lane; ++j) {
      const int row = row_of(first, j);
      if (row < rows.begin || row >= rows.end)
        continue;
      if (want_object)
        wave[row * wave_block] = Complex(sum[j].re, sum[j].im);
      sum[j] = {0, 0};
      o[j] = plain(object[Base::unwrapped(at.lane + lanes * j, next.row) * columns]);
    }
  }

  /// Lets the team's columns of a wave set out.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void prefetch_wave(const Team& team, int i, const Part& part,
                                                 int corner) const {
    constexpr int apart = 128 / sizeof(Complex), of_block = n * wave_block; // the line of a cache
    const Complex* const wave = this->waves + (std::int64_t(i) * this->modes.by() + part.mode) * (n * n);
    const int from = Base::unwrapped(part.first, corner) - corner;
    for (int k = team.rank() * apart; k < Sizes::lines * n; k += chip_team_size * apart)
      prefetch(wave + ((from / wave_block * of_block + k) % (n * n)));
  }
};

} // namespace Bracewell::Impl
