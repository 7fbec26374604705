// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/line_fft.hpp>
#include <bracewell/impl/register_fft.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace Bracewell::Impl {

/// A length that the compiler knows, as the product of the radices of two steps or of three.
template <int... radices>
struct StepRadices {
  static constexpr int steps = sizeof...(radices), n = (radices * ...);
  static_assert(steps == 2 || steps == 3);

  KOKKOS_FORCEINLINE_FUNCTION static constexpr int radix(int s) {
    constexpr int all[]{radices...};
    return all[s];
  }
  /// The product of the radices before step s, and of those behind it: numbers of a butterfly lie so far apart.
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int done(int s) {
    int product = 1;
    for (int i = 0; i < s; ++i)
      product *= radix(i);
    return product;
  }
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int apart(int s) { return n / done(s) / radix(s); }
  /// The first number of butterfly b of a step.
  template <int step>
  KOKKOS_FORCEINLINE_FUNCTION static int first_number(int b) {
    return step == 0 ? b : b / apart(step) * (apart(step) * radix(step)) + b % apart(step);
  }
  /// Butterflies of the last step.
  static constexpr int groups = done(steps - 1);
  /// The first frequency that butterfly `group` of the last step leaves: the others lie `groups` apart.
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int frequency(int group) {
    return steps == 2 ? group : group / radix(1) + radix(0) * (group % radix(1));
  }
};

/// The passes of LineFFT for a length that the compiler knows. Steps are StepRadices, place(i) of number i of
/// the line in scratch memory, and first_place<s>(b) of the first number of butterfly b of step s. They are taken in place:
/// the numbers of a butterfly lie apart(s) from each other, and so do the frequencies that it leaves; after the last
/// step group g has frequencies frequency(g) + groups q. The inverse takes the steps in the opposite order. Pass p is step
/// p, of the inverse step steps - 1 - p.
template <class T, class Steps>
struct StepPasses {
  using Number = PlainComplex<T>;
  static constexpr int n = Steps::n, last = Steps::steps - 1;

  const Number* table; ///< write_roots()

  /// exp(-2 pi i j / n), and the same of the first frequency of every group.
  static constexpr int roots = n + Steps::groups;
  static std::vector<Number> write_roots() {
    std::vector<Number> result;
    for (int j = 0; j < n; ++j)
      result.push_back(unit_root<T>(double(j) / n));
    for (int group = 0; group < Steps::groups; ++group)
      result.push_back(unit_root<T>(double(Steps::frequency(group)) / n));
    return result;
  }

  /// The numbers of butterfly b of a step.
  template <int step>
  KOKKOS_FORCEINLINE_FUNCTION static void get(const Number* line, int b, Number (&x)[Steps::radix(step)]) {
    const int first = Steps::template first_place<step>(b);
    BRACEWELL_UNROLL_FOR (int q = 0; q < Steps::radix(step); ++q)
      x[q] = line[Steps::place(q * Steps::apart(step)) + first];
  }
  template <int step>
  KOKKOS_FORCEINLINE_FUNCTION static void put(Number* line, int b, const Number (&x)[Steps::radix(step)]) {
    const int first = Steps::template first_place<step>(b);
    BRACEWELL_UNROLL_FOR (int q = 0; q < Steps::radix(step); ++q)
      line[Steps::place(q * Steps::apart(step)) + first] = x[q];
  }

  /// The functions of RadixPasses for LineFFT: a pass p is a constant.
  template <bool inverse, class Action>
  KOKKOS_FORCEINLINE_FUNCTION static void visit_first(const Action& action) {
    visit<inverse, 0>(action);
  }
  template <bool inverse, class Action>
  KOKKOS_FORCEINLINE_FUNCTION static void visit_middle(const Action& action) {
    if constexpr (last == 2)
      visit<inverse, 1>(action);
  }
  template <bool inverse, class Action>
  KOKKOS_FORCEINLINE_FUNCTION static void visit_last(const Action& action) {
    visit<inverse, last>(action);
  }
  template <bool inverse, int radix>
  KOKKOS_FORCEINLINE_FUNCTION static void put_first(Number* to, int b, const Number (&x)[radix]) {
    put<inverse ? last : 0>(to, b, x);
  }
  template <bool inverse, class Pass, int radix>
  KOKKOS_FORCEINLINE_FUNCTION static void put(Number* to, Pass, int b, const Number (&x)[radix]) {
    put<step<inverse, Pass::value>>(to, b, x);
  }
  template <bool inverse, class Pass, int radix>
  KOKKOS_FORCEINLINE_FUNCTION void transform(const Number* from, Pass, int b, Number (&x)[radix]) const {
    constexpr int s = step<inverse, Pass::value>, apart = Steps::apart(s);
    get<s>(from, b, x);
    Number factors[RegisterFFT<radix, inverse>::factors];
    RegisterFFT<radix, inverse>::expand_factors(table[s == (inverse ? 0 : last) ? (inverse ? 0 : n) + b
                                                      : inverse                 ? b % apart * Steps::done(s)
                                                                                : b / apart * apart],
                                                factors);
    RegisterFFT<radix, inverse>::run_shifted(x, factors);
  }

private:
  template <bool inverse, int p>
  static constexpr int step = inverse ? last - p : p;

