// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/gridding/options.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace Bracewell {

/// What the choices of strategy and oversampling depend on before samples are sorted.
struct GriddingWork {
  double points;                                ///< samples of a slice
  double slices;                                ///< of one call
  double cells;                                 ///< of one grid
  int width;                                    ///< of the kernel, in grid points
  int dimensions;                               ///< 1, 2 or 3
  bool host;                                    ///< the execution space works in the host's memory
  bool bins_fit = true;                         ///< whether scratch memory has room for the tiles of bins
  SampleOrder order = SampleOrder::SlicesFirst; ///< of samples in memory
  bool matrices = false;                        ///< whether the GPU has matrix units
  int value_bytes = 4;                          ///< of a real number: 4 or 8
};

/// The strategy of a plan that is Automatic, as far as it is known before samples are sorted. Hosts take Bins. GPUs
/// take what is expected to be the fastest in both directions: Bins, OwnedBoxes or MatrixBoxes (few slices, and many
/// where taps are many), Tiles (many slices) or Atomic (few samples). PrunedGather is never chosen. Among the three
/// that sort samples into bins choose_sorted_strategy decides anew when the samples are sorted.
inline GriddingStrategy choose_gridding_strategy(const GriddingWork& work);

/// What the choice among the strategies that sort samples into bins depends on.
struct SortedWork {
  double points;      ///< samples of a slice
  double slices;      ///< of one call
  double largest_bin; ///< samples of a bin, at most
  double largest_box; ///< samples that reach a box of MatrixBoxes, at most
  int width;          ///< of the kernel, in grid points
  int dimensions;     ///< 1, 2 or 3
  SampleOrder order;  ///< of samples in memory
  int value_bytes;    ///< of a real number: 4 or 8
  double lanes;       ///< of the execution space: its concurrency
  double cells;       ///< of one grid
  bool boxes;         ///< there are OwnedBoxes: a GPU whose scratch memory has room for them
  bool matrices;      ///< there are MatrixBoxes, likewise
};

/// Bins, OwnedBoxes or MatrixBoxes, for a plan that is Automatic and whose samples are sorted. One team adds a whole box.
/// A box with too many samples would hold up all others. Several slices are read several times, which takes long if
/// the slices of many samples lie far apart. Matrices are taken where they are expected to take less time than bins,
/// whose teams wait for each other where samples are few or crowd.
inline GriddingStrategy choose_sorted_strategy(const SortedWork& work);

/// How samples are interpolated. All agree to rounding. From tiles (GPUs, 2D): a team copies a tile of the grid to
/// scratch memory and interpolates the samples in it; lanes side by side take slices.
enum class GriddingInterpolation {
  Samples,     ///< a thread per sample takes its taps from the grid; any space
  Tiles,       ///< lanes for two cache lines of a sample's slices: 32 in float, 16 in double
  NarrowTiles, ///< lanes for one cache line: half as many
  Bins,        ///< samples in the order of bins, lanes or SIMD instructions along rows of taps; any space
  DenseBins,   ///< GPUs: samples in the order of bins, a lane for each
  BinTiles     ///< GPUs, 3D in double: a team copies a bin's part of the grid to scratch memory
};

/// What the choice of the interpolation depends on.
struct InterpolationWork {
  GriddingStrategy strategy; ///< of the plan: Tiles lists samples of tiles, three others sort them into bins
  SampleOrder order;         ///< of the samples: lanes side by side write slices side by side
  std::int64_t slices;       ///< of the plan
  int width;                 ///< of the kernel, in grid points
  int dimensions;            ///< 1, 2 or 3
  std::size_t value_bytes;   ///< 4 for float, 8 for double
  bool host;                 ///< the execution space works in the host's memory
  double points = 0;         ///< samples of a slice, where they are sorted into bins
  double tasks = 0;          ///< into which they are divided: one for a bin, or several for a large one
  double bin_cells = 0;      ///< cells of a bin, at most
};

/// The interpolation of a plan whose samples are sorted or listed. Where samples are sorted into bins it follows
/// their order, on GPUs by the machine for samples that lie as close. Tiles are taken where their scratch memory
/// suffices and two thirds of the lanes have a slice: with fewer, samples one by one are faster. Calls of fewer
/// slices than the plan's are interpolated alike.
inline GriddingInterpolation choose_interpolation(const InterpolationWork& work);

