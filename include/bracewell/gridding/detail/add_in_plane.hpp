// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/bin_samples.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

namespace Bracewell::Impl {

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
    BRACEWELL_UNROLL
    for (int p = 0; p < passes; ++p) {
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
    BRACEWELL_UNROLL
    for (int p = 0; p < passes; ++p)
      result.weight[p] =
          Dim == 1 ? weights[lane_taps.across[p]] : weights[lane_taps.across[p]] * weights[lane_taps.down[p]];
    return result;
  }

  /// Adds a batch, behind whose samples are zeros: loops of fixed length wait less for scratch memory.
  KOKKOS_FUNCTION static void add(const Prepared& prepared, const LaneTaps& lane_taps, Complex* tile,
                                  Complex (&sums)[passes], int& here) {
    Read next = read(0, prepared, lane_taps);
    BRACEWELL_UNROLL
    for (int i = 0; i < batch; ++i) {
      const Read now = next;
      if (i + 1 < batch)
        next = read(i + 1, prepared, lane_taps);
      if (now.first != here) {
        flush(here, lane_taps, tile, sums);
        synchronise_lanes();
        here = now.first;
      }
      BRACEWELL_UNROLL
      for (int p = 0; p < passes; ++p)
        sums[p] = Complex(sums[p].real() + now.weight[p] * now.value.real(),
                          sums[p].imag() + now.weight[p] * now.value.imag());
    }
  }
};

} // namespace Bracewell::Impl
