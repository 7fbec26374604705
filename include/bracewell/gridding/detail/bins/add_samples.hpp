// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bins/bin_grid.hpp>
#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

/// The samples of a bin as a team of SpreadBinsGpu has prepared them, and who takes which taps of theirs.
template <int width, class T, int Dim>
struct BinSamples {
  using Complex = Kokkos::complex<T>;
  static constexpr int warps = bin_team_size(Dim, sizeof(T)) / 32;
  static constexpr int batch = bin_batch(Dim, sizeof(T)); ///< samples that are prepared together
  static constexpr int taps_of_plane = Dim == 1 ? width : width * width, passes = (taps_of_plane + 31) / 32;
  static constexpr int planes = (width + warps - 1) / warps; ///< of a sample that a warp owns in 3D
  /// Whether a lane keeps all sums in registers from one sample to the next. In 3D in float, whose sums are
  /// moved twice as fast, asking where the next sample lies costs more than it saves unless points crowd.
  static constexpr bool keeps_sums = Dim < 3 || (sizeof(T) == 8 && passes * planes * sizeof(Complex) <= 128);
  static constexpr int kept = Dim < 3 ? passes : keeps_sums ? passes * planes : 1;

  /// Samples that are prepared, in scratch memory.
  struct Prepared {
    Complex* values; ///< [batch]
    int *first, *z;  ///< [batch]: cell of the first tap in the tile, and its plane
    T* weights;      ///< [batch, stride]
    static constexpr int stride = Dim * width | 1;

    KOKKOS_FUNCTION explicit Prepared(Complex* memory)
        : values(memory), first(reinterpret_cast<int*>(values + batch)), z(first + batch),
          weights(reinterpret_cast<T*>(z + batch)) {}
  };
  /// The tap of a lane in every pass over the taps of a plane; lanes beyond the last one have none.
  struct LaneTaps {
    int across[passes], down[passes]; ///< weights of a sample
    int cell[passes];                 ///< counted from the first tap; negative where there is none

    KOKKOS_FUNCTION LaneTaps(int lane, int row_stride) {
      BRACEWELL_UNROLL_FOR (int p = 0; p < passes; ++p) {
        const int tap = p * 32 + lane;
        const bool has_tap = tap < taps_of_plane;
        across[p] = has_tap ? tap % width : 0;
        down[p] = has_tap ? width + tap / width : width; // in 1D there are none
        cell[p] = has_tap ? tap / width * row_stride + tap % width : -1;
      }
    }
    /// Whether the lane has a tap in a pass: in all but the last it has.
    KOKKOS_FUNCTION bool used(int p) const { return (p + 1) * 32 <= taps_of_plane || cell[p] >= 0; }
  };
};

/// How lanes of SpreadBinsGpu add samples in 1D and 2D: a warp has all taps, and keeps sums in registers.
template <int width, class T, int Dim>
struct AddInPlane : BinSamples<width, T, Dim> {
  using Samples = BinSamples<width, T, Dim>;
  using Samples::batch, Samples::passes;
  using typename Samples::Complex, typename Samples::LaneTaps, typename Samples::Prepared;

  /// Adds the sums, which begin at a cell of the tile, or at none.
  KOKKOS_FUNCTION static void flush(int here, const LaneTaps& lane_taps, Complex* tile,
                                    Complex (&sums)[passes]) {
    if (here < 0)
      return;
    BRACEWELL_UNROLL_FOR (int p = 0; p < passes; ++p) {
      if (lane_taps.used(p))
        tile[here + lane_taps.cell[p]] += sums[p];
      sums[p] = Complex(0);
    }
  }

  /// What a lane needs of a sample, read before the one before it is added.
  struct Read {
    T weight[passes];
    int first;
    Complex value;
  };

  KOKKOS_FUNCTION static Read read(int i, const Prepared& prepared, const LaneTaps& lane_taps) {
    const T* const weights = prepared.weights + i * prepared.stride;
    Read result;
    result.first = prepared.first[i];
    result.value = prepared.values[i];
    BRACEWELL_UNROLL_FOR (int p = 0; p < passes; ++p)
      result.weight[p] =
          Dim == 1 ? weights[lane_taps.across[p]] : weights[lane_taps.across[p]] * weights[lane_taps.down[p]];
    return result;
  }

  /// Adds a batch, behind whose samples are zeros: loops of fixed length wait less for scratch memory.
  KOKKOS_FUNCTION static void add(const Prepared& prepared, const LaneTaps& lane_taps, Complex* tile,
                                  Complex (&sums)[passes], int& here) {
    Read next = read(0, prepared, lane_taps);
    BRACEWELL_UNROLL_FOR (int i = 0; i < batch; ++i) {
      const Read now = next;
      if (i + 1 < batch)
        next = read(i + 1, prepared, lane_taps);
      if (now.first != here) {
        flush(here, lane_taps, tile, sums);
        synchronise_lanes();
        here = now.first;
      }
      BRACEWELL_UNROLL_FOR (int p = 0; p < passes; ++p)
        sums[p] = Complex(sums[p].real() + now.weight[p] * now.value.real(),
                          sums[p].imag() + now.weight[p] * now.value.imag());
    }
  }
};

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
    BRACEWELL_UNROLL_FOR (int p = 0; p < passes; ++p)
      result.weight[p] = weights[lane_taps.across[p]] * weights[lane_taps.down[p]];
    BRACEWELL_UNROLL_FOR (int q = 0; q < planes; ++q) // behind the last one lies another number
      result.factor[q] =
          weights[2 * width + (has_plane(warps - 1, q) ? result.plane + q * warps
                                                       : Kokkos::min(result.plane + q * warps, width - 1))];
    return result;
  }

  /// The kept sums of a warp from the tile, or back.
  template <bool from_tile>
  KOKKOS_FUNCTION static void move_planes(const BinGrid<Dim>& bins, int here, int first_plane,
                                          const LaneTaps& lane_taps, Complex* tile, Complex (&sums)[kept]) {
    BRACEWELL_UNROLL_FOR (int q = 0; q < planes; ++q) {
      Complex* const target = tile + here + (first_plane + q * warps) * bins.span(1) * bins.stride;
      BRACEWELL_UNROLL_FOR (int p = 0; p < passes; ++p)
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
      BRACEWELL_UNROLL_FOR (int p = 0; p < passes; ++p) {
        const T real = now.weight[p] * now.value.real(), imaginary = now.weight[p] * now.value.imag();
        BRACEWELL_UNROLL_FOR (int q = 0; q < planes; ++q) {
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
      BRACEWELL_UNROLL_FOR (int q = 0; q < planes; ++q)
        targets[q] = tile + now.first + (now.plane + q * warps) * plane;
      BRACEWELL_UNROLL_FOR (int first = 0; first < passes; first += together) {
        Complex sums[together][planes];
        BRACEWELL_UNROLL_FOR (int p = first; p < first + together; ++p) {
          BRACEWELL_UNROLL_FOR (int q = 0; q < planes; ++q)
            if (has_plane(now.plane, q) && lane_taps.used(p))
              sums[p - first][q] = targets[q][lane_taps.cell[p]];
        }
        BRACEWELL_UNROLL_FOR (int p = first; p < first + together; ++p) {
          const T real = now.weight[p] * now.value.real(), imaginary = now.weight[p] * now.value.imag();
          BRACEWELL_UNROLL_FOR (int q = 0; q < planes; ++q)
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