/// The oversamplings that a plan chooses from by itself. A smaller grid needs a wider kernel and has a stronger roll-off, which
/// amplifies rounding. At tolerances near the precision there is therefore one oversampling only. A smaller grid pays more on
/// hosts, where FFTs take longer relative to spreading, and on GPUs in 3D and in double.
/// @param epsilon  of the precision
inline std::vector<double> unasked_oversamplings(double tolerance, double epsilon, bool host,
                                                 int dimensions) {
  if (tolerance < 20 * epsilon)
    return {2};
  if (host)
    return {2, 1.75, 1.5, 1.35, 1.25};
  return dimensions == 3 || epsilon < 1e-10 ? std::vector<double>{2, 1.75, 1.5} : std::vector<double>{2, 1.5};
}

/// The oversamplings that a plan tries in turn where one is asked for: larger ones where no kernel meets the
/// tolerance on a grid of that size.
inline std::vector<double> asked_oversamplings(double asked) {
  std::vector<double> result{asked};
  for (const double more : {1.35, 1.5, 1.75, 2.})
    if (more > asked)
      result.push_back(more);
  return result;
}

/// The size of a grid of at least `least` elements along an axis whose FFT is fast. Above 2048, cuFFT takes 0.013 ns per
/// element on an H200 for sizes of factors 2 and 3 alone, and at least one 4. Sizes with 5 and 7 mostly take 0.017 to 0.025
/// ns. Small sizes that FFTW has one code for, and 64 and 128, take 3 to 5 ns in 3D on hosts, others 6 to 30.
inline std::int64_t gridding_size(std::int64_t least, bool host) {
  if (host)
    for (const std::int64_t size : {16, 20, 25, 32, 64, 128})
      if (size >= least && 5 * size <= 6 * least)
        return size;
  const std::int64_t smooth = next_fast_size(least);
  if (least <= Impl::gridding_tuning(host).smooth_up_to)
    return smooth;
  for (std::int64_t size = (least + 3) / 4 * 4; size < least + least / 8; size += 4) {
    std::int64_t rest = size;
    for (const int prime : {2, 3})
      while (rest % prime == 0)
        rest /= prime;
    if (rest == 1)
      return size;
  }
  return smooth;
}

/// Estimated time of spreading in float: nanoseconds of an NVIDIA H200, or of one core of a host. Infinite where
/// there is no such strategy. (In double, all strategies take about twice as long, but for products of matrices.)
inline double gridding_cost(GriddingStrategy strategy, const GriddingWork& work);

/// Estimated time of the interpolation that a strategy leads to.
inline double interpolation_cost(GriddingStrategy strategy, const GriddingWork& work);

/// Estimated time of spreading by the best strategy and of the FFT of the grids. It decides between a large grid with a
/// narrow kernel and a small grid with a wide kernel.
inline double gridding_and_fft_cost(const GriddingWork& work);

