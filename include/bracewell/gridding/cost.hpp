// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/gridding/options.hpp>

#include <algorithm>
#include <cmath>

namespace Bracewell {

/// What the choices of strategy and oversampling depend on.
struct GriddingWork {
  double points, slices, cells; ///< cells of one grid
  int width, dimensions;        ///< of the kernel
  bool host;                    ///< the execution space shares the host's memory
  double threads = 1;           ///< of a host
};

/// Estimated time of spreading: nanoseconds of an NVIDIA H200, or of one core of a host
/// (docs/performance.md).
inline double gridding_cost(GriddingStrategy strategy, const GriddingWork& work) {
  const double taps = std::pow(work.width, work.dimensions);
  const double writing = work.cells * work.slices * (work.host ? 1 : 2e-3);
  const double points_of_slices = work.points * work.slices;
  if (strategy == GriddingStrategy::Atomic)
    return writing + points_of_slices * taps * (work.host ? 8 : 2e-2);
  if (strategy == GriddingStrategy::Duplicated) // computes weights anew for every slice
    return (1 + 2 * work.threads) * writing + points_of_slices * (20 + 2 * taps);
  if (strategy == GriddingStrategy::PrunedGather) // computes weights anew for every slice or few
    return writing + points_of_slices * taps * (work.host ? 50 : 1e-2);
  // Lanes are paid for, used or not; a sample is visited once per tile that it reaches.
  const double chunks = std::ceil(work.slices / (work.host ? 16 : 32));
  const double visits = std::pow(1 + (work.width - 1) / (work.host ? 16. : 5.5), work.dimensions);
  const double tiles = work.cells * chunks * (work.host ? 0.1 : 0.02); // even empty ones
  return writing + tiles + work.points * chunks * (work.host ? 50 * visits + 2 * taps : 0.15 * visits);
}

/// Tiles, Atomic or, on hosts, Duplicated (one slice or two, on few threads), whichever is expected to be the
/// fastest; PrunedGather never is.
inline GriddingStrategy choose_gridding_strategy(const GriddingWork& work) {
  GriddingStrategy best = GriddingStrategy::Tiles;
  for (const GriddingStrategy other : {GriddingStrategy::Atomic, GriddingStrategy::Duplicated})
    if ((other == GriddingStrategy::Atomic || work.host) &&
        gridding_cost(other, work) < gridding_cost(best, work))
      best = other;
  return best;
}

/// Estimated time of spreading by the best strategy and of the FFT of the grids, which decides between a
/// large grid with a narrow kernel and a small grid with a wide one.
inline double gridding_and_fft_cost(const GriddingWork& work) {
  return gridding_cost(choose_gridding_strategy(work), work) +
         work.cells * work.slices * (work.host ? 25 : 0.014);
}

/// The size of a grid of at least `least` elements along an axis whose FFT is fast. Above 2048 cuFFT's
/// transforms by factors 2 and 3 alone, 4 among them, take 0.013 ns per element on an H200, those by 5 and 7
/// mostly 0.017 to 0.025.
inline std::int64_t gridding_size(std::int64_t least, bool host) {
  const std::int64_t smooth = next_fast_size(least);
  if (host || least <= 2048)
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

} // namespace Bracewell
