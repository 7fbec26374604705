// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/division.hpp>
#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/register_fft.hpp>
#include <bracewell/impl/unroll.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

namespace Bracewell::Impl {

/// Numbers of a line in scratch memory, `apart` from each other there.
template <class T>
struct LineMemory {
  PlainComplex<T>* numbers;
  int apart;

  /// Those from place `first` of the line on, with `step` places from one to the next.
  template <int radix>
  KOKKOS_FORCEINLINE_FUNCTION void get(int first, int step, PlainComplex<T> (&x)[radix]) const {
    const PlainComplex<T>* const from = numbers + first * apart;
    BRACEWELL_UNROLL_FOR (int q = 0; q < radix; ++q)
      x[q] = from[apart * step * q];
  }
  template <int radix>
  KOKKOS_FORCEINLINE_FUNCTION void put(int first, int step, const PlainComplex<T> (&x)[radix]) const {
    PlainComplex<T>* const to = numbers + first * apart;
    BRACEWELL_UNROLL_FOR (int q = 0; q < radix; ++q)
      to[apart * step * q] = x[q];
  }
};

/// Radices of passes, and action(constant of the radix, p) for one of them.
using PassRadices = std::integer_sequence<int, 16, 12, 10, 8, 7, 6, 5, 4, 3, 2>;
template <class Action, int... radices>
KOKKOS_FORCEINLINE_FUNCTION void visit_radix(int radix, int p, const Action& action,
                                             std::integer_sequence<int, radices...>) {
  (void)((radix == radices && (action(std::integral_constant<int, radices>(), p), true)) || ...);
}
template <class Action>
KOKKOS_FORCEINLINE_FUNCTION void visit_radix(int radix, int p, const Action& action) {
  visit_radix(radix, p, action, PassRadices());
}

/// The passes of LineFFT for a length that is known at run time (Stockham: input and output in natural order). With
/// s = n / radix and d = `done`, butterfly j < s of a pass is
///   y_k = sum_q exp(-2 pi i (k + (j mod d) / d) q / radix) x(j + s q),
/// which becomes number (j div d) d radix + j mod d + d k of the next pass; of the last pass d = s, and y_k is
/// X(j + s k). So the first pass reads, and the last one leaves, numbers that lie s apart; the passes of the inverse
/// have the opposite order, so that a butterfly of its first pass needs what one of the last pass of the DFT left.
/// A pass writes other places than it reads.
template <class T>
struct RadixPasses {
  using Number = PlainComplex<T>;
  using Memory = LineMemory<T>;
  static constexpr int most = 5;
  /// `factors`: where the table of a pass begins.
  struct Pass {
    int radix, factors;
    QuickDivision done, butterflies; ///< d and s
  };
  Pass pass[most];
  int n, count;
  QuickDivision
      gap; ///< where numbers lie in scratch memory between passes, place(): a number is left out after so many
  int length; ///< that a line takes there
  const Number* table;

  /// Butterflies of the first pass write `radix` numbers each. If this is even, the gap after each lets neighbouring
  /// lanes write to different banks. All later passes read and write numbers whose distance is a multiple of the gap's:
  /// `place` is linear in it.
  KOKKOS_INLINE_FUNCTION int place(int x) const { return x + gap.quotient(x); }

  /// Butterflies of the pass that has most of them.
  int most_butterflies() const {
    int least = n;
    for (int p = 0; p < count; ++p)
      least = std::min(least, pass[p].radix);
    return n / least;
  }

  /// action(constant of the radix, p) for the first pass, those between, and the last one.
  template <bool, class Action>
  KOKKOS_FORCEINLINE_FUNCTION void visit_first(const Action& action) const {
    visit_radix(pass[0].radix, 0, action);
  }
  template <bool, class Action>
  KOKKOS_FORCEINLINE_FUNCTION void visit_middle(const Action& action) const {
    for (int p = 1; p + 1 < count; ++p)
      visit_radix(pass[p].radix, p, action);
  }
  template <bool, class Action>
  KOKKOS_FORCEINLINE_FUNCTION void visit_last(const Action& action) const {
    visit_radix(pass[count - 1].radix, count - 1, action);
  }

  /// Which line butterfly b of a pass belongs to, where lines follow each other.
  KOKKOS_FORCEINLINE_FUNCTION int line(int p, int b) const { return pass[p].butterflies.quotient(b); }

