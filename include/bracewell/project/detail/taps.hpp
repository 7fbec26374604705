// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/rfft/layout.hpp>

namespace Bracewell::Impl {

/// What a tap on a self-mated column (x = 0, or W/2 of an even width) touches, where a frequency and its
/// Friedel mate are both stored: the stored element alone (sampling a spectrum, and its transpose), or the
/// element and its mate's conjugate (inserting a sample at +k and its conjugate at -k, and the transpose of
/// that). It tells which pair of operators a kernel is for:
///
///              |  Single                              |  Both
///     sample   |  project                             |  backproject_gradients
///     insert   |  gradient of the reconstruction      |  backproject
///              |  (project_gradients)                 |
enum class Mates { Single, Both };

template <class T>
KOKKOS_INLINE_FUNCTION T conjugate(const T& value) {
  return value;
}
template <class T>
KOKKOS_INLINE_FUNCTION Kokkos::complex<T> conjugate(const Kokkos::complex<T>& value) {
  return {value.real(), -value.imag()};
}

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
      const unsigned plane = layout.size[1] * layout.columns(); // less than 2^30
      begin = std::uint64_t(unsigned(layout.wrap(side * (first[2] + row[1]), layout.size[2]))) * plane;
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

} // namespace Bracewell::Impl
