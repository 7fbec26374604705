// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/plain_complex.hpp>
#include <bracewell/ptychography/detail/known_line.hpp>
#include <bracewell/ptychography/detail/sums/exit_waves.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>

namespace Bracewell::Impl {

/// Spectra of the probe [modes, n, n], shifted and transformed back along the rows: the columns of the shifted probes
/// are still spectra.
template <class Space, class T, class Sizes>
struct ShiftRows : KnownKernel<Space, T, Sizes> {
  using Base = KnownKernel<Space, T, Sizes>;
  using typename Base::Complex, typename Base::Number, typename Base::Line;
  static constexpr int n = Base::n, on_chip = PtychographyTuning::shift_threads, numbers = Sizes::exchange;

  const Complex *spectrum, *phases;
  Complex* probes;
  int patterns, portions;

  KOKKOS_FUNCTION void operator()(const typename Base::Member& member) const {
    const typename Base::Part part(this->modes, member.league_rank());
    const typename Base::Scratch memory(member.team_scratch(0), +numbers);
    const Line at(member.team_rank(), memory.data(), this->table);
    const int row = part.first + at.group;
    Number given[Line::outer_sums][Line::lanes];
    Line::load_outer(spectrum + ((std::int64_t(part.mode) * n + row) * n + at.lane), given);
    for (int i = part.slice; i < patterns; i += portions) {
      const Complex* const phase = phases + std::int64_t(2) * i * n;
      Number y[Line::outer_sums][Line::lanes];
      Line::load_outer(phase + (n + at.lane), y);
      const Number own = plain(phase[row] * (T(1) / T(n * n)));
      Line::for_outer([&](int c, int g) { y[c][g] = times<false>(given[c][g], times<false>(own, y[c][g])); });
      at.outer_adjoint(y);
      synchronise_lanes();
      Number x[Line::per_lane];
      at.inner_adjoint(x);
      Line::template store_inner<n>(
          probes + ((std::int64_t(i) * this->modes.by() + part.mode) * (n * n) + Base::in_row(at, row)), x);
      synchronise_lanes();
    }
  }
};

/// Blocks of columns of the waves of a mode: a team goes through a portion of the patterns.
/// @tparam shifted  probes are shifted, and they and the waves wrapped: pixel (y, x) of the object is (y mod n, x mod n) of
///   them wherever the window begins, which no intensity knows of. Pixels that windows share are then the same ones.
template <class Space, class T, class Sizes, bool shifted>
struct KnownColumns : KnownKernel<Space, T, Sizes> {
  using Base = KnownKernel<Space, T, Sizes>;
  using typename Base::Complex, typename Base::Number, typename Base::Line;
  static constexpr int n = Base::n, per_lane = Base::per_lane;
  /// Exchanges: with two, what is written to the one need not wait until the other has been read.
  static constexpr int exchanges =
      (2 * Sizes::exchange + (shifted ? 0 : Base::threads * per_lane)) * sizeof(Number) <=
              PtychographyTuning::line_bytes
          ? 2
          : 1;
  static constexpr int numbers = exchanges * Sizes::exchange;

  Scan scan;
  Selection selection;
  const Complex* object;
  Complex* probes; ///< [modes, n, n]; if shifted, what ShiftRows has left
  Complex* waves;
  int portions;

