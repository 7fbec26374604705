// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/division.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/turns.hpp>
#include <bracewell/ptychography/detail/sums/exit_waves.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

#include <type_traits>

namespace Bracewell::Impl {

/// Where the probes stand within their windows: positions minus corners, or what the scan has.
struct ProbeFractions {
  const double* positions; ///< [N, 2] or null
  const double* own;       ///< fractions [N, 2], or null where all are zero
  const int* corners;
  double* fractions;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    fractions[i] = positions ? positions[i] - corners[i] : own ? own[i] : 0;
  }
};

/// Phases exp(-2 pi i k f / m) of shifts by a fraction f of a pixel, [patterns, 2, m]: of the frequencies along rows,
/// then columns. With corners f also has the corner, so that the pixel of the object (y, x) is (y mod m, x mod m) of the
/// shifted probe.
template <class T>
struct ShiftPhases {
  const double* fractions; ///< [N, 2]
  const int* corners;      ///< [N, 2] or null
  Selection selection;
  Kokkos::complex<T>* phases;
  int m;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int k = static_cast<int>(index % m), axis = static_cast<int>(index / m % 2);
    const std::int64_t of = 2 * selection(index / m / 2) + axis;
    const double f = fractions[of] + (corners ? corners[of] % m : 0);
    const auto phase = unit_phase(-double(2 * k < m ? k : k - m) * f / m);
    phases[index] = Kokkos::complex<T>(static_cast<T>(phase.real()), static_cast<T>(phase.imag()));
  }
};

/// Phase of a probe shifted by (row, column) pixels, at one frequency of the m x m grid.
template <class T>
struct ShiftRamp {
  const Kokkos::complex<T>* phases; ///< ShiftPhases
  Selection selection;
  int m, modes;

  KOKKOS_FORCEINLINE_FUNCTION Kokkos::complex<T> operator()(std::int64_t i, int row, int column) const {
    const Kokkos::complex<T>* const phase = phases + 2 * i * m;
    return phase[row] * phase[m + column];
  }
};

/// Spectra of the probes of every pattern, DFT(q_jl) with q_jl = p_l + [l = 0] sum_c a_jc v_c, shifted.
template <class T>
struct ShiftedSpectra {
  ShiftRamp<T> ramp;
  const Kokkos::complex<T>* spectra;      ///< [modes + C, m, m]: of the probe and of the relaxation
  const Kokkos::complex<T>* coefficients; ///< a [N, C]
  int relaxation;                         ///< C

  KOKKOS_INLINE_FUNCTION std::int64_t pixels() const { return std::int64_t(ramp.m) * ramp.m; }
  KOKKOS_INLINE_FUNCTION std::int64_t elements() const { return ramp.modes * pixels(); } ///< of a pattern

  /// Not yet shifted, of pattern i of the selection and pixel row m + column of a mode.
  KOKKOS_FORCEINLINE_FUNCTION Kokkos::complex<T> still(std::int64_t i, int mode, std::int64_t pixel) const {
    Kokkos::complex<T> value = spectra[mode * pixels() + pixel];
    if (mode == 0 && relaxation > 0) {
      const Kokkos::complex<T>* const a = coefficients + ramp.selection(i) * relaxation;
      for (int c = 0; c < relaxation; ++c)
        value += a[c] * spectra[(ramp.modes + c) * pixels() + pixel];
    }
    return value;
  }
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> operator()(std::int64_t i, int mode, int row, int column) const {
    return still(i, mode, row * ramp.m + column) * ramp(i, row, column);
  }
};

/// What is written, the inverse transform makes the probes of.
template <class T>
struct ShiftProbes {
  ShiftedSpectra<T> spectra;
  Kokkos::complex<T>* shifted; ///< [patterns, modes, m, m]

  KOKKOS_FUNCTION void operator()(std::int64_t i, int mode, int row, int column, std::int64_t index) const {
    shifted[index] = spectra(i, mode, row, column) / T(spectra.pixels());
  }
};

/// conj(O) G of every pattern by itself: the gradient with respect to its shifted probe.
template <class T>
struct ProbeGradientTerms {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;
  WaveGradients<T, T> waves;
  Kokkos::complex<T>* terms; ///< [patterns, modes, m, m]

  KOKKOS_FUNCTION void operator()(std::int64_t i, int mode, int row, int column, std::int64_t index) const {
    terms[index] = conjugate_product(object[scan.corner(selection(i)) + row * scan.columns + column],
                                     waves(i, mode, row, column));
  }
};

/// Sums of the spectra of the terms, shifted back: of the probe gradient, sum_j, and of that of the relaxation,
/// sum_j conj(a_jc) of the first mode.
template <class T>
struct SumShiftedBack {
  ShiftRamp<T> ramp;
  const Kokkos::complex<T>* terms;
  const Kokkos::complex<T>* coefficients;
  int relaxation;
  Kokkos::complex<T>* sums; ///< [modes + C, m, m]

  KOKKOS_FUNCTION void operator()(std::int64_t element) const {
    const std::int64_t pixels = std::int64_t(ramp.m) * ramp.m, elements = ramp.modes * pixels;
    const auto c = static_cast<int>(element / pixels) - ramp.modes;
    const std::int64_t at = c < 0 ? element : element % pixels;
    const int column = static_cast<int>(at % ramp.m), row = static_cast<int>(at / ramp.m % ramp.m);
    Kokkos::complex<T> sum(0);
    for (std::int64_t i = 0; i < ramp.selection.count; ++i) {
      const auto term = conjugate_product(ramp(i, row, column), terms[i * elements + at]);
      sum += c < 0 ? term : conjugate_product(coefficients[ramp.selection(i) * relaxation + c], term);
    }
    sums[element] = sum / T(pixels);
  }
};

