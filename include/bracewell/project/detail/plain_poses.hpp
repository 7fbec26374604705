// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/project/detail/bricks.hpp>

namespace Bracewell::Impl {

/// A quick look at poses (3D -> 2D) whose positions all lie within the period, so that their samples reach
/// the brick itself but no image of it, and whose matrices are well conditioned.
template <class T, int M, int D>
struct PlainPoses {
  T centre[D], half[D]; ///< where samples are near
  T squared_distance;   ///< of that box from the origin
  T most[D];            ///< largest squared row norms of the matrix that keep positions within the period
  T squared_radius;     ///< of the samples, and a margin
  bool possible;

  /// Of the brick that begins at `first`; reach_width: of windows.
  KOKKOS_INLINE_FUNCTION PlainPoses(const Samples<T, M, D>& samples, const Bricks<D>& bricks,
                                    const int (&first)[D], const T (&centre_)[D], const T (&half_)[D],
                                    int reach_width)
      : squared_distance(0), squared_radius(samples.radius * samples.radius * Margin<T>::squared_length),
        possible(!samples.curved()) {
    for (int d = 0; d < D; ++d) {
      centre[d] = centre_[d];
      half[d] = half_[d];
      const T outside = Kokkos::max(T(0), Kokkos::abs(centre[d]) - half[d]);
      squared_distance += outside * outside;
      const int n = bricks.layout.size[d], reach = reach_width / 2;
      const T extent = T(Kokkos::min(n + first[d], n + 1 - first[d] - bricks.edge[d]) - reach);
      const T bound = Kokkos::min(extent, T(1.5) * T(n) - T(reach_width));
      most[d] = bound > 0 ? bound * bound / squared_radius : T(-1);
    }
  }

  /// Sets the bits of the poses among chunk ... chunk + count - 1 whose samples may lie near the brick;
  /// false where it cannot tell.
  template <class Team>
  KOKKOS_INLINE_FUNCTION bool survey(const Team& team, const Samples<T, M, D>& samples, std::int64_t chunk,
                                     int count, unsigned& near) const {
    if (M != 2 || D != 3 || !possible)
      return false;
    bool unclear = false;
    near = lane_bits(team, count, [&](int i) {
      std::int64_t batch, index;
      samples.split(chunk + i, batch, index);
      const T* const m = samples.matrices(batch, index);
      T a[D], b[D], aa = 0, bb = 0, ab = 0, nn = 0, distance = 0, allowed = 0;
      bool clear = true;
      for (int d = 0; d < D; ++d) {
        a[d] = samples.oversampling * m[std::int64_t(d) * D];
        b[d] = samples.oversampling * m[d * D + 1];
        clear = clear && a[d] * a[d] + b[d] * b[d] < most[d];
        aa += a[d] * a[d];
        bb += b[d] * b[d];
        ab += a[d] * b[d];
      }
      for (int d = 0; d < D; ++d) {
        const T normal = a[(d + 1) % D] * b[(d + 2) % D] - a[(d + 2) % D] * b[(d + 1) % D];
        nn += normal * normal;
        distance += normal * centre[d];
        allowed += Kokkos::abs(normal) * half[d];
      }
      clear = clear && nn > Margin<T>::plainly_conditioned * aa * bb;
      unclear = unclear || !clear;
      return Kokkos::abs(distance) <= Margin<T>::length * allowed &&
             squared_distance <= squared_radius * (Kokkos::max(aa, bb) + Kokkos::abs(ab));
    });
    return lane_bits(team, count, [&](int) { return unclear; }) == 0;
  }
};

} // namespace Bracewell::Impl
