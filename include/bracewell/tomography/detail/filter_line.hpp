// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/chip_teams.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/register_fft.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace Bracewell::Impl {

/// The three steps of the DFT of a line that lies in scratch memory: n is their product.
template <int first_, int second_, int third_>
struct FilterSteps {
  static constexpr int first = first_, second = second_, third = third_, n = first * second * third;
  static constexpr int largest = std::max({first, second, third}), team_size = n / (largest > 24 ? 32 : 16);
  static_assert(second % 2 == 0 && second * third % 16 == 0 && (third == 8 || third == 16),
                "FilterSteps: place() is linear in what the steps add to it.");

  /// A number is left out after 16, so that lanes that are `third` numbers apart meet in no memory bank.
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int place(int i) { return i + i / 16; }
  template <class T>
  static constexpr std::size_t bytes = place(n) * sizeof(PlainComplex<T>);

  /// Of a multiprocessor, by registers of which a thread needs so many.
  template <class T>
  static constexpr int resident() {
    constexpr int registers = (largest <= 16 ? 64 : (largest <= 24 ? 80 : 128)) * int(sizeof(T)) / 4;
    return std::max(1, 65536 / (std::min(registers, 255) * team_size));
  }
};

/// Sizes of lines; visit_filter_steps has a case for each.
inline constexpr std::array filter_line_sizes{1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384};

template <class Action>
void visit_filter_steps(int n, const Action& action) {
  switch (n) {
  case 1024:
    return action(FilterSteps<16, 8, 8>());
  case 1536:
    return action(FilterSteps<16, 12, 8>());
  case 2048:
    return action(FilterSteps<16, 16, 8>());
  case 3072:
    return action(FilterSteps<16, 12, 16>());
  case 4096:
    return action(FilterSteps<16, 16, 16>());
  case 6144:
    return action(FilterSteps<16, 24, 16>());
  case 8192:
    return action(FilterSteps<16, 32, 16>());
  case 12288:
    return action(FilterSteps<32, 24, 16>());
  case 16384:
    return action(FilterSteps<32, 32, 16>());
  }
}

