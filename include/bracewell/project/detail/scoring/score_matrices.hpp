// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/matrix_units.hpp>
#include <bracewell/project/detail/scoring/score_outputs.hpp>
#include <bracewell/project/detail/scoring/scoring_tables.hpp>

namespace Bracewell::Impl {

/// ScoreTiles in float, by matrix units: a team has a tile of 256 rows (of an image and a shift) and 64 poses, a warp 32 x 32
/// of it. Eight frequencies at a time are brought and formed while those before, in scratch memory, are multiplied.
/// A float is the sum of two numbers that matrix units take; of their four products the smallest, 2^-22 of the whole,
/// is left out. The units round sums towards zero, so that those of eight frequencies are added by other means.
template <class Space, ScoringProduct product>
struct ScoreMatrices {
  static constexpr bool scores = product == ScoringProduct::Scores;
  static constexpr int warps_down = 8, warps_across = 2, warp_side = 32;
  static constexpr int rows = warps_down * warp_side, poses = warps_across * warp_side,
                       threads = 32 * warps_down * warps_across;
  static constexpr int chunk = 8; ///< pairs of numbers: of a frequency, or Powers of two of them
  static constexpr int own_rows = rows * chunk / threads;
  static_assert(poses * chunk == threads, "A thread brings a number of one pose.");
  static constexpr int key_columns = 8 * warps_across; ///< poses whose keys are in scratch memory
  using Complex = Kokkos::complex<float>;
  using Bounds = Kokkos::LaunchBounds<threads, 1>;
  using Team = typename Kokkos::TeamPolicy<Space, Bounds>::member_type;

  /// Numbers of two frequencies: what a lane multiplies of a row or a pose.
  struct alignas(16) Quad {
    float value[4];
  };
  struct Chunk {
    Quad row[rows][chunk / 2], pose[poses][chunk / 2];
  };
  union Scratch {
    Chunk chunks[2];
    float keys[rows][key_columns + 1]; ///< when the sums are there
  };
  /// What a thread takes part in.
  struct Place {
    int row, pose;   ///< first ones of its warp
    int group, lane; ///< of the warp's eight groups of four lanes
  };

  ProjectedPoses<float> projected;
  ScoringTables<float, false> tables;
  ScoringRows tile_rows;
  ScoreOutputs<float> outputs;
  std::int64_t count; ///< of poses of the pass
  float* powers;      ///< [images|1, power_stride] written by Powers
  std::int64_t power_stride;
  bool one_power; ///< all images have the same filter

  void launch(const Space& space, const Label& label) const {
    const std::int64_t league = tile_rows.tiles() * ((count + poses - 1) / poses);
    Kokkos::TeamPolicy<Space, Bounds> policy(space, static_cast<int>(league), threads, 1);
    policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(sizeof(Scratch) + alignof(Scratch))));
    Kokkos::parallel_for(label, policy, *this);
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& scratch =
        *static_cast<Scratch*>(team.team_scratch(0).get_shmem_aligned(sizeof(Scratch), alignof(Scratch)));
    const int thread = team.team_rank(), warp = thread / 32;
    const Place place{warp / warps_across * warp_side, warp % warps_across * warp_side, thread % 32 / 4,
                      thread % 4};
    const std::int64_t tile = team.league_rank() % tile_rows.tiles(),
                       first = team.league_rank() / tile_rows.tiles() * poses;
    if (scores && outputs.skips(tile_rows.first_image(tile), tile_rows.images_of(tile), first,
                                Kokkos::min(std::int64_t(poses), count - first)))
      return;
    Source source(*this, tile, first, thread);
    float sums[2][4][4] = {}; // of 16 rows and 8 poses, see multiply_by_warp
    source.fetch(*this, 0);
    source.put(scratch.chunks[0]);
    team.team_barrier();
    int current = 0;
    const std::int64_t pairs = scores ? tables.padded : tables.padded / 2;
    for (std::int64_t begin = chunk; begin <= pairs; begin += chunk, current ^= 1) {
      if (begin < pairs)
        source.fetch(*this, begin);
      multiply(scratch.chunks[current], place, sums);
      if (begin < pairs)
        source.put(scratch.chunks[current ^ 1]);
      team.team_barrier();
    }
    if constexpr (scores)
      store_scores(team, scratch, place, tile, first, sums);
    else
      for_sums(place, [&](int m, int n, int i, int row, int column) {
        if (row < tile_rows.images_of(tile) && first + column < count)
          powers[(tile_rows.first_image(tile) + row) * power_stride + first + column] = sums[m][n][i];
      });
  }

