// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace Bracewell::Impl {

/// Numbers measured on an NVIDIA H200 (Hopper) on 2026-11-21 and 22. `bench/tune_projection`
/// prints the times that they were read from again; plateaus are wide and flat. Launch bounds: teams of a
/// multiprocessor, counted in its registers; what launches asks for them through resident_teams, so that they
/// hold for no other backend.
struct HopperProjectionTuning {
  /// choose_sampling, from bricks: poses enough to pay for reading the bricks, and bricks enough for all multiprocessors.
  static constexpr std::int64_t brick_poses = 1024;
  static constexpr std::int64_t brick_elements = std::int64_t(1) << 22;
  static constexpr std::int64_t weighted_brick_elements = std::int64_t(1) << 20;

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

} // namespace Bracewell::Impl