/// The size of the lines that FilterLine transforms for rows that need `least` values with their margins: the smallest
/// one there is, if a team may have it on the chip; else 0. Rows of less than half of the smallest are not worth it.
/// @param chip  bytes that a team may have: 0 on hosts
template <class T>
int choose_filter_line(std::int64_t least, std::size_t chip) {
  int result = 0;
  if (2 * least >= filter_line_sizes.front())
    for (const int n : filter_line_sizes)
      if (result == 0 && n >= least)
        visit_filter_steps(n, [&](auto steps) {
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
  static constexpr int first = Steps::first, second = Steps::second, third = Steps::third, n = Steps::n;
  static constexpr int chip_team_size = Steps::team_size, chip_teams = Steps::template resident<T>();

  const T* in; ///< [rows, width]
  T* out;      ///< [rows, width], or `in`
  std::int64_t rows;
  int width;            ///< at most n / 2
  bool edge;            ///< continues rows beyond their ends, as PadProjections
  const Number* tables; ///< write_tables

  /// exp(-2 pi i j / n); the same of the first frequency of every group of `third`; factors [third, groups].
  static constexpr int table_size = 2 * n + n / third;
  /// @param factors  of the frequencies 0 ... n / 2 of a real kernel
  static std::vector<Number> write_tables(const std::vector<Kokkos::complex<T>>& factors) {
    std::vector<Number> result;
    for (int j = 0; j < n; ++j)
      result.push_back(unit_root<T>(double(j) / n));
    for (int group = 0; group < groups; ++group)
      result.push_back(unit_root<T>(double(frequency(group)) / n));
    for (int q = 0; q < third; ++q)
      for (int group = 0; group < groups; ++group) {
        const int k = frequency(group) + first * second * q;
        const Kokkos::complex<T> factor = factors[static_cast<std::size_t>(std::min(k, n - k))];
        result.push_back({factor.real(), 2 * k > n ? -factor.imag() : factor.imag()});
      }
    return result;
  }

#if defined(KOKKOS_ENABLE_CUDA)
  /// As a team of launch_on_chip.
  KOKKOS_FUNCTION void operator()(void* scratch) const {
    run<chip_team_size>(ChipTeam<T>{nullptr}, static_cast<Number*>(scratch));
  }
#endif

  template <int lanes, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void run(const Team& team, Number* values) const {
    const std::int64_t row = 2 * team.number();
    const bool both = row + 1 < rows;
    for (int j = team.rank(); j < n / first; j += lanes) {
      Number x[first];
      BRACEWELL_UNROLL
      for (int q = 0; q < first; ++q) {
        const int i = j + q * (n / first);
        x[q] = {padded(in + row * width, i), both ? padded(in + (row + 1) * width, i) : T(0)};
      }
      RegisterFFT<first, false>::run(x);
      put<n / first>(x, values + Steps::place(j));
    }
    team.barrier();
    for (int b = team.rank(); b < n / second; b += lanes) {
      Number* const own = values + Steps::place(b / third * (second * third) + b % third);
      Number x[second];
      get<third>(x, own);
      shifted<false>(x, tables[b / third * third]);
      put<third>(x, own);
    }
    team.barrier();
    for (int group = team.rank(); group < groups; group += lanes) {
      Number* const own = values + Steps::place(group * third);
      Number x[third];
      get<1>(x, own);
      shifted<false>(x, tables[n + group]);
      BRACEWELL_UNROLL
      for (int q = 0; q < third; ++q)
        x[q] = turn<false>(x[q], tables[n + groups + q * groups + group]);
      RegisterFFT<third, true>::run(x);
      put<1>(x, own);
    }
    team.barrier();
    for (int b = team.rank(); b < n / second; b += lanes) {
      Number* const own = values + Steps::place(b / third * (second * third) + b % third);
      Number x[second];
      get<third>(x, own);
      shifted<true>(x, tables[b % third * first]);
      put<third>(x, own);
    }
    team.barrier();
    for (int j = team.rank(); j < n / first; j += lanes) {
      Number x[first];
      get<n / first>(x, values + Steps::place(j));
      shifted<true>(x, tables[j]);
      BRACEWELL_UNROLL
      for (int q = 0; q < first / 2; ++q) {
        const int i = j + q * (n / first);
        if (i < width)
          out[row * width + i] = x[q].re;
        if (i < width && both)
          out[(row + 1) * width + i] = x[q].im;
      }
    }
  }

private:
  static constexpr int groups = n / third;

  /// The first frequency of a group; the others follow first * second apart.
  static int frequency(int group) { return group / second + first * (group % second); }

  KOKKOS_FORCEINLINE_FUNCTION T padded(const T* values, int i) const {
    if (i < width)
      return values[i];
    return edge ? values[i < width + (n - width) / 2 ? width - 1 : 0] : T(0);
  }

  template <int apart, int R>
  KOKKOS_FORCEINLINE_FUNCTION static void get(Number (&x)[R], const Number* from) {
    BRACEWELL_UNROLL
    for (int q = 0; q < R; ++q)
      x[q] = from[Steps::place(q * apart)];
  }
  template <int apart, int R>
  KOKKOS_FORCEINLINE_FUNCTION static void put(const Number (&x)[R], Number* to) {
    BRACEWELL_UNROLL
    for (int q = 0; q < R; ++q)
      to[Steps::place(q * apart)] = x[q];
  }

  /// A DFT at frequencies that are shifted by what `root`, exp(-2 pi i shift / R), tells.
  template <bool inverse, int R>
  KOKKOS_FORCEINLINE_FUNCTION static void shifted(Number (&x)[R], const Number& root) {
    Number factors[RegisterFFT<R, inverse>::factors];
    RegisterFFT<R, inverse>::expand_factors(root, factors);
    RegisterFFT<R, inverse>::run_shifted(x, factors);
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
    visit_filter_steps(size, [&](auto steps) {
      tables_ = device_copy(space, "Bracewell::ProjectionFilter::tables",
                            FilterLine<T, decltype(steps)>::write_tables(factors));
    });
  }

  std::size_t memory_bytes() const { return bytes_of(tables_); }
  static std::size_t bytes_needed(int size) {
    std::size_t bytes = 0;
    visit_filter_steps(size, [&](auto steps) {
      bytes = FilterLine<T, decltype(steps)>::table_size * sizeof(PlainComplex<T>);
    });
    return bytes;
  }

  void execute([[maybe_unused]] const Space& space, const T* in, T* out, std::int64_t rows, int width,
               bool edge) const {
    visit_filter_steps(size_, [&](auto steps) {
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
