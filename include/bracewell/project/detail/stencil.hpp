// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/project/detail/samples.hpp>
#include <bracewell/rfft/layout.hpp>
#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// Splits a position of at most 2^21 in magnitude into the integer below it and the rest.
template <class T>
KOKKOS_INLINE_FUNCTION void split(T position, int& lower, T& fraction) {
  const T floor = Kokkos::floor(position);
  lower = static_cast<int>(floor);
  fraction = position - floor;
}

#if defined(__CUDA_ARCH__)
// Adding 1.5 * 2^23 (2^52), rounded down, leaves the integer in the last bits: no conversion, which is slow.
template <>
KOKKOS_INLINE_FUNCTION void split(float position, int& lower, float& fraction) {
  const float shifted = __fadd_rd(position, 0x1.8p23f);
  lower = __float_as_int(shifted) - __float_as_int(0x1.8p23f);
  fraction = position - (shifted - 0x1.8p23f);
}
template <>
KOKKOS_INLINE_FUNCTION void split(double position, int& lower, double& fraction) {
  const double shifted = __dadd_rd(position, 0x1.8p52);
  lower = __double2loint(shifted);
  fraction = position - (shifted - 0x1.8p52);
}
#endif

/// The Width^Dim taps around a sampling position, on the spectrum continued by Hermitian symmetry and
/// periodicity. Positions with x < 0 are mirrored once, for all taps; only windows that touch a self-mated
/// column or leave the stored half are resolved tap by tap. `read` and `add` are transposes of each other;
/// both take one row of taps at a time: row[d - 1] counts taps along axis d.
template <int Width, int Dim, Mates mates>
struct TapWindow {
  HalfSpectrumLayout<Dim> layout;
  int first[Dim]; ///< lowest tap on each axis, of the mirrored position if `mirrored`
  bool mirrored;  ///< the window is that of -q: what is read from it, or added to it, is conjugated

  /// Every tap is stored as it is and stands for itself alone.
  KOKKOS_FUNCTION bool direct() const {
    const int margin = mates == Mates::Both || mirrored;
    return first[0] >= margin && 2 * (first[0] + Width - 1) <= layout.size[0] - margin;
  }

  /// The same by one comparison: false, too, where only windows that are not mirrored would be direct.
  KOKKOS_FUNCTION bool clearly_direct() const {
    return static_cast<unsigned>(first[0] - 1) <
           static_cast<unsigned>(Kokkos::max(0, (layout.size[0] + 1) / 2 - Width));
  }

  template <bool is_direct, class Stored, class Value>
  KOKKOS_INLINE_FUNCTION void read(const Stored* spectrum, const int (&row)[Dim - 1],
                                   Value (&value)[Width]) const {
    if constexpr (is_direct) {
      const Stored* const taps = spectrum + offset<1>(row, first[0]);
      for (int i = 0; i < Width; ++i)
        value[i] = taps[i];
    } else {
      const Stored* const own = spectrum + offset<1>(row, 0);
      const Stored* const opposite = spectrum + offset<-1>(row, 0);
      for (int i = 0; i < Width; ++i) {
        value[i] = stands_for_itself(i) ? Value(own[first[0] + i]) : Value(0);
        if (stands_for_mate(i))
          value[i] += conjugate(Value(opposite[mate(i)]));
      }
    }
  }

  /// Adds values to the taps of one row by add(address, values), for neighbours in memory.
  template <bool is_direct, class Value, class Add>
  KOKKOS_INLINE_FUNCTION void add(Value* spectrum, const int (&row)[Dim - 1], const Value (&value)[Width],
                                  const Add& add_neighbours) const {
    if constexpr (is_direct) {
      add_neighbours(spectrum + offset<1>(row, first[0]), value);
    } else {
      for_each_stored(row, [&](std::int64_t element, int i, bool mated) {
        const Value one[1] = {mated ? conjugate(value[i]) : value[i]};
        add_neighbours(spectrum + element, one);
      });
    }
  }

