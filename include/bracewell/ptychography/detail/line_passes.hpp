// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/plain_complex.hpp>
#include <bracewell/impl/quick_division.hpp>
#include <bracewell/impl/radix_passes.hpp>
#include <bracewell/impl/register_fft.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/ptychography/detail/line_teams.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// The passes of transforms along lines, by all threads of a team together: a thread does a butterfly of every pass,
/// and between passes the numbers lie in scratch memory. On hosts the one thread does all butterflies, from one buffer
/// into another.
/// @tparam adjacent  whether neighbouring threads have butterflies of neighbouring lines (columns) or of the same line
template <class Space, class Member, class T, bool adjacent>
struct LinePasses {
  static constexpr bool host = is_host<Space>;
  using Number = PlainComplex<T>;

  const Member& member;
  QuickDivision lines; ///< of a team
  int own;             ///< those that this one has
  int n, length;
  mutable Number* from; ///< what the last pass left
  mutable Number* to;

  KOKKOS_FUNCTION LinePasses(const Member& member_, const LineTeams& teams, int own_,
                             const RadixPasses<T>& passes, Number* scratch)
      : member(member_), lines(teams.lines), own(own_), n(passes.n), length(passes.length), from(scratch),
        to(host ? scratch + lines.by() * length : scratch) {}

  /// A butterfly of a pass: of which line, and the how many-th of its.
  struct Butterfly {
    int line, j;
  };
  KOKKOS_FORCEINLINE_FUNCTION Butterfly butterfly(const RadixPasses<T>& passes, int p, int b) const {
    const QuickDivision& by = adjacent ? lines : passes.pass[p].butterflies;
    const int quotient = by.quotient(b), remainder = b - quotient * by.by();
    return adjacent ? Butterfly{remainder, quotient} : Butterfly{quotient, remainder};
  }
  KOKKOS_FORCEINLINE_FUNCTION bool exists(const Butterfly& at, int each) const {
    return at.line < own && at.j < each;
  }

  /// read(at, x), which fills the numbers of a butterfly, then write(at, x), for all of a pass.
  template <int radix, class Read, class Write>
  KOKKOS_FORCEINLINE_FUNCTION void butterflies(const RadixPasses<T>& passes, int p, const Read& read,
                                               const Write& write) const {
    const int each = n / radix;
    if constexpr (host) {
      for (int b = 0; b < lines.by() * each; ++b) {
        const Butterfly at = butterfly(passes, p, b);
        Number x[radix];
        if (!exists(at, each))
          continue;
        read(at, x);
        write(at, x);
      }
      Number* const left = to;
      to = from, from = left;
    } else {
      Number x[radix] =
          {}; // without a value on some path they take registers from the start of the kernel on
      const Butterfly at = butterfly(passes, p, member.team_rank());
      const bool has = exists(at, each);
      if (has)
        read(at, x);
      member.team_barrier();
      if (has)
        write(at, x);
      member.team_barrier();
    }
  }

  /// The numbers of a butterfly from place `first` of a line on, `apart` from each other.
  template <int radix>
  KOKKOS_FORCEINLINE_FUNCTION void get(int line, int first, int apart, Number (&x)[radix]) const {
    const Number* const at = from + (adjacent ? first * lines.by() + line : line * length + first);
    BRACEWELL_UNROLL
    for (int q = 0; q < radix; ++q)
      x[q] = at[(adjacent ? lines.by() : 1) * apart * q];
  }
  template <int radix>
  KOKKOS_FORCEINLINE_FUNCTION void put(int line, int first, int apart, const Number (&x)[radix]) const {
    Number* const at = to + (adjacent ? first * lines.by() + line : line * length + first);
    BRACEWELL_UNROLL
    for (int q = 0; q < radix; ++q)
      at[(adjacent ? lines.by() : 1) * apart * q] = x[q];
  }
  /// What a butterfly of a first pass leaves.
  template <int radix>
  KOKKOS_FORCEINLINE_FUNCTION void put_first(int line, int j, const Number (&x)[radix]) const {
    put(line, j * (radix + (radix % 2 == 0)), 1, x);
  }
  /// What a butterfly of a later pass needs.
  template <int radix>
  KOKKOS_FORCEINLINE_FUNCTION void get_later(const RadixPasses<T>& passes, int line, int j,
                                             Number (&x)[radix]) const {
    get(line, passes.place(j), passes.place(n / radix), x);
  }

  template <bool inverse, int radix>
  KOKKOS_FORCEINLINE_FUNCTION void turn_and_add(const RadixPasses<T>& passes, int p, int j,
                                                Number (&x)[radix]) const {
    using FFT = RegisterFFT<radix, inverse>;
    FFT::run_shifted(x,
                     passes.table + passes.pass[p].factors + passes.pass[p].done.remainder(j) * FFT::factors);
  }

  /// load(line, index) gives what is transformed.
  template <bool inverse, class Load>
  struct First {
    const LinePasses& lines;
    const RadixPasses<T>& passes;
    const Load& load;

