// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/line_fft.hpp>
#include <bracewell/impl/radix_passes.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/tomography/detail/frame_margins.hpp>

#include <cstdint>
#include <iterator>

namespace Bracewell::Impl {

/// Filters the columns of frames whose rows are transformed: a team reads some neighbouring columns, continues them
/// beyond their ends, transforms them in scratch memory, multiplies, goes back and writes the rows that there are.
template <class T>
struct FilterFrameColumns {
  using Number = PlainComplex<T>;
  using Passes = RadixPasses<T, false>;
  static constexpr int chip_team_size = 256, chip_teams = 4;

  Number* spectra;  ///< [frames, rows, columns]
  const T* factors; ///< [padded rows, columns], real
  int rows, columns;
  QuickDivision columns_of_team;
  bool transpose; ///< zeros beyond the ends; what the filter leaves there is added to the values next to it
  Passes forward, inverse;

  static std::size_t bytes(int padded_rows, int columns_of_team) {
    return std::size_t(2) * padded_rows * columns_of_team * sizeof(Number);
  }
  /// Columns of two passes or more for a team, four of which shall share a multiprocessor's memory on the chip; 0 where they cannot: with one
  /// team of 2048 rows FFT plans were faster (NVIDIA H200, 2026-11-24).
  static int choose_columns(int padded_rows, std::size_t chip) {
    if (choose_radices(padded_rows, Passes::most).size() > 1)
      for (const int result : {16, 8, 4})
        if (chip_teams * bytes(padded_rows, result) <= chip)
          return result;
    return 0;
  }

  template <int lanes = chip_team_size, class Team>
  KOKKOS_FUNCTION void run(const Team& team, void* scratch) const {
    const int size = forward.n, width = columns_of_team.by(), blocks = (columns + width - 1) / width,
              first = static_cast<int>(team.number() % blocks) * width,
              own = Kokkos::min(width, columns - first);
    Number* const frame = spectra + team.number() / blocks * rows * columns + first;
    Number* const memory = static_cast<Number*>(scratch);
    const LineFFT<T, Team, ManyLines<true>, LineExchange::Buffers, lanes> lines{
        team, {columns_of_team, own, 0}, memory, memory + size * width};
    lines.template first<false>(forward, [&](int column, int y) {
      return y < rows || !transpose ? frame[std::int64_t(repeated_index(y, rows, size)) * columns + column]
                                    : Number{0, 0};
    });
    lines.template middle<false>(forward);
    lines.template use_transform<false>(forward, [&](const LineButterfly& at, int apart, auto& x) {
      const T* const factor = factors + (std::int64_t(at.j) * columns + first + at.line);
      BRACEWELL_UNROLL_FOR (int q = 0; q < int(std::size(x)); ++q)
        x[q] = {x[q].re * factor[std::int64_t(q) * apart * columns],
                x[q].im * factor[std::int64_t(q) * apart * columns]};
    });
    lines.template middle<true>(inverse);
    Number* const padded = lines.to;
    lines.template last<true>(inverse, [&](int column, int y, const Number& value) {
      if (transpose)
        padded[y * width + column] = value;
      else if (y < rows)
        frame[std::int64_t(y) * columns + column] = value;
    });
    if (transpose) {
      team.barrier();
      fold<lanes>(team.rank(), padded, own, frame);
    }
  }

private:
  /// Adds what the filter has left beyond the ends to the values next to it.
  template <int lanes>
  KOKKOS_FORCEINLINE_FUNCTION void fold(int rank, const Number* padded, int own, Number* frame) const {
    const int width = columns_of_team.by();
    for (int i = rank; i < rows * width; i += lanes) {
      const int y = i / width, column = i % width;
      const auto same = FoldFrames<T>::repeats(y, rows, forward.n);
      Number sum = padded[i];
      for (int k = y + 1; k < same.end; ++k)
        sum = sum + padded[k * width + column];
      for (int k = same.second; k < same.second_end; ++k)
        sum = sum + padded[k * width + column];
      if (column < own)
        frame[std::int64_t(y) * columns + column] = sum;
    }
  }
};

/// The machine of PhaseRetrieval where teams have columns on the chip.
template <class Space, class T>
class FrameColumns {
  using Kernel = FilterFrameColumns<T>;

public:
  /// Whether teams can have columns of so many rows.
  static bool fit(const Space& space, int padded_rows) {
    return Kernel::choose_columns(padded_rows, chip_memory(space)) > 0;
  }

  /// @param padded_rows  that fit
  FrameColumns(const Space& space, int padded_rows)
      : columns_of_team_(Kernel::choose_columns(padded_rows, chip_memory(space))),
        plan_(space, "Bracewell::PhaseRetrieval::tables", padded_rows) {}

  std::size_t memory_bytes() const { return plan_.memory_bytes(); }

  void execute(const Space& space, Kokkos::complex<T>* spectra, const T* factors, int frames, int rows,
               int columns, bool transpose) const {
    const int blocks = (columns + columns_of_team_ - 1) / columns_of_team_;
    launch_on_chip(space, "Bracewell::PhaseRetrieval::columns", frames * blocks,
                   Kernel::bytes(plan_.forward().n, columns_of_team_),
                   Kernel{reinterpret_cast<PlainComplex<T>*>(spectra), factors, rows, columns,
                          QuickDivision(columns_of_team_), transpose, plan_.forward(), plan_.inverse()});
  }

private:
  int columns_of_team_;
  RadixPlan<Space, T, false> plan_;
};

} // namespace Bracewell::Impl
