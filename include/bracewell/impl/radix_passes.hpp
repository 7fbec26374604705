// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/quick_division.hpp>
#include <bracewell/impl/register_fft.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

namespace Bracewell::Impl {

/// A DFT of n numbers as passes of butterflies of `radix` numbers in registers (Stockham: input and output in
/// natural order), for kernels. With s = n / radix and d = `done`, butterfly j < s of a pass is
///   y_k = sum_q exp(-2 pi i (k + (j mod d) / d) q / radix) x(j + s q),
/// which becomes number (j div d) d radix + j mod d + d k of the next pass; of the last pass d = s, and y_k is
/// X(j + s k). So the first pass reads, and the last one leaves, numbers that lie s apart; the passes of the inverse
/// have the opposite order, so that a butterfly of its first pass needs what one of the last pass of the DFT left.
template <class T>
struct RadixPasses {
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
  const PlainComplex<T>* table;

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
};

/// Radices of passes; visit_radix has a case for each.
inline constexpr std::array pass_radices{16, 12, 10, 8, 7, 6, 5, 4, 3, 2};

/// The fewest radices, and among them those of the least sum, whose product is n, the largest first and last; none
/// where n has other prime factors than 2, 3, 5 and 7, or needs more than `most` passes.
inline std::vector<int> choose_radices(int n, int most) {
  std::vector<int> best, tried;
  const auto rank = [](const std::vector<int>& radices) {
    return std::pair(radices.size(), std::accumulate(radices.begin(), radices.end(), 0));
  };
  const auto search = [&](const auto& self, int rest) -> void {
    if (rest == 1 && (best.empty() || rank(tried) < rank(best)))
      best = tried;
    if (rest == 1 || static_cast<int>(tried.size()) == most)
      return;
    for (const int radix : pass_radices)
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

/// Calls action.template run<radix>().
template <class Action>
KOKKOS_FORCEINLINE_FUNCTION void visit_radix(int radix, const Action& action) {
  switch (radix) {
  case 16:
    return action.template run<16>();
  case 12:
    return action.template run<12>();
  case 10:
    return action.template run<10>();
  case 8:
    return action.template run<8>();
  case 7:
    return action.template run<7>();
  case 6:
    return action.template run<6>();
  case 5:
    return action.template run<5>();
  case 4:
    return action.template run<4>();
  case 3:
    return action.template run<3>();
  case 2:
    return action.template run<2>();
  }
}

/// The passes of a DFT of n numbers and of its inverse, with their tables.
template <class Space, class T>
class RadixPlan {
  using Number = PlainComplex<T>;
  using Memory = typename Space::memory_space;

public:
  /// @param n  a product of powers of 2, 3, 5 and 7 (choose_radices)
  RadixPlan(const Space& space, const char* label, int n) {
    std::vector<int> radices = choose_radices(n, RadixPasses<T>::most);
    std::vector<Number> numbers;
    forward_passes_ = make(n, radices, numbers);
    std::reverse(radices.begin(), radices.end());
    inverse_passes_ = make(n, radices, numbers);
    table_ = device_copy(space, label, numbers);
    forward_passes_.table = inverse_passes_.table = table_.data();
  }

  const RadixPasses<T>& forward() const { return forward_passes_; }
  const RadixPasses<T>& inverse() const { return inverse_passes_; }
  std::size_t memory_bytes() const { return bytes_of(table_); }

private:
  static RadixPasses<T> make(int n, const std::vector<int>& radices, std::vector<Number>& numbers) {
    const auto gap = [&](int radix) { return radix % 2 == 0 ? radix : n; };
    RadixPasses<T> result{};
    result.n = n;
    result.gap = QuickDivision(gap(radices.front()));
    const int used = n + n / std::min(gap(radices.front()), gap(radices.back()));
    result.length = used + (24 - used % 16) % 16; // the lines of neighbouring lanes begin 8 of 16 banks apart
    int done = 1;
    for (const int radix : radices) {
      result.pass[result.count++] = {radix, static_cast<int>(numbers.size()), QuickDivision(done),
                                     QuickDivision(n / radix)};
      if (done > 1)
        for (int j = 0; j < done; ++j)
          append_factors(radix, double(j) / done, numbers, std::make_index_sequence<pass_radices.size()>());
      done *= radix;
    }
    return result;
  }

  template <std::size_t... index>
  static void append_factors(int radix, double shift, std::vector<Number>& numbers,
                             std::index_sequence<index...>) {
    const auto append = [&](auto known) {
      using FFT = RegisterFFT<decltype(known)::value, false>;
      if (radix != decltype(known)::value)
        return;
      numbers.resize(numbers.size() + FFT::factors);
      FFT::write_factors(shift, numbers.data() + numbers.size() - FFT::factors);
    };
    (append(std::integral_constant<int, pass_radices[index]>()), ...);
  }

  RadixPasses<T> forward_passes_, inverse_passes_;
  Kokkos::View<Number*, Kokkos::LayoutRight, Memory> table_;
};

} // namespace Bracewell::Impl
