// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace Bracewell::Impl {

/// The two products of scoring: sum filter |P|^2 of images and poses; scores, which end what that began.
enum class ScoringProduct { Powers, Scores };

/// ScoreTiles, for GPUs: by counting instructions, before measurements. A thread multiplies 8 rows (of an image and
/// a shift) by 8 poses, so that a team of 8 threads per 8 rows has as many rows as threads, and as many samples to
/// take for a chunk of 32 bytes of frequencies as float has threads.
struct ScoringTuning {
  static constexpr int side = 8, poses = 64;
  static constexpr int threads(std::size_t value_bytes) { return value_bytes == 4 ? 512 : 256; }
  static constexpr int resident = 1; ///< teams of a multiprocessor
  static constexpr int chunk(std::size_t value_bytes) { return 32 / static_cast<int>(value_bytes); }

  /// ScoreBlocks, for hosts: poses and rows of a block, and frequencies that are sampled at once, so that the
  /// samples of a block stay in the L2 cache (docs/internals/projection.md).
  static constexpr int block_poses = 48, block_rows = 4096, block_frequencies = 512;

  /// Memory for the best shift of every pose, and poses between two rankings.
  static constexpr std::size_t candidate_bytes = std::size_t(64) << 20;
  /// On GPUs, memory for projections of a pass: enough tiles for all multiprocessors.
  static constexpr std::size_t projection_bytes = std::size_t(256) << 20;
  static constexpr int pass_poses = 16384;
};

} // namespace Bracewell::Impl