  template <bool inverse, int p, class Action>
  KOKKOS_FORCEINLINE_FUNCTION static void visit(const Action& action) {
    action(std::integral_constant<int, Steps::radix(step<inverse, p>)>(), std::integral_constant<int, p>());
  }
};

/// The lines of a team, a number of them that the compiler knows. Neighbouring threads have neighbouring lines in the pass
/// that loads or stores them.
/// @tparam pitch     places from one line to the next
/// @tparam adjacent  whether they have in all passes
template <int count = 1, int pitch = 0, bool adjacent = false>
struct StepLines {
  template <bool outside, class Passes, class P>
  KOKKOS_FORCEINLINE_FUNCTION static LineButterfly butterfly(const Passes&, P, int b, int each) {
    if constexpr (count == 1)
      return {0, b};
    else
      return outside || adjacent ? LineButterfly{b % count, b / count} : LineButterfly{b / each, b % each};
  }
  KOKKOS_FORCEINLINE_FUNCTION static int all(int each) { return count * each; }
  KOKKOS_FORCEINLINE_FUNCTION static bool has(const LineButterfly&, int) { return true; }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION static T* memory(T* of_team, int line) {
    return of_team + line * pitch;
  }
};

/// The steps of a line on the chip.
template <int first_, int second_, int third_>
struct LineSteps : StepRadices<first_, second_, third_> {
  using Radices = StepRadices<first_, second_, third_>;
  using Radices::n, Radices::groups;
  static constexpr int first = first_, second = second_, third = third_;
  static constexpr int largest = std::max({first, second, third}), team_size = n / (largest > 24 ? 32 : 16);
  static_assert(second % 2 == 0 && second * third % 16 == 0 && (third == 8 || third == 16),
                "LineSteps: place() is linear in what the steps add to it.");

  /// A number is left out after 16, so that lanes that are `third` numbers apart meet in no memory bank.
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int place(int i) { return i + i / 16; }
  template <int step>
  KOKKOS_FORCEINLINE_FUNCTION static int first_place(int b) {
    return place(Radices::template first_number<step>(b));
  }
  template <class T>
  static constexpr std::size_t bytes = place(n) * sizeof(PlainComplex<T>);

  /// Registers that a thread needs, and teams of a multiprocessor by them.
  template <class T>
  static constexpr int
      registers = std::min((largest <= 16 ? 64 : (largest <= 24 ? 80 : 128)) * int(sizeof(T)) / 4, 255);
  template <class T>
  static constexpr int resident(int threads = team_size) {
    return std::max(1, 65536 / (registers<T> * threads));
  }
};

/// Lines of ascending sizes, and their steps.
template <class... Steps>
struct StepsOfLines {
  static constexpr std::array sizes{Steps::n...};

  template <class Action>
  static void visit(int n, const Action& action) {
    (void)((n == Steps::n && (action(Steps()), true)) || ...);
  }
};
using AllLineSteps = StepsOfLines<LineSteps<16, 8, 8>, LineSteps<16, 12, 8>, LineSteps<16, 16, 8>,
                                  LineSteps<16, 12, 16>, LineSteps<16, 16, 16>, LineSteps<16, 24, 16>,
                                  LineSteps<16, 32, 16>, LineSteps<32, 24, 16>, LineSteps<32, 32, 16>>;
inline constexpr auto line_sizes = AllLineSteps::sizes;

/// action(steps) of the lines of n numbers.
template <class Action>
void visit_line_steps(int n, const Action& action) {
  AllLineSteps::visit(n, action);
}

} // namespace Bracewell::Impl
