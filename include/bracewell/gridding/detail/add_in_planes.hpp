// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bin_grid.hpp>
#include <bracewell/gridding/detail/bin_samples.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// How lanes of SpreadBinsGpu add samples in 3D: a warp owns every warps-th plane of the tile.
template <int width, class T, int Dim>
struct AddInPlanes : BinSamples<width, T, Dim> {
  using Samples = BinSamples<width, T, Dim>;
  using Samples::kept, Samples::passes, Samples::planes, Samples::warps;
  using typename Samples::Complex, typename Samples::LaneTaps, typename Samples::Prepared;

  /// What a warp needs of a sample, read before the one before it is added.
  struct Read {
    T weight[passes], factor[planes];
    int first, plane; ///< of the warp's first plane, counted from the first tap
    Complex value;
  };

  /// Whether a warp that owns plane `plane` of a sample, less than the number of warps, has another one.
  KOKKOS_FUNCTION static bool has_plane(int plane, int q) {
    return (q + 1) * warps <= width || plane + q * warps < width;
  }

  KOKKOS_FUNCTION static Read read(int i, int warp, const Prepared& prepared, const LaneTaps& lane_taps) {
    const T* const weights = prepared.weights + i * prepared.stride;
    Read result;
    result.plane = (warp - prepared.z[i]) & (warps - 1);
    result.first = prepared.first[i];
    result.value = prepared.values[i];
    BRACEWELL_UNROLL
    for (int p = 0; p < passes; ++p)
      result.weight[p] = weights[lane_taps.across[p]] * weights[lane_taps.down[p]];
    BRACEWELL_UNROLL
    for (int q = 0; q < planes; ++q) // behind the last one lies another number
      result.factor[q] =
          weights[2 * width + (has_plane(warps - 1, q) ? result.plane + q * warps
                                                       : Kokkos::min(result.plane + q * warps, width - 1))];
    return result;
  }

  /// The kept sums of a warp from the tile, or back.
  template <bool from_tile>
  KOKKOS_FUNCTION static void move_planes(const BinGrid<Dim>& bins, int here, int first_plane,
                                          const LaneTaps& lane_taps, Complex* tile, Complex (&sums)[kept]) {
    BRACEWELL_UNROLL
    for (int q = 0; q < planes; ++q) {
      Complex* const target = tile + here + (first_plane + q * warps) * bins.span(1) * bins.stride;
      BRACEWELL_UNROLL
      for (int p = 0; p < passes; ++p)
        if (has_plane(first_plane, q) && lane_taps.used(p)) {
          if constexpr (from_tile)
            sums[q * passes + p] = target[lane_taps.cell[p]];
          else
            target[lane_taps.cell[p]] = sums[q * passes + p];
        }
    }
  }

  /// As add(), with sums that stay in registers as long as samples reach the same cells.
  KOKKOS_FUNCTION static void add_to_kept(const BinGrid<Dim>& bins, int count, int warp,
                                          const Prepared& prepared, const LaneTaps& lane_taps, Complex* tile,
                                          Complex (&sums)[kept], int& here, int& first_plane) {
    Read next = read(0, warp, prepared, lane_taps);
    for (int i = 0; i < count; ++i) {
      const Read now = next;
      if (i + 1 < count)
        next = read(i + 1, warp, prepared, lane_taps);
      if (now.first != here) {
        if (here >= 0) {
          move_planes<false>(bins, here, first_plane, lane_taps, tile, sums);
          synchronise_lanes();
        }
        here = now.first;
        first_plane = now.plane;
        move_planes<true>(bins, here, first_plane, lane_taps, tile, sums);
      }
      BRACEWELL_UNROLL
      for (int p = 0; p < passes; ++p) {
        const T real = now.weight[p] * now.value.real(), imaginary = now.weight[p] * now.value.imag();
        BRACEWELL_UNROLL
        for (int q = 0; q < planes; ++q) {
          Complex& sum = sums[q * passes + p];
          sum = Complex(sum.real() + now.factor[q] * real, sum.imag() + now.factor[q] * imaginary);
        }
      }
    }
  }

  KOKKOS_FUNCTION static void add(const BinGrid<Dim>& bins, int count, int warp, const Prepared& prepared,
                                  const LaneTaps& lane_taps, Complex* tile) {
    // Sums of several passes on their way, as registers allow.
    constexpr int together = passes * planes * sizeof(Complex) <= 128 ? passes : 1;
    const int plane = bins.span(1) * bins.stride;
    Read next = read(0, warp, prepared, lane_taps);
    for (int i = 0; i < count; ++i) {
      const Read now = next;
      if (i + 1 < count)
        next = read(i + 1, warp, prepared, lane_taps);
      Complex* targets[planes];
      BRACEWELL_UNROLL
      for (int q = 0; q < planes; ++q)
        targets[q] = tile + now.first + (now.plane + q * warps) * plane;
      BRACEWELL_UNROLL
      for (int first = 0; first < passes; first += together) {
        Complex sums[together][planes];
        BRACEWELL_UNROLL
        for (int p = first; p < first + together; ++p) {
          BRACEWELL_UNROLL
          for (int q = 0; q < planes; ++q)
            if (has_plane(now.plane, q) && lane_taps.used(p))
              sums[p - first][q] = targets[q][lane_taps.cell[p]];
        }
        BRACEWELL_UNROLL
        for (int p = first; p < first + together; ++p) {
          const T real = now.weight[p] * now.value.real(), imaginary = now.weight[p] * now.value.imag();
          BRACEWELL_UNROLL
          for (int q = 0; q < planes; ++q)
            if (has_plane(now.plane, q) && lane_taps.used(p))
              targets[q][lane_taps.cell[p]] = Complex(sums[p - first][q].real() + now.factor[q] * real,
                                                      sums[p - first][q].imag() + now.factor[q] * imaginary);
        }
      }
      synchronise_lanes();
    }
  }
};

} // namespace Bracewell::Impl