  /// The t-th pattern in the order of the kernel: that of shifted probes begins with the last.
  KOKKOS_FORCEINLINE_FUNCTION int pattern_at(int t) const {
    return shifted ? static_cast<int>(selection.count) - 1 - t : t;
  }
  /// Pixel (lane, column) of wave i of the mode; other rows follow wave_block numbers for each.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t element(const Line& at, const typename Base::Part& part,
                                                   int i) const {
    return (std::int64_t(i) * this->modes.by() + part.mode) * (n * n) + part.first * n +
           at.lane * wave_block + at.group;
  }
  /// The same pixel in probes [.., modes, n, n] as they are given.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t given(const Line& at, const typename Base::Part& part,
                                                 int i) const {
    return (std::int64_t(i) * this->modes.by() + part.mode) * (n * n) + at.lane * n + part.first + at.group;
  }
  /// Along an axis, the pixel of the object in a window that begins at `corner`, from that of a wrapped wave.
  KOKKOS_FORCEINLINE_FUNCTION static int unwrapped(int pixel, int corner) {
    const int begin = corner % n;
    return corner - begin + pixel + (pixel < begin ? n : 0);
  }
  /// The first pixel of a pattern's window.
  struct Corner {
    int row, column;
  };
  KOKKOS_FORCEINLINE_FUNCTION Corner corner(int i) const {
    const int* const position = scan.positions + 2 * selection(i);
    return {position[0], position[1]};
  }
  KOKKOS_FORCEINLINE_FUNCTION void load_object(const Line& at, const typename Base::Part& part, int i,
                                               Number (&o)[per_lane]) const {
    const Corner first = corner(i);
    const int columns = static_cast<int>(scan.columns), own = part.first + at.group,
              column = shifted ? unwrapped(own, first.column) : first.column + own,
              begin = shifted ? first.row % n : 0;
    const Complex* const from = object + ((first.row - begin) * scan.columns + (at.lane * columns + column));
    BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j) {
      const int pixel = Line::lanes * j;
      o[j] = plain(from[(pixel + (shifted && at.lane + pixel < begin ? n : 0)) * columns]);
    }
  }
  /// Lets the team's columns of wave i of a mode set out.
  KOKKOS_FORCEINLINE_FUNCTION void prefetch_columns(const typename Base::Member& member, const Complex* of,
                                                    int i, int mode, int first) const {
    constexpr int apart = 128 / sizeof(Complex); // what a cache fetches at once
    const Complex* const from = of + ((std::int64_t(i) * this->modes.by() + mode) * (n * n) + first * n);
    for (int k = member.team_rank() * apart; k < wave_block * n; k += Base::threads * apart)
      prefetch(from + k);
  }
};

/// Exit waves, transformed along their columns.
template <class Space, class T, class Sizes, bool shifted>
struct ExitWaveColumns : KnownColumns<Space, T, Sizes, shifted> {
  using Base = KnownColumns<Space, T, Sizes, shifted>;
  using typename Base::Number, typename Base::Line;
  static constexpr int n = Base::n, per_lane = Base::per_lane, on_chip = PtychographyTuning::exit_threads;

  double* energies; ///< [patterns, modes, blocks, 2]: energy of the exit wave, or null

  KOKKOS_FUNCTION void operator()(const typename Base::Member& member) const {
    const typename Base::Part part(this->modes, member.league_rank());
    const typename Base::Scratch memory(member.team_scratch(0), +Base::numbers);
    Line at(member.team_rank(), memory.data(), this->table);
    Number p[per_lane];
    if constexpr (!shifted)
      Line::template load_inner<n>(this->probes + this->given(at, part, 0), p);
    const int count = static_cast<int>(this->selection.count);
    Number o[per_lane], x[per_lane];
    this->load_object(at, part, this->pattern_at(part.slice), o);
    for (int t = part.slice, number = 0; t < count; t += this->portions, ++number) {
      const int i = this->pattern_at(t);
      at.exchange =
          memory.data() + (Sizes::begin(member.team_rank()) + number % Base::exchanges * Sizes::exchange);
      if constexpr (shifted) {
        Number y[Line::outer_sums][Line::lanes];
        Line::template load_outer<wave_block>(this->probes + this->element(at, part, i), y);
        at.outer_adjoint(y);
        member.team_barrier();
        at.inner_adjoint(p);
      }
      BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j)
        x[j] = times<false>(o[j], p[j]);
      if (energies) {
        T energy = 0;
        BRACEWELL_UNROLL_FOR (int j = 0; j < per_lane; ++j)
          energy += x[j].re * x[j].re + x[j].im * x[j].im;
        write_team_sums<Space>(member, energy, 0,
                               energies +
                                   2 * ((std::int64_t(i) * this->modes.by() + part.mode) * Sizes::blocks +
                                        part.first / Sizes::lines));
      }
      at.inner_forward(x);
      if (t + this->portions < count)
        this->load_object(at, part, this->pattern_at(t + this->portions),
                          o); // on its way during the other half
      member.team_barrier();
      typename Base::Complex* const to = this->waves + this->element(at, part, i);
      at.outer_forward(
          [&](int c, const Number(&y)[Line::lanes]) { Line::template store_outer<wave_block>(to, c, y); });
      if constexpr (Base::exchanges == 1)
        member.team_barrier();
    }
  }
};

