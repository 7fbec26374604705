// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/impl/vector.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace Bracewell::Impl {

/// The taps of a sample as vectors of hosts of at most `bytes`, whose compilers make none of the loops over them. A row of
/// taps is `pieces` vectors, real and imaginary parts side by side; it has MaxWidth taps, whatever the width: weights beyond
/// it are zero. `wraps`: the row ends beyond that of the grid, and goes on at the first cells of this, with a piece more.
template <class T, int MaxWidth, int Dim, int bytes = vector_bytes, bool wraps = false>
struct TapVectors {
  static constexpr int most = bytes / sizeof(T); // numbers of a vector
  static constexpr int numbers = std::min<int>(most, 2 * MaxWidth & -(2 * MaxWidth)),
                       whole = 2 * MaxWidth / numbers, pieces = whole + (wraps ? 1 : 0);
  static constexpr int lanes = std::min<int>(most, MaxWidth & -MaxWidth), blocks = MaxWidth / lanes;
  using Weights = typename Vector<T, lanes, bytes>::type;
  using Numbers =
      typename Vector<T, numbers, bytes>::type; // never returned: that has no ABI where registers are shorter

  Numbers row[pieces];           ///< weights along x, each twice
  int begin[wraps ? pieces : 1]; ///< of the pieces of one that wraps, counted from the row of the grid
  T across[Dim][MaxWidth];       ///< weights along the other axes

  /// @param size  of the grid along x, where rows wrap
  BRACEWELL_INLINE_FOR_TARGET TapVectors(const TapWeights<T>& kernel, const Location<T, Dim>& at,
                                         int size = 0) {
    Weights weights[blocks];
    for (int d = 1; d < Dim; ++d) { // an axis at a time: more weights would not fit into registers
      evaluate(kernel, at.offset[d], weights);
      std::memcpy(across[d], weights, sizeof weights);
    }
    evaluate(kernel, at.offset[0], weights);
    if constexpr (wraps) {
      Numbers straight[whole];
      repeat_all(weights, straight, std::make_integer_sequence<int, whole>());
      cut(straight, size, size - at.first[0]);
    } else {
      repeat_all(weights, row, std::make_integer_sequence<int, whole>());
    }
  }

  /// Multiplies the row by a complex number.
  BRACEWELL_INLINE_FOR_TARGET void scale_row(const Kokkos::complex<T>& value) {
    Numbers factors;
    alternate(value.real(), value.imag(), factors, std::make_integer_sequence<int, numbers>());
    for (int p = 0; p < pieces; ++p)
      row[p] *= factors;
  }

  /// Where sums of rows begin to count, of a row of the grid that begins at `values`.
  template <class Value>
  BRACEWELL_INLINE_FOR_TARGET static Value* start(Value* values, const Location<T, Dim>& at) {
    return wraps ? values : values + 2 * at.first[0];
  }

  /// Calls run(number of pieces): the last one is left out where all its weights are zero.
  template <class Run>
  BRACEWELL_INLINE_FOR_TARGET static void with_pieces(int width, const Run& run) {
    if (!wraps && width <= MaxWidth - numbers / 2)
      run(std::integral_constant<int, pieces - 1>());
    else
      run(std::integral_constant<int, pieces>());
  }

  /// Adds the row, times a weight.
  template <int count>
  BRACEWELL_INLINE_FOR_TARGET void add_row(T weight, T* to) const {
    for (int p = 0; p < count; ++p) {
      Numbers sum;
      load(to + place(p), sum);
      sum += weight * row[p];
      std::memcpy(to + place(p), &sum, sizeof sum);
    }
  }

  /// The sum along x of weights and sums of rows.
  BRACEWELL_INLINE_FOR_TARGET Kokkos::complex<T> sum(const Numbers (&sums)[pieces]) const {
    Numbers total = row[0] * sums[0];
    for (int p = 1; p < pieces; ++p)
      total += row[p] * sums[p];
    return halved<numbers>(total);
  }

  /// sums += weight times the numbers of a row of the grid.
  template <int count>
  BRACEWELL_INLINE_FOR_TARGET void sum_row(T weight, const T* from, Numbers (&sums)[pieces]) const {
    for (int p = 0; p < count; ++p) {
      Numbers values;
      load(from + place(p), values);
      sums[p] += weight * values;
    }
  }

private:
  BRACEWELL_INLINE_FOR_TARGET int place(int p) const { return wraps ? begin[p] : p * numbers; }

  /// The row in pieces up to the end of the grid's row, which has `left` cells for it, and others from its beginning on.
  /// Weights beyond the ends are zero.
  BRACEWELL_INLINE_FOR_TARGET void cut(const Numbers (&straight)[whole], int size, int left) {
    constexpr int cells = numbers / 2;
    T padded[2 * (MaxWidth + 2 * cells)] = {};
    std::memcpy(padded + numbers, straight, sizeof straight);
    const int before = (left + cells - 1) / cells;
    for (int p = 0; p < pieces; ++p) {
      const int cell = cells * (p - before); // counted from where the grid's row ends
      begin[p] = 2 * (p < before ? size + cell : cell);
      load(padded + numbers + 2 * (left + cell), row[p]);
    }
  }

  template <class Some>
  BRACEWELL_INLINE_FOR_TARGET static void load(const T* from, Some& to) {
    std::memcpy(&to, from, sizeof to);
  }
  BRACEWELL_INLINE_FOR_TARGET static void evaluate(const TapWeights<T>& kernel, T offset,
                                                   Weights (&weights)[blocks]) {
    const T u = 2 * offset - T(kernel.width - 1);
    for (int b = 0; b < blocks; ++b)
      load(kernel.table + b * lanes, weights[b]);
    Weights coefficients;
    for (int power = 1; power <= kernel.degree; ++power)
      for (int b = 0; b < blocks; ++b) {
        load(kernel.table + power * kernel.stride + b * lanes, coefficients);
        weights[b] = weights[b] * u + coefficients;
      }
  }
  template <int... p>
  BRACEWELL_INLINE_FOR_TARGET static void repeat_all(const Weights (&weights)[blocks], Numbers* to,
                                                     std::integer_sequence<int, p...>) {
    (repeat<p * numbers / 2>(weights, to[p], std::make_integer_sequence<int, numbers>()), ...);
  }
  template <int first, int... i>
  BRACEWELL_INLINE_FOR_TARGET static void repeat(const Weights (&weights)[blocks], Numbers& to,
                                                 std::integer_sequence<int, i...>) {
    to = Numbers{weights[(first + i / 2) / lanes][(first + i / 2) % lanes]...};
  }
  template <int... i>
  BRACEWELL_INLINE_FOR_TARGET static void alternate(T even, T odd, Numbers& to,
                                                    std::integer_sequence<int, i...>) {
    to = Numbers{(i % 2 == 0 ? even : odd)...};
  }

  /// The sums of the numbers at even and at odd places.
  template <int count>
  BRACEWELL_INLINE_FOR_TARGET static Kokkos::complex<T>
  halved(const typename Vector<T, count, bytes>::type& all) {
    if constexpr (count == 2) {
      return {all[0], all[1]};
    } else if constexpr (count == 4) {
      return {all[0] + all[2], all[1] + all[3]};
    } else {
      typename Vector<T, count / 2, bytes>::type lower, upper;
      std::memcpy(&lower, &all, sizeof lower);
      std::memcpy(&upper, reinterpret_cast<const char*>(&all) + sizeof lower, sizeof upper);
      return halved<count / 2>(lower + upper);
    }
  }
};

} // namespace Bracewell::Impl
