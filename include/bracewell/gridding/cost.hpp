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

/// What the choices of strategy and oversampling depend on.
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
};

/// Tiles that a sample reaches on average, and with as many cells.
inline double tile_visits(const GriddingWork& work, const Impl::BoxShape& tile) {
  const double visits = (1 + (work.width - 1.) / tile.x) * (1 + (work.width - 1.) / tile.y);
  return work.dimensions == 2 ? visits : visits * (1 + (work.width - 1.) / tile.z);
}

/// Cells of the tiles of a grid that have samples, at most.
inline double reached_cells(const GriddingWork& work, const Impl::BoxShape& tile, double visits) {
  return std::min(work.cells, work.points * visits * tile.x * tile.y * tile.z);
}

/// Taps of a sample in a bin. Hosts take rows of them by four.
inline double bin_taps(const GriddingWork& work) {
  const int row = work.host ? (work.width + 3) / 4 * 4 : work.width;
  return row * std::pow(work.width, work.dimensions - 1);
}

/// Estimated time of spreading in float: nanoseconds of an NVIDIA H200, or of one core of a host. Infinite where
/// there is no such strategy. (In double, all strategies take about twice as long.)
inline double gridding_cost(GriddingStrategy strategy, const GriddingWork& work) {
  const Impl::GriddingTuning& tuning = Impl::gridding_tuning(work.host);
  constexpr const Impl::GpuGriddingTuning& gpu = Impl::gpu_gridding_tuning;
  const double taps = std::pow(work.width, work.dimensions);
  const double writing = work.cells * work.slices * tuning.write;
  const double points_of_slices = work.points * work.slices;
  if (strategy == GriddingStrategy::Atomic)
    return writing + points_of_slices * taps * tuning.atomic_tap;
  if (strategy == GriddingStrategy::PrunedGather)
    return writing + points_of_slices * taps * tuning.pruned_tap;
  if (strategy == GriddingStrategy::Bins) {
    if (!work.bins_fit)
      return std::numeric_limits<double>::infinity();
    const Impl::BoxShape bin = tuning.bin(work.dimensions);
    double padding = 1; // cells of tiles over cells of the grid
    for (const int edge : {bin.x, bin.y, bin.z})
      padding *= edge > 1 ? 1 + (work.width - 1) / std::max<double>(edge, work.width - 1) : 1;
    const double sample = work.dimensions < 3 ? tuning.bin_sample_2d : tuning.bin_sample_3d;
    if (!work.host && work.dimensions > 1 && work.slices >= gpu.owned_slices &&
        work.order == SampleOrder::SlicesFirst &&
        2 * work.points * std::min<double>(work.slices, Impl::slices_of_box) * sizeof(float) <=
            gpu.owned_bytes) {
      // By SpreadOwnedBoxes, unless points crowd, as those on rays do, whose slices mostly are last.
      const double all = std::ceil(work.slices / Impl::slices_of_box) * Impl::slices_of_box;
      const double reach = work.dimensions == 2 ? (work.width + 7.) * (work.width + 3)
                                                : (work.width + 3.) * (work.width + 3) * (work.width + 1);
      return tuning.bin_launch + work.cells * all * gpu.owned_cell +
             points_of_slices * (gpu.owned_sample + gpu.owned_reach * reach);
    }
    if (work.matrices && work.dimensions == 3 && work.slices < gpu.owned_slices &&
        work.points <= gpu.matrix_density * work.cells) // unless points crowd, by SpreadMatrixBoxes
      return gpu.matrix_launch + work.cells * work.slices * gpu.matrix_cell +
             points_of_slices * (gpu.matrix_sample + gpu.matrix_tap * taps);
    return writing + (1 << work.dimensions) * tuning.bin_launch +
           reached_cells(work, bin, 1) * work.slices * padding * tuning.bin_cell +
           points_of_slices * (sample + tuning.bin_tap * bin_taps(work));
  }
  if (work.host || work.dimensions == 1)
    return std::numeric_limits<double>::infinity();
  // Tiles: lanes are paid for, used or not; a sample is visited once per tile that it reaches.
  const Impl::BoxShape tile = work.dimensions == 2 ? gpu.tile_2d : gpu.tile_3d;
  const double chunks = std::ceil(work.slices / gpu.tile_slices), visits = tile_visits(work, tile);
  return writing +
         reached_cells(work, tile, visits) * chunks *
             (work.dimensions == 2 ? gpu.tile_cell_2d : gpu.tile_cell_3d) +
         work.points * chunks * gpu.tile_visit * visits;
}

