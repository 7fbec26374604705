// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/error.hpp>
#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace Bracewell {

/// Layout of a half spectrum: the W/2+1 non-negative columns of the transform of a real image or volume, all
/// other axes in FFT order. Components are ordered (x, y[, z]): x is the last, halved, contiguous axis. Zero frequency is at
/// index 0. On a full axis of length N index i holds frequency i for i <= N/2, and i - N above. The Nyquist row of an even
/// axis is +N/2.
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

/// What an element on a self-mated column (x = 0, or W/2 of an even width) stands for, where a frequency and its Friedel
/// mate are both stored. Two operators of one kind are transposes of each other, as real-linear maps of what is stored.
///
///              |  Single                              |  Both
///     sample   |  project                             |  backproject_gradients
///     insert   |  gradient of the reconstruction      |  backproject
///              |  (project_gradients)                 |
enum class Mates {
  Single, ///< for the stored element alone: sampling a spectrum, and its transpose
  Both ///< for the element and its mate's conjugate: inserting a value at +k and its conjugate at -k, and the transpose
};

namespace Impl {

template <class T>
KOKKOS_INLINE_FUNCTION T conjugate(const T& value) {
  return value;
}
template <class T>
KOKKOS_INLINE_FUNCTION Kokkos::complex<T> conjugate(const Kokkos::complex<T>& value) {
  return {value.real(), -value.imag()};
}

} // namespace Impl

/// Accessor of one half spectrum in kernels of your own: reads and adds at any integer frequency, on the spectrum continued
/// by Hermitian symmetry and periodicity. It refers to memory and owns nothing.
/// \code
/// const HalfSpectrum<const float, 3> spectrum(volume); // a View [D, H, W/2+1], or HalfSpectrum{volume, W} of odd W
/// Kokkos::parallel_for(n, KOKKOS_LAMBDA(int i) { out(i) = spectrum({i, -2, 7}); });
/// \endcode
/// @tparam T  float or double; const where it only reads
/// @tparam D  2 or 3
template <class T, int D>
requires std::is_floating_point_v<T>
struct HalfSpectrum<T, D> {
  using Real = std::remove_const_t<T>;   ///< float or double
  using Complex = Kokkos::complex<Real>; ///< what is read
  /// An element.
  using Value = std::conditional_t<std::is_const_v<T>, const Complex, Complex>;

  Value* data = nullptr;             ///< the first element
  HalfSpectrumLayout<D> layout = {}; ///< full sizes (x, y[, z])

  HalfSpectrum() = default;
  /// Memory that holds layout.elements() elements.
  KOKKOS_FUNCTION HalfSpectrum(Value* data_, const HalfSpectrumLayout<D>& layout_)
      : data(data_), layout(layout_) {}

  /// A View [(D,) H, W/2+1] of even width, or HalfSpectrum{view, W}. The execution space must reach its memory.
  /// @throws Error on no elements, axes beyond 32768, and a width that W/2+1 columns do not have
  template <class Spectrum>
  requires(Kokkos::is_view_v<Impl::view_of<Spectrum>>) explicit HalfSpectrum(const Spectrum& spectrum) {
    using View = Impl::view_of<Spectrum>;
    static_assert(View::rank() == D, "Bracewell::HalfSpectrum: expected a View [H, W/2+1] or [D, H, W/2+1], "
                                     "found another number of axes.");
    const Array<Value, typename View::memory_space> array(spectrum);
    data = array.data;
    bool fits = array.size() > 0 && array.width / 2 + 1 == array.extents[D - 1] && array.width <= 32768;
    for (int d = 0; d < D; ++d) {
      const std::int64_t size = d == 0 ? array.width : array.extents[D - 1 - d];
      fits = fits && size >= 1 && size <= 32768;
      layout.size[d] = static_cast<int>(size);
    }
    if (!fits)
      Impl::fail("HalfSpectrum", "spectrum", "axes of 1 to 32768 elements and W/2+1 columns",
                 array.shape() + " of width " + std::to_string(array.width));
  }