/// The other half of the transforms of conj(O) G, along the rows, with the shifts undone, summed over portions of the
/// patterns; and of each what ShiftGradient sums.
template <class Space, class T, class Sizes>
struct SumShiftedRows : KnownKernel<Space, T, Sizes> {
  using Base = KnownKernel<Space, T, Sizes>;
  using typename Base::Complex, typename Base::Number, typename Base::Line;
  static constexpr int n = Base::n, on_chip = PtychographyTuning::row_sum_threads, numbers = Sizes::exchange;

  const Complex *terms, *phases, *spectra; ///< the last of the probe
  Complex* sums;                           ///< [portions, modes, n, n]
  double* moments;                         ///< [patterns, modes, blocks, 2], or null
  int patterns, portions;

  KOKKOS_FUNCTION void operator()(const typename Base::Member& member) const {
    const typename Base::Part part(this->modes, member.league_rank());
    const typename Base::Scratch memory(member.team_scratch(0), +numbers);
    const Line at(member.team_rank(), memory.data(), this->table);
    const int row = part.first + at.group;
    const auto element = [&](int i) {
      return (std::int64_t(i) * this->modes.by() + part.mode) * (n * n) + Base::in_row(at, row);
    };
    const auto frequency = [](int k) { return T(2 * k < n ? k : k - n); };
    const Complex* const of_row = spectra + ((std::int64_t(part.mode) * n + row) * n + at.lane);
    Number sum[Line::outer_sums][Line::lanes] = {}, x[Line::per_lane];
    Line::template load_inner<n>(terms + element(part.slice), x);
    for (int i = part.slice; i < patterns; i += portions) {
      at.inner_forward(x);
      if (i + portions < patterns)
        Line::template load_inner<n>(terms + element(i + portions), x); // on its way during the other half
      synchronise_lanes();
      const Complex* const phase = phases + std::int64_t(2) * i * n;
      const Complex* const of_columns = phase + (n + at.lane);
      const Number own = plain(phase[row] * (T(1) / T(n * n)));
      T along_row = 0, across = 0; // of Im(conj(term) spectrum)
      at.outer_forward([&](int c, const Number(&y)[Line::lanes]) {
        BRACEWELL_UNROLL_FOR (int g = 0; g < Line::lanes; ++g) {
          const int column = Line::outer(c, g);
          const Number term = times<true>(y[g], times<false>(own, plain(of_columns[column])));
          sum[c][g] = sum[c][g] + term;
          if (moments) {
            const T product = times<true>(plain(of_row[column]), term).im;
            along_row += frequency(at.lane + column) * product;
            across += product;
          }
        }
      });
      synchronise_lanes();
      if (moments)
        write_team_sums<Space>(member, double(n * n) * frequency(row) * across, double(n * n) * along_row,
                               moments +
                                   2 * ((std::int64_t(i) * this->modes.by() + part.mode) * Sizes::blocks +
                                        part.first / Sizes::lines));
    }
    BRACEWELL_UNROLL_FOR (int c = 0; c < Line::outer_sums; ++c)
      Line::store_outer(
          sums + (((std::int64_t(part.slice) * this->modes.by() + part.mode) * n + row) * n + at.lane), c,
          sum[c]);
  }
};

/// dL/dy from the moments of SumShiftedRows: gradient_ja = factor sum over blocks.
template <class T>
struct SumPositionBlocks {
  const double* moments; ///< [patterns, blocks, 2]
  int blocks;
  Selection selection;
  double factor;
  T* gradient; ///< [N, 2]

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t i = index / 2, axis = index % 2;
    double sum = 0;
    for (int block = 0; block < blocks; ++block)
      sum += moments[2 * (i * blocks + block) + axis];
    gradient[2 * selection(i) + axis] = static_cast<T>(factor * sum);
  }
};

} // namespace Bracewell::Impl