/// Estimated time of the interpolation that a strategy leads to.
inline double interpolation_cost(GriddingStrategy strategy, const GriddingWork& work) {
  const Impl::GriddingTuning& tuning = Impl::gridding_tuning(work.host);
  const double points_of_slices = work.points * work.slices;
  if (strategy == GriddingStrategy::Bins)
    return points_of_slices * (tuning.interpolated_bin_sample + tuning.interpolated_bin_tap * bin_taps(work));
  const bool last = work.dimensions == 2 && work.order == SampleOrder::SlicesLast;
  const bool tiles =
      last && strategy == GriddingStrategy::Tiles && work.slices > 10; // see choose_interpolation
  return points_of_slices * std::pow(work.width, work.dimensions) *
         (tiles  ? Impl::gpu_gridding_tuning.interpolated_tap_of_tiles
          : last ? tuning.interpolated_tap_slices_last
                 : tuning.interpolated_tap);
}

/// On hosts Bins. On GPUs Bins (few slices, and many where taps are many), Tiles (many slices) or Atomic (few samples),
/// whichever is expected to be the fastest in both directions; PrunedGather never is.
inline GriddingStrategy choose_gridding_strategy(const GriddingWork& work) {
  if (work.host)
    return GriddingStrategy::Bins;
  GriddingStrategy best = GriddingStrategy::Tiles;
  for (const GriddingStrategy other : {GriddingStrategy::Bins, GriddingStrategy::Atomic})
    if (gridding_cost(other, work) + interpolation_cost(other, work) <
        gridding_cost(best, work) + interpolation_cost(best, work))
      best = other;
  return best;
}

/// Estimated time of spreading by the best strategy and of the FFT of the grids, which decides between a
/// large grid with a narrow kernel and a small grid with a wide one.
inline double gridding_and_fft_cost(const GriddingWork& work) {
  return gridding_cost(choose_gridding_strategy(work), work) +
         work.cells * work.slices * Impl::gridding_tuning(work.host).fft_element;
}

/// The oversamplings that a plan chooses from unasked. A smaller grid needs a wider kernel and has a stronger roll-off,
/// which amplifies rounding: near the precision there is no choice. On hosts, where FFTs take longer beside spreading, it
/// may be worth more, and on GPUs in 3D and in double.
/// @param epsilon  of the precision
inline std::vector<double> unasked_oversamplings(double tolerance, double epsilon, bool host,
                                                 int dimensions) {
  if (tolerance < 20 * epsilon)
    return {2};
  if (host)
    return {2, 1.75, 1.5, 1.35, 1.25};
  return dimensions == 3 || epsilon < 1e-10 ? std::vector<double>{2, 1.75, 1.5} : std::vector<double>{2, 1.5};
}

/// The oversamplings that a plan tries in turn where one is asked for: larger ones where no kernel meets the tolerance on
/// a grid of that size.
inline std::vector<double> asked_oversamplings(double asked) {
  std::vector<double> result{asked};
  for (const double more : {1.35, 1.5, 1.75, 2.})
    if (more > asked)
      result.push_back(more);
  return result;
}

