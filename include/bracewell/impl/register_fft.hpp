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

/// Zeros in place of numbers that are not given.
template <int given, int N, class T>
KOKKOS_FORCEINLINE_FUNCTION void fill_zeros(PlainComplex<T> (&x)[N]) {
  BRACEWELL_UNROLL
  for (int i = given; i < N; ++i)
    x[i] = {0, 0};
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
  static_assert(N % 2 == 0, "RegisterFFT: sizes are 1, 3, 5 or 7 times a power of two.");
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
      BRACEWELL_UNROLL
      for (int i = 1; i < N; ++i)
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
    BRACEWELL_UNROLL
    for (int k = 0; k < half; ++k)
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
    Half::expand_factors(turn<false>(root, root), w + own_factors);
  }

private:
  template <class T, int... k>
  BRACEWELL_REGISTER_FUNCTION static void expand(const PlainComplex<T>& root, PlainComplex<T>* w,
                                                 std::integer_sequence<int, k...>) {
    ((w[k] = turn<false>(root, constant_root<T, k>())), ...);
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
    BRACEWELL_UNROLL
    for (int i = 0; i < half; ++i) {
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

/// Transforms of odd size at shifted frequencies: first every number is turned by its share of the shift.
template <int N, bool inverse>
struct OddShifted {
  static constexpr int factors = N - 1;

  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run_shifted(PlainComplex<T> (&x)[N], const PlainComplex<T>* w) {
    BRACEWELL_UNROLL
    for (int i = 1; i < N; ++i)
      x[i] = turn<inverse>(x[i], w[i - 1]);
    RegisterFFT<N, inverse>::template run_leading<N>(x);
  }
  template <class T>
  static void write_factors(double shift, PlainComplex<T>* w) {
    for (int i = 1; i < N; ++i)
      w[i - 1] = unit_root<T>(shift * i / N);
  }
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void expand_factors(const PlainComplex<T>& root, PlainComplex<T>* w) {
    PlainComplex<T> power = root;
    BRACEWELL_UNROLL
    for (int i = 1; i < N; ++i, power = turn<false>(power, root))
      w[i - 1] = power;
  }
};

template <bool inverse>
struct RegisterFFT<1, inverse> : OddShifted<1, inverse> {
  template <int leading, class T>
  BRACEWELL_REGISTER_FUNCTION static void run_leading(PlainComplex<T> (&)[1]) {}
};

template <bool inverse>
struct RegisterFFT<3, inverse> : OddShifted<3, inverse> {
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run(PlainComplex<T> (&x)[3]) {
    run_leading<3>(x);
  }
  template <int leading, class T>
  BRACEWELL_REGISTER_FUNCTION static void run_leading(PlainComplex<T> (&x)[3]) {
    fill_zeros<leading>(x);
    constexpr double s = inverse ? 0.866025403784438646764 : -0.866025403784438646764;
    const PlainComplex<T> sum = x[1] + x[2], difference = x[1] - x[2];
    const PlainComplex<T> middle{x[0].re - sum.re * T(0.5), x[0].im - sum.im * T(0.5)};
    x[0] = x[0] + sum;
    x[1] = {middle.re - difference.im * T(s), middle.im + difference.re * T(s)};
    x[2] = {middle.re + difference.im * T(s), middle.im - difference.re * T(s)};
  }
};

template <bool inverse>
struct RegisterFFT<5, inverse> : OddShifted<5, inverse> {
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run(PlainComplex<T> (&x)[5]) {
    run_leading<5>(x);
  }
  template <int leading, class T>
  BRACEWELL_REGISTER_FUNCTION static void run_leading(PlainComplex<T> (&x)[5]) {
    fill_zeros<leading>(x);
    constexpr double c1 = 0.309016994374947424102, c2 = -0.809016994374947424102;
    constexpr double s1 = inverse ? 0.951056516295153572116 : -0.951056516295153572116;
    constexpr double s2 = inverse ? 0.587785252292473129169 : -0.587785252292473129169;
    const PlainComplex<T> p = x[1] + x[4], q = x[2] + x[3], r = x[1] - x[4], t = x[2] - x[3];
    const PlainComplex<T> a{x[0].re + p.re * T(c1) + q.re * T(c2), x[0].im + p.im * T(c1) + q.im * T(c2)};
    const PlainComplex<T> b{x[0].re + p.re * T(c2) + q.re * T(c1), x[0].im + p.im * T(c2) + q.im * T(c1)};
    const PlainComplex<T> u{r.re * T(s1) + t.re * T(s2), r.im * T(s1) + t.im * T(s2)};
    const PlainComplex<T> v{r.re * T(s2) - t.re * T(s1), r.im * T(s2) - t.im * T(s1)};
    x[0] = x[0] + p + q;
    x[1] = {a.re - u.im, a.im + u.re};
    x[4] = {a.re + u.im, a.im - u.re};
    x[2] = {b.re - v.im, b.im + v.re};
    x[3] = {b.re + v.im, b.im - v.re};
  }
};

template <bool inverse>
struct RegisterFFT<7, inverse> : OddShifted<7, inverse> {
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run(PlainComplex<T> (&x)[7]) {
    run_leading<7>(x);
  }
  template <int leading, class T>
  BRACEWELL_REGISTER_FUNCTION static void run_leading(PlainComplex<T> (&x)[7]) {
    fill_zeros<leading>(x);
    const PlainComplex<T> sum[3]{x[1] + x[6], x[2] + x[5], x[3] + x[4]};
    const PlainComplex<T> difference[3]{x[1] - x[6], x[2] - x[5], x[3] - x[4]};
    const PlainComplex<T> first = x[0];
    x[0] = first + sum[0] + sum[1] + sum[2];
    pair<1>(first, sum, difference, x[1], x[6]);
    pair<2>(first, sum, difference, x[2], x[5]);
    pair<3>(first, sum, difference, x[3], x[4]);
  }

private:
  /// Frequencies k and -k.
  template <int k, class T>
  BRACEWELL_REGISTER_FUNCTION static void pair(const PlainComplex<T>& first, const PlainComplex<T> (&sum)[3],
                                               const PlainComplex<T> (&difference)[3], PlainComplex<T>& plus,
                                               PlainComplex<T>& minus) {
    constexpr T c[3]{T(turn_cosine(k, 7)), T(turn_cosine(2 * k, 7)), T(turn_cosine(3 * k, 7))};
    constexpr T s[3]{T(turn_cosine(4 * k + 7, 28)), T(turn_cosine(8 * k + 7, 28)),
                     T(turn_cosine(12 * k + 7, 28))};
    PlainComplex<T> even = first, odd{0, 0};
    BRACEWELL_UNROLL
    for (int i = 0; i < 3; ++i) {
      even = {even.re + c[i] * sum[i].re, even.im + c[i] * sum[i].im};
      odd = {odd.re + s[i] * difference[i].re, odd.im + s[i] * difference[i].im};
    }
    const PlainComplex<T> turned =
        inverse ? PlainComplex<T>{odd.im, -odd.re} : PlainComplex<T>{-odd.im, odd.re};
    plus = even + turned;
    minus = even - turned;
  }
};

} // namespace Bracewell::Impl
