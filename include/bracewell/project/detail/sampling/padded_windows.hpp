// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/project/detail/sampling/padded_copy.hpp>
#include <bracewell/project/detail/stencil.hpp>

namespace Bracewell::Impl {

/// Which positions have their windows in copies.
template <int width, class T, int D>
struct CopiedPositions {
  HalfSpectrumLayout<D> layout;
  T period, lowest; ///< along x; copies reach a window beyond x = 0, and a window beyond x = n/2

  explicit CopiedPositions(const HalfSpectrumLayout<D>& layout_)
      : layout(layout_), period(static_cast<T>(layout.size[0])), lowest(T(width / 2) - period / 2) {}

  /// Brings position q, which `folds` allows to be anywhere, to where copies reach; `mirrored`: the conjugate
  /// of what is there is wanted. False where that cannot be done, and at once: in double, kernels of two taps
  /// then take fewer registers.
  KOKKOS_INLINE_FUNCTION bool bring_back(T (&q)[D], bool folds, bool& mirrored) const {
    if (folds && !fold(layout, q))
      return false;
    if (q[0] <= lowest)
      q[0] += period;
    mirrored = q[0] < -T(width / 2);
    for (int d = 0; d < D; ++d)
      q[d] = mirrored ? -q[d] : q[d];
    return true;
  }
};

/// Where the taps of a window are in a copy: entries of its rows, the first of each, and how far from it
/// the others are.
template <class Order, int width, int D>
struct PlacedWindow {
  static constexpr int reads = width / Order::together, rows = D == 3 ? width * width : width;
  unsigned x, y[width], z[width], offset[reads];

  KOKKOS_INLINE_FUNCTION PlacedWindow(const Order& order, const int (&first)[D])
      : x(order.offset_x(first[0])) {
    order.offsets_y(first[1], y);
    if constexpr (D == 3)
      order.offsets_z(first[2], z);
    for (int r = 0; r < reads; ++r)
      offset[r] = Order::lanes_share ? order.offset_x(first[0] + r * Order::together) - x
                                     : r * Order::together * Order::beside;
  }
  KOKKOS_INLINE_FUNCTION unsigned row(int j) const {
    const unsigned place = x + y[j % width];
    if constexpr (D == 3)
      return place + z[j / width];
    return place;
  }
};

/// The spectrum at position q, whose window is in the copy: what a lane does alone. Where `sloped`, its gradient with respect
/// to the position, too.
template <class Kernel, bool sloped = false, class Order, class T, int D>
KOKKOS_INLINE_FUNCTION Kokkos::complex<T> sum_of_window(const Order& order,
                                                        const typename Order::Entry* entries, const T (&q)[D],
                                                        Kokkos::complex<T>* gradient = nullptr) {
  using Complex = Kokkos::complex<T>;
  constexpr int width = Kernel::width, reads = width / Order::together;
  int first[D];
  T weight[D][width], slope[sloped ? D : 1][width];
  for (int d = 0; d < D; ++d) {
    T fraction;
    split(q[d], first[d], fraction);
    first[d] -= width / 2 - 1;
    Kernel::weights(fraction, weight[d]);
    if constexpr (sloped) {
      Kernel::derivatives(fraction, slope[d]);
      gradient[d] = Complex(0);
    }
  }
  const PlacedWindow<Order, width, D> window(order, first);
  Complex sum(0);
  BRACEWELL_UNROLL_FOR (int j = 0; j < window.rows; ++j) {
    const auto* const row = entries + window.row(j);
    T across_rows = weight[1][j % width];
    if constexpr (D == 3)
      across_rows *= weight[2][j / width];
    Complex row_sum(0), row_slope(0);
    for (int r = 0; r < reads; ++r) {
      const auto entry = row[window.offset[r]];
      for (int e = 0; e < Order::together; ++e) {
        const Complex tap(entry.value[e]);
        row_sum += weight[0][r * Order::together + e] * tap;
        if constexpr (sloped)
          row_slope += slope[0][r * Order::together + e] * tap;
      }
    }
    sum += across_rows * row_sum;
    if constexpr (sloped) {
      gradient[0] += across_rows * row_slope;
      gradient[1] +=
          (D == 3 ? slope[1][j % width] * weight[D - 1][j / width] : slope[1][j % width]) * row_sum;
      if constexpr (D == 3)
        gradient[2] += weight[1][j % width] * slope[2][j / width] * row_sum;
    }
  }
  return sum;
}

/// Windows of four taps in padded copies of volumes, which four lanes take together, one lane's after the
/// other's: each lane a row of taps along x in all four layers, by pairs of elements that are in memory
/// together. Where a lane alone takes its window, eight lanes at a time read from as many windows, whose
/// lines and banks of the L1 cache meet at random; here they read from two, which never meet: one in the one
/// half of blocks while the other is in the other (PaddedOrder::lanes_share). On hosts lanes are alone.
template <class Kernel, class T, class Stored>
class SharedWindows {
  using Complex = Kokkos::complex<T>;
  using Order = PaddedOrder<Stored, 3, Kernel::width>;
  static_assert(Order::lanes_share);
  static constexpr int lanes = 4, taps = 4;
  struct alignas(2 * sizeof(Stored)) Pair {
    Stored value[2];
  };

