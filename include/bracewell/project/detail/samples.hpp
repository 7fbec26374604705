// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/half.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/turns.hpp>
#include <bracewell/rfft/layout.hpp>
#include <bracewell/version.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace Bracewell {

/// A value of a sample, and its weight (insert_samples).
template <class T>
struct WeightedValue {
  Kokkos::complex<T> value;
  T weight;

  KOKKOS_INLINE_FUNCTION WeightedValue(const Kokkos::complex<T>& value_, T weight_ = 0)
      : value(value_), weight(weight_) {}
};

} // namespace Bracewell

namespace Bracewell::Impl {

using Bracewell::Mates; // which tells the pair of operators that a kernel is for

template <class T, int M, int D>
KOKKOS_INLINE_FUNCTION void multiply(const T (&matrix)[D][M], const int (&k)[M], T (&q)[D]) {
  for (int d = 0; d < D; ++d) {
    q[d] = matrix[d][0] * static_cast<T>(k[0]);
    for (int c = 1; c < M; ++c)
      q[d] += matrix[d][c] * static_cast<T>(k[c]);
  }
}

/// exp(2 pi i k.turns).
template <class T, int M>
KOKKOS_INLINE_FUNCTION Kokkos::complex<T> phase_of(const T (&turns)[M], const int (&k)[M]) {
  T angle = static_cast<T>(k[0]) * turns[0];
  for (int c = 1; c < M; ++c)
    angle += static_cast<T>(k[c]) * turns[c];
  return unit_phase(angle);
}

/// One pose, loaded once and applied to many samples.
template <class T, int M, int D>
struct Pose {
  static constexpr bool bends = M == 2 && D == 3;

  T matrix[D][M]; ///< times oversampling: projection frequencies to positions
  T bend[D];      ///< displacement by the Ewald sphere per |k|^2 (3D -> 2D)
  T turns[M];     ///< minus shift over box size: turns of phase per unit of frequency
  bool curved;    ///< by an Ewald sphere
  bool folds;     ///< positions may lie about a whole period out, and have to be brought back

  /// Position in the reconstruction of projection frequency k.
  KOKKOS_INLINE_FUNCTION void position(const int (&k)[M], T (&q)[D]) const {
    multiply(matrix, k, q);
    if (bends && curved)
      for (int d = 0; d < D; ++d)
        q[d] += bend[d] * static_cast<T>(k[0] * k[0] + k[1] * k[1]);
  }

  /// exp(-2 pi i k.s/n), the shift theorem's factor.
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> phase(const int (&k)[M]) const { return phase_of(turns, k); }
};

/// An array per batch and pose, or shared by them (stride 0).
template <class T>
struct PerPose {
  const T* data = nullptr; ///< null: none
  std::int64_t batch_stride = 0, pose_stride = 0;

  KOKKOS_FUNCTION explicit operator bool() const { return data != nullptr; }
  KOKKOS_INLINE_FUNCTION std::int64_t offset(std::int64_t batch, std::int64_t pose) const {
    return batch * batch_stride + pose * pose_stride;
  }
  KOKKOS_INLINE_FUNCTION const T* operator()(std::int64_t batch, std::int64_t pose) const {
    return data + offset(batch, pose);
  }
};

/// What sampled values are multiplied by, since spectra in half precision are scaled; of others nothing.
template <class Stored>
struct Gain {
  template <class Value>
  KOKKOS_INLINE_FUNCTION Value restored(const Value& sampled) const {
    return sampled;
  }
};
template <>
struct Gain<HalfComplex> {
  float gain = 1;

  template <class Value>
  KOKKOS_INLINE_FUNCTION Value restored(const Value& sampled) const {
    return gain * sampled;
  }
};

/// Half spectra [B|1, ...] as they are stored; none by default.
template <class Value>
struct StoredSpectra {
  const Value* data = nullptr;
  std::int64_t batch_stride = 0;
  Gain<Value> gain = {};

  KOKKOS_FUNCTION explicit operator bool() const { return data != nullptr; }
  KOKKOS_INLINE_FUNCTION const Value* operator()(std::int64_t batch) const {
    return computed_once(data, batch * batch_stride);
  }
};

/// The samples that B x P poses of an M-dimensional projection take of a D-dimensional reconstruction.
template <class T, int M, int D>
struct Samples {
  static constexpr bool bends = Pose<T, M, D>::bends;

  HalfSpectrumLayout<M> projection;
  HalfSpectrumLayout<D> reconstruction;
  std::int64_t batches, poses;
  PerPose<T> matrices, shifts, filters;
  T oversampling;
  T curvature;        ///< 1 / (2 Ewald radius)
  T inverse_size[M];  ///< 1 / projection.size
  T radius;           ///< largest |k|
  int squared_radius; ///< samples with |k|^2 beyond it are zero
  int reach = 4;      ///< windows of positions that are so many elements within a period do not leave it

