// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/ptychography/pattern_term.hpp>
#include <bracewell/ptychography/register_fft.hpp>

namespace Bracewell::Impl {

/// Factors and sizes of the fused kernel for patterns of n = lanes x length pixels per side.
///
/// The detector's columns are taken in `lanes` rounds of those with the same remainder: with x = s + length
/// j,
///   Psi(lanes c + q) = sum_s exp(-2 pi i c s / length) exp(-2 pi i q s / n) sum_j exp(-2 pi i q j / lanes)
///   psi(x),
/// so that a round needs a tile of m x length numbers only. Rows are split among `lanes` neighbouring lanes
/// in the same way, so that each holds `length` numbers in registers and nothing is exchanged before the sum
/// over the lanes at the end of the adjoint.
template <int length_, int lanes_>
struct FusedSizes {
  static constexpr int length = length_, lanes = lanes_, n = length * lanes;
  static constexpr int block = length % 8 == 0 ? 8 : length % 4 == 0 ? 4 : 2; ///< rows that are kept or not
  static_assert(block % lanes == 0);
  static constexpr int pitch =
      length | 1;                 ///< of a row of the tile: odd, so that columns lie in different banks
  static constexpr int tasks = n; ///< (column of a round, lane)
  static constexpr int outer = leading_factor(length), inner = length / outer;
  static constexpr int vector = 4; ///< targets that a thread reads at once
  static_assert(outer % vector == 0);
  static constexpr int team_size = n <= 192 ? (n + 31) / 32 * 32 : 128;

  static constexpr int rows(int m) { return (m + block - 1) / block * block; }
};

/// Where the fused kernel finds targets: the numbers of a task in groups, tasks side by side.
template <class Sizes>
struct FusedLayout {
  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t j, int row, int column) const {
    constexpr int lanes = Sizes::lanes, vector = Sizes::vector;
    constexpr int outer = Sizes::outer, inner = Sizes::inner;
    const int task = column / lanes * lanes + row % lanes;
    const int k = row / lanes % inner * outer + row / lanes / inner; // in the order of RegisterStages
    return (((j * lanes + column % lanes) * (Sizes::length / vector) + k / vector) * Sizes::tasks + task) *
               vector +
           k % vector;
  }
};

/// What the columns of a round need to know besides the tile.
template <class T>
struct ColumnTerms {
  T scale;      ///< of |psi|^2 of the scaled wave, to J
  T unit;       ///< of the derivative, so that half precision holds it
  T background; ///< of PatternLoss::Poisson
  PatternLoss loss;
  bool masked, gradients;
  int rows; ///< of the tile
};

/// Rows and columns of the tile of the fused kernel.
template <class T, class Storage, class Sizes>
struct FusedTile {
  static constexpr int length = Sizes::length, lanes = Sizes::lanes, n = Sizes::n, block = Sizes::block;
  using Number = Pair<T>;
  using Stored = StoredComplex<Storage>;
  using Terms = ColumnTerms<T>;
  using Forward = RegisterStages<Sizes::outer, Sizes::inner, false>;

  KOKKOS_FORCEINLINE_FUNCTION static void put(Stored& to, const Number& value) {
    to.re = static_cast<Storage>(value.re);
    to.im = static_cast<Storage>(value.im);
  }
  KOKKOS_FORCEINLINE_FUNCTION static Number get(const Stored& from) {
    return {static_cast<T>(from.re), static_cast<T>(from.im)};
  }
  /// exp(-2 pi i q s / n) and exp(-2 pi i q j / lanes)
  KOKKOS_FORCEINLINE_FUNCTION static Number root(const Number* roots, int s, int q) {
    return roots[s * lanes + q];
  }
  KOKKOS_FORCEINLINE_FUNCTION static Number fold(const Number* roots, int j, int q) {
    return roots[n + j * lanes + q];
  }

  template <bool inverse, bool scratch>
  BRACEWELL_SEPARATE_FUNCTION static void transform_row(Stored* row) {
    if constexpr (scratch)
      assume_scratch(row);
    Number x[length];
    BRACEWELL_UNROLL
    for (int s = 0; s < length; ++s)
      x[s] = get(row[s]);
    RegisterFFT<length, inverse>::run(x);
    BRACEWELL_UNROLL
    for (int s = 0; s < length; ++s)
      put(row[s], x[s]);
  }

  /// Lanes of a warp side by side: each holds its part of a column, the sums over them go between registers.
  /// @param measured  the first targets of the task
  /// @return the sum of the losses of its pixels
  BRACEWELL_SEPARATE_FUNCTION static T transform_column_by_lanes(Stored* tile, const Number* roots,
                                                                 const Storage* measured, int task, T scale,
                                                                 T unit, T background, PatternLoss loss,
                                                                 bool masked, bool gradients, int rows) {
    assume_scratch(tile);
    assume_scratch(roots);
    const bool inside = task < Sizes::tasks;
    const int column = inside ? task / lanes : 0, lane = task % lanes;
    Number x[length];
    const T sum = transform_part(tile + column, roots, measured, lane,
                                 Terms{scale, unit, background, loss, masked, gradients, rows}, x);
    if (!gradients)
      return inside ? sum : T(0);
    synchronise_lanes(); // all have read the column
    BRACEWELL_UNROLL
    for (int j = 0; j < lanes; ++j) {
      const Number factor = fold(roots, j, lane);
      BRACEWELL_UNROLL
      for (int first = 0; first < length; first += block)
        if (first + length * j < rows) {
          Number part[block];
          BRACEWELL_UNROLL
          for (int s = 0; s < block; ++s)
            part[s] = j == 0 ? x[first + s] : turn<true>(x[first + s], factor);
          int row = first + length * j;
          scatter_sum<block, lanes / 2>(part, lane, row);
          if (inside) {
            BRACEWELL_UNROLL
            for (int s = 0; s < block / lanes; ++s)
              put(tile[(row + s) * Sizes::pitch + column], part[s]);
          }
        }
    }
    return inside ? sum : T(0);
  }

