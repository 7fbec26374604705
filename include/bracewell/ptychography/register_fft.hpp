// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>

#include <utility>

namespace Bracewell::Impl {

/// A complex number that is nothing but its parts: T may be a group of numbers.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T re, im;
};

template <class T>
KOKKOS_FORCEINLINE_FUNCTION Pair<T> operator+(const Pair<T>& a, const Pair<T>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION Pair<T> operator-(const Pair<T>& a, const Pair<T>& b) {
  return {a.re - b.re, a.im - b.im};
}
/// a b, or a conj(b): b is a factor of modulus 1.
template <bool conjugate, class T, class U>
KOKKOS_FORCEINLINE_FUNCTION Pair<T> turn(const Pair<T>& a, const Pair<U>& b) {
  if constexpr (conjugate)
    return {a.re * b.re + a.im * b.im, a.im * b.re - a.re * b.im};
  else
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/// cos and sin of 2 pi k / n for 0 <= k / n <= 1/8, by their series: constants of the code below.
constexpr double cosine_series(double x) {
  double sum = 0, term = 1;
  for (int i = 1; i < 30; i += 2) {
    sum += term;
    term *= -x * x / (i * (i + 1));
  }
  return sum;
}
constexpr double sine_series(double x) {
  double sum = 0, term = x;
  for (int i = 2; i < 30; i += 2) {
    sum += term;
    term *= -x * x / (i * (i + 1));
  }
  return sum;
}
constexpr double turn_cosine(int k, int n) { // of k / n turns, any k
  const double two_pi = 6.283185307179586476925;
  k %= n;
  if (2 * k > n)
    k = n - k;
  if (4 * k > n)
    return -turn_cosine(n - 2 * k, 2 * n);
  return 8 * k <= n ? cosine_series(two_pi * k / n) : sine_series(two_pi * (n - 4 * k) / (4 * n));
}

/// x *= exp(-+2 pi i K / N), + for the inverse.
template <int K, int N, bool inverse, class T>
KOKKOS_FORCEINLINE_FUNCTION void multiply_by_root(Pair<T>& x) {
  constexpr int k = (inverse ? N - K % N : K) % N;
  const Pair<T> a = x;
  if constexpr (k == 0)
    return;
  else if constexpr (4 * k == N)
    x = {a.im, -a.re};
  else if constexpr (2 * k == N)
    x = {-a.re, -a.im};
  else if constexpr (4 * k == 3 * N)
    x = {-a.im, a.re};
  else {
    constexpr double c = turn_cosine(k, N), s = turn_cosine(4 * k + N, 4 * N); // s = cos(angle + 1/4) = -sin
    if constexpr (8 * k == N || 8 * k == 5 * N) {
      x = {(a.re + a.im) * T(c), (a.im - a.re) * T(c)};
    } else if constexpr (8 * k == 3 * N || 8 * k == 7 * N) {
      x = {(a.re - a.im) * T(c), (a.im + a.re) * T(c)};
    } else {
      x = {a.re * T(c) - a.im * T(s), a.im * T(c) + a.re * T(s)};
    }
  }
}

/// DFT of N = 2^a 3^b 5^c numbers in registers, in natural order, not scaled; exp(-2 pi i k x / N), or + for
/// the inverse. Cooley and Tukey with every index and factor known to the compiler.
template <int N, bool inverse>
struct RegisterFFT;

template <bool inverse>
struct RegisterFFT<1, inverse> {
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run(Pair<T> (&)[1]) {}
};

template <bool inverse>
struct RegisterFFT<2, inverse> {
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run(Pair<T> (&x)[2]) {
    const Pair<T> a = x[0];
    x[0] = a + x[1];
    x[1] = a - x[1];
  }
};

template <bool inverse>
struct RegisterFFT<3, inverse> {
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run(Pair<T> (&x)[3]) {
    constexpr double s = inverse ? 0.866025403784438646764 : -0.866025403784438646764;
    const Pair<T> sum = x[1] + x[2], difference = x[1] - x[2];
    const Pair<T> middle{x[0].re - sum.re * T(0.5), x[0].im - sum.im * T(0.5)};
    x[0] = x[0] + sum;
    x[1] = {middle.re - difference.im * T(s), middle.im + difference.re * T(s)};
    x[2] = {middle.re + difference.im * T(s), middle.im - difference.re * T(s)};
  }
};

template <bool inverse>
struct RegisterFFT<4, inverse> {
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run(Pair<T> (&x)[4]) {
    const Pair<T> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3];
    Pair<T> d = x[1] - x[3];
    multiply_by_root<1, 4, inverse>(d);
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  }
};

template <bool inverse>
struct RegisterFFT<5, inverse> {
  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run(Pair<T> (&x)[5]) {
    constexpr double c1 = 0.309016994374947424102, c2 = -0.809016994374947424102;
    constexpr double s1 = inverse ? 0.951056516295153572116 : -0.951056516295153572116;
    constexpr double s2 = inverse ? 0.587785252292473129169 : -0.587785252292473129169;
    const Pair<T> p = x[1] + x[4], q = x[2] + x[3], r = x[1] - x[4], t = x[2] - x[3];
    const Pair<T> a{x[0].re + p.re * T(c1) + q.re * T(c2), x[0].im + p.im * T(c1) + q.im * T(c2)};
    const Pair<T> b{x[0].re + p.re * T(c2) + q.re * T(c1), x[0].im + p.im * T(c2) + q.im * T(c1)};
    const Pair<T> u{r.re * T(s1) + t.re * T(s2), r.im * T(s1) + t.im * T(s2)};
    const Pair<T> v{r.re * T(s2) - t.re * T(s1), r.im * T(s2) - t.im * T(s1)};
    x[0] = x[0] + p + q;
    x[1] = {a.re - u.im, a.im + u.re};
    x[4] = {a.re + u.im, a.im - u.re};
    x[2] = {b.re - v.im, b.im + v.re};
    x[3] = {b.re + v.im, b.im - v.re};
  }
};

/// The factor that is split off first.
constexpr int leading_factor(int n) {
  if (n == 16)
    return 4;
  for (const int factor : {8, 4, 5, 3, 2})
    if (n % factor == 0 && n > factor)
      return factor;
  return 1;
}

template <int N, bool inverse>
struct RegisterFFT {
  static constexpr int outer = leading_factor(N), inner = N / outer;
  static_assert(outer > 1, "RegisterFFT: sizes have the prime factors 2, 3 and 5.");

  template <class T>
  BRACEWELL_REGISTER_FUNCTION static void run(Pair<T> (&x)[N]) {
    run_leading<N>(x);
  }

  /// The same where only the first `leading` numbers are given and the others are zeros, which are not read.
  template <int leading, class T>
  BRACEWELL_REGISTER_FUNCTION static void run_leading(Pair<T> (&x)[N]) {
    first<leading>(x, std::make_integer_sequence<int, outer>());
    Pair<T> y[N];
    second(x, y, std::make_integer_sequence<int, inner>());
    copy(y, x, std::make_integer_sequence<int, N>());
  }

private:
  template <class T, int... i>
  BRACEWELL_REGISTER_FUNCTION static void copy(const Pair<T> (&from)[N], Pair<T> (&to)[N],
                                               std::integer_sequence<int, i...>) {
    ((to[i] = from[i]), ...);
  }

  template <int leading, class T, int... a>
  BRACEWELL_REGISTER_FUNCTION static void first(Pair<T> (&x)[N], std::integer_sequence<int, a...>) {
    (column<a, (leading - a + outer - 1) / outer>(x, std::make_integer_sequence<int, inner>()), ...);
  }

  /// DFT of x[a + outer b] over b, of which `given` are not zero, and factors.
  template <int a, int given, class T, int... b>
  BRACEWELL_REGISTER_FUNCTION static void column(Pair<T> (&x)[N], std::integer_sequence<int, b...>) {
    if constexpr (given == 1) {
      const Pair<T> value = x[a];
      ((x[a + outer * b] = value), ...);
    } else if constexpr (given == 2 && inner == 4) {
      const Pair<T> p = x[a];
      Pair<T> q = x[a + outer];
      x[a] = p + q;
      x[a + 2 * outer] = p - q;
      multiply_by_root<1, 4, inverse>(q);
      x[a + outer] = p + q;
      x[a + 3 * outer] = p - q;
    } else {
      Pair<T> part[inner] = {(b < given ? x[a + outer * (b < given ? b : 0)] : Pair<T>{0, 0})...};
      RegisterFFT<inner, inverse>::run(part);
      ((x[a + outer * b] = part[b]), ...);
    }
    (multiply_by_root<a * b, N, inverse>(x[a + outer * b]), ...);
  }

  template <class T, int... b>
  BRACEWELL_REGISTER_FUNCTION static void second(const Pair<T> (&x)[N], Pair<T> (&y)[N],
                                                 std::integer_sequence<int, b...>) {
    (row<b>(x, y, std::make_integer_sequence<int, outer>()), ...);
  }
  template <int b, class T, int... a>
  BRACEWELL_REGISTER_FUNCTION static void row(const Pair<T> (&x)[N], Pair<T> (&y)[N],
                                              std::integer_sequence<int, a...>) {
    Pair<T> part[outer] = {x[a + outer * b]...};
    RegisterFFT<outer, inverse>::run(part);
    ((y[inner * a + b] = part[a]), ...);
  }
};

} // namespace Bracewell::Impl