    template <int radix>
    KOKKOS_FORCEINLINE_FUNCTION void run() const {
      const int apart = lines.n / radix;
      lines.template butterflies<radix>(
          passes, 0,
          [&](const Butterfly& at, Number(&x)[radix]) {
            BRACEWELL_UNROLL
            for (int q = 0; q < radix; ++q)
              x[q] = load(at.line, at.j + apart * q);
            RegisterFFT<radix, inverse>::run(x);
          },
          [&](const Butterfly& at, Number(&x)[radix]) { lines.put_first(at.line, at.j, x); });
    }
  };

  template <bool inverse>
  struct Middle {
    const LinePasses& lines;
    const RadixPasses<T>& passes;
    int p;

    template <int radix>
    KOKKOS_FORCEINLINE_FUNCTION void run() const {
      const QuickDivision& done = passes.pass[p].done;
      lines.template butterflies<radix>(
          passes, p,
          [&](const Butterfly& at, Number(&x)[radix]) {
            lines.get_later(passes, at.line, at.j, x);
            lines.template turn_and_add<inverse>(passes, p, at.j, x);
          },
          [&](const Butterfly& at, Number(&x)[radix]) {
            const int before = done.quotient(at.j) * done.by();
            lines.put(at.line, passes.place(before * radix + at.j - before), passes.place(done.by()), x);
          });
    }
  };

  /// store(line, index, value) takes the transform.
  template <bool inverse, class Store>
  struct Last {
    const LinePasses& lines;
    const RadixPasses<T>& passes;
    const Store& store;

    template <int radix>
    KOKKOS_FORCEINLINE_FUNCTION void run() const {
      const int apart = lines.n / radix, p = passes.count - 1, all = lines.lines.by() * apart;
      for (int b = host ? 0 : lines.member.team_rank(); b < all; b += host ? 1 : all) {
        const Butterfly at = lines.butterfly(passes, p, b);
        if (!lines.exists(at, apart))
          continue;
        Number x[radix];
        lines.get_later(passes, at.line, at.j, x);
        lines.template turn_and_add<inverse>(passes, p, at.j, x);
        BRACEWELL_UNROLL
        for (int q = 0; q < radix; ++q)
          store(at.line, at.j + apart * q, x[q]);
      }
    }
  };

  /// The last pass of a transform, use(at, apart, x) of the numbers x(q) at places at.j + apart q of a line, and, if
  /// `back`, the first pass of the inverse transform.
  template <bool inverse, class Use>
  struct Turn {
    const LinePasses& lines;
    const RadixPasses<T>& passes;
    const Use& use;
    bool back;

    template <int radix>
    KOKKOS_FORCEINLINE_FUNCTION void run() const {
      lines.template butterflies<radix>(
          passes, passes.count - 1,
          [&](const Butterfly& at, Number(&x)[radix]) {
            lines.get_later(passes, at.line, at.j, x);
            lines.template turn_and_add<inverse>(passes, passes.count - 1, at.j, x);
            use(at, lines.n / radix, x);
            if (back)
              RegisterFFT<radix, !inverse>::run(x);
          },
          [&](const Butterfly& at, Number(&x)[radix]) {
            if (back)
              lines.put_first(at.line, at.j, x);
          });
    }
  };

  template <bool inverse, class Load>
  KOKKOS_FORCEINLINE_FUNCTION void first(const RadixPasses<T>& passes, const Load& load) const {
    visit_radix(passes.pass[0].radix, First<inverse, Load>{*this, passes, load});
  }
  template <bool inverse>
  KOKKOS_FORCEINLINE_FUNCTION void middle(const RadixPasses<T>& passes) const {
    for (int p = 1; p + 1 < passes.count; ++p)
      visit_radix(passes.pass[p].radix, Middle<inverse>{*this, passes, p});
  }
  template <bool inverse, class Use>
  KOKKOS_FORCEINLINE_FUNCTION void turn_back(const RadixPasses<T>& passes, const Use& use,
                                             bool back = true) const {
    visit_radix(passes.pass[passes.count - 1].radix, Turn<inverse, Use>{*this, passes, use, back});
  }
  template <bool inverse, class Store>
  KOKKOS_FORCEINLINE_FUNCTION void last(const RadixPasses<T>& passes, const Store& store) const {
    visit_radix(passes.pass[passes.count - 1].radix, Last<inverse, Store>{*this, passes, store});
  }
};

/// The spectrum of a line times what is transferred, or the conjugate of it.
template <class T>
struct TransferLine {
  const Kokkos::complex<T>* phases; ///< TransferPhases
  bool conjugate;

  template <class Butterfly, int radix>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(const Butterfly& at, int apart,
                                              PlainComplex<T> (&x)[radix]) const {
    BRACEWELL_UNROLL
    for (int q = 0; q < radix; ++q) {
      const PlainComplex<T> phase = plain(phases[at.j + apart * q]);
      x[q] = turn<false>(x[q], PlainComplex<T>{phase.re, conjugate ? -phase.im : phase.im});
    }
  }
};

} // namespace Bracewell::Impl