namespace Impl {

/// Whether samples of a plan are sorted into bins.
constexpr bool sorts_into_bins(GriddingStrategy strategy) {
  return strategy == GriddingStrategy::Bins || strategy == GriddingStrategy::OwnedBoxes ||
         strategy == GriddingStrategy::MatrixBoxes;
}

/// Cells of the tiles of a grid that have samples, at most.
inline double reached_cells(const GriddingWork& work, const BoxShape& tile, double visits) {
  return std::min(work.cells, work.points * visits * tile.x * tile.y * tile.z);
}

/// Taps of a sample in a bin. Hosts take rows of them by four.
inline double bin_taps(const GriddingWork& work) {
  const int row = work.host ? (work.width + 3) / 4 * 4 : work.width;
  return row * std::pow(work.width, work.dimensions - 1);
}

/// Lanes are paid for, used or not; a sample is visited once per tile that it reaches.
inline double tiles_cost(const GriddingWork& work, double writing) {
  constexpr const GpuGriddingTuning& gpu = gpu_gridding_tuning;
  const BoxShape tile = work.dimensions == 2 ? gpu.tile_2d : gpu.tile_3d;
  const double chunks = std::ceil(work.slices / gpu.tile_slices);
  double visits =
      (1 + (work.width - 1.) / tile.x) * (1 + (work.width - 1.) / tile.y); // of a sample, on average
  if (work.dimensions == 3)
    visits *= 1 + (work.width - 1.) / tile.z;
  return writing +
         reached_cells(work, tile, visits) * chunks *
             (work.dimensions == 2 ? gpu.tile_cell_2d : gpu.tile_cell_3d) +
         work.points * chunks * gpu.tile_visit * visits;
}

inline double bins_cost(const GriddingWork& work, double writing) {
  const GriddingTuning& tuning = gridding_tuning(work.host);
  const BoxShape bin = tuning.bin(work.dimensions);
  double padding = 1; // cells of tiles over cells of the grid
  for (const int edge : {bin.x, bin.y, bin.z})
    padding *= edge > 1 ? 1 + (work.width - 1) / std::max<double>(edge, work.width - 1) : 1;
  const double sample = work.dimensions < 3 ? tuning.bin_sample_2d : tuning.bin_sample_3d;
  return writing + (1 << work.dimensions) * tuning.bin_launch +
         reached_cells(work, bin, 1) * work.slices * padding * tuning.bin_cell +
         work.points * work.slices * (sample + tuning.bin_tap * bin_taps(work));
}

inline double owned_boxes_cost(const GriddingWork& work) {
  constexpr const GpuGriddingTuning& gpu = gpu_gridding_tuning;
  const double all = std::ceil(work.slices / slices_of_box) * slices_of_box;
  const double reach = (work.width + 3.) * (work.width + 3) * (work.width + 1);
  return gridding_tuning(false).bin_launch + work.cells * all * gpu.owned_cell +
         work.points * work.slices * (gpu.owned_sample + gpu.owned_reach * reach);
}

/// One team adds the largest box. It begins late where the box lies in the middle of a grid, so the time is between the
/// larger one of both shares and their sum. Products of matrices take as long in double as in float.
/// @param largest_box  samples of a slice that reach a box, at most
inline double matrix_boxes_cost(const GriddingWork& work, double largest_box) {
  constexpr const GpuGriddingTuning& gpu = gpu_gridding_tuning;
  const double boxes = std::pow(1 + (work.width - 1.) / matrix_box_edge, 3); // of a sample, on average
  const double sample = gpu.matrix_sample + gpu.matrix_tap * bin_taps(work);
  return gpu.matrix_launch + work.cells * work.slices * gpu.matrix_cell +
         sample * sizeof(float) / work.value_bytes *
             std::hypot(work.points * work.slices * boxes, gpu.matrix_teams * largest_box);
}

/// Samples of a slice that reach a box, where points do not crowd.
inline double samples_of_box(const GriddingWork& work) {
  return std::min(work.points, work.points * std::pow(matrix_box_edge + work.width - 1., 3) / work.cells);
}

/// The strategy with bins that is expected before samples are sorted, for points that do not crowd. (Points on rays
/// crowd; their slices mostly are last.)
inline GriddingStrategy expected_sorted_strategy(const GriddingWork& work) {
  constexpr const GpuGriddingTuning& gpu = gpu_gridding_tuning;
  if (work.host || work.dimensions < 3)
    return GriddingStrategy::Bins;
  if (work.slices >= gpu.owned_slices && work.order == SampleOrder::SlicesFirst &&
      2 * work.points * std::min<double>(work.slices, slices_of_box) * sizeof(float) <= gpu.owned_bytes)
    return GriddingStrategy::OwnedBoxes;
  if (work.matrices && work.slices < gpu.owned_slices &&
      gridding_cost(GriddingStrategy::MatrixBoxes, work) < gridding_cost(GriddingStrategy::Bins, work))
    return GriddingStrategy::MatrixBoxes;
  return GriddingStrategy::Bins;
}

} // namespace Impl

inline double gridding_cost(GriddingStrategy strategy, const GriddingWork& work) {
  constexpr double none = std::numeric_limits<double>::infinity();
  const Impl::GriddingTuning& tuning = Impl::gridding_tuning(work.host);
  const double taps = std::pow(work.width, work.dimensions);
  const double writing = work.cells * work.slices * tuning.write;
  const bool boxes = !work.host && work.dimensions == 3 && work.bins_fit;
  switch (strategy) {
  case GriddingStrategy::Atomic:
    return writing + work.points * work.slices * taps * tuning.atomic_tap;
  case GriddingStrategy::PrunedGather:
    return writing + work.points * work.slices * taps * tuning.pruned_tap;
  case GriddingStrategy::Bins:
    return work.bins_fit ? Impl::bins_cost(work, writing) : none;
  case GriddingStrategy::OwnedBoxes:
    return boxes ? Impl::owned_boxes_cost(work) : none;
  case GriddingStrategy::MatrixBoxes:
    return boxes && work.matrices ? Impl::matrix_boxes_cost(work, Impl::samples_of_box(work)) : none;
  default:
    return work.host || work.dimensions == 1 ? none : Impl::tiles_cost(work, writing);
  }
}

