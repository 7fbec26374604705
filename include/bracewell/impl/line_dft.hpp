// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/register_fft.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace Bracewell::Impl {

/// The three steps of the DFT of a line that lies in scratch memory: n is their product.
template <int first_, int second_, int third_>
struct LineSteps {
  static constexpr int first = first_, second = second_, third = third_, n = first * second * third;
  static constexpr int groups = n / third; ///< of frequencies that lie first * second apart
  static constexpr int largest = std::max({first, second, third}), team_size = n / (largest > 24 ? 32 : 16);
  static_assert(second % 2 == 0 && second * third % 16 == 0 && (third == 8 || third == 16),
                "LineSteps: place() is linear in what the steps add to it.");

  /// A number is left out after 16, so that lanes that are `third` numbers apart meet in no memory bank.
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int place(int i) { return i + i / 16; }
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

  /// The first frequency of a group, in the order in which the last step has them.
  static constexpr int frequency(int group) { return group / second + first * (group % second); }
};

/// Sizes of lines; visit_line_steps has a case for each.
inline constexpr std::array line_sizes{1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384};

template <class Action>
void visit_line_steps(int n, const Action& action) {
  switch (n) {
  case 1024:
    return action(LineSteps<16, 8, 8>());
  case 1536:
    return action(LineSteps<16, 12, 8>());
  case 2048:
    return action(LineSteps<16, 16, 8>());
  case 3072:
    return action(LineSteps<16, 12, 16>());
  case 4096:
    return action(LineSteps<16, 16, 16>());
  case 6144:
    return action(LineSteps<16, 24, 16>());
  case 8192:
    return action(LineSteps<16, 32, 16>());
  case 12288:
    return action(LineSteps<32, 24, 16>());
  case 16384:
    return action(LineSteps<32, 32, 16>());
  }
}

/// The DFT of a line in scratch memory and the way back, neither scaled: three steps each, between which all lanes wait for
/// each other. A step is made of transforms in registers that depend on nothing but their index.
template <class T, class Steps>
struct LineDFT {
  using Number = PlainComplex<T>;
  static constexpr int first = Steps::first, second = Steps::second, third = Steps::third, n = Steps::n,
                       groups = Steps::groups;

  /// exp(-2 pi i j / n), and the same of the first frequency of every group.
  static constexpr int roots = n + groups;
  static std::vector<Number> write_roots() {
    std::vector<Number> result;
    for (int j = 0; j < n; ++j)
      result.push_back(unit_root<T>(double(j) / n));
    for (int group = 0; group < groups; ++group)
      result.push_back(unit_root<T>(double(Steps::frequency(group)) / n));
    return result;
  }

  /// Number j + q n / first of the line in x[q], j < n / first; zeros behind `leading` of them, which are not read.
  template <int leading>
  KOKKOS_FORCEINLINE_FUNCTION static void begin(Number (&x)[first], int j, Number* line) {
    RegisterFFT<first, false>::template run_leading<leading>(x);
    put<n / first>(x, line + Steps::place(j));
  }
  /// The second step of both ways, b < n / second.
  template <bool inverse>
  KOKKOS_FORCEINLINE_FUNCTION static void go_on(int b, Number* line, const Number* table) {
    Number* const own = line + Steps::place(b / third * (second * third) + b % third);
    Number x[second];
    get<third>(x, own);
    shifted<inverse>(x, table[inverse ? b % third * first : b / third * third]);
    put<third>(x, own);
  }
  /// Leaves frequency(group) + first * second * q in x[q].
  KOKKOS_FORCEINLINE_FUNCTION static void end(Number (&x)[third], int group, const Number* line,
                                              const Number* table) {
    get<1>(x, line + Steps::place(group * third));
    shifted<false>(x, table[n + group]);
  }

  /// The way back: takes what `end` has left.
  KOKKOS_FORCEINLINE_FUNCTION static void begin_back(Number (&x)[third], int group, Number* line) {
    RegisterFFT<third, true>::run(x);
    put<1>(x, line + Steps::place(group * third));
  }
  /// Leaves what `begin` has taken, times n.
  KOKKOS_FORCEINLINE_FUNCTION static void end_back(Number (&x)[first], int j, const Number* line,
                                                   const Number* table) {
    get<n / first>(x, line + Steps::place(j));
    shifted<true>(x, table[j]);
  }

private:
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

} // namespace Bracewell::Impl