  /// The same, read only.
  template <class Mutable>
  requires(std::is_const_v<T>&& std::is_same_v<Mutable, Real>) KOKKOS_FUNCTION
      HalfSpectrum(const HalfSpectrum<Mutable, D>& other)
      : data(other.data), layout(other.layout) {}

  /// Spectrum `index` of those that follow this one in memory, as in [B, (D,) H, W/2+1].
  KOKKOS_FUNCTION HalfSpectrum batch(std::int64_t index) const {
    return {data + index * layout.elements(), layout};
  }

  /// The value at integer frequency k (x, y[, z]).
  KOKKOS_FUNCTION Complex operator()(const int (&k)[D]) const {
    const auto at = find(k);
    return at.conjugate ? Impl::conjugate(data[at.index]) : Complex(data[at.index]);
  }

  /// The transpose of the operator above: adds to the element that k is read from.
  KOKKOS_FUNCTION void add(const int (&k)[D], const Complex& value) const {
    const auto at = find(k);
    data[at.index] += at.conjugate ? Impl::conjugate(value) : value;
  }
  /// The same by atomic additions.
  KOKKOS_FUNCTION void atomic_add(const int (&k)[D], const Complex& value) const {
    const auto at = find(k);
    atomic(at.index, at.conjugate ? Impl::conjugate(value) : value);
  }

  /// Adds a value at k and its conjugate at -k, of which one or both are stored (Mates::Both).
  KOKKOS_FUNCTION void add_with_mate(const int (&k)[D], const Complex& value) const {
    visit_both(k,
               [&](std::int64_t index, bool mate) { data[index] += mate ? Impl::conjugate(value) : value; });
  }
  /// The same by atomic additions.
  KOKKOS_FUNCTION void atomic_add_with_mate(const int (&k)[D], const Complex& value) const {
    visit_both(k,
               [&](std::int64_t index, bool mate) { atomic(index, mate ? Impl::conjugate(value) : value); });
  }
  /// The transpose of add_with_mate: the stored element at k plus the conjugate of the stored one at -k.
  KOKKOS_FUNCTION Complex sum_with_mate(const int (&k)[D]) const {
    Complex sum(0);
    visit_both(k, [&](std::int64_t index, bool mate) {
      sum += mate ? Impl::conjugate(data[index]) : Complex(data[index]);
    });
    return sum;
  }

private:
  KOKKOS_FUNCTION void atomic(std::int64_t index, const Complex& value) const {
    Real* const parts = reinterpret_cast<Real*>(data + index);
    Kokkos::atomic_add(parts, value.real());
    Kokkos::atomic_add(parts + 1, value.imag());
  }

  /// Within a period, which layouts expect.
  KOKKOS_FUNCTION typename HalfSpectrumLayout<D>::Address find(const int (&k)[D]) const {
    int within[D];
    for (int d = 0; d < D; ++d) {
      const int n = layout.size[d];
      within[d] = k[d] >= -n && k[d] <= n ? k[d] : k[d] % n;
    }
    return layout.resolve(within);
  }

  template <class Visit>
  KOKKOS_FUNCTION void visit_both(const int (&k)[D], const Visit& visit) const {
    int opposite[D];
    for (int d = 0; d < D; ++d)
      opposite[d] = -(k[d] % layout.size[d]);
    const auto own = find(k), mate = find(opposite);
    if (!own.conjugate)
      visit(own.index, false);
    if (!mate.conjugate)
      visit(mate.index, true);
  }
};

/// Makes an accessor to a half spectrum in kernels, from a pointer and a layout.
template <class T, int D>
HalfSpectrum(Kokkos::complex<T>*, const HalfSpectrumLayout<D>&) -> HalfSpectrum<T, D>;
/// The same, read only.
template <class T, int D>
HalfSpectrum(const Kokkos::complex<T>*, const HalfSpectrumLayout<D>&) -> HalfSpectrum<const T, D>;

} // namespace Bracewell
