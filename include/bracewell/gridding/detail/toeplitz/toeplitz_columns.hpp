// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/toeplitz/toeplitz_blocks.hpp>
#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/line_fft.hpp>
#include <bracewell/impl/line_steps.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace Bracewell::Impl {

/// How a team has some neighbouring columns of `Steps::n` numbers on the chip.
template <class T, class Steps, int columns_>
struct ToeplitzColumnTeam {
  static constexpr int columns = columns_;
  /// Lanes that have neighbouring columns meet in no memory bank.
  static constexpr int line = Steps::place(Steps::n) + 128 / (columns * int(sizeof(PlainComplex<T>)));
  static constexpr std::size_t bytes = columns * line * sizeof(PlainComplex<T>),
                               chip = 232448; ///< of an H100

  /// Fewer lanes, so that registers are left for a second team where there is the memory for one.
  static constexpr int lanes() {
    constexpr int most = 65536 / Steps::template registers<T>, twice = 2 * (bytes + 1024) <= chip ? 2 : 1;
    int result = columns * Steps::team_size;
    while (twice * result > most)
      result /= 2;
    return result;
  }
  static constexpr int team_size = lanes();
  static constexpr int teams =
      std::clamp(int(chip / (bytes + 1024)), 1, Steps::template resident<T>(team_size));
};

/// As many columns as fill a sector of memory, 32 bytes, or fewer where a multiprocessor has no room for them: with two
/// columns of 4096 numbers the team takes less time, but rows more, whose teams write parts of sectors (NVIDIA H100,
/// 2026-11-24).
template <class T, class Steps>
constexpr int toeplitz_columns() {
  constexpr int most = 32 / sizeof(PlainComplex<T>);
  using Half = ToeplitzColumnTeam<T, Steps, most / 2>;
  return ToeplitzColumnTeam<T, Steps, most>::bytes <= Half::chip ? most : most / 2;
}

/// Columns of the spectra of rows, on to the spectra of images, times the transfer function, and back: a team has some
/// neighbouring ones.
template <class T, class Steps, int columns>
struct ToeplitzColumns {
  using ColumnTeam = ToeplitzColumnTeam<T, Steps, columns>;
  using Number = PlainComplex<T>;
  static constexpr int first = Steps::first, third = Steps::third, n = Steps::n;
  static constexpr int chip_team_size = ColumnTeam::team_size, chip_teams = ColumnTeam::teams;

  Number* spectra;  ///< [images, blocks]
  const T* factors; ///< [columns, n], in the order of the steps
  std::int64_t
      images; ///< neighbouring teams have the same columns of all of them, so that factors are read once
  int height; ///< at most n / 2
  ToeplitzBlocks blocks;
  const Number* table; ///< StepPasses' roots

  template <int lanes = chip_team_size, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, void* scratch) const {
    Number* const values = static_cast<Number*>(scratch);
    const std::int64_t own = team.number() / images * columns;
    Number* const spectrum = spectra + team.number() % images * blocks.size(height) + own * blocks.rows;
    const T* const transfer = factors + own * n;
    const std::int64_t apart = std::int64_t(n / first) * blocks.row_length;
    const LineFFT<T, Team, StepLines<columns, ColumnTeam::line>, LineExchange::InPlace, lanes> line{
        team, {}, values, values};
    const StepPasses<T, Steps> passes{table};
    line.template first<false, 2>(passes, [&](const LineButterfly& at, int rows, Number(&x)[first]) {
      const Number* const from = spectrum + blocks.row(at.j) + at.line;
      BRACEWELL_UNROLL_FOR (int q = 0; q < first / 2; ++q)
        x[q] = at.j + q * rows < height ? from[q * apart] : Number{0, 0};
    });
    line.template middle<false>(passes);
    line.template use_transform<false>(passes, [&](const LineButterfly& at, int groups, Number(&x)[third]) {
      BRACEWELL_UNROLL_FOR (int q = 0; q < third; ++q) {
        const T factor = transfer[at.line * n + q * groups + at.j];
        x[q] = {x[q].re * factor, x[q].im * factor};
      }
    });
    line.template middle<true>(passes);
    line.template last<true>(passes, [&](const LineButterfly& at, int rows, const Number(&x)[first]) {
      Number* const to = spectrum + blocks.row(at.j) + at.line;
      BRACEWELL_UNROLL_FOR (int q = 0; q < first / 2; ++q)
        if (at.j + q * rows < height)
          to[q * apart] = x[q];
    });
  }
};

} // namespace Bracewell::Impl
