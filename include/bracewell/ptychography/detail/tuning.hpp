// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <cstddef>
#include <cstdint>

namespace Bracewell::Impl {

/// Lanes that do a transform of n = lanes x per_lane numbers together (FusedSizes).
struct FusedSize {
  int n, lanes;
};

/// What was chosen by measurement for ptychography, on an NVIDIA H200 on 2026-11-21; other GPUs take the same
/// numbers; those of lines on 2026-11-22. `bench/tune_ptychography` measures each of them again.
struct PtychographyTuning {
  /// Sizes for which the fused kernel is built: 8 to 32 numbers a lane.
  static constexpr FusedSize fused_sizes[] = {{40, 4},  {48, 4},   {64, 8},   {128, 8},
                                              {160, 8}, {192, 16}, {256, 16}, {512, 16}};

  /// The chip of a multiprocessor: its memory, what the system takes of it for a team, and the threads that it
  /// can hold. Of its 64 warps 16 are used by the fused kernel, which fills the registers with them.
  static constexpr std::size_t chip_bytes = 228 * 1024, system_bytes = 1024;
  static constexpr int chip_threads = 2048;
  static constexpr int fused_threads = 16 * 32;

  /// Teams of the fused kernel that keep their windows in a workspace: of so many on a multiprocessor the
  /// windows stay in its share of the cache. Their exchange has to fit into the 48 KB that Kokkos grants.
  static constexpr int workspace_teams = 2;
  static constexpr int exchange_bytes = 44000, most_warps = 10;
  /// With windows in a workspace the fused kernel takes longer than lines for fewer patterns than about these: 17 of 256
  /// pixels to 38 of 512 (an H100, 2026-11-26).
  static constexpr int fused_patterns = 32;

  /// Outer sums a lane (times lanes) up to which targets are read before the transform of their column: beyond
  /// it they take registers that the transform needs.
  static constexpr int targets_ahead = 24;

  /// Threads of a team that transforms lines (TeamLines), at most, and bytes of its scratch memory: Kokkos grants
  /// 48 KB.
  static constexpr int line_threads = 256;
  static constexpr std::size_t line_bytes = 44000;

  /// Detectors for which kernels over lines know the length, of these FusedSizes; 512 needs more memory for its exchange in
  /// double precision than Kokkos grants.
  static constexpr FusedSize line_sizes[] = {{64, 8}, {128, 8}, {192, 8}, {256, 16}, {512, 16}};

  /// Threads of a team of theirs over rows, and, in float and of up to 16 numbers each, threads that a multiprocessor should
  /// hold of each kernel: 512 have 128 registers each, 384 have 168.
  static constexpr int row_threads = 64;
  static constexpr int shift_threads = 512, row_sum_threads = 384, compare_threads = 512, exit_threads = 512,
                       gradient_threads = 384, shifted_gradient_threads = 384;

  /// Teams that go through portions of the patterns: as many as so many multiprocessors hold where each leaves a sum, and
  /// about so many others.
  static constexpr int multiprocessors = 132, portion_teams = 8192;

  /// Rounds of the teams of a GPU, each of which goes through a stretch of patterns with shifted probes.
  static constexpr int stretch_rounds = 4;

  /// Warps that share the windows of a tile of the object, their teams on a multiprocessor, and the tile, whose width is
  /// that of a warp.
  static constexpr int object_shares = 8, object_teams = 4, tile_height = 8, tile_width = 32;

  /// Probe gradient: values of all portions together, portions at most, and patterns that are read at a time.
  static constexpr std::int64_t portion_values = 1 << 18, most_portions = 256;
  static constexpr int patterns_together = 4;

  /// Threads of a team that goes through a pattern, or (beside the FFT library) about so many pixels of a wave, and of the one that
  /// adds the losses of all patterns.
  static constexpr int pattern_threads = 256, team_pixels = 2048, sum_threads = 1024;

  /// Blocks of a pattern in sums for its position, at most.
  static constexpr int most_blocks = 32;

  /// Bytes of a group of patterns where options.workspace_bytes does not say. Kernels over lines are short, and every
  /// group launches all of them: theirs have this part of the device's memory, if that is more.
  static constexpr std::size_t group_bytes = std::size_t(640) << 20, line_group_part = 40;

  /// Bytes of waves that a plan of the FFT library transforms at a time, on GPUs.
  static constexpr std::int64_t transform_bytes = std::int64_t(40) << 20;

  /// Measured pixels that set_patterns copies at a time.
  static constexpr std::int64_t stored_pixels = std::int64_t(2) << 20;
};

} // namespace Bracewell::Impl
