// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/division.hpp>
#include <bracewell/impl/radix_passes.hpp>
#include <bracewell/impl/register_fft.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <type_traits>

namespace Bracewell::Impl {

/// What becomes of the numbers between two passes of LineFFT.
enum class LineExchange {
  Registers, ///< each thread has one butterfly of a pass: all read, then all write to the same memory
  Buffers,   ///< all butterflies read one buffer and write the other
  InPlace    ///< a butterfly writes where it has read
};

/// A butterfly of a pass: of which line, and the how many-th of its.
struct LineButterfly {
  int line, j;
};

/// Lines of a team that lie side by side.
/// @tparam adjacent  whether neighbouring threads have butterflies of neighbouring lines (columns) or of the same line
template <bool adjacent>
struct ManyLines {
  QuickDivision count; ///< of a team
  int own;             ///< those that this one has
  int length;          ///< places of a line

  template <bool, class Passes, class P>
  KOKKOS_FORCEINLINE_FUNCTION LineButterfly butterfly(const Passes& passes, P p, int b, int each) const {
    if constexpr (adjacent) {
      const int j = count.quotient(b);
      return {b - j * count.by(), j};
    } else {
      const int line = passes.line(p, b);
      return {line, b - line * each};
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION int all(int each) const { return count.by() * each; }
  KOKKOS_FORCEINLINE_FUNCTION bool has(const LineButterfly& at, int each) const {
    return at.line < own && at.j < each;
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION LineMemory<T> memory(PlainComplex<T>* of_team, int line) const {
    return adjacent ? LineMemory<T>{of_team + line, count.by()} : LineMemory<T>{of_team + line * length, 1};
  }
};

/// The DFTs of the lines (rows or columns) of a team and the way back, neither scaled, as passes of butterflies in
/// registers (RegisterFFT), between which the numbers lie in scratch memory. The caller loads what the first pass
/// transforms and stores what the last one leaves.
///   passes     the length: RadixPasses, known at run time, or StepPasses, known to the compiler: radices, places of numbers
///              between passes, and where factors between passes come from
///   lines      how the threads of the team share the butterflies, and where lines lie: ManyLines, StepLines
///   exchange   LineExchange
/// Kernels whose threads keep numbers in registers between transforms use the steps of StepPasses themselves.
/// @tparam lanes  threads of the team that have butterflies (not of LineExchange::Registers: as many as there are)
template <class T, class Team, class Lines, LineExchange exchange, int lanes>
struct LineFFT {
  using Number = PlainComplex<T>;

  Team team;
  Lines lines;
  mutable Number* from; ///< what the last pass left
  mutable Number* to;   ///< the same memory but for LineExchange::Buffers

  /// load(line, index) gives what is transformed: zeros from n / part on, which are not asked for. Or load(at, apart, x)
  /// fills x(q), numbers at.j + apart q of line at.line, of a butterfly.
  template <bool inverse, int part = 1, class Passes, class Load>
  KOKKOS_FORCEINLINE_FUNCTION void first(const Passes& passes, const Load& load) const {
    passes.template visit_first<inverse>([&](auto known, auto p) {
      constexpr int radix = decltype(known)::value;
      const int apart = passes.n / radix;
      butterflies<radix, true>(
          passes, p,
          [&](const LineButterfly& at, Number(&x)[radix]) {
            if constexpr (std::is_invocable_v<const Load&, int, int>) {
              BRACEWELL_UNROLL_FOR (int q = 0; q < radix / part; ++q)
                x[q] = load(at.line, at.j + apart * q);
            } else {
              load(at, apart, x);
            }
            RegisterFFT<radix, inverse>::template run_leading<radix / part>(x);
          },
          [&](const LineButterfly& at, const Number(&x)[radix]) {
            passes.template put_first<inverse>(lines.memory(to, at.line), at.j, x);
          });
    });
  }

  /// The passes between the first and the last one.
  template <bool inverse, class Passes>
  KOKKOS_FORCEINLINE_FUNCTION void middle(const Passes& passes) const {
    passes.template visit_middle<inverse>([&](auto known, auto p) {
      constexpr int radix = decltype(known)::value;
      butterflies<radix, false>(
          passes, p,
          [&](const LineButterfly& at, Number(&x)[radix]) {
            passes.template transform<inverse>(lines.memory(from, at.line), p, at.j, x);
          },
          [&](const LineButterfly& at, const Number(&x)[radix]) {
            passes.template put<inverse>(lines.memory(to, at.line), p, at.j, x);
          });
    });
  }

  /// The last pass of a transform, use(at, apart, x) of the numbers x(q), number at.j + apart q of those that it leaves,
  /// and, if `back`, the first pass of the inverse transform.
  template <bool inverse, class Passes, class Use>
  KOKKOS_FORCEINLINE_FUNCTION void use_transform(const Passes& passes, const Use& use,
                                                 bool back = true) const {
    passes.template visit_last<inverse>([&](auto known, auto p) {
      constexpr int radix = decltype(known)::value;
      butterflies<radix, false>(
          passes, p,
          [&](const LineButterfly& at, Number(&x)[radix]) {
            passes.template transform<inverse>(lines.memory(from, at.line), p, at.j, x);
            use(at, passes.n / radix, x);
            if (back)
              RegisterFFT<radix, !inverse>::run(x);
          },
          [&](const LineButterfly& at, const Number(&x)[radix]) {
            if (back)
              passes.template put_first<!inverse>(lines.memory(to, at.line), at.j, x);
          });
    });
  }

  /// store(line, index, value) takes the transform, but for what is from n / part on. Or store(at, apart, x) takes what a
  /// butterfly leaves.
  template <bool inverse, int part = 1, class Passes, class Store>
  KOKKOS_FORCEINLINE_FUNCTION void last(const Passes& passes, const Store& store) const {
    passes.template visit_last<inverse>([&](auto known, auto p) {
      constexpr int radix = decltype(known)::value;
      const int apart = passes.n / radix, all = lines.all(apart);
      for (int b = team.rank(); b < all; b += exchange == LineExchange::Registers ? all : lanes) {
        const LineButterfly at = lines.template butterfly<true>(passes, p, b, apart);
        if (!lines.has(at, apart))
          continue;
        Number x[radix];
        passes.template transform<inverse>(lines.memory(from, at.line), p, at.j, x);
        if constexpr (std::is_invocable_v<const Store&, int, int, Number>) {
          BRACEWELL_UNROLL_FOR (int q = 0; q < radix / part; ++q)
            store(at.line, at.j + apart * q, x[q]);
        } else {
          store(at, apart, x);
        }
      }
    });
  }

private:
  /// read(at, x), which fills the numbers of a butterfly, then write(at, x), for all of a pass.
  /// @tparam outside  whether the caller loads them
  template <int radix, bool outside, class Passes, class P, class Read, class Write>
  KOKKOS_FORCEINLINE_FUNCTION void butterflies(const Passes& passes, P p, const Read& read,
                                               const Write& write) const {
    const int each = passes.n / radix;
    if constexpr (exchange == LineExchange::Registers) {
      Number x[radix] =
          {}; // without a value on some path they take registers from the start of the kernel on
      const LineButterfly at = lines.template butterfly<outside>(passes, p, team.rank(), each);
      const bool has = lines.has(at, each);
      if (has)
        read(at, x);
      team.barrier();
      if (has)
        write(at, x);
    } else {
      for (int b = team.rank(); b < lines.all(each); b += lanes) {
        const LineButterfly at = lines.template butterfly<outside>(passes, p, b, each);
        if (!lines.has(at, each))
          continue;
        Number x[radix];
        read(at, x);
        write(at, x);
      }
    }
    team.barrier();
    if constexpr (exchange == LineExchange::Buffers) {
      Number* const left = to;
      to = from, from = left;
    }
  }
};

} // namespace Bracewell::Impl
