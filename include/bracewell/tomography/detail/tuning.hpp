// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace Bracewell::Impl {

/// Numbers of tomography's kernels that were measured, not derived: on an NVIDIA H200, 2026-11-21 and -22.
/// `bench/tune_tomography` prints them again.
struct GPUTomographyTuning {
  // LineTomography: tiles of pixels for back-projection; detector pixels and angles of a team for projection.
  static constexpr int line_slices = 4, line_threads = 256, line_teams = 3; ///< resident ones
  static constexpr int line_columns = 32, line_rows = 32, line_angles_at_once = 16;
  static constexpr int line_bins = 32, line_angles_per_team = 8;

  // FourierTomography: samples to spectra and back.
  static constexpr int transposition_threads = 256;

  // LogPolarTomography: parts of rows, blocks of frequencies, tiles of pixels.
  static constexpr int row_threads = 256;
  static constexpr int convolution_threads = 256, convolution_teams = 3;   ///< resident ones
  static constexpr int convolution_bytes = 32768, convolution_columns = 8; ///< of a block, at most
  static constexpr int blocks_at_once = 8;
  static constexpr int image_columns = 8, image_rows = 32, image_pairs = 2;
  /// Resident ones, for values of so many bytes.
  static constexpr int image_teams(std::size_t value) { return static_cast<int>(20 / value); }
  static constexpr int packed_pairs = 8;
  static constexpr double grid_bytes = 4e9; ///< of the slices that are worked on at once

  // ProjectionFilter: bytes of a block of rows.
  static constexpr std::int64_t filter_bytes(int) { return 192 * 1024 * 1024; }

  static constexpr std::int64_t centre_values = 1 << 22;     ///< of find_centre's whole turns at once
  static constexpr int centre_threads = 256;                 ///< of a trial of find_centre
  static constexpr int overlap_rows = 8, overlap_lanes = 32; ///< of a trial of find_overlap at once
  static constexpr int view_threads = 128;                   ///< of a view of sum_views

  static constexpr std::int64_t sorted_values = 1 << 25; ///< of slices that StripeRemoval sorts in one launch
};

/// Numbers of StripeRemoval's kernels on GPUs: on an NVIDIA H200, 2026-11-24 and -25, by the rows `stripes/...` of
/// `bench/bench_tomography`.
template <class T>
struct GPUStripeTuning {
  static constexpr int slices_at_once = 32; ///< whose columns there is workspace for
  static constexpr int part_threads = 256;  ///< that look at ranks together
  static constexpr int copied_columns = 32, copied_angles = 64, copy_threads = 256; ///< of a tile
  // Networks: values of a thread, and those of them in scratch memory at once.
  static constexpr int sorted_items = sizeof(T) == 4 ? 16 : 8, exchanged_items = sizeof(T) == 4 ? 4 : 2;
  // Medians on the chip: columns of a team, whose values fill a sector; threads and resident teams, or else threads of one.
  static constexpr int median_columns = 32 / int(sizeof(T));
  static constexpr int median_threads = 512, median_teams = 2, large_median_threads = 1024;
  // Ranks and columns of a team: the largest window of all its ranks fills 32 of the 48 KB of scratch memory.
  static constexpr int rolling_threads = sizeof(T) == 4 ? 128 : 64, rolling_columns = 64;
  // Waves: frequencies, columns of a thread, threads along columns and parts of the angles; resident teams.
  static constexpr int wave_frequencies = 8, wave_columns = 4, wave_lanes = 32, wave_parts = 8,
                       wave_teams = 2;
  // Their subtraction: columns of a thread, rows of waves in scratch memory, threads.
  static constexpr int subtracted_columns = 1, subtracted_rows = 32, subtract_threads = 256;
};

/// The same on hosts, where a team is one thread: two cores of 2.6 GHz with AVX-512, 2026-11-24, by the same rows.
struct HostStripeTuning {
  static constexpr int slices_at_once = 16;
  static constexpr int part_threads = 1;
  static constexpr int copied_columns = 32, copied_angles = 64, copy_threads = 1;
  static constexpr int rolling_threads = 1, rolling_columns = 512;
  static constexpr int wave_frequencies = 1, wave_columns = 64, wave_lanes = 1, wave_parts = 1,
                       wave_teams = 2;
  static constexpr int subtracted_columns = 64, subtracted_rows = 32, subtract_threads = 1;
};

/// The same on hosts, where a team is one thread: two cores of 2.6 GHz with AVX-512, 2026-11-21 and -22.
/// Tiles fit in a first-level cache, blocks of rows in a second-level one. `bench/tune_tomography` prints them
/// again.
struct HostTomographyTuning {
  static constexpr int line_slices = 8, line_threads = 1, line_teams = 1;
  static constexpr int line_columns = 16, line_rows = 8, line_angles_at_once = 16;
  static constexpr int line_bins = 32, line_angles_per_team = 1;

  static constexpr int transposition_threads = 1;

  static constexpr int row_threads = 1;
  static constexpr int convolution_threads = 1, convolution_teams = 1;
  static constexpr int convolution_bytes = 1 << 30, convolution_columns = 8;
  static constexpr int blocks_at_once = 8;
  static constexpr int image_columns = 8, image_rows = 8, image_pairs = 2;
  static constexpr int image_teams(std::size_t) { return 1; }
  static constexpr int packed_pairs = 1;
  static constexpr double grid_bytes = 128e6;

  static constexpr std::int64_t filter_bytes(int threads) { return 128 * 1024 * std::int64_t(threads); }

  static constexpr std::int64_t centre_values = 1 << 22;
  static constexpr int centre_threads = 1;
  static constexpr int overlap_rows = 1, overlap_lanes = 1;
  static constexpr int view_threads = 1;
  static constexpr std::int64_t sorted_values = 1; ///< of one slice, which stays in caches
};

template <class Space, class T>
using StripeTuning = std::conditional_t<is_host<Space>, HostStripeTuning, GPUStripeTuning<T>>;

template <class Space>
using TomographyTuning = std::conditional_t<is_host<Space>, HostTomographyTuning, GPUTomographyTuning>;

/// Values of a row that a team of LogPolarTomography has in scratch memory. NVIDIA H200, 2026-11-21;
/// `bench/tune_tomography` prints it again.
template <class T>
inline constexpr int log_polar_row_values = sizeof(T) == 4 ? 1024 : 512;

/// Bytes that stages of LogPolarTomography move for a cell of its grids, and the interpolation of a pixel as
/// what takes an NVIDIA H200 as long: from them follows the number of spans. 2026-11-21;
/// `bench/tune_tomography` prints them again.
struct LogPolarCost {
  static constexpr double row_cell = 40; ///< of rows of samples and of results: FFTs and interpolation
  static constexpr double convolution_cell = 30; ///< of a period of the convolution
  static constexpr double pixel = 50;            ///< of an image, for every span
};

} // namespace Bracewell::Impl
