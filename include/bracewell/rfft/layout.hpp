// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell {

/// Layout of a half spectrum: the W/2+1 non-negative columns of the transform of a real image or volume, all
/// other axes in FFT order. Components are ordered (x, y[, z]): x is the last, halved, contiguous axis. Zero
/// frequency is at index 0; on a full axis of length N index i holds frequency i for i <= N/2 and i - N
/// above, so the Nyquist row of an even axis is +N/2.
template <int Dim>
struct HalfSpectrumLayout {
  static_assert(Dim == 2 || Dim == 3, "Bracewell: spectra have two or three dimensions.");

  int size[Dim]; ///< full sizes (x, y[, z]), at most 32768

  /// Stored columns, W/2+1.
  KOKKOS_FUNCTION int columns() const { return size[0] / 2 + 1; }

  /// Stored elements.
  KOKKOS_FUNCTION std::int64_t elements() const {
    std::int64_t product = columns();
    for (int d = 1; d < Dim; ++d)
      product *= size[d];
    return product;
  }

  /// Frequency of index i on a full axis of length n.
  KOKKOS_FUNCTION static int frequency(int i, int n) { return i <= n / 2 ? i : i - n; }

  /// Index on a full axis of length n of a tap in [-n, 2n).
  KOKKOS_FUNCTION static int wrap(int tap, int n) {
#if defined(__CUDA_ARCH__) // as unsigned numbers, those out of range are the largest
    const unsigned up = Kokkos::min(unsigned(tap), unsigned(tap) + unsigned(n));
    return static_cast<int>(Kokkos::min(up, up - unsigned(n)));
#else
    return tap < 0 ? tap + n : (tap >= n ? tap - n : tap);
#endif
  }

  /// Columns whose Friedel mates are stored too: x = 0 and, for even widths, x = W/2.
  KOKKOS_FUNCTION bool self_mated(int x) const { return x == 0 || 2 * x == size[0]; }

  /// How many elements of the full spectrum the stored column x stands for.
  KOKKOS_FUNCTION int multiplicity(int x) const { return self_mated(x) ? 1 : 2; }

  /// Where an element of the full spectrum is stored.
  struct Address {
    std::int64_t index; ///< element of the stored half
    int column;         ///< of that element
    bool conjugate;     ///< the stored element is the Friedel mate of the one asked for
  };

  /// Where the element at integer frequency `tap`, every component in [-N, N], is stored.
  KOKKOS_FUNCTION Address resolve(const int (&tap)[Dim]) const {
    const int column = wrap(tap[0], size[0]);
    const bool conjugate = column > size[0] / 2;
    int index = 0; // of the row: less than 2^30 with axes of at most 32768
    for (int d = Dim - 1; d > 0; --d)
      index = index * size[d] + wrap(conjugate ? -tap[d] : tap[d], size[d]);
    const int stored = conjugate ? size[0] - column : column;
    return {row_begin(index) + stored, stored, conjugate};
  }

  /// Where the row at integer frequencies (tap[1][, tap[2]]) begins.
  KOKKOS_FUNCTION std::int64_t row(const int (&tap)[Dim]) const {
    int index = 0;
    for (int d = Dim - 1; d > 0; --d)
      index = index * size[d] + wrap(tap[d], size[d]);
    return row_begin(index);
  }

  /// Where row `index` begins: an unsigned product of 32-bit numbers is one instruction.
  KOKKOS_FUNCTION std::int64_t row_begin(int index) const {
    return static_cast<std::int64_t>(std::uint64_t(std::uint32_t(index)) * std::uint32_t(columns()));
  }

  /// Frequency (x, y[, z]) of a stored element.
  KOKKOS_FUNCTION void frequency(std::int64_t element, int (&k)[Dim]) const {
    k[0] = static_cast<int>(element % columns());
    std::int64_t rest = element / columns();
    for (int d = 1; d < Dim; ++d) {
      k[d] = frequency(static_cast<int>(rest % size[d]), size[d]);
      rest /= size[d];
    }
  }
};

} // namespace Bracewell