private:
  /// What a thread makes of a chunk: a pair of numbers of four rows and of one pose.
  struct Source {
    std::int32_t images[own_rows], shifts[own_rows]; ///< -1: rows that are not there
    std::int64_t pose;
    int pair, row;
    Complex values[own_rows], phases[own_rows], projection; ///< fetched

    KOKKOS_INLINE_FUNCTION Source(const ScoreMatrices& all, std::int64_t tile, std::int64_t first, int thread)
        : pose(Kokkos::min(first + thread / chunk, all.count - 1)), pair(thread % chunk),
          row(thread / chunk) {
      const ScoringRows& of = all.tile_rows;
      BRACEWELL_UNROLL_FOR (int i = 0; i < own_rows; ++i) {
        const int r = row + i * poses, within = r / of.part_shifts, shift = r % of.part_shifts;
        const bool there = within < of.images_of(tile) && shift < of.shifts_of(tile);
        images[i] = there ? static_cast<std::int32_t>(of.first_image(tile)) + within : -1;
        shifts[i] = of.first_shift(tile) + shift;
      }
    }

    KOKKOS_INLINE_FUNCTION void fetch(const ScoreMatrices& all, std::int64_t begin) {
      const std::int64_t at = begin + pair;
      const Frequency* const frequencies = all.tables.frequencies;
      BRACEWELL_UNROLL_FOR (int i = 0; i < own_rows; ++i)
        if (images[i] >= 0) {
          if constexpr (scores) {
            values[i] = all.tables.images(images[i], at);
            phases[i] = all.tables.phases(shifts[i], at);
          } else {
            values[i] =
                Complex(all.tables.filters(images[i], 2 * at), all.tables.filters(images[i], 2 * at + 1));
          }
        }
      if constexpr (scores)
        projection = all.projected(pose, frequencies[at]);
      else
        projection = Complex(squared(all.projected(pose, frequencies[2 * at])),
                             squared(all.projected(pose, frequencies[2 * at + 1])));
    }
    KOKKOS_INLINE_FUNCTION static float squared(const Complex& value) {
      return value.real() * value.real() + value.imag() * value.imag();
    }

    KOKKOS_INLINE_FUNCTION void put(Chunk& scratch) const {
      const auto store = [&](Quad& quad, const Complex& value) {
        quad.value[pair % 2 * 2] = value.real();
        quad.value[pair % 2 * 2 + 1] = value.imag();
      };
      BRACEWELL_UNROLL_FOR (int i = 0; i < own_rows; ++i)
        store(scratch.row[row + i * poses][pair / 2], images[i] < 0 ? Complex(0)
                                                      : scores      ? values[i] * phases[i]
                                                                    : values[i]);
      store(scratch.pose[row][pair / 2], projection);
    }
  };

  /// Two times 16 poses: what four products side by side take leaves registers for what is fetched meanwhile.
  KOKKOS_INLINE_FUNCTION static void multiply(const Chunk& scratch, const Place& place,
                                              float (&sums)[2][4][4]) {
    BRACEWELL_UNROLL_FOR (int half = 0; half < 2; ++half) {
      Quad a[2][2], b[2]; // of rows 16 m + 8 i, of poses
      BRACEWELL_UNROLL_FOR (int m = 0; m < 2; ++m) {
        b[m] = scratch.pose[place.pose + 16 * half + 8 * m + place.group][place.lane];
        BRACEWELL_UNROLL_FOR (int i = 0; i < 2; ++i)
          a[m][i] = scratch.row[place.row + 16 * m + 8 * i + place.group][place.lane];
      }
      float parts[2][2][4] = {};
      BRACEWELL_UNROLL_FOR (int step = 0; step < 2; ++step) {
        SplitFloats<4> left[2];
        SplitFloats<2> right[2];
        BRACEWELL_UNROLL_FOR (int m = 0; m < 2; ++m)
          BRACEWELL_UNROLL_FOR (int i = 0; i < 2; ++i) {
            left[m].set(2 * i, a[m][0].value[2 * step + i]);
            left[m].set(2 * i + 1, a[m][1].value[2 * step + i]);
            right[m].set(i, b[m].value[2 * step + i]);
          }
        for_pairs([&](int m, int n) { multiply_by_warp(parts[m][n], left[m].low, right[n].high); });
        for_pairs([&](int m, int n) { multiply_by_warp(parts[m][n], left[m].high, right[n].low); });
        for_pairs([&](int m, int n) { multiply_by_warp(parts[m][n], left[m].high, right[n].high); });
      }
      for_pairs([&](int m, int n) {
        BRACEWELL_UNROLL_FOR (int i = 0; i < 4; ++i)
          sums[m][2 * half + n][i] += parts[m][n][i];
      });
    }
  }

  template <class Work>
  KOKKOS_FORCEINLINE_FUNCTION static void for_pairs(const Work& work) {
    BRACEWELL_UNROLL_FOR (int m = 0; m < 2; ++m)
      BRACEWELL_UNROLL_FOR (int n = 0; n < 2; ++n)
        work(m, n);
  }

  /// work(m, n, i, row, column) of a lane's sums[m][n][i].
  template <class Work>
  KOKKOS_FORCEINLINE_FUNCTION static void for_sums(const Place& place, const Work& work) {
    BRACEWELL_UNROLL_FOR (int n = 0; n < 4; ++n)
      for_eight(place,
                [&](int m, int i, int row, int column) { work(m, n, i, row, place.pose + 8 * n + column); });
  }
  /// Of eight poses, work(m, i, row, column among them).
  template <class Work>
  KOKKOS_FORCEINLINE_FUNCTION static void for_eight(const Place& place, const Work& work) {
    BRACEWELL_UNROLL_FOR (int m = 0; m < 2; ++m)
      BRACEWELL_UNROLL_FOR (int i = 0; i < 4; ++i)
        work(m, i, place.row + 16 * m + i / 2 * 8 + place.group, 2 * place.lane + i % 2);
  }

  /// Scores of all rows, eight poses of every warp at a time, and the best shift of every image and pose.
  KOKKOS_INLINE_FUNCTION void store_scores(const Team& team, Scratch& scratch, const Place& place,
                                           std::int64_t tile, std::int64_t first,
                                           const float (&sums)[2][4][4]) const {
    const int part_shifts = tile_rows.part_shifts, shifts = tile_rows.shifts_of(tile),
              images = tile_rows.images_of(tile), across = place.pose / warp_side * 8;
    const std::int64_t first_image = tile_rows.first_image(tile);
    BRACEWELL_UNROLL_FOR (int n = 0; n < 4; ++n) {
      for_eight(place, [&](int m, int i, int row, int column) {
        const int within = row / part_shifts, shift = row - within * part_shifts;
        const std::int64_t pose = first + place.pose + 8 * n + column, image = first_image + within;
        if (within >= images || shift >= shifts || pose >= count)
          return;
        const auto keys =
            outputs.rule.keys(powers[(one_power ? 0 : image) * power_stride + pose], tables.powers[image]);
        const float key = keys(sums[m][n][i]);
        outputs.store(tile_rows, image, pose, tile_rows.first_shift(tile) + shift, key);
        scratch.keys[row][across + column] = key;
      });
      if (!outputs.best)
        continue;
      team.team_barrier();
      for (int pair = team.team_rank(); pair < images * key_columns; pair += threads) {
        const int within = pair / key_columns, column = pair % key_columns;
        const std::int64_t pose = first + column / 8 * warp_side + 8 * n + column % 8;
        if (pose >= count)
          continue;
        BestShift<float> best;
        for (int shift = 0; shift < shifts; ++shift)
          best.offer(scratch.keys[within * part_shifts + shift][column], tile_rows.first_shift(tile) + shift);
        outputs.store(tile_rows, first_image + within, static_cast<int>(tile % tile_rows.parts), pose, best);
      }
      team.team_barrier();
    }
  }
};

} // namespace Bracewell::Impl
