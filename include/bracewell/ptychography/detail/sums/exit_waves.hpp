// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/unroll.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

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

/// The object itself where gradients of exit waves are expected.
template <class T>
struct ObjectWaves {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;

  KOKKOS_INLINE_FUNCTION T factor(std::int64_t) const { return T(1); }
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> operator()(std::int64_t i, int, int row, int column) const {
    return object[scan.corner(selection(i)) + row * scan.columns + column];
  }
};

/// Probe gradient sum_j conj(O(y_j + r)) G_j(r) over portions of the patterns, each portion in rising order.
/// @tparam Waves  G: WaveGradients, or ObjectWaves
template <class T, class Waves>
struct SumProbeGradient {
  Scan scan;
  Selection selection;
  const Kokkos::complex<T>* object;
  Probes<T> probes;
  Waves waves;
  Kokkos::complex<T>* portions; ///< [portions, modes, m, m]
  std::int64_t per_portion;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const int m = scan.probe;
    const std::int64_t pixels = std::int64_t(m) * m, portion = index / (pixels * probes.modes);
    const std::int64_t element = index - portion * pixels * probes.modes, pixel = element % pixels;
    const int mode = static_cast<int>(element / pixels);
    const int row = static_cast<int>(pixel / m), column = static_cast<int>(pixel % m);
    const std::int64_t end = Kokkos::min(selection.count, (portion + 1) * per_portion);
    Kokkos::complex<T> sum(0);
    std::int64_t i = portion * per_portion;
    for (; i + together <= end; i += together)
      add<together>(i, mode, row, column, sum);
    for (; i < end; ++i)
      add<1>(i, mode, row, column, sum);
    portions[index] = sum;
  }

  static constexpr int together =
      PtychographyTuning::patterns_together; ///< patterns that are on their way at the same time

  template <int count>
  KOKKOS_INLINE_FUNCTION void add(std::int64_t first, int mode, int row, int column,
                                  Kokkos::complex<T>& sum) const {
    Kokkos::complex<T> value[count], wave[count];
    BRACEWELL_UNROLL_FOR (int c = 0; c < count; ++c) {
      value[c] = object[scan.corner(selection(first + c)) + row * scan.columns + column];
      wave[c] = waves(first + c, mode, row, column);
    }
    BRACEWELL_UNROLL_FOR (int c = 0; c < count; ++c)
      sum += waves.factor(first + c) * conjugate_product(value[c], wave[c]);
  }
};

template <class T>
struct AddPortions {
  const Kokkos::complex<T>* portions;
  Kokkos::complex<T>* gradient;
  std::int64_t elements, count;
  bool accumulate;

  KOKKOS_FUNCTION void operator()(std::int64_t element) const {
    Kokkos::complex<T> sum(0);
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#pragma unroll 16
#endif
    for (std::int64_t portion = 0; portion < count; ++portion)
      sum += portions[portion * elements + element];
    gradient[element] = accumulate ? gradient[element] + sum : sum;
  }
};

} // namespace Bracewell::Impl
