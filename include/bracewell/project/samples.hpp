// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/turns.hpp>
#include <bracewell/rfft/layout.hpp>
#include <bracewell/types.hpp>

namespace Bracewell {

/// Poses of projections.
/// * matrices [B|1, P|1, d, d], d the dimension of the reconstruction: maps projection frequencies (x, y[,
/// z]) to reconstruction
///   frequencies; any matrix. For RELION's angles it is the transpose of RELION's matrix
///   (geometry/euler.hpp).
/// * shifts [B|1, P|1, m], m the dimension of the projections, in pixels of the projection, ordered like the
/// array axes ((depth,) row, column):
///   positive moves the image to higher index. Optional.
/// An axis of extent 1 is shared by all batches or poses.
template <class T, class MemorySpace>
struct Poses {
  Array<const T, MemorySpace> matrices;
  Array<const T, MemorySpace> shifts = {};
};

namespace Impl {

/// One pose, loaded once and applied to many samples.
template <class T, int M, int D>
struct Pose {
  T matrix[D][M]; ///< times oversampling: projection frequencies to positions
  T turns[M];     ///< minus shift over box size: turns of phase per unit of frequency
  bool folds;     ///< positions may lie beyond the reconstruction's Nyquist limits

  /// Position in the reconstruction of projection frequency k.
  KOKKOS_INLINE_FUNCTION void position(const int (&k)[M], T (&q)[D]) const {
    for (int d = 0; d < D; ++d) {
      q[d] = matrix[d][0] * static_cast<T>(k[0]);
      for (int c = 1; c < M; ++c)
        q[d] += matrix[d][c] * static_cast<T>(k[c]);
    }
  }

  /// exp(-2 pi i k.s/n), the shift theorem's factor.
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> phase(const int (&k)[M]) const {
    T angle = static_cast<T>(k[0]) * turns[0];
    for (int c = 1; c < M; ++c)
      angle += static_cast<T>(k[c]) * turns[c];
    return unit_phase(angle);
  }
};

/// The samples that B x P poses of an M-dimensional projection take of a D-dimensional reconstruction.
template <class T, int M, int D>
struct Samples {
  HalfSpectrumLayout<M> projection;
  HalfSpectrumLayout<D> reconstruction;
  std::int64_t batches, poses;
  const T* matrices;
  std::int64_t matrix_batch_stride, matrix_pose_stride;
  const T* shifts; ///< null: none
  std::int64_t shift_batch_stride, shift_pose_stride;
  T oversampling;
  T inverse_size[M];  ///< 1 / projection.size
  T radius;           ///< largest |k|
  int squared_radius; ///< samples with |k|^2 beyond it are zero

  KOKKOS_INLINE_FUNCTION Pose<T, M, D> pose(std::int64_t batch, std::int64_t index) const {
    Pose<T, M, D> result;
    const T* m = matrices + batch * matrix_batch_stride + index * matrix_pose_stride;
    result.folds = false;
    for (int d = 0; d < D; ++d) {
      T norm = 0;
      for (int c = 0; c < M; ++c) {
        result.matrix[d][c] = oversampling * m[d * D + c];
        norm += result.matrix[d][c] * result.matrix[d][c];
      }
      const T limit = static_cast<T>(reconstruction.size[d]);
      result.folds = result.folds || !(4 * radius * radius * norm <= limit * limit);
    }
    for (int c = 0; c < M; ++c)
      result.turns[c] =
          shifts
              ? -inverse_size[c] * shifts[batch * shift_batch_stride + index * shift_pose_stride + M - 1 - c]
              : T(0);
    return result;
  }

  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> phase(const Pose<T, M, D>& pose, const int (&k)[M]) const {
    return shifts ? pose.phase(k) : Kokkos::complex<T>(1);
  }

  KOKKOS_INLINE_FUNCTION bool inside(const int (&k)[M]) const {
    int sum = k[0] * k[0];
    for (int c = 1; c < M; ++c)
      sum += k[c] * k[c];
    return sum <= squared_radius;
  }

  /// The other of the two stored elements of a Friedel pair on column 0: negative on the slowest axis that is
  /// not self-conjugate (torch-projectors paper, section 2.3).
  KOKKOS_INLINE_FUNCTION bool redundant(const int (&k)[M]) const {
    if (k[0] != 0)
      return false;
    for (int c = M - 1; c > 0; --c)
      if (k[c] != 0 && 2 * k[c] != projection.size[c])
        return k[c] < 0;
    return false;
  }
};

} // namespace Impl
} // namespace Bracewell
