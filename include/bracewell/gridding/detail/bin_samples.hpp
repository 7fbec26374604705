// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/impl/execution.hpp>
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
      BRACEWELL_UNROLL
      for (int p = 0; p < passes; ++p) {
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

} // namespace Bracewell::Impl