  /// What butterfly j of the first pass leaves.
  template <bool, int radix>
  KOKKOS_FORCEINLINE_FUNCTION void put_first(const Memory& to, int j, const Number (&x)[radix]) const {
    to.put(j * (radix + (radix % 2 == 0)), 1, x);
  }
  /// What butterfly j of a later pass needs, transformed.
  template <bool inverse, int radix>
  KOKKOS_FORCEINLINE_FUNCTION void transform(const Memory& from, int p, int j, Number (&x)[radix]) const {
    using FFT = RegisterFFT<radix, inverse>;
    from.get(place(j), place(n / radix), x);
    FFT::run_shifted(x, table + pass[p].factors + pass[p].done.remainder(j) * FFT::factors);
  }
  /// What butterfly j of a pass between the first and the last leaves.
  template <bool, int radix>
  KOKKOS_FORCEINLINE_FUNCTION void put(const Memory& to, int p, int j, const Number (&x)[radix]) const {
    const QuickDivision& done = pass[p].done;
    const int before = done.quotient(j) * done.by();
    to.put(place(before * radix + j - before), place(done.by()), x);
  }
};

/// The fewest radices, and among them those of the least sum, whose product is n, the largest first and last; none
/// where n has other prime factors than 2, 3, 5 and 7, or needs more than `most` passes.
inline std::vector<int> choose_radices(int n, int most) {
  const auto all = []<int... radices>(std::integer_sequence<int, radices...>) {
    return std::array{radices...};
  }
  (PassRadices());
  std::vector<int> best, tried;
  const auto rank = [](const std::vector<int>& radices) {
    return std::pair(radices.size(), std::accumulate(radices.begin(), radices.end(), 0));
  };
  const auto search = [&](const auto& self, int rest) -> void {
    if (rest == 1 && (best.empty() || rank(tried) < rank(best)))
      best = tried;
    if (rest == 1 || static_cast<int>(tried.size()) == most)
      return;
    for (const int radix : all)
      if (rest % radix == 0 && (tried.empty() || radix <= tried.back())) {
        tried.push_back(radix);
        self(self, rest / radix);
        tried.pop_back();
      }
  };
  search(search, n);
  if (best.size() > 2)
    std::rotate(best.begin() + 1, best.begin() + 2, best.end());
  return best;
}

/// The passes of a DFT of n numbers and of its inverse, with their tables.
template <class Space, class T>
class RadixPlan {
  using Passes = RadixPasses<T>;
  using Number = PlainComplex<T>;
  using Memory = typename Space::memory_space;

public:
  /// @param n  a product of powers of 2, 3, 5 and 7 (choose_radices)
  RadixPlan(const Space& space, const char* label, int n) {
    std::vector<int> radices = choose_radices(n, Passes::most);
    std::vector<Number> numbers;
    forward_passes_ = make(n, radices, numbers);
    std::reverse(radices.begin(), radices.end());
    inverse_passes_ = make(n, radices, numbers);
    table_ = device_copy(space, label, numbers);
    forward_passes_.table = inverse_passes_.table = table_.data();
  }

  const Passes& forward() const { return forward_passes_; }
  const Passes& inverse() const { return inverse_passes_; }
  std::size_t memory_bytes() const { return bytes_of(table_); }

private:
  static Passes make(int n, const std::vector<int>& radices, std::vector<Number>& numbers) {
    const auto gap = [&](int radix) { return radix % 2 == 0 ? radix : n; };
    Passes result{};
    result.n = n;
    result.gap = QuickDivision(gap(radices.front()));
    const int used = n + n / std::min(gap(radices.front()), gap(radices.back()));
    result.length = used + (24 - used % 16) % 16; // the lines of neighbouring lanes begin 8 of 16 banks apart
    int done = 1;
    for (const int radix : radices) {
      result.pass[result.count++] = {radix, static_cast<int>(numbers.size()), QuickDivision(done),
                                     QuickDivision(n / radix)};
      if (done > 1)
        [&]<int... radices>(std::integer_sequence<int, radices...>) {
          ((radix == radices ? append_factors<radices>(done, numbers) : void()), ...);
        }
      (PassRadices());
      done *= radix;
    }
    return result;
  }
  template <int radix>
  static void append_factors(int done, std::vector<Number>& numbers) {
    using FFT = RegisterFFT<radix, false>;
    for (int j = 0; j < done; ++j) {
      numbers.resize(numbers.size() + FFT::factors);
      FFT::write_factors(double(j) / done, numbers.data() + numbers.size() - FFT::factors);
    }
  }

  Passes forward_passes_, inverse_passes_;
  Kokkos::View<Number*, Kokkos::LayoutRight, Memory> table_;
};

} // namespace Bracewell::Impl
