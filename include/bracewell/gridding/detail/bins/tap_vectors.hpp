// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/impl/vector.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace Bracewell::Impl {

/// The taps of a sample as vectors of hosts, whose compilers make none of the loops over them. A row of taps is `pieces`
/// vectors, real and imaginary parts side by side; it has MaxWidth taps, whatever the width: weights beyond it are zero.
template <class T, int MaxWidth, int Dim>
struct TapVectors {
  static constexpr int numbers = std::min<int>(64 / sizeof(T), 2 * MaxWidth & -(2 * MaxWidth)),
                       taps = numbers / 2, pieces = MaxWidth / taps;
  using Weights = typename Vector<T, taps>::type;
  using Numbers =
      typename Vector<T, numbers>::type; // never returned: that has no ABI where registers are shorter

  Numbers row[pieces];     ///< weights along x, each twice
  T across[Dim][MaxWidth]; ///< weights along the other axes

  TapVectors(const TapWeights<T>& kernel, const Location<T, Dim>& at) {
    T u[Dim];
    for (int d = 0; d < Dim; ++d)
      u[d] = 2 * at.offset[d] - T(kernel.width - 1);
    Weights weights[Dim][pieces], coefficients;
    for (int p = 0; p < pieces; ++p) {
      load(kernel.table + p * taps, coefficients);
      for (int d = 0; d < Dim; ++d)
        weights[d][p] = coefficients;
    }
    for (int power = 1; power <= kernel.degree; ++power)
      for (int p = 0; p < pieces; ++p) {
        load(kernel.table + power * kernel.stride + p * taps, coefficients);
        for (int d = 0; d < Dim; ++d)
          weights[d][p] = weights[d][p] * u[d] + coefficients;
      }
    for (int p = 0; p < pieces; ++p) {
      repeat(weights[0][p], row[p], std::make_integer_sequence<int, numbers>());
      for (int d = 1; d < Dim; ++d)
        std::memcpy(across[d] + p * taps, &weights[d][p], sizeof(Weights));
    }
  }

  /// Multiplies the row by a complex number.
  void scale_row(const Kokkos::complex<T>& value) {
    Numbers factors;
    alternate(value.real(), value.imag(), factors, std::make_integer_sequence<int, numbers>());
    for (int p = 0; p < pieces; ++p)
      row[p] *= factors;
  }

  /// Adds the row, times a weight.
  void add_row(T weight, T* to) const {
    for (int p = 0; p < pieces; ++p, to += numbers) {
      Numbers sum;
      load(to, sum);
      sum += weight * row[p];
      std::memcpy(to, &sum, sizeof sum);
    }
  }

  /// The same with a row that begins so many cells later; weights beyond its ends are left out.
  TapVectors moved(int cells) const {
    T padded[6 * MaxWidth] = {};
    std::memcpy(padded + 2 * MaxWidth, row, sizeof row);
    TapVectors result = *this;
    std::memcpy(result.row, padded + 2 * (MaxWidth - cells), sizeof row);
    return result;
  }

  /// The sum along x of weights and sums of rows.
  Kokkos::complex<T> sum(const Numbers (&sums)[pieces]) const {
    Numbers total = row[0] * sums[0];
    for (int p = 1; p < pieces; ++p)
      total += row[p] * sums[p];
    return halved<numbers>(total);
  }

  /// sums += weight times the numbers at `from`.
  static void sum_row(T weight, const T* from, Numbers (&sums)[pieces]) {
    for (int p = 0; p < pieces; ++p, from += numbers) {
      Numbers values;
      load(from, values);
      sums[p] += weight * values;
    }
  }

private:
  template <class Some>
  static void load(const T* from, Some& to) {
    std::memcpy(&to, from, sizeof to);
  }
  template <int... i>
  static void repeat(const Weights& weights, Numbers& to, std::integer_sequence<int, i...>) {
    to = Numbers{weights[i / 2]...};
  }
  template <int... i>
  static void alternate(T even, T odd, Numbers& to, std::integer_sequence<int, i...>) {
    to = Numbers{(i % 2 == 0 ? even : odd)...};
  }

  /// The sums of the numbers at even and at odd places.
  template <int count>
  static Kokkos::complex<T> halved(const typename Vector<T, count>::type& all) {
    if constexpr (count == 2) {
      return {all[0], all[1]};
    } else {
      typename Vector<T, count / 2>::type lower, upper;
      std::memcpy(&lower, &all, sizeof lower);
      std::memcpy(&upper, reinterpret_cast<const char*>(&all) + sizeof lower, sizeof upper);
      return halved<count / 2>(lower + upper);
    }
  }
};

} // namespace Bracewell::Impl