  /// Calls visit(element, i, mated) for each stored element that tap i of a row is, or (mated) whose mate it is.
#ifdef __CUDACC__
#pragma nv_exec_check_disable // visitors of hosts' kernels are hosts' functions
#endif
  template <class Visit>
  KOKKOS_INLINE_FUNCTION void for_each_stored(const int (&row)[Dim - 1], const Visit& visit) const {
    const std::int64_t own = offset<1>(row, 0), opposite = offset<-1>(row, 0);
    for (int i = 0; i < Width; ++i) {
      if (stands_for_itself(i))
        visit(own + first[0] + i, i, false);
      if (stands_for_mate(i))
        visit(opposite + mate(i), i, true);
    }
  }

private:
  /// A column of a row of taps, or (side = -1) of the row of their Friedel mates.
  template <int side>
  KOKKOS_INLINE_FUNCTION std::int64_t offset(const int (&row)[Dim - 1], int column) const {
    std::int64_t begin = 0;
    if constexpr (Dim == 3) {
      const auto plane = static_cast<unsigned>(layout.size[1] * layout.columns()); // less than 2^30
      begin = static_cast<std::int64_t>(
          std::uint64_t(unsigned(layout.wrap(side * (first[2] + row[1]), layout.size[2]))) * plane);
    }
    return begin +
           unsigned(layout.wrap(side * (first[1] + row[0]), layout.size[1]) * layout.columns() + column);
  }

  /// Tap i of a row is, or counts as, an element of the stored half, seen from the position itself.
  KOKKOS_INLINE_FUNCTION bool stands_for_itself(int i) const {
    const int column = first[0] + i, margin = mates == Mates::Single && mirrored;
    return column >= margin && 2 * column <= layout.size[0] - margin;
  }
  /// Tap i of a row is, or counts as, the mate of a stored element.
  KOKKOS_INLINE_FUNCTION bool stands_for_mate(int i) const {
    if constexpr (mates == Mates::Single)
      return !stands_for_itself(i);
    return first[0] + i <= 0 || 2 * (first[0] + i) >= layout.size[0];
  }
  KOKKOS_INLINE_FUNCTION int mate(int i) const {
    return first[0] + i <= 0 ? -(first[0] + i) : layout.size[0] - (first[0] + i);
  }
};

/// Brings a coordinate back by whole periods of n.
template <class T>
KOKKOS_INLINE_FUNCTION void fold_axis(int n, T& q) {
  const T period = static_cast<T>(n);
  if (2 * Kokkos::abs(q) > period)
    q -= period * Kokkos::floor(q / period + T(0.5));
}

/// Brings a position back by whole periods, to at most n/2 + 1/2 on each axis. False where it is not finite,
/// or so far out that its fraction is lost (2^21 in float, 2^50 in double): it is then unusable.
template <class T, int Dim>
KOKKOS_INLINE_FUNCTION bool fold(const HalfSpectrumLayout<Dim>& layout, T (&q)[Dim]) {
  bool usable = true;
  for (int d = 0; d < Dim; ++d) {
    usable = usable && is_finite(q[d]) && Kokkos::abs(q[d]) <= T(0.25) / Kokkos::Experimental::epsilon_v<T>;
    fold_axis(layout.size[d], q[d]);
  }
  return usable;
}

/// The separable weights around a position, and how to sum a spectrum over them or spread a value onto them.
template <class Kernel, int Dim, Mates mates, class T>
struct Stencil {
  static constexpr int width = Kernel::width;
  static constexpr int rows = Dim == 2 ? width : width * width;

  TapWindow<width, Dim, mates> window;
  T fraction[Dim];
  T weight[Dim][width];

  /// Puts the window around q. `folds`: q may lie about a period out, or anywhere, and is brought back first;
  /// false is then returned where that cannot be done, and the window is unusable.
  KOKKOS_INLINE_FUNCTION bool place(const HalfSpectrumLayout<Dim>& layout, T (&q)[Dim], bool folds) {
    if (folds && !fold(layout, q))
      return false;
    window.layout = layout;
    window.mirrored = q[0] < 0;
    for (int d = 0; d < Dim; ++d) {
      const T position = window.mirrored ? -q[d] : q[d];
      split(position, window.first[d], fraction[d]);
      window.first[d] -= width / 2 - 1;
      Kernel::weights(fraction[d], weight[d]);
    }
    return true;
  }

  /// Replaces the weights by their absolute values.
  KOKKOS_INLINE_FUNCTION void make_absolute() {
    for (int d = 0; d < Dim; ++d)
      for (int i = 0; i < width; ++i)
        weight[d][i] = Kokkos::abs(weight[d][i]);
  }

  /// Sum of weight times spectrum over the taps.
  template <class Stored>
  KOKKOS_INLINE_FUNCTION computed_with<Stored> gather(const Stored* spectrum) const {
    const auto sum = all_direct() ? gather_rows<true>(spectrum) : gather_rows<false>(spectrum);
    return window.mirrored ? conjugate(sum) : sum;
  }