/// The size of a grid of at least `least` elements along an axis whose FFT is fast. Above 2048 cuFFT's
/// transforms by factors 2 and 3 alone, 4 among them, take 0.013 ns per element on an H200, those by 5 and 7
/// mostly 0.017 to 0.025.
inline std::int64_t gridding_size(std::int64_t least, bool host) {
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

/// What the choice of the kernel that spreads by the strategy Bins depends on.
struct BinsWork {
  double points;      ///< samples of a slice
  double slices;      ///< of one call
  double largest_bin; ///< samples of a bin, at most
  int dimensions;     ///< 1, 2 or 3
  SampleOrder order;  ///< of samples in memory
  int value_bytes;    ///< of a real number: 4 or 8
  bool host;          ///< the execution space works in the host's memory
  double lanes;       ///< of the execution space: its concurrency
  double cells;       ///< of one grid
  bool matrices;      ///< whether the GPU has matrix units
};

/// How samples are spread where the strategy is Bins. All agree to rounding.
enum class BinsSpreading {
  Bins,       ///< teams are dealt the samples of bins, large bins in parts; hosts have this alone
  OwnedBoxes, ///< teams own boxes of the grid and look for their samples, of eight slices (2D and 3D)
  MatrixBoxes ///< the same for a slice at a time, by instructions that multiply matrices (3D)
};

/// Boxes are not shared, so that there must be none that takes a good part of the time of all. Several slices are read
/// several times, which takes long where those of many samples lie far apart; in 2D in double boxes pay from twice as
/// many slices on. Matrices pay in float where there are few samples for the cells of the grid, in double always.
inline BinsSpreading choose_bins_spreading(const BinsWork& work) {
  constexpr const Impl::GpuGriddingTuning& gpu = Impl::gpu_gridding_tuning;
  if (work.host || work.dimensions == 1)
    return BinsSpreading::Bins;
  const bool in_double = work.value_bytes == 8, last = work.order == SampleOrder::SlicesLast;
  const double of_team = work.points * gpu.owned_lanes / work.lanes;
  const auto shared = [&](double share) {
    return work.largest_bin <= std::max<double>(gpu.owned_bin, share * of_team);
  };
  const double bytes =
      2. * work.value_bytes * work.points * std::min<double>(work.slices, Impl::slices_of_box);
  const double least = work.dimensions == 2 && in_double ? 2. * gpu.owned_slices : gpu.owned_slices;
  const bool owned = work.slices >= least && (last || bytes <= gpu.owned_bytes) && shared(gpu.owned_share);
  const bool matrices = work.dimensions == 3 && work.matrices && shared(gpu.matrix_share) &&
                        (in_double || work.points <= gpu.matrix_density * work.cells);
  if (owned && !(matrices && in_double && !last))
    return BinsSpreading::OwnedBoxes;
  return matrices ? BinsSpreading::MatrixBoxes : BinsSpreading::Bins;
}

/// How samples are interpolated. All agree to rounding. From tiles (GPUs, 2D): a team copies a tile of the
/// grid to scratch memory and interpolates the samples in it; lanes side by side take slices.
enum class GriddingInterpolation {
  Samples,     ///< a thread per sample takes its taps from the grid; any space
  Tiles,       ///< lanes for two cache lines of a sample's slices: 32 in float, 16 in double
  NarrowTiles, ///< lanes for one cache line: half as many
  Bins         ///< samples in the order of bins, lanes or SIMD instructions along rows of taps; any space
};

/// What the choice of the interpolation depends on.
struct InterpolationWork {
  GriddingStrategy strategy; ///< of the plan: Tiles lists the samples of every tile, Bins those of every bin
  SampleOrder order;         ///< of the samples: lanes side by side write slices side by side
  std::int64_t slices;       ///< of one call
  int width;                 ///< of the kernel, in grid points
  int dimensions;            ///< 1, 2 or 3
  std::size_t value_bytes;   ///< 4 for float, 8 for double
  bool host;                 ///< the execution space works in the host's memory
};

/// As the points are sorted where the strategy is Bins; from tiles where their scratch memory suffices and two thirds of the lanes have a slice: with fewer, samples
/// one by one are faster.
inline GriddingInterpolation choose_interpolation(const InterpolationWork& work) {
  constexpr const Impl::GpuGriddingTuning& gpu = Impl::gpu_gridding_tuning;
  if (work.strategy == GriddingStrategy::Bins)
    return GriddingInterpolation::Bins;
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
