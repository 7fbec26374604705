// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Rows of `width` values in longer ones: half of the margin continues the right edge, half the left one.
template <class T>
struct PadProjections {
  const T* rows;
  T* padded;
  std::int64_t filled; ///< rows that there are; those behind them are zero
  int width, size;
  bool edge;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const bool there = row < filled;
    const T* in = rows + row * width;
    T* out = padded + row * size;
    const T left = there && edge ? in[0] : T(0), right = there && edge ? in[width - 1] : T(0);
    const int middle = width + (size - width) / 2;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, size), [&](int i) {
      out[i] = i < width ? (there ? in[i] : T(0)) : (i < middle ? right : left);
    });
  }
};

/// Spectra times the factors, in place or to longer ones, zero beyond.
template <class T>
struct MultiplyProjections {
  const Kokkos::complex<T>* spectra;
  const Kokkos::complex<T>* factors;
  Kokkos::complex<T>* products;
  int columns, product_columns;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const Kokkos::complex<T>* in = spectra + row * columns;
    Kokkos::complex<T>* out = products + row * product_columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, product_columns),
                         [&](int k) { out[k] = k < columns ? in[k] * factors[k] : Kokkos::complex<T>(0); });
  }
};

/// The values of the detector, without what the padding became.
template <class T>
struct CropProjections {
  const T* padded;
  T* rows;
  int width, size;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const T* in = padded + row * size;
    T* out = rows + row * width;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, width), [&](int i) { out[i] = in[i]; });
  }
};

} // namespace Bracewell::Impl