  /// The same and its gradient with respect to the position. `absolute`: that of the sum with absolute
  /// weights.
  template <class Stored, class Value>
  KOKKOS_INLINE_FUNCTION Value gather(const Stored* spectrum, Value (&gradient)[Dim],
                                      bool absolute = false) const {
    T derivative[Dim][width];
    for (int d = 0; d < Dim; ++d)
      Kernel::derivatives(fraction[d], derivative[d]);
    T value[Dim][width];
    for (int d = 0; d < Dim; ++d)
      for (int i = 0; i < width; ++i) {
        const bool flip = absolute && weight[d][i] < 0;
        value[d][i] = flip ? -weight[d][i] : weight[d][i];
        if (flip)
          derivative[d][i] = -derivative[d][i];
      }
    for (int d = 0; d < Dim; ++d)
      gradient[d] = Value(0);
    const Value sum = all_direct() ? gather_rows<true>(spectrum, value, derivative, gradient)
                                   : gather_rows<false>(spectrum, value, derivative, gradient);
    if (!window.mirrored)
      return sum;
    for (int d = 0; d < Dim; ++d)
      gradient[d] = -conjugate(gradient[d]);
    return conjugate(sum);
  }

  /// Adds weight times value to every tap by add(address, values), for neighbours in memory: the
  /// transpose of gather.
  template <class Value, class Add>
  KOKKOS_INLINE_FUNCTION void scatter(Value* spectrum, const Value& value, const Add& add) const {
    const Value amplitude = window.mirrored ? conjugate(value) : value;
    if (window.direct())
      scatter_rows<true>(spectrum, amplitude, add);
    else
      scatter_rows<false>(spectrum, amplitude, add);
  }

private:
  /// Of the lanes of a warp all or none take the long way: going both would take longer.
  KOKKOS_INLINE_FUNCTION bool all_direct() const { return !any_lane(!window.clearly_direct()); }

  KOKKOS_INLINE_FUNCTION static void count(int r, int (&row)[Dim - 1]) {
    row[0] = r % width;
    if constexpr (Dim == 3)
      row[1] = r / width;
  }
  KOKKOS_INLINE_FUNCTION static T product(const T (&factor)[Dim][width], const int (&row)[Dim - 1]) {
    if constexpr (Dim == 2)
      return factor[1][row[0]];
    else
      return factor[1][row[0]] * factor[2][row[1]];
  }

  template <bool direct, class Stored>
  KOKKOS_INLINE_FUNCTION computed_with<Stored> gather_rows(const Stored* spectrum) const {
    using Value = computed_with<Stored>;
    Value sum(0);
    BRACEWELL_UNROLL_FOR (int r = 0; r < rows; ++r) {
      int row[Dim - 1];
      count(r, row);
      Value tap[width];
      window.template read<direct>(spectrum, row, tap);
      Value row_sum = weight[0][0] * tap[0];
      for (int i = 1; i < width; ++i)
        row_sum += weight[0][i] * tap[i];
      sum += product(weight, row) * row_sum;
    }
    return sum;
  }

  template <bool direct, class Stored, class Value>
  KOKKOS_INLINE_FUNCTION Value gather_rows(const Stored* spectrum, const T (&value)[Dim][width],
                                           const T (&derivative)[Dim][width], Value (&gradient)[Dim]) const {
    Value sum(0);
    for (int r = 0; r < rows; ++r) {
      int row[Dim - 1];
      count(r, row);
      Value tap[width];
      window.template read<direct>(spectrum, row, tap);
      Value row_sum(0), row_slope(0);
      for (int i = 0; i < width; ++i) {
        row_sum += value[0][i] * tap[i];
        row_slope += derivative[0][i] * tap[i];
      }
      if constexpr (Dim == 2) {
        gradient[1] += derivative[1][row[0]] * row_sum;
      } else {
        gradient[1] += derivative[1][row[0]] * value[2][row[1]] * row_sum;
        gradient[2] += value[1][row[0]] * derivative[2][row[1]] * row_sum;
      }
      const T across = product(value, row);
      gradient[0] += across * row_slope;
      sum += across * row_sum;
    }
    return sum;
  }

  template <bool direct, class Value, class Add>
  KOKKOS_INLINE_FUNCTION void scatter_rows(Value* spectrum, const Value& amplitude, const Add& add) const {
    for (int r = 0; r < rows; ++r) {
      int row[Dim - 1];
      count(r, row);
      const Value across = product(weight, row) * amplitude;
      Value tap[width];
      for (int i = 0; i < width; ++i)
        tap[i] = weight[0][i] * across;
      window.template add<direct>(spectrum, row, tap, add);
    }
  }
};

} // namespace Bracewell::Impl