  bool none() const { return batches == 0 || poses == 0; }
  KOKKOS_INLINE_FUNCTION bool curved() const { return bends && curvature != 0; }

  /// `within_half`: positions beyond half a period are to be brought back, not only those whose windows would
  /// leave a whole one.
  KOKKOS_INLINE_FUNCTION Pose<T, M, D> pose(std::int64_t batch, std::int64_t index,
                                            bool within_half = false) const {
    Pose<T, M, D> result;
    const T* m = matrices(batch, index);
    bool finite = true;
    for (int c = 0; c < M; ++c) {
      result.turns[c] = shifts ? -inverse_size[c] * shifts(batch, index)[M - 1 - c] : T(0);
      finite = finite && is_finite(result.turns[c]) &&
               Kokkos::abs(result.turns[c]) <= T(1e9); // far beyond it, phases overflow
    }
    result.folds = !finite;
    for (int d = 0; d < D; ++d) {
      T norm = 0;
      for (int c = 0; c < M; ++c) {
        result.matrix[d][c] = oversampling * m[d * D + c];
        norm += result.matrix[d][c] * result.matrix[d][c];
      }
      const T size = static_cast<T>(reconstruction.size[d]);
      const T limit = within_half ? T(0.5) * size + T(0.25) : Kokkos::max(T(0), size - static_cast<T>(reach));
      result.bend[d] = 0;
      if (curved()) {
        result.bend[d] = oversampling * curvature * m[d * D + D - 1];
        const T extent = Kokkos::sqrt(norm) + radius * Kokkos::abs(result.bend[d]);
        norm = extent * extent;
      }
      result.folds = result.folds || !is_finite(norm) || !(radius * radius * norm <= limit * limit);
    }
    result.curved = curved();
    if (!finite) // of no use, as with a matrix that is not finite: no position can be placed
      result.matrix[0][0] = Kokkos::Experimental::quiet_NaN_v<T>;
    return result;
  }

  /// Batch and index of a pose of both axes in one sequence; short divisions where they do.
  KOKKOS_INLINE_FUNCTION void split(std::int64_t flat, std::int64_t& batch, std::int64_t& index) const {
    if (batches * poses < std::int64_t(1) << 32)
      batch = static_cast<std::uint32_t>(flat) / static_cast<std::uint32_t>(poses);
    else
      batch = flat / poses;
    index = flat - batch * poses;
  }

  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> phase(const Pose<T, M, D>& pose, const int (&k)[M]) const {
    return shifts ? pose.phase(k) : Kokkos::complex<T>(1);
  }

  KOKKOS_INLINE_FUNCTION T filter(std::int64_t batch, std::int64_t index, std::int64_t element) const {
    return filters ? filters(batch, index)[element] : T(1);
  }

  KOKKOS_INLINE_FUNCTION bool inside(const int (&k)[M]) const {
    int sum = k[0] * k[0];
    for (int c = 1; c < M; ++c)
      sum += k[c] * k[c];
    return sum <= squared_radius;
  }

