// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/samples.hpp>
#include <bracewell/project/detail/stencil.hpp>

namespace Bracewell::Impl {

/// Which samples reach which part of a reconstruction. A sample at q, and its Friedel mate at -q, reach a
/// brick of the stored half with each of their periodic images q + N e; the samples that can are bounded by
/// the pseudo-inverse of the pose's matrix. Where that is ill-conditioned, or positions lie so far out that
/// more images matter than e = -1, 0, 1, all samples are tried, folded into the period.
template <class T, int M, int D>
struct Reach {
  T normal[D];  ///< of the plane of samples (3D -> 2D), else zero
  T bulge[D];   ///< bound of the displacement by the Ewald sphere on each axis
  T extent[D];  ///< bound of |q| on each axis, after folding if not `bounded`
  bool bounded; ///< the matrix has a sound pseudo-inverse and no folding is needed

  KOKKOS_INLINE_FUNCTION Reach(const Samples<T, M, D>& samples, const Pose<T, M, D>& pose, int width) {
    const auto& a = pose.matrix;
    bounded = true;
    for (int d = 0; d < D; ++d) {
      T row = 0;
      for (int c = 0; c < M; ++c)
        row += a[d][c] * a[d][c];
      bulge[d] = Margin<T>::length * samples.radius * samples.radius * Kokkos::abs(pose.bend[d]);
      extent[d] = Margin<T>::length * samples.radius * Kokkos::sqrt(row) + bulge[d];
      bounded = bounded && 2 * (extent[d] + T(width)) <= 3 * T(samples.reconstruction.size[d]);
      normal[d] = 0;
      if constexpr (M == 2 && D == 3)
        normal[d] = a[(d + 1) % 3][0] * a[(d + 2) % 3][1] - a[(d + 2) % 3][0] * a[(d + 1) % 3][1];
    }
    const Gram gram(a);
    T scale = 1;
    for (int c = 0; c < M; ++c)
      scale *= gram.product[c][c];
    bounded = bounded && gram.determinant > Margin<T>::conditioned * scale;
    if (!bounded)
      for (int d = 0; d < D; ++d)
        extent[d] = T(samples.reconstruction.size[d]) / 2;
  }

  /// The pseudo-inverse of a pose's matrix, of use where `bounded`.
  KOKKOS_INLINE_FUNCTION static void invert(const T (&a)[D][M], T (&inverse)[M][D]) {
    const Gram gram(a);
    const T reciprocal = 1 / gram.determinant;
    for (int d = 0; d < D; ++d)
      for (int c = 0; c < M; ++c) {
        T sum = 0;
        for (int e = 0; e < M; ++e)
          sum += gram.adjugate[c][e] * a[d][e];
        inverse[c][d] = sum * reciprocal;
      }
  }

  /// The plane of samples passes within half[d] of `centre` on every axis.
  KOKKOS_INLINE_FUNCTION bool near_plane(const T (&centre)[D], const T (&half)[D]) const {
    if constexpr (M == D)
      return true;
    T distance = 0, allowed = 0;
    for (int d = 0; d < D; ++d) {
      distance += normal[d] * centre[d];
      allowed += Kokkos::abs(normal[d]) * (half[d] + bulge[d]);
    }
    return !bounded || Kokkos::abs(distance) <= Margin<T>::length * allowed;
  }

private:
  /// Inner products of the columns of a matrix.
  struct Gram {
    T product[M][M], adjugate[M][M], determinant = 0;
    KOKKOS_INLINE_FUNCTION explicit Gram(const T (&a)[D][M]) {
      for (int c = 0; c < M; ++c)
        for (int e = 0; e < M; ++e) {
          product[c][e] = 0;
          for (int d = 0; d < D; ++d)
            product[c][e] += a[d][c] * a[d][e];
        }
      for (int c = 0; c < M; ++c)
        for (int e = 0; e < M; ++e) {
          if constexpr (M == 2)
            adjugate[c][e] = c == e ? product[1 - c][1 - c] : -product[c][e];
          else
            adjugate[c][e] = product[(c + 1) % 3][(e + 1) % 3] * product[(c + 2) % 3][(e + 2) % 3] -
                             product[(c + 1) % 3][(e + 2) % 3] * product[(c + 2) % 3][(e + 1) % 3];
          if (c == 0)
            determinant += product[0][e] * adjugate[0][e];
        }
    }
  };
};

/// Integer box of projection frequencies.
template <int M>
struct FrequencyRange {
  int low[M], high[M];

  /// All stored frequencies within the radius.
  template <class T, int D>
  KOKKOS_FUNCTION static FrequencyRange all(const Samples<T, M, D>& samples) {
    const int radius = static_cast<int>(Kokkos::min(samples.radius, T(1e6))) + 1;
    FrequencyRange range;
    for (int c = 0; c < M; ++c) {
      const int n = samples.projection.size[c];
      range.low[c] = c == 0 ? 0 : Kokkos::max(-((n - 1) / 2), -radius);
      range.high[c] = Kokkos::min(n / 2, radius);
    }
    return range;
  }

