// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/radix_passes.hpp>
#include <bracewell/tomography/detail/frame_margins.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Filters the columns of frames whose rows are transformed: a team reads some neighbouring columns, continues them
/// beyond their ends, transforms them in scratch memory, multiplies, goes back and writes the rows that there are.
template <class T>
struct FilterFrameColumns {
  using Number = PlainComplex<T>;
  static constexpr int chip_team_size = 256, chip_teams = 4;

  Number* spectra;  ///< [frames, rows, columns]
  const T* factors; ///< [padded rows, columns], real
  int rows, columns, columns_of_team;
  bool transpose; ///< zeros beyond the ends; what the filter leaves there is added to the values next to it
  RadixPasses<T> forward, inverse;

  static std::size_t bytes(int padded_rows, int columns_of_team) {
    return std::size_t(2) * padded_rows * columns_of_team * sizeof(Number);
  }
  /// Columns of a team, four of which shall share a multiprocessor's memory on the chip; 0 where they cannot: with one
  /// team of 2048 rows FFT plans were faster (NVIDIA H200, 2026-11-24).
  static int choose_columns(int padded_rows, std::size_t chip) {
    if (!choose_radices(padded_rows, RadixPasses<T>::most).empty())
      for (const int result : {16, 8, 4})
        if (chip_teams * bytes(padded_rows, result) <= chip)
          return result;
    return 0;
  }

  template <class Team>
  KOKKOS_FUNCTION void run(const Team& team, void* scratch) const {
    const int size = forward.n, blocks = (columns + columns_of_team - 1) / columns_of_team,
              first = static_cast<int>(team.number() % blocks) * columns_of_team,
              own = Kokkos::min(columns_of_team, columns - first);
    Number* const frame = spectra + team.number() / blocks * rows * columns + first;
    Number *from = static_cast<Number*>(scratch), *to = from + size * columns_of_team;
    for (int i = team.rank(); i < size * columns_of_team; i += chip_team_size) {
      const int y = i / columns_of_team, column = i % columns_of_team;
      const bool there = column < own && (y < rows || !transpose);
      from[i] = there ? frame[std::int64_t(repeated_index(y, rows, size)) * columns + column] : Number{0, 0};
    }
    team.barrier();
    pass<false>(team, forward, from, to);
    for (int i = team.rank(); i < size * columns_of_team; i += chip_team_size)
      if (i % columns_of_team < own) {
        const T factor = factors[std::int64_t(i / columns_of_team) * columns + first + i % columns_of_team];
        from[i] = {from[i].re * factor, from[i].im * factor};
      }
    team.barrier();
    pass<true>(team, inverse, from, to);
    for (int i = team.rank(); i < rows * columns_of_team; i += chip_team_size) {
      const int y = i / columns_of_team, column = i % columns_of_team;
      Number sum = from[i];
      if (transpose) {
        const auto same = FoldFrames<T>::repeats(y, rows, size);
        for (int k = y + 1; k < same.end; ++k)
          sum = sum + from[k * columns_of_team + column];
        for (int k = same.second; k < same.second_end; ++k)
          sum = sum + from[k * columns_of_team + column];
      }
      if (column < own)
        frame[std::int64_t(y) * columns + column] = sum;
    }
  }

private:
  template <bool backward>
  struct Pass {
    const FilterFrameColumns& of;
    const RadixPasses<T>& passes;
    int p, rank;
    const Number* from;
    Number* to;

    template <int radix>
    KOKKOS_FORCEINLINE_FUNCTION void run() const {
      using FFT = RegisterFFT<radix, backward>;
      const int each = passes.n / radix, lines = of.columns_of_team;
      const QuickDivision& done = passes.pass[p].done;
      for (int b = rank; b < each * lines; b += chip_team_size) {
        const int j = b / lines, line = b % lines, before = done.quotient(j) * done.by();
        Number x[radix];
        BRACEWELL_UNROLL
        for (int q = 0; q < radix; ++q)
          x[q] = from[(j + each * q) * lines + line];
        if (p == 0)
          FFT::run(x);
        else
          FFT::run_shifted(x, passes.table + passes.pass[p].factors + (j - before) * FFT::factors);
        BRACEWELL_UNROLL
        for (int k = 0; k < radix; ++k)
          to[(before * radix + j - before + done.by() * k) * lines + line] = x[k];
      }
    }
  };

  /// All passes of a transform, which leave its values in `from`.
  template <bool backward, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void pass(const Team& team, const RadixPasses<T>& passes, Number*& from,
                                        Number*& to) const {
    for (int p = 0; p < passes.count; ++p) {
      visit_radix(passes.pass[p].radix, Pass<backward>{*this, passes, p, team.rank(), from, to});
      team.barrier();
      Number* const left = to;
      to = from, from = left;
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
                          columns_of_team_, transpose, plan_.forward(), plan_.inverse()});
  }

private:
  int columns_of_team_;
  RadixPlan<Space, T> plan_;
};

} // namespace Bracewell::Impl
