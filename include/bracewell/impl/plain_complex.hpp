// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// A complex number that is nothing but its parts: T may be a group of numbers.
template <class T>
struct alignas(2 * sizeof(T)) PlainComplex {
  T re, im;
};

template <class T>
KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> plain(const Kokkos::complex<T>& value) {
  return {value.real(), value.imag()};
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> operator+(const PlainComplex<T>& a, const PlainComplex<T>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> operator-(const PlainComplex<T>& a, const PlainComplex<T>& b) {
  return {a.re - b.re, a.im - b.im};
}
/// a b, or a conj(b).
template <bool conjugate, class T, class U>
KOKKOS_FORCEINLINE_FUNCTION PlainComplex<T> times(const PlainComplex<T>& a, const PlainComplex<U>& b) {
  if constexpr (conjugate)
    return {a.re * b.re + a.im * b.im, a.im * b.re - a.re * b.im};
  else
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

} // namespace Bracewell::Impl
