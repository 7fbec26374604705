// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/ptychography/detail/sums/exit_waves.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

namespace Bracewell::Impl {

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
    BRACEWELL_UNROLL
    for (int c = 0; c < count; ++c) {
      value[c] = object[scan.corner(selection(first + c)) + row * scan.columns + column];
      wave[c] = waves(first + c, mode, row, column);
    }
    BRACEWELL_UNROLL
    for (int c = 0; c < count; ++c)
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