  /// The last column of the row of k, whatever k[0] is, with |k|^2 within the limit; -1 where there is none. For hosts.
  int last_column(const int (&k)[M]) const {
    int left = squared_radius;
    for (int c = 1; c < M; ++c)
      left -= k[c] * k[c];
    return left < 0 ? -1 : std::min(projection.columns() - 1, static_cast<int>(std::sqrt(double(left))));
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

/// What every sample scatters into a reconstruction, or is multiplied with in a gradient with respect to its
/// pose. Mates::Single: the conjugate-phased cotangent. Mates::Both: half the multiplicity times the
/// conjugate-phased projection and weight, inserted at +k and, conjugated, at -k.
template <class T, int M, int D, Mates mates_>
struct Amplitudes {
  using Real = T;
  static constexpr int projected_dimensions = M, dimensions = D;
  static constexpr Mates mates = mates_;

  Samples<T, M, D> samples;
  const Kokkos::complex<T>* values = nullptr; ///< [B, P, ...]
  PerPose<T> weights = {};                    ///< [B|1, P|1, ...]
  bool skip_redundant = false;

  /// Half the multiplicity of a sample where it is inserted with its mate.
  KOKKOS_INLINE_FUNCTION T scale(const int (&k)[M]) const {
    if constexpr (mates == Mates::Both)
      return T(0.5) * static_cast<T>(samples.projection.multiplicity(k[0]));
    else
      return T(1);
  }

  /// What a sampled value is multiplied by, besides its phase.
  KOKKOS_INLINE_FUNCTION T factor(std::int64_t batch, std::int64_t pose, std::int64_t element,
                                  const int (&k)[M]) const {
    return scale(k) * samples.filter(batch, pose, element);
  }

  KOKKOS_INLINE_FUNCTION const Kokkos::complex<T>* address(std::int64_t batch, std::int64_t pose,
                                                           std::int64_t element) const {
    return values + (batch * samples.poses + pose) * samples.projection.elements() + element;
  }

  /// The value that is given for a sample; its frequency is for values that are computed.
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> read(std::int64_t batch, std::int64_t pose, std::int64_t element,
                                                 const int (&)[M]) const {
    return *address(batch, pose, element);
  }

  /// `read`: the value that is given.
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> value(std::int64_t batch, std::int64_t pose, std::int64_t element,
                                                  const int (&k)[M], const Kokkos::complex<T>& phase,
                                                  const Kokkos::complex<T>& read) const {
    if (skip_redundant && samples.redundant(k))
      return Kokkos::complex<T>(0);
    return factor(batch, pose, element, k) * read * conjugate(phase);
  }
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> value(std::int64_t batch, std::int64_t pose, std::int64_t element,
                                                  const int (&k)[M], const Kokkos::complex<T>& phase) const {
    return value(batch, pose, element, k, phase, *address(batch, pose, element));
  }

  KOKKOS_INLINE_FUNCTION T weight(std::int64_t batch, std::int64_t pose, std::int64_t element,
                                  const int (&k)[M]) const {
    return scale(k) * weights(batch, pose)[element];
  }
};

/// The same where values(pose, k, element) computes what is given, a complex number or a WeightedValue; one batch.
template <class T, int M, int D, Mates mates_, class Values>
struct ComputedAmplitudes {
  using Real = T;
  static constexpr int projected_dimensions = M, dimensions = D;
  static constexpr Mates mates = mates_;
  static constexpr bool weighted =
      std::is_same_v<std::invoke_result_t<Values, std::int64_t, const int (&)[M], std::int64_t>,
                     WeightedValue<T>>;

  Samples<T, M, D> samples;
  Values values;

  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> read(std::int64_t, std::int64_t pose, std::int64_t element,
                                                 const int (&k)[M]) const {
    return WeightedValue<T>(values(pose, k, element)).value;
  }
  KOKKOS_INLINE_FUNCTION Kokkos::complex<T> value(std::int64_t, std::int64_t, std::int64_t, const int (&)[M],
                                                  const Kokkos::complex<T>& phase,
                                                  const Kokkos::complex<T>& read) const {
    return read * conjugate(phase);
  }
  KOKKOS_INLINE_FUNCTION T weight(std::int64_t, std::int64_t pose, std::int64_t element,
                                  const int (&k)[M]) const {
    return WeightedValue<T>(values(pose, k, element)).weight;
  }
};

/// By how much bounds of samples' positions are widened, so that rounding never hides a sample from the
/// elements that it reaches. They are made for float, whose epsilon is 2^-23 = 1.2e-7; in double they are more
/// than enough. What lies within a margin is looked at and found to be outside: a margin costs time, never an
/// error.
template <class T>
struct Margin {
  /// Relative, of sums: a position is a sum of at most three products, which rounds by at most four halves of
  /// an epsilon of its bound; so do the bound and, with a ratio to take, the tilt of a plane. Eight epsilons.
  static constexpr T sum = T(1e-6);

  /// Absolute, beside `sum`: the distance of neighbouring floats between 2^13 and 2^14, and the longest axis,
  /// 32768, has no frequency above 2^14. Bounds are differences of such numbers and of brick or window widths.
  static constexpr T spacing = T(1e-3);

  /// A factor for lengths: norms and distances from planes. A distance n.c of a brick's centre |c| < 2^14 from
  /// a plane rounds by four halves of an epsilon of |n||c|, 0.004 |n|, a thousandth of what a brick and its
  /// windows span (|n| times 4 elements for most bricks).
  static constexpr T length = T(1.001);

  /// Columns a and b of a matrix have a sound pseudo-inverse where |a x b|^2 (in general: the determinant of
  /// their inner products) is beyond this part of |a|^2 |b|^2: a thousandth is an angle of two degrees.
  static constexpr T conditioned = T(1e-3);

  /// Relative, of what a pseudo-inverse yields: it rounds by about an epsilon over `conditioned`.
  static constexpr T inverse = T(1e-4);

  /// Absolute, for the square root of an integer below 2^30: floats below 2^15 are 2^-9 = 0.002 apart, and the
  /// integer and its root both round. Far less than the columns that it counts.
  static constexpr T root = T(1e-2);

  /// Absolute, beside `sum`: columns of a PatchBox end on a plane whose slopes are in parts of 2^16. Each rounds
  /// by 2^-17 per column, and no box is more than 214 columns wide (1,280 elements, two columns of three side by
  /// side): 0.0016.
  static constexpr T slopes = T(2e-3);

  /// Samples two frequencies apart have no window in common where their positions differ by more than 1 on some
  /// axis, so by the square root of D at least: where the smallest squared singular value of the matrix is
  /// above D / 4. This much more makes that 1.007 on some axis (3D), for the rounding of both positions: four
  /// halves of an epsilon of 2^13 are 0.002.
  static constexpr double apart = 0.01;
};

} // namespace Bracewell::Impl