  /// The same by one thread, lane after lane.
  static T transform_column(Stored* tile, const Number* roots, const Storage* measured, int column,
                            const Terms& terms) {
    Number total[n] = {};
    T sum = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      Number x[length];
      sum += transform_part(tile + column, roots, measured + lane * Sizes::vector, lane, terms, x);
      for (int y = 0; terms.gradients && y < terms.rows; ++y)
        total[y] = total[y] + turn<true>(x[y % length], fold(roots, y / length, lane));
    }
    for (int y = 0; terms.gradients && y < terms.rows; ++y)
      put(tile[y * Sizes::pitch + column], total[y]);
    return sum;
  }

private:
  /// Forward, comparison and adjoint of the part of a column that one lane holds.
  BRACEWELL_REGISTER_FUNCTION static T transform_part(const Stored* column, const Number* roots,
                                                      const Storage* measured, int lane, const Terms& terms,
                                                      Number (&x)[length]) {
    BRACEWELL_UNROLL
    for (int s = 0; s < length; ++s)
      x[s] = {0, 0};
    BRACEWELL_UNROLL
    for (int j = 0; j < lanes; ++j) {
      const Number factor = fold(roots, j, lane);
      BRACEWELL_UNROLL
      for (int first = 0; first < length; first += block)
        if (first + length * j < terms.rows) {
          BRACEWELL_UNROLL
          for (int s = first; s < first + block; ++s) {
            const Number value = get(column[(s + length * j) * Sizes::pitch]);
            x[s] = j == 0 ? value : x[s] + turn<false>(value, factor);
          }
        }
    }
    BRACEWELL_UNROLL
    for (int s = 1; s < length; ++s)
      x[s] = turn<false>(x[s], root(roots, s, lane));
    Forward::first(x, std::make_integer_sequence<int, Sizes::outer>());
    T sum = 0;
    switch (terms.loss) {
    case PatternLoss::LeastSquares:
      compare<PatternLoss::LeastSquares>(x, measured, terms, sum);
      break;
    case PatternLoss::Amplitude:
      compare<PatternLoss::Amplitude>(x, measured, terms, sum);
      break;
    case PatternLoss::Poisson:
      compare<PatternLoss::Poisson>(x, measured, terms, sum);
      break;
    }
    if (!terms.gradients)
      return sum;
    Forward::Adjoint::second(x, std::make_integer_sequence<int, Sizes::outer>());
    BRACEWELL_UNROLL
    for (int s = 1; s < length; ++s)
      x[s] = turn<true>(x[s], root(roots, s, lane));
    return sum;
  }

  /// Multiplies Psi by the derivative of the loss.
  template <PatternLoss kind>
  struct Compare {
    const Storage* measured;
    const Terms& terms;
    T& sum;

    struct alignas(sizeof(Storage) * Sizes::vector) Vector {
      Storage value[Sizes::vector];
    };

    KOKKOS_FORCEINLINE_FUNCTION void operator()(int d, Number (&psi)[Sizes::outer]) const {
      const PatternTerm<kind, T, Storage> term{terms.background};
      BRACEWELL_UNROLL
      for (int k = 0; k < Sizes::outer; k += Sizes::vector) {
        const Vector stored =
            *reinterpret_cast<const Vector*>(measured + (d * Sizes::outer + k) * Sizes::tasks);
        BRACEWELL_UNROLL
        for (int v = 0; v < Sizes::vector; ++v) {
          const T t = static_cast<T>(stored.value[v]);
          T value, slope;
          term(terms.scale * (psi[k + v].re * psi[k + v].re + psi[k + v].im * psi[k + v].im), t, value,
               slope);
          const bool counts = !terms.masked || t >= 0;
          sum += counts ? value : T(0);
          const T factor = counts ? slope * terms.unit : T(0);
          psi[k + v] = {psi[k + v].re * factor, psi[k + v].im * factor};
        }
      }
    }
  };

  template <PatternLoss kind>
  BRACEWELL_REGISTER_FUNCTION static void compare(Number (&x)[length], const Storage* measured,
                                                  const Terms& terms, T& sum) {
    const Compare<kind> action{measured, terms, sum};
    Forward::second_and_back(x, action, std::make_integer_sequence<int, Sizes::inner>());
  }

  /// Each lane ends with the sums of its own `count / lanes` of `count` numbers, which begin at `row`.
  template <int count, int mask>
  KOKKOS_FORCEINLINE_FUNCTION static void scatter_sum(Number (&x)[block], int lane, int& row) {
    if constexpr (mask > 0) {
      const bool upper = (lane & mask) != 0;
      BRACEWELL_UNROLL
      for (int i = 0; i < count / 2; ++i) {
        const Number keep = upper ? x[i + count / 2] : x[i], send = upper ? x[i] : x[i + count / 2];
        x[i] = {keep.re + from_lane_xor(send.re, mask), keep.im + from_lane_xor(send.im, mask)};
      }
      row += upper ? count / 2 : 0;
      scatter_sum<count / 2, mask / 2>(x, lane, row);
    }
  }
};

} // namespace Bracewell::Impl
