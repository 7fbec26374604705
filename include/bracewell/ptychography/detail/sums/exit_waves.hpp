// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/detail/selection.hpp>

namespace Bracewell::Impl {

/// Probes [modes, m, m], the same for every pattern or (stride > 0) others for each.
template <class T>
struct Probes {
  const Kokkos::complex<T>* data;
  std::int64_t stride;
  int modes;
};

/// Exit waves in the corner of windows of n x n, zeros around them: [patterns, modes, n, n].
template <class T>
struct ExitWaves {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;
  Probes<T> probes;
  Kokkos::complex<T>* waves;

  KOKKOS_FUNCTION void operator()(std::int64_t i, int mode, int row, int column, std::int64_t index) const {
    const int m = scan.probe;
    Kokkos::complex<T> value(0);
    if (row < m && column < m)
      value = object[scan.corner(selection(i)) + row * scan.columns + column] *
              probes.data[i * probes.stride + (std::int64_t(mode) * m + row) * m + column];
    waves[index] = value;
  }
};

/// Gradients with respect to the exit waves, wherever they lie: those of pattern i are factor(i) times what
/// is stored. Half precision needs factors for its range.
template <class T, class Stored>
struct WaveGradients {
  static constexpr bool scaled = sizeof(Stored) < sizeof(T);

  const complex_of<Stored>* data;
  std::int64_t pattern_stride, mode_stride, row_stride;
  const T* factors; ///< [patterns], where scaled

  KOKKOS_INLINE_FUNCTION T factor(std::int64_t i) const {
    if constexpr (scaled)
      return factors[i];
    else
      return T(1);
  }
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> operator()(std::int64_t i, int mode, int row, int column) const {
    return static_cast<Kokkos::complex<T>>(
        data[i * pattern_stride + mode * mode_stride + row * row_stride + column]);
  }
};

template <class T>
KOKKOS_INLINE_FUNCTION Kokkos::complex<T> conjugate_product(const Kokkos::complex<T>& a,
                                                            const Kokkos::complex<T>& b) {
  return {a.real() * b.real() + a.imag() * b.imag(), a.real() * b.imag() - a.imag() * b.real()};
}

} // namespace Bracewell::Impl
