// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace Bracewell::Impl {

/// Edges of a box of a grid; x is the axis whose elements are neighbours in memory.
struct BoxShape {
  int x, y, z;
};

/// The constants of gridding for hosts and GPUs. Times are those of a whole GPU or of one core of a host, in
/// nanoseconds; `bench/tune_gridding` prints them again. Sizes belong to caches, registers and scratch memory:
/// change one and run `bench_gridding`.
struct GriddingTuning {
  // gridding_cost and gridding_and_fft_cost
  double write;       ///< an element of a grid
  double atomic_tap;  ///< a tap of a sample of a slice
  double pruned_tap;  ///< a tap of a sample of a slice
  double fft_element; ///< an element of a grid

  double bin_sample_2d, bin_sample_3d; ///< a sample of a slice in a bin; in 1D as in 2D
  double bin_tap;                      ///< a tap of it
  double bin_cell;                     ///< an element of a tile of a bin, which is added to the grid
  double bin_launch;                   ///< of the bins of a colour
  double interpolated_bin_sample;      ///< a sample of a slice, interpolated in the order of bins
  double interpolated_bin_tap;         ///< a tap of it
  double interpolated_tap;             ///< a tap of a sample of a slice, interpolated sample by sample
  double interpolated_tap_slices_last; ///< the same where slices are neighbours, in 2D

  // gridding_size
  std::int64_t smooth_up_to; ///< up to this size factors 5 and 7 are as good as 2 and 3

  // Bins
  BoxShape bin_1d, bin_2d, bin_3d;
  int bin_tasks, bin_lanes;          ///< so many tasks for so many lanes, where bins are large enough
  int least_bin_task, most_bin_task; ///< samples of one team, where bins hold more
  int bin_share_alone;               ///< one in so many of these a bin may hold that is not shared

  // Kernels that go from sample to sample
  int slices_per_thread; ///< spread by Atomic or PrunedGather
  int interpolated_slices_per_thread;

  constexpr BoxShape bin(int dimensions) const {
    return dimensions == 1 ? bin_1d : dimensions == 2 ? bin_2d : bin_3d;
  }
};

/// A host of two cores (2.6 GHz, AVX-512), 2026-11-21, for bins and interpolation 2026-11-23.
inline constexpr GriddingTuning host_gridding_tuning{
    .write = 1,
    .atomic_tap = 8,
    .pruned_tap = 50,
    .fft_element = 7,
    .bin_sample_2d = 8,
    .bin_sample_3d = 15,
    .bin_tap = 0.2,
    .bin_cell = 1.5,
    .bin_launch = 0,
    .interpolated_bin_sample = 9,
    .interpolated_bin_tap = 0.3,
    .interpolated_tap = 2.4,
    .interpolated_tap_slices_last = 2.4,
    .smooth_up_to = std::numeric_limits<std::int64_t>::max(), // FFTW
    .bin_1d = {4096, 1, 1},
    .bin_2d = {32, 32, 1}, // a tile in a second cache
    .bin_3d = {32, 16, 16},
    .bin_tasks = 8,
    .bin_lanes = 1,
    .least_bin_task = 1024,
    .most_bin_task = std::numeric_limits<int>::max(),
    .bin_share_alone = 1,
    .slices_per_thread = 8,
    .interpolated_slices_per_thread = 1, // the grid of one slice fits caches better
};

/// Bytes of the grids that a host's NonuniformFFT works on at once, where threads do not need more.
inline constexpr std::int64_t host_grid_bytes = 1 << 20;

/// An NVIDIA H200, 2026-11-21, for interpolation 2026-11-22, for bins 2026-11-23, in 3D 2026-11-29; used on all GPUs.
inline constexpr GriddingTuning h200_gridding_tuning{
    .write = 2e-3,
    .atomic_tap = 2e-2,
    .pruned_tap = 1e-2,
    .fft_element = 0.014,
    .bin_sample_2d = 0.055,
    .bin_sample_3d = 0.036,
    .bin_tap = 7e-4,
    .bin_cell = 7.5e-3,
    .bin_launch = 5000,
    .interpolated_bin_sample = 0.05,
    .interpolated_bin_tap = 4.5e-4,
    .interpolated_tap = 4e-3,
    .interpolated_tap_slices_last = 1.8e-3,
    .smooth_up_to = 2048, // see gridding_size
    .bin_1d = {256, 1, 1},
    .bin_2d = {16, 16, 1},
    .bin_3d = {16, 8, 8},
    .bin_tasks = 1,
    .bin_lanes = 128,
    .least_bin_task = 1024,
    .most_bin_task = 16384,
    .bin_share_alone = 2,
    .slices_per_thread = 8,
    .interpolated_slices_per_thread = 8,
};

constexpr const GriddingTuning& gridding_tuning(bool host) {
  return host ? host_gridding_tuning : h200_gridding_tuning;
}

/// The constants that kernels of a space are compiled with.
template <class Space>
inline constexpr GriddingTuning tuning_of = gridding_tuning(is_host<Space>);

