// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/plain_complex.hpp>

#include <cmath>
#include <utility>

namespace Bracewell::Impl {

/// cos and sin of 2 pi k / n for 0 <= k / n <= 1/8, by their series: constants of the code below.
KOKKOS_INLINE_FUNCTION constexpr double cosine_series(double x) {
  double sum = 0, term = 1;
  for (int i = 1; i < 30; i += 2) {
    sum += term;
    term *= -x * x / (i * (i + 1));
  }
  return sum;
}
KOKKOS_INLINE_FUNCTION constexpr double sine_series(double x) {
  double sum = 0, term = x;
  for (int i = 2; i < 30; i += 2) {
    sum += term;
    term *= -x * x / (i * (i + 1));
  }
  return sum;
}
KOKKOS_INLINE_FUNCTION constexpr double turn_cosine(int k, int n) { // of k / n turns, any k
  const double two_pi = 6.283185307179586476925;
  k %= n;
  if (2 * k > n)
    k = n - k;
  if (4 * k > n)
    return -turn_cosine(n - 2 * k, 2 * n);
  return 8 * k <= n ? cosine_series(two_pi * k / n) : sine_series(two_pi * (n - 4 * k) / (4 * n));
}

/// exp(-2 pi i turns), on the host.
template <class T>
PlainComplex<T> unit_root(double turns) {
  const double angle = -2 * Kokkos::numbers::pi * turns;
  return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
}

/// a + w b and a - w b, six multiply-adds; w or its conjugate.
template <bool conjugate, class T, class U>
KOKKOS_FORCEINLINE_FUNCTION void butterfly(const PlainComplex<T>& a, const PlainComplex<T>& b, U re, U im,
                                           PlainComplex<T>& sum, PlainComplex<T>& difference) {
  const U s = conjugate ? -im : im;
  sum = {a.re + re * b.re - s * b.im, a.im + re * b.im + s * b.re};
  difference = {twice_minus(a.re, sum.re), twice_minus(a.im, sum.im)};
}

/// DFT of N = 2^a, 3 2^a, 5 2^a or 7 2^a numbers in registers, in natural order, not scaled; exp(-2 pi i k x / N), or
/// + for the inverse. Even and odd numbers are transformed and joined (Cooley and Tukey), with every index
/// and factor known to the compiler.
template <int N, bool inverse>
struct RegisterFFT {
  static constexpr int half = N / 2;
  using Half = RegisterFFT<half, inverse>;
  static constexpr int own_factors = N % 4 == 0 ? N / 4 : half, factors = own_factors + Half::factors;

  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run(PlainComplex<T> (&x)[N]) {
    run_leading<N>(x);
  }

  /// The same where only the first `leading` numbers are given and the others are zeros, which are not read.
  template <int leading, class T>
  BRACEWELL_REGISTER_FUNCTION static void run_leading(PlainComplex<T> (&x)[N]) {
    if constexpr (leading == 1) {
      BRACEWELL_UNROLL_FOR (int i = 1; i < N; ++i)
        x[i] = x[0];
    } else {
      PlainComplex<T> even[half], odd[half];
      split<leading>(x, even, odd);
      Half::template run_leading<(leading + 1) / 2>(even);
      Half::template run_leading<leading / 2>(odd);
      join(even, odd, x, std::make_integer_sequence<int, half>());
    }
  }

  /// At shifted frequencies, sum_x exp(-2 pi i (k + shift) x / N): what a transform that follows another one
  /// has to do, factors between the two included. `factors` numbers from write_factors.
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run_shifted(PlainComplex<T> (&x)[N], const PlainComplex<T>* w) {
    PlainComplex<T> even[half], odd[half];
    split<N>(x, even, odd);
    Half::run_shifted(even, w + own_factors);
    Half::run_shifted(odd, w + own_factors);
    BRACEWELL_UNROLL_FOR (int k = 0; k < half; ++k)
      if (k < own_factors)
        butterfly<inverse>(even[k], odd[k], w[k].re, w[k].im, x[k], x[k + half]);
      else // a quarter of a turn further
        butterfly<inverse>(even[k], odd[k], w[k - own_factors].im, -w[k - own_factors].re, x[k], x[k + half]);
  }

  /// The factors, those of the forward transform (the inverse takes them conjugate).
  template <class T>
  static void write_factors(double shift, PlainComplex<T>* w) {
    for (int k = 0; k < own_factors; ++k)
      w[k] = unit_root<T>((k + shift) / N);
    Half::write_factors(shift, w + own_factors);
  }

  /// The factors in registers, from exp(-2 pi i shift / N).
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void expand_factors(const PlainComplex<T>& root, PlainComplex<T>* w) {
    expand(root, w, std::make_integer_sequence<int, own_factors>());
    Half::expand_factors(times<false>(root, root), w + own_factors);
  }

private:
  template <class T, int... k>
  BRACEWELL_REGISTER_FUNCTION static void expand(const PlainComplex<T>& root, PlainComplex<T>* w,
                                                 std::integer_sequence<int, k...>) {
    ((w[k] = times<false>(root, constant_root<T, k>())), ...);
  }

