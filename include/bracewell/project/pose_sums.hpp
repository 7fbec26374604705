// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/atomic.hpp>
#include <bracewell/rfft/layout.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell {

/// Sums over samples P(k) = exp(-2 pi i k.s/n) F(A k) of a pose. They are the gradients of a loss with respect to its matrix
/// and shift. Kernels reduce them by Kokkos::Sum.
template <class T, int M, int D>
struct PoseSums {
  T matrix[D][M] = {}; ///< of dL/dq k
  T bend[D] = {};      ///< of dL/dq |k|^2: of an Ewald sphere
  T shift[M] = {};     ///< of k Im(conj(a) F)

  /// Adds a sample.
  /// @param amplitude  a = g conj(phase), with the cotangent g = dL/dRe P + i dL/dIm P
  /// @param value      F(q), which a Sampler gives with its gradient dF/dq
  KOKKOS_INLINE_FUNCTION void add(const int (&k)[M], const Kokkos::complex<T>& amplitude,
                                  const Kokkos::complex<T>& value, const Kokkos::complex<T> (&gradient)[D]) {
    T slope[D];
    for (int d = 0; d < D; ++d)
      slope[d] = amplitude.real() * gradient[d].real() + amplitude.imag() * gradient[d].imag();
    add_slope(k, slope, false);
    add_turn(k, amplitude.real() * value.imag() - amplitude.imag() * value.real());
  }
  /// The part of the matrix: slope = dL/dq, by the chain rule.
  KOKKOS_INLINE_FUNCTION void add_slope(const int (&k)[M], const T (&slope)[D], bool curved) {
    for (int d = 0; d < D; ++d) {
      for (int c = 0; c < M; ++c)
        matrix[d][c] += slope[d] * T(k[c]);
      if (curved)
        bend[d] += slope[d] * T(k[0] * k[0] + k[1] * k[1]);
    }
  }
  /// The part of the shift: imaginary = Im(conj(a) F).
  KOKKOS_INLINE_FUNCTION void add_turn(const int (&k)[M], T imaginary) {
    for (int c = 0; c < M; ++c)
      shift[c] += T(k[c]) * imaginary;
  }
  /// The sum of two.
  KOKKOS_INLINE_FUNCTION PoseSums& operator+=(const PoseSums& other) {
    for (int d = 0; d < D; ++d) {
      for (int c = 0; c < M; ++c)
        matrix[d][c] += other.matrix[d][c];
      bend[d] += other.bend[d];
    }
    for (int c = 0; c < M; ++c)
      shift[c] += other.shift[c];
    return *this;
  }
  /// Adds them to dL/dA [d, d] and dL/ds [m] by atomic additions; null: not wanted. Threads of a warp that add to the same
  /// pose side by side, as those of for_each_sample do, sum among themselves first (CUDA).
  KOKKOS_INLINE_FUNCTION void atomic_add_to(T* matrix_gradient, T* shift_gradient, T oversampling,
                                            const HalfSpectrumLayout<M>& box) const {
    const Impl::LanesTogether lanes(matrix_gradient ? matrix_gradient : shift_gradient);
    if (matrix_gradient)
      for (int d = 0; d < D; ++d)
        for (int c = 0; c < M; ++c)
          lanes.atomic_add(matrix_gradient + d * D + c, oversampling * matrix[d][c]);
    if (shift_gradient)
      for (int c = 0; c < M; ++c)
        lanes.atomic_add(shift_gradient + M - 1 - c,
                         2 * Kokkos::numbers::pi_v<T> / static_cast<T>(box.size[c]) * shift[c]);
  }
};

} // namespace Bracewell

//! \cond
// Of PoseSums, for Kokkos::Sum.
template <class T, int M, int D>
struct Kokkos::reduction_identity<Bracewell::PoseSums<T, M, D>> {
  KOKKOS_FORCEINLINE_FUNCTION static Bracewell::PoseSums<T, M, D> sum() { return {}; }
};
//! \endcond