/// The constants of machines that GPUs alone have: an NVIDIA H200, 2026-11-21, for interpolation 2026-11-22, for owned
/// boxes 2026-11-24 and for matrix units 2026-11-29; used on all GPUs.
struct GpuGriddingTuning {
  // gridding_cost
  double tile_cell_2d = 0.02;  ///< an element of a tile that has samples, for all slices of a team
  double tile_cell_3d = 0.067; ///< the same in 3D; whether a tap falls on it or not does not matter
  double tile_visit = 0.15;    ///< a sample of a tile, for all slices of a team
  double owned_cell = 8.5e-3;  ///< an element of a grid, spread by SpreadOwnedBoxes eight slices at a time
  double owned_sample = 0.056,
         owned_reach = 2.4e-4; ///< a sample of a slice, and each of the blocks' cells around
                               ///< that it is added to
  // From matrix_sample to bins_wait_tap, and bin_sample_3d: fitted together to the choice of SpreadMatrixBoxes.
  double matrix_launch = 16000,
         matrix_cell = 4.6e-3; ///< SpreadMatrixBoxes, and an element of a grid of a slice
  double matrix_sample = 0.19,
         matrix_tap = 3.6e-5;                  ///< a sample of a slice in a box that it reaches, a tap of it
  double matrix_teams = 470;                   ///< one team takes so many times as long as all of them
  double bins_wait = 6e5, bins_wait_tap = 110; ///< teams of bins for each other: in all, and for a tap
  double interpolated_tap_of_tiles = 8e-4;     ///< a tap of a sample of many slices, from tiles

  // Tiles
  BoxShape tile_2d = {8, 4, 1}; ///< a lane keeps a tile of one slice in registers: 32 complex numbers
  BoxShape tile_3d = {4, 4, 2};
  int tile_slices = 32;                   ///< that a team adds at once, a lane each
  int least_task = 128, most_task = 4096; ///< samples of one team, where tiles hold more
  int spread_teams_float = 16;            ///< of a multiprocessor, by registers: 128 for a lane
  int spread_teams_double = 12;           ///< 168

  // Boxes
  int owned_slices = 4;     ///< from which on SpreadOwnedBoxes takes over, at points that do not crowd:
  int owned_bin = 512;      ///< where no bin has more samples than this,
  double owned_share = 0.5; ///< or more than this share of what one of the teams at work adds in all,
  int owned_lanes = 1024;   ///< of which there is one for so many lanes,
  double owned_bytes = 3e8; ///< and where samples of eight slices that lie apart have no more bytes

  // choose_interpolation and InterpolateTiles
  double dense_bin = 0.5;          ///< samples per cell from which InterpolateDenseBins takes over
  double copied_bin = 64;          ///< samples of a task from which InterpolateBinTiles takes over, in 3D
  int interpolate_width = 8;       ///< the widest kernel
  int interpolate_team = 128;      ///< lanes
  int interpolate_at_once = 64;    ///< samples that are prepared together
  int interpolate_teams_float = 6; ///< of a multiprocessor, by registers
  int interpolate_teams_double = 3;
  std::size_t interpolate_scratch = 36 * 1024 + 256; ///< the most bytes of each of six teams
  int interpolate_idle = 3; ///< fewer than one lane in so many may be without a slice
};
inline constexpr GpuGriddingTuning gpu_gridding_tuning{};

/// Slices that a team of SpreadOwnedBoxes adds at once.
inline constexpr int slices_of_box = 8;

/// Cells of a box of SpreadMatrixBoxes along an axis.
inline constexpr int matrix_box_edge = 16;

/// Lanes of a team of SpreadBinsGpu, and samples that it prepares together, an axis of each by one lane.
KOKKOS_FUNCTION constexpr int bin_team_size(int dimensions, std::size_t value_bytes) {
  return dimensions < 3 ? 32 : value_bytes == 4 ? 64 : 256;
}
KOKKOS_FUNCTION constexpr int bin_batch(int dimensions, std::size_t value_bytes) {
  return dimensions < 3 ? 16 : bin_team_size(dimensions, value_bytes) / 4;
}
/// Teams of SpreadBinsGpu on a multiprocessor, as their registers allow.
KOKKOS_FUNCTION constexpr int bin_teams(int dimensions, std::size_t value_bytes) {
  return dimensions < 3 && value_bytes == 4 ? 24 : 512 / bin_team_size(dimensions, value_bytes);
}

/// Bytes of scratch memory of a team of SpreadBinsGpu: a tile, and the samples that it prepares.
template <class Bins>
KOKKOS_FUNCTION std::size_t bin_scratch_bytes(const Bins& bins, std::size_t value_bytes) {
  constexpr int dimensions = Bins::dimensions;
  const auto batch = static_cast<std::size_t>(bin_batch(dimensions, value_bytes)),
             cells = static_cast<std::size_t>(bins.tile_cells()),
             stride = static_cast<std::size_t>(dimensions * bins.width | 1);
  return (cells + batch) * 2 * value_bytes + 2 * batch * sizeof(int) + batch * stride * value_bytes;
}

/// Lanes of InterpolateTiles that take neighbouring slices: their samples fill two cache lines of 128 bytes,
/// or one.
constexpr int interpolation_lanes(bool wide, std::size_t value_bytes) {
  return static_cast<int>((wide ? 256 : 128) / (2 * value_bytes));
}

/// Bytes of scratch memory of a team of InterpolateTiles: the cells of a tile and those that its samples reach
/// beyond it, of all lanes (and one more, against bank conflicts), and what is prepared of its samples.
constexpr std::size_t interpolation_scratch_bytes(int width, int lanes, std::size_t value_bytes) {
  const GpuGriddingTuning& tuning = gpu_gridding_tuning;
  const auto cells = std::size_t(tuning.tile_2d.x + width - 1) * std::size_t(tuning.tile_2d.y + width - 1);
  const std::size_t sample =
      (2 * std::size_t(tuning.interpolate_width) * value_bytes + 2 * sizeof(int) + 15) / 16 * 16;
  return cells * std::size_t(lanes + 1) * 2 * value_bytes + tuning.interpolate_at_once * sample + 64;
}

} // namespace Bracewell::Impl