  /// exp(-2 pi i k / N)
  template <class T, int k>
  BRACEWELL_REGISTER_FUNCTION static PlainComplex<T> constant_root() {
    constexpr double c = turn_cosine(k, N), s = turn_cosine(4 * k + N, 4 * N); // s = cos(angle + 1/4)
    return {static_cast<T>(c), static_cast<T>(s)};
  }

  template <int leading, class T>
  BRACEWELL_REGISTER_FUNCTION static void split(const PlainComplex<T> (&x)[N], PlainComplex<T> (&even)[half],
                                                PlainComplex<T> (&odd)[half]) {
    BRACEWELL_UNROLL_FOR (int i = 0; i < half; ++i) {
      if (2 * i < leading)
        even[i] = x[2 * i];
      if (2 * i + 1 < leading)
        odd[i] = x[2 * i + 1];
    }
  }

  template <class T, int... k>
  BRACEWELL_REGISTER_FUNCTION static void join(const PlainComplex<T> (&even)[half],
                                               const PlainComplex<T> (&odd)[half], PlainComplex<T> (&x)[N],
                                               std::integer_sequence<int, k...>) {
    (pair<k>(even[k], odd[k], x[k], x[k + half]), ...);
  }

  template <int k, class T>
  BRACEWELL_REGISTER_FUNCTION static void pair(const PlainComplex<T>& a, const PlainComplex<T>& b,
                                               PlainComplex<T>& sum, PlainComplex<T>& difference) {
    if constexpr (k == 0) {
      sum = a + b;
      difference = a - b;
    } else if constexpr (4 * k == N) {
      const PlainComplex<T> turned = inverse ? PlainComplex<T>{-b.im, b.re} : PlainComplex<T>{b.im, -b.re};
      sum = a + turned;
      difference = a - turned;
    } else {
      const PlainComplex<T> w = constant_root<T, k>();
      butterfly<inverse>(a, b, w.re, w.im, sum, difference);
    }
  }
};

/// DFT of an odd size, by sums and differences of numbers at opposite places. At shifted frequencies every number is first
/// turned by its share of the shift.
template <int N, bool inverse>
struct OddFFT {
  static constexpr int factors = N - 1, pairs = N == 1 ? 1 : N / 2;

  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run(PlainComplex<T> (&x)[N]) {
    run_leading<N>(x);
  }
  template <int leading, class T>
  BRACEWELL_REGISTER_FUNCTION static void run_leading(PlainComplex<T> (&x)[N]) {
    BRACEWELL_UNROLL_FOR (int i = leading; i < N; ++i)
      x[i] = {0, 0};
    if constexpr (N > 1)
      transform(x, std::make_integer_sequence<int, pairs>());
  }
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run_shifted(PlainComplex<T> (&x)[N], const PlainComplex<T>* w) {
    BRACEWELL_UNROLL_FOR (int i = 1; i < N; ++i)
      x[i] = times<inverse>(x[i], w[i - 1]);
    run_leading<N>(x);
  }
  template <class T>
  static void write_factors(double shift, PlainComplex<T>* w) {
    for (int i = 1; i < N; ++i)
      w[i - 1] = unit_root<T>(shift * i / N);
  }
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void expand_factors(const PlainComplex<T>& root, PlainComplex<T>* w) {
    PlainComplex<T> power = root;
    BRACEWELL_UNROLL_FOR (int i = 1; i < N; ++i, power = times<false>(power, root))
      w[i - 1] = power;
  }

private:
  template <class T, int... i>
  BRACEWELL_REGISTER_FUNCTION static void transform(PlainComplex<T> (&x)[N],
                                                    std::integer_sequence<int, i...> all) {
    const PlainComplex<T> first = x[0], sum[]{x[i + 1] + x[N - 1 - i]...},
                          difference[]{x[i + 1] - x[N - 1 - i]...};
    ((x[0] = x[0] + sum[i]), ...);
    (pair<i + 1>(first, sum, difference, x[i + 1], x[N - 1 - i], all), ...);
  }
  /// Frequencies k and -k.
  template <int k, class T, int... i>
  BRACEWELL_REGISTER_FUNCTION static void
  pair(const PlainComplex<T>& first, const PlainComplex<T> (&sum)[pairs],
       const PlainComplex<T> (&difference)[pairs], PlainComplex<T>& plus, PlainComplex<T>& minus,
       std::integer_sequence<int, i...>) {
    constexpr T c[]{T(turn_cosine(k * (i + 1), N))...};
    constexpr T s[]{
        T(inverse ? -turn_cosine(4 * k * (i + 1) + N, 4 * N) : turn_cosine(4 * k * (i + 1) + N, 4 * N))...};
    PlainComplex<T> even{first.re + c[0] * sum[0].re, first.im + c[0] * sum[0].im},
        odd{s[0] * difference[0].re, s[0] * difference[0].im};
    BRACEWELL_UNROLL_FOR (int j = 1; j < pairs; ++j) {
      even = {even.re + c[j] * sum[j].re, even.im + c[j] * sum[j].im};
      odd = {odd.re + s[j] * difference[j].re, odd.im + s[j] * difference[j].im};
    }
    plus = {even.re - odd.im, even.im + odd.re};
    minus = {even.re + odd.im, even.im - odd.re};
  }
};

template <int N, bool inverse>
requires(N % 2 == 1) struct RegisterFFT<N, inverse> : OddFFT<N, inverse> {
};

} // namespace Bracewell::Impl