  /// Those of `this` whose positions may lie within half[d] of `centre` on every axis.
  template <class T, int D>
  KOKKOS_INLINE_FUNCTION void narrow(const Reach<T, M, D>& reach, const T (&inverse)[M][D],
                                     const T (&centre)[D], const T (&half)[D]) {
    for (int c = 0; c < M; ++c) {
      T middle = 0, spread = 0;
      for (int d = 0; d < D; ++d) {
        middle += inverse[c][d] * centre[d];
        spread += Kokkos::abs(inverse[c][d]) * (half[d] + reach.bulge[d]);
      }
      spread += Margin<T>::inverse * (Kokkos::abs(middle) + spread) + Margin<T>::spacing;
      const T from = Kokkos::ceil(middle - spread), to = Kokkos::floor(middle + spread);
      if (from > T(low[c]))
        low[c] = static_cast<int>(Kokkos::min(from, T(high[c] + 1)));
      if (to < T(high[c]))
        high[c] = static_cast<int>(Kokkos::max(to, T(low[c] - 1)));
    }
  }

  KOKKOS_INLINE_FUNCTION bool empty() const {
    bool result = false;
    for (int c = 0; c < M; ++c)
      result = result || high[c] < low[c];
    return result;
  }
};

/// Bricks of edge[d] elements that cover the stored half of a spectrum, each with its frequencies in one
/// piece.
template <int D>
struct Bricks {
  HalfSpectrumLayout<D> layout;
  int edge[D];

  KOKKOS_FUNCTION int along(int d) const {
    return ((d == 0 ? layout.columns() : layout.size[d]) + edge[d] - 1) / edge[d];
  }
  KOKKOS_FUNCTION std::int64_t count() const {
    std::int64_t product = 1;
    for (int d = 0; d < D; ++d)
      product *= along(d);
    return product;
  }
  /// Lowest frequency of a brick on each axis.
  KOKKOS_FUNCTION void first(int brick, int (&frequency)[D]) const {
    for (int d = 0; d < D; ++d) {
      frequency[d] = brick % along(d) * edge[d] - (d == 0 ? 0 : (layout.size[d] - 1) / 2);
      brick /= along(d);
    }
  }

  /// The periodic images e, from[d] <= e[d] <= to[d], that samples within |q| <= extent reach frequencies low
  /// ... high with.
  template <class T>
  KOKKOS_INLINE_FUNCTION void reached_images(const T (&extent)[D], const int (&low)[D], const int (&high)[D],
                                             int width, int (&from)[D], int (&to)[D]) const {
    const int reach = width / 2; // of a window
    for (int d = 0; d < D; ++d) {
      from[d] = T(low[d] - reach + layout.size[d]) <= extent[d] ? -1 : 0;
      to[d] = T(layout.size[d] - high[d] - reach) <= extent[d] ? 1 : 0;
    }
  }

  /// Calls visit(e) for images from ... to.
#ifdef __CUDACC__
#pragma nv_exec_check_disable // visitors of hosts' kernels are hosts' functions
#endif
  template <class Visit>
  KOKKOS_INLINE_FUNCTION static void for_each_image(const int (&from)[D], const int (&to)[D],
                                                    const Visit& visit) {
    int image[D];
    for (image[D - 1] = from[D - 1]; image[D - 1] <= to[D - 1]; ++image[D - 1])
      for (image[D - 2] = from[D - 2]; image[D - 2] <= to[D - 2]; ++image[D - 2])
        for (int e = D == 3 ? from[0] : 0; e <= (D == 3 ? to[0] : 0); ++e) {
          if constexpr (D == 3)
            image[0] = e;
          visit(image);
        }
  }
};

/// A pose, or (sign < 0) the mates of its samples, near one periodic image of the brick.
template <class T, int M, int D>
struct BrickCandidate {
  Pose<T, M, D> pose;
  std::int64_t batch, index;
  int sign;
  int origin[D];           ///< position of the brick's first element
  T low[D], high[D];       ///< bounds of the positions (of pose, not of the mates) near the brick
  T step[D];               ///< reciprocal of the change of position from column to column
  FrequencyRange<M> range; ///< of the samples that may lie near the brick
  bool bounded;            ///< see Reach

  /// Sets low, high and step: samples within half[d] of `centre` on every axis are near.
  KOKKOS_INLINE_FUNCTION void bound(const Reach<T, M, D>& reach, const T (&centre)[D], const T (&half)[D]) {
    for (int d = 0; d < D; ++d) {
      const T margin = half[d] + reach.bulge[d] + Margin<T>::spacing + Margin<T>::sum * reach.extent[d];
      low[d] = centre[d] - margin;
      high[d] = centre[d] + margin;
      const T change = pose.matrix[d][0];
      step[d] = Kokkos::abs(change) > T(1e-30) ? 1 / change : T(1e30);
    }
  }

  /// Narrows columns of the row of k, whatever k[0] is, to those whose samples may lie near the brick.
  KOKKOS_INLINE_FUNCTION void narrow_columns(const int (&k)[M], T& first, T& last) const {
    if (!bounded)
      return;
    for (int d = 0; d < D; ++d) {
      T at = 0;
      for (int c = 1; c < M; ++c)
        at += pose.matrix[d][c] * T(k[c]);
      const T a = (low[d] - at) * step[d], b = (high[d] - at) * step[d];
      first = Kokkos::max(first, Kokkos::min(a, b) - Margin<T>::spacing - Margin<T>::sum * Kokkos::abs(a));
      last = Kokkos::min(last, Kokkos::max(a, b) + Margin<T>::spacing + Margin<T>::sum * Kokkos::abs(b));
    }
  }

  /// Position of a sample, or its mate; false where there is none (fold).
  KOKKOS_INLINE_FUNCTION bool position(const HalfSpectrumLayout<D>& layout, const int (&k)[M],
                                       T (&q)[D]) const {
    pose.position(k, q);
    const bool usable = bounded || fold(layout, q);
    for (int d = 0; d < D; ++d)
      q[d] *= T(sign);
    return usable;
  }
};

} // namespace Bracewell::Impl
