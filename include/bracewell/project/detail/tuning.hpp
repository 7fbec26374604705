// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// Numbers measured on an NVIDIA H200 (Hopper) on 2026-11-21 and 22. `bench/tune_projection`
/// prints the times that they were read from again; plateaus are wide and flat. Launch bounds: teams of a
/// multiprocessor, counted in its registers; what launches asks for them through resident_teams, so that they
/// hold for no other backend.
struct HopperProjectionTuning {
  /// choose_insertion, patches: samples * width^2 / 2 (times this factor in 2D, where additions sample by
  /// sample meet on fewer elements) as many as threads.
  static constexpr std::int64_t patch_samples_factor_2d = 4;

  /// sample_tiles: threads of a team, teams, and tiles whose rows complete cache lines of projections.
  struct Tiles {
    int threads, resident, columns, most_rows;
  };
  static constexpr Tiles tiles(int dimensions, int width, bool light) {
    const bool wide = dimensions == 3 && width > 2;
    return {wide ? 128 : 256, wide ? 5 : (light ? 4 : 3), dimensions == 2 ? 16 : 8,
            dimensions == 2 ? 32 : 64};
  }

  /// SamplePadded: warps of a multiprocessor in float; the tallest tile.
  static constexpr int padded_warps(int dimensions, int width, bool lanes_share) {
    if (width == 2)
      return dimensions == 2 ? 40 : 36;
    return dimensions == 2 ? 36 : (lanes_share ? 20 : 24);
  }
  static constexpr int padded_most_rows = 72;

  /// SamplePoseSums: threads of a team, and teams. Two make Catmull-Rom in 2D 1.7 times as fast, linear a
  /// fifth slower (0: as many as registers allow).
  static constexpr int pose_sum_threads = 256, pose_sum_most_rows = 16;
  static constexpr int pose_sum_teams(int width) { return width == 2 ? 0 : 2; }
};

/// Of the architecture that is compiled for; no other has been measured yet.
using ProjectionTuning = HopperProjectionTuning;

// Shapes of the kernels that work in scratch memory. Each number: NVIDIA H200, 2026-11-21, the fastest of those
// tried; `resident`, teams on a multiprocessor, is counted in the registers of that GPU and holds on CUDA alone.
// bench/tune_projection prints the times of all of these kernels: change a number here and run it again.

/// InsertPatches.
template <class Space, class T, int D, int width, bool weighted>
struct PatchTuning {
  static constexpr int columns = 8, rows = 16; ///< samples of a patch
  /// Elements of a box; a patch that needs more is split. More of them mean fewer splits, but fewer teams on
  /// a multiprocessor. Rotations in 3D need 963 on average and at most 1,632 (linear), 2,477 and 4,446
  /// (Catmull-Rom).
  static constexpr int wanted =
      D == 2 ? (width == 2 ? 512 : 704) : (width == 2 ? (weighted ? 1088 : 1280) : 2560);
  /// As many as 40 KB hold: with what else a team needs, less than the 48 KB that every GPU gives it.
  static constexpr int elements = Kokkos::min<int>(wanted, 40960 / ((weighted ? 3 : 2) * sizeof(T)));
  static constexpr int resident = resident_teams<Space>(width == 2 ? (D == 2 ? 7 : 5) : (D == 2 ? 5 : 4));
  static constexpr int most_per_team = D == 2 ? 4 : 2; ///< patches, where that leaves teams enough
};

/// InsertOwnedGpu.
template <class Space, class T, int D>
struct OwnedTuning {
  static constexpr int slots = D == 3 ? 8 : 4; ///< elements of a lane
  static constexpr int team_size =
      is_host<Space> ? 1 : (sizeof(T) == 4 ? 4 : 2);    ///< as many as scratch holds
  static constexpr int queue_length = D == 3 ? 48 : 36; ///< samples
  static constexpr int resident = resident_teams<Space>(5);
};

/// InsertBricksHost: the buffer of a brick fits the L2 cache of a core. Intel Xeon (Sapphire Rapids), 2026-11-21,
/// bench/tune_projection.
template <int D>
inline constexpr int owned_edge_on_host = D == 2 ? 64 : 16;

} // namespace Bracewell::Impl