/// Waves on a grid of n x n that were shifted change by IDFT(-2 pi i k_a / n DFT(wave)) where axis a of their
/// shift changes. Teams, each with a block of rows of a pattern, sum
///   sum_l sum_k k_a Im(conj(G_jl(k)) W_jl(k))
/// over spectra of waves W and of the gradients with respect to them G. Times 2 pi / n^3 it is
/// dL/dy (Guizar-Sicairos and Fienup, Opt. Express 16 (2008) 7264).
/// @tparam Spectra  gives W: a pointer, or ShiftedSpectra
template <class Space, class T, class Spectra>
struct ShiftGradient {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::pattern_threads;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  int n, modes;
  Divisor blocks, side; ///< of a pattern, and n
  Spectra waves;
  const Kokkos::complex<T>* gradients; ///< [patterns, modes, n, n]
  double* sums;                        ///< [patterns, blocks, 2]

  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> wave(std::int64_t i, int mode, int row, int column) const {
    if constexpr (std::is_pointer_v<Spectra>)
      return waves[((i * modes + mode) * n + row) * n + column];
    else
      return waves(i, mode, row, column);
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    std::uint32_t block = static_cast<std::uint32_t>(team.league_rank());
    const std::int64_t i = blocks.divide(block), pixels = std::int64_t(n) * n;
    const int begin = static_cast<int>(blocks.quotient(block * std::uint32_t(n))) * n,
              end = static_cast<int>(blocks.quotient((block + 1) * std::uint32_t(n))) * n;
    double rows = 0, columns = 0;
    for (int pixel = begin + team.team_rank(); pixel < end; pixel += team.team_size()) {
      std::uint32_t left = static_cast<std::uint32_t>(pixel);
      const int row = static_cast<int>(side.divide(left)), column = static_cast<int>(left);
      T part = 0;
      for (int mode = 0; mode < modes; ++mode)
        part += conjugate_product(gradients[(i * modes + mode) * pixels + pixel], wave(i, mode, row, column))
                    .imag();
      rows += (2 * row < n ? row : row - n) * double(part);
      columns += (2 * column < n ? column : column - n) * double(part);
    }
    write_team_sums<Space>(team, rows, columns, sums + 2 * std::int64_t(team.league_rank()));
  }
};

/// gradient_ja (+)= factor times what the blocks of a pattern left.
template <class T>
struct AddShiftGradients {
  const double* sums; ///< [patterns, blocks, 2]
  int blocks;
  Selection selection;
  double factor;
  T* gradient; ///< [N, 2]
  bool accumulate;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t i = index / 2, axis = index % 2;
    double sum = 0;
    for (int block = 0; block < blocks; ++block)
      sum += sums[2 * (i * blocks + block) + axis];
    T& result = gradient[2 * selection(i) + axis];
    result = static_cast<T>((accumulate ? double(result) : 0) + factor * sum);
  }
};

/// gradient_a (+)= factor times what all blocks of all patterns left. One team.
template <class Space, class T>
struct SumShiftGradients {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::sum_threads;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  const double* sums; ///< [count, 2]
  std::int64_t count;
  double factor;
  T* gradient; ///< [2]
  bool accumulate;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    double rows = 0, columns = 0;
    team_sums<Space>(
        team, count,
        [&](std::int64_t i, double& of_rows, double& of_columns) {
          of_rows += sums[2 * i];
          of_columns += sums[2 * i + 1];
        },
        rows, columns);
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      gradient[0] = static_cast<T>((accumulate ? double(gradient[0]) : 0) + factor * rows);
      gradient[1] = static_cast<T>((accumulate ? double(gradient[1]) : 0) + factor * columns);
    });
  }
};

/// Gradients with respect to the coefficients, sum_r conj(v_c) G of the first mode: a team per pattern, from
/// spectra of the terms and of the relaxation.
template <class Space, class T>
struct CoefficientGradient {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::pattern_threads;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  ShiftedSpectra<T> spectra;
  const Kokkos::complex<T>* terms;
  Kokkos::complex<T>* gradient; ///< [N, C]

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int m = spectra.ramp.m;
    const std::int64_t i = team.league_rank(), pixels = spectra.pixels();
    const Kokkos::complex<T>* const term = terms + i * spectra.elements();
    for (int c = 0; c < spectra.relaxation; ++c) {
      const Kokkos::complex<T>* const v = spectra.spectra + (spectra.ramp.modes + c) * pixels;
      double re = 0, im = 0;
      team_sums<Space>(
          team, m * m,
          [&](int k, double& sum_re, double& sum_im) {
            const auto product =
                conjugate_product(v[k], conjugate_product(spectra.ramp(i, k / m, k % m), term[k]));
            sum_re += product.real();
            sum_im += product.imag();
          },
          re, im);
      Kokkos::single(Kokkos::PerTeam(team), [&]() {
        gradient[spectra.ramp.selection(i) * spectra.relaxation + c] =
            Kokkos::complex<T>(static_cast<T>(re / double(pixels)), static_cast<T>(im / double(pixels)));
      });
    }
  }
};

} // namespace Bracewell::Impl