  const Order& order_;
  const typename Order::Entry* entries_;
  int lane_, half_; ///< among the four; of blocks, where this lane begins
  T row_[taps];     ///< weight of this lane's rows as a polynomial of the fraction along y

public:
  KOKKOS_INLINE_FUNCTION SharedWindows(const Order& order, const typename Order::Entry* entries, int lane)
      : order_(order), entries_(entries), lane_(lane % lanes), half_(lane / lanes % 2) {
    // Weights of cubic kernels are cubic polynomials: from their values at -1, 0, 1 and 2.
    T at[taps] = {};
    BRACEWELL_UNROLL_FOR (int i = 0; i < taps; ++i) {
      T weight[taps];
      Kernel::weights(T(i - 1), weight);
      BRACEWELL_UNROLL_FOR (int t = 0; t < taps; ++t)
        at[i] = t == lane_ ? weight[t] : at[i];
    }
    const T odd = (at[2] - at[0]) / 2;
    row_[0] = at[1];
    row_[2] = (at[2] + at[0]) / 2 - at[1];
    row_[3] = ((at[3] - at[1]) / 2 - 2 * row_[2] - odd) / 3;
    row_[1] = odd - row_[3];
  }

  /// The spectrum at this lane's position q, whose window is in the copy, where it is wanted. All lanes of a
  /// warp call it together.
  KOKKOS_INLINE_FUNCTION Complex operator()(T (&q)[3], bool wanted) const {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
    for (int d = 0; d < 3; ++d)
      q[d] = wanted ? q[d] : T(0);
    const unsigned bits = bits_of_lanes(wanted);
    if (bits == 0)
      return Complex(0);
    Complex sum[lanes];
    BRACEWELL_UNROLL_FOR (int s = 0; s < lanes; ++s)
      sum[s] = (bits & 0x11111111u << s) == 0 ? Complex(0) : part(q, s);
    // Every lane ends with the sum of the four parts of its own window.
    BRACEWELL_UNROLL_FOR (int bit = lanes / 2; bit > 0; bit /= 2)
      for (int s = 0; s < bit; ++s) {
        const bool upper = lane_ & bit;
        const Complex other = upper ? sum[s] : sum[s + bit], own = upper ? sum[s + bit] : sum[s];
        sum[s] = own + Complex(from_opposite_lane(other.real(), bit), from_opposite_lane(other.imag(), bit));
      }
    return sum[0];
#else
    return wanted ? sum_of_window<Kernel>(order_, entries_, q) : Complex(0);
#endif
  }

private:
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  /// This lane's part of the window of lane s of the four.
  __device__ __forceinline__ Complex part(const T (&q)[3], int s) const {
    int lower[3];
    T fraction[3];
    for (int d = 0; d < 3; ++d)
      split(from_lane<lanes>(q[d], s), lower[d], fraction[d]);

    // Four taps from an even place on are two pairs, one in each half of blocks; from an odd place on, they
    // begin with the second element of the first pair, and end with the first of a third.
    const unsigned x = static_cast<unsigned>(lower[0] - 1 - (1 - taps)); // PaddedOrder::low[0]
    const bool odd = x % 2, begins_in_other = x / 2 % 2 != unsigned(half_);
    const unsigned row = order_.offset_y(lower[1] - 1 + lane_) + order_.offset_z(lower[2] - 1);
    const auto* const here = at((x + 2 - 2 * half_) / 4, row + 8 * half_);
    const auto* const there = at((x + 2 * half_) / 4, row + 8 - 8 * half_);
    const auto* const last = at((x + 4) / 4, row + x % 4 / 2 * 8);
    Pair pair_here[taps], pair_there[taps];
    Stored tap_last[taps];
    BRACEWELL_UNROLL_FOR (int z = 0; z < taps; ++z) {
      pair_here[z] = *reinterpret_cast<const Pair*>(here + z * 16);
      pair_there[z] = *reinterpret_cast<const Pair*>(there + z * 16);
      tap_last[z] = odd ? last[z * 16].value[0] : Stored(Complex(0));
    }

    T along[taps], across_layers[taps];
    Kernel::weights(fraction[0], along);
    Kernel::weights(fraction[2], across_layers);
    Complex sum_here[2] = {}, sum_there[2] = {}, sum_last(0);
    BRACEWELL_UNROLL_FOR (int z = 0; z < taps; ++z) {
      for (int e = 0; e < 2; ++e) {
        sum_here[e] += across_layers[z] * Complex(pair_here[z].value[e]);
        sum_there[e] += across_layers[z] * Complex(pair_there[z].value[e]);
      }
      sum_last += across_layers[z] * Complex(tap_last[z]);
    }
    const Complex e0 = begins_in_other ? sum_there[0] : sum_here[0],
                  e1 = begins_in_other ? sum_there[1] : sum_here[1],
                  e2 = begins_in_other ? sum_here[0] : sum_there[0],
                  e3 = begins_in_other ? sum_here[1] : sum_there[1];
    const Complex sum = along[0] * (odd ? e1 : e0) + along[1] * (odd ? e2 : e1) + along[2] * (odd ? e3 : e2) +
                        along[3] * (odd ? sum_last : e3);
    const T f = fraction[1];
    return (row_[0] + f * (row_[1] + f * (row_[2] + f * row_[3]))) * sum;
  }

  __device__ __forceinline__ const typename Order::Entry* at(unsigned block_column, unsigned within) const {
    return computed_once(entries_, block_column * order_.stride[0] + within);
  }
#endif
};

} // namespace Bracewell::Impl
