// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/line_fft.hpp>
#include <bracewell/impl/line_steps.hpp>
#include <bracewell/impl/memory.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace Bracewell::Impl {

/// Rows of `width` values in longer ones: half of the margin continues the right edge, half the left one.
template <class T>
struct PadProjections {
  const T* rows;
  T* padded;
  std::int64_t filled; ///< rows that there are; those behind them are zero
  int width, size;
  bool edge;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const bool there = row < filled;
    const T* in = rows + row * width;
    T* out = padded + row * size;
    const T left = there && edge ? in[0] : T(0), right = there && edge ? in[width - 1] : T(0);
    const int middle = width + (size - width) / 2;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, size), [&](int i) {
      out[i] = i < width ? (there ? in[i] : T(0)) : (i < middle ? right : left);
    });
  }
};

/// Spectra times the factors, in place or to longer ones, zero beyond.
template <class T>
struct MultiplyProjections {
  const Kokkos::complex<T>* spectra;
  const Kokkos::complex<T>* factors;
  Kokkos::complex<T>* products;
  int columns, product_columns;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const Kokkos::complex<T>* in = spectra + row * columns;
    Kokkos::complex<T>* out = products + row * product_columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, product_columns),
                         [&](int k) { out[k] = k < columns ? in[k] * factors[k] : Kokkos::complex<T>(0); });
  }
};

/// The values of the detector, without what the padding became.
template <class T>
struct CropProjections {
  const T* padded;
  T* rows;
  int width, size;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const T* in = padded + row * size;
    T* out = rows + row * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) { out[i] = in[i]; });
  }
};

/// The size of the lines that FilterLine transforms for rows that need `least` values with their margins: the smallest
/// one there is, if a team may have it on the chip; else 0. Rows of less than half of the smallest are not worth it.
/// @param chip  bytes that a team may have: 0 on hosts
template <class T>
int choose_filter_line(std::int64_t least, std::size_t chip) {
  int result = 0;
  if (2 * least >= line_sizes.front())
    for (const int n : line_sizes)
      if (result == 0 && n >= least)
        visit_line_steps(n, [&](auto steps) {
          if (decltype(steps)::template bytes<T> <= chip)
            result = n;
        });
  return result;
}

/// Filters pairs of rows, which are the parts of one complex line: the factors belong to a real kernel. A team reads
/// a pair, transforms it in scratch memory in three steps, which leave its spectrum in another order, multiplies, and
/// goes back.
template <class T, class Steps>
struct FilterLine {
  using Number = PlainComplex<T>;
  using Passes = StepPasses<T, Steps>;
  static constexpr int third = Steps::third, n = Steps::n, groups = Steps::groups;
  static constexpr int chip_team_size = Steps::team_size, chip_teams = Steps::template resident<T>();

  const T* in; ///< [rows, width]
  T* out;      ///< [rows, width], or `in`
  std::int64_t rows;
  int width;            ///< at most n / 2
  bool edge;            ///< continues rows beyond their ends, as PadProjections
  const Number* tables; ///< write_tables

  /// StepPasses' roots; factors [third, groups].
  static constexpr int table_size = Passes::roots + n;
  /// @param factors  of the frequencies 0 ... n / 2 of a real kernel
  static std::vector<Number> write_tables(const std::vector<Kokkos::complex<T>>& factors) {
    std::vector<Number> result = Passes::write_roots();
    for (int q = 0; q < third; ++q)
      for (int group = 0; group < groups; ++group) {
        const int k = Steps::frequency(group) + groups * q;
        const Kokkos::complex<T> factor = factors[static_cast<std::size_t>(std::min(k, n - k))];
        result.push_back({factor.real(), 2 * k > n ? -factor.imag() : factor.imag()});
      }
    return result;
  }

  template <int lanes = chip_team_size, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, void* scratch) const {
    Number* const values = static_cast<Number*>(scratch);
    const std::int64_t row = 2 * team.number();
    const bool both = row + 1 < rows;
    const LineFFT<T, Team, StepLines<>, LineExchange::InPlace, lanes> line{team, {}, values, values};
    const Passes passes{tables};
    line.template first<false>(passes, [&](int, int i) {
      return Number{padded(in + row * width, i), both ? padded(in + (row + 1) * width, i) : T(0)};
    });
    line.template middle<false>(passes);
    line.template use_transform<false>(passes, [&](const LineButterfly& at, int apart, Number(&x)[third]) {
      BRACEWELL_UNROLL_FOR (int q = 0; q < third; ++q)
        x[q] = times<false>(x[q], tables[Passes::roots + q * apart + at.j]);
    });
    line.template middle<true>(passes);
    line.template last<true, 2>(passes, [&](int, int i, const Number& value) {
      if (i < width)
        out[row * width + i] = value.re;
      if (i < width && both)
        out[(row + 1) * width + i] = value.im;
    });
  }

private:
  KOKKOS_FORCEINLINE_FUNCTION T padded(const T* values, int i) const {
    if (i < width)
      return values[i];
    return edge ? values[i < width + (n - width) / 2 ? width - 1 : 0] : T(0);
  }
};

/// The machine of ProjectionFilter where a team has a line on the chip.
template <class Space, class T>
class FilterLines {
public:
  FilterLines() = default;
  /// @param size     from choose_filter_line
  /// @param factors  of the frequencies 0 ... size / 2
  FilterLines(const Space& space, int size, const std::vector<Kokkos::complex<T>>& factors) : size_(size) {
    visit_line_steps(size, [&](auto steps) {
      tables_ = device_copy(space, "Bracewell::ProjectionFilter::tables",
                            FilterLine<T, decltype(steps)>::write_tables(factors));
    });
  }

  std::size_t memory_bytes() const { return bytes_of(tables_); }
  static std::size_t bytes_needed(int size) {
    std::size_t bytes = 0;
    visit_line_steps(size, [&](auto steps) {
      bytes = FilterLine<T, decltype(steps)>::table_size * sizeof(PlainComplex<T>);
    });
    return bytes;
  }

  void execute([[maybe_unused]] const Space& space, const T* in, T* out, std::int64_t rows, int width,
               bool edge) const {
    visit_line_steps(size_, [&](auto steps) {
      using Steps = decltype(steps);
      if constexpr (has_chip_memory<Space>)
        launch_on_chip(space, "Bracewell::ProjectionFilter::filter", static_cast<int>((rows + 1) / 2),
                       Steps::template bytes<T>,
                       FilterLine<T, Steps>{in, out, rows, width, edge, tables_.data()});
    });
  }

private:
  int size_ = 0;
  Kokkos::View<PlainComplex<T>*, Space> tables_;
};

} // namespace Bracewell::Impl