inline double interpolation_cost(GriddingStrategy strategy, const GriddingWork& work) {
  const Impl::GriddingTuning& tuning = Impl::gridding_tuning(work.host);
  const double points_of_slices = work.points * work.slices;
  if (Impl::sorts_into_bins(strategy))
    return points_of_slices *
           (tuning.interpolated_bin_sample + tuning.interpolated_bin_tap * Impl::bin_taps(work));
  const bool last = work.dimensions == 2 && work.order == SampleOrder::SlicesLast;
  const bool tiles =
      last && strategy == GriddingStrategy::Tiles && work.slices > 10; // see choose_interpolation
  return points_of_slices * std::pow(work.width, work.dimensions) *
         (tiles  ? Impl::gpu_gridding_tuning.interpolated_tap_of_tiles
          : last ? tuning.interpolated_tap_slices_last
                 : tuning.interpolated_tap);
}

inline double gridding_and_fft_cost(const GriddingWork& work) {
  return gridding_cost(choose_gridding_strategy(work), work) +
         work.cells * work.slices * Impl::gridding_tuning(work.host).fft_element;
}

inline GriddingStrategy choose_gridding_strategy(const GriddingWork& work) {
  if (work.host)
    return GriddingStrategy::Bins;
  const auto cost = [&](GriddingStrategy strategy) {
    return gridding_cost(strategy, work) + interpolation_cost(strategy, work);
  };
  GriddingStrategy best = GriddingStrategy::Tiles;
  for (const GriddingStrategy other : {Impl::expected_sorted_strategy(work), GriddingStrategy::Atomic})
    if (cost(other) < cost(best))
      best = other;
  return best;
}

inline GriddingStrategy choose_sorted_strategy(const SortedWork& work) {
  constexpr const Impl::GpuGriddingTuning& gpu = Impl::gpu_gridding_tuning;
  if (work.dimensions < 3)
    return GriddingStrategy::Bins;
  const bool in_double = work.value_bytes == 8, last = work.order == SampleOrder::SlicesLast;
  const double of_team = work.points * gpu.owned_lanes / work.lanes;
  const double bytes =
      2. * work.value_bytes * work.points * std::min<double>(work.slices, Impl::slices_of_box);
  const bool owned = work.boxes && work.slices >= gpu.owned_slices && (last || bytes <= gpu.owned_bytes) &&
                     work.largest_bin <= std::max<double>(gpu.owned_bin, gpu.owned_share * of_team);
  const GriddingWork spread{.points = work.points,
                            .slices = work.slices,
                            .cells = work.cells,
                            .width = work.width,
                            .dimensions = 3,
                            .host = false,
                            .value_bytes = work.value_bytes};
  // Not in the choice before sorting, where it would have to be known of Tiles and Atomic, too.
  const double wait =
      gpu.bins_wait * sizeof(float) / work.value_bytes + gpu.bins_wait_tap * Impl::bin_taps(spread);
  const bool matrices = work.matrices && Impl::matrix_boxes_cost(spread, work.largest_box) <
                                             gridding_cost(GriddingStrategy::Bins, spread) + wait;
  if (owned && !(matrices && in_double && !last))
    return GriddingStrategy::OwnedBoxes;
  return matrices ? GriddingStrategy::MatrixBoxes : GriddingStrategy::Bins;
}

inline GriddingInterpolation choose_interpolation(const InterpolationWork& work) {
  constexpr const Impl::GpuGriddingTuning& gpu = Impl::gpu_gridding_tuning;
  if (Impl::sorts_into_bins(work.strategy)) {
    if (work.host)
      return GriddingInterpolation::Bins;
    // A row of a bin holds enough samples: with fewer, every lane would have
    // cache lines of its own.
    if (work.dimensions == 1 || work.points >= gpu.dense_bin * work.tasks * work.bin_cells)
      return GriddingInterpolation::DenseBins;
    // A bin holds samples enough to pay for copying its part of the grid. In
    // float the planes of several samples side by side in a warp are faster.
    if (work.dimensions == 3 && work.value_bytes == 8 && work.points >= gpu.copied_bin * work.tasks)
      return GriddingInterpolation::BinTiles;
    return GriddingInterpolation::Bins;
  }
  if (work.host || work.dimensions != 2 || work.strategy != GriddingStrategy::Tiles ||
      work.order != SampleOrder::SlicesLast || work.width > gpu.interpolate_width)
    return GriddingInterpolation::Samples;
  for (const auto choice : {GriddingInterpolation::Tiles, GriddingInterpolation::NarrowTiles}) {
    const int lanes = Impl::interpolation_lanes(choice == GriddingInterpolation::Tiles, work.value_bytes);
    const std::int64_t all = (work.slices + lanes - 1) / lanes * lanes, idle = all - work.slices;
    if (gpu.interpolate_idle * idle < all &&
        Impl::interpolation_scratch_bytes(work.width, lanes, work.value_bytes) <= gpu.interpolate_scratch)
      return choice;
  }
  return GriddingInterpolation::Samples;
}

} // namespace Bracewell
