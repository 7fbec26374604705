// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/rfft/layout.hpp>

namespace Bracewell {

/// What a tap on a self-mated column (x = 0, or W/2 of an even width) touches, where a frequency and its
/// Friedel mate are both stored: the stored element alone (sampling a spectrum, and its transpose), or the
/// element and its mate's conjugate (inserting a sample at +k and its conjugate at -k, and the transpose of
/// that).
enum class Mates { Single, Both };

namespace Impl {

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
  KOKKOS_FUNCTION bool interior() const {
    return first[0] > 0 && 2 * (first[0] + Width - 1) < layout.size[0];
  }

  template <bool is_interior, class Stored, class Value>
  KOKKOS_INLINE_FUNCTION void read(const Stored* spectrum, const int (&row)[Dim - 1],
                                   Value (&value)[Width]) const {
    int tap[Dim];
    start(row, tap);
    if constexpr (is_interior) {
      const Stored* begin = spectrum + layout.row(tap) + tap[0];
      for (int i = 0; i < Width; ++i)
        value[i] = begin[i];
    } else {
      for (int i = 0; i < Width; ++i) {
        value[i] = Value(0);
        each(tap, i, [&](std::int64_t index, bool conjugated) {
          const Value stored = spectrum[index];
          value[i] += conjugated ? conjugate(stored) : stored;
        });
      }
    }
  }

  /// Adds values to the taps of one row by add(address, values), for runs of neighbours in memory.
  template <bool is_interior, class Value, class Add>
  KOKKOS_INLINE_FUNCTION void add(Value* spectrum, const int (&row)[Dim - 1], const Value (&value)[Width],
                                  const Add& add_run) const {
    int tap[Dim];
    start(row, tap);
    if constexpr (is_interior) {
      add_run(spectrum + layout.row(tap) + tap[0], value);
    } else {
      for (int i = 0; i < Width; ++i)
        each(tap, i, [&](std::int64_t index, bool conjugated) {
          const Value one[1] = {conjugated ? conjugate(value[i]) : value[i]};
          add_run(spectrum + index, one);
        });
    }
  }

private:
  KOKKOS_INLINE_FUNCTION void start(const int (&row)[Dim - 1], int (&tap)[Dim]) const {
    tap[0] = first[0];
    for (int d = 1; d < Dim; ++d)
      tap[d] = first[d] + row[d - 1];
  }

  /// Calls visit(index, conjugated) for the element, or the two elements, that tap i of a row stands for.
  template <class Visit>
  KOKKOS_INLINE_FUNCTION void each(const int (&row)[Dim], int i, const Visit& visit) const {
    int tap[Dim];
    for (int d = 0; d < Dim; ++d)
      tap[d] = mirrored ? -row[d] : row[d];
    tap[0] += mirrored ? -i : i;
    const auto stored = layout.resolve(tap);
    visit(stored.index, stored.conjugate != mirrored);
    if constexpr (mates == Mates::Both) {
      if (layout.self_mated(stored.column)) {
        for (int d = 1; d < Dim; ++d)
          tap[d] = -tap[d];
        visit(layout.row(tap) + stored.column, !mirrored);
      }
    }
  }
};

} // namespace Impl
} // namespace Bracewell
