// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/project/detail/scoring/score_outputs.hpp>
#include <bracewell/project/detail/scoring/scoring_tables.hpp>

namespace Bracewell::Impl {

/// Products over frequencies of rows (images and shifts) and poses, for GPUs: a team has a tile of as many rows as
/// threads and 64 poses, whose sums are in registers, 8 x 8 of a thread. A few frequencies at a time, it brings projections
/// and forms the rows in scratch memory, where each is read 64 times or more. What is `Powers` is sum
/// filter |P|^2 of images and poses; what is `Scores` reads that, and ends with scores.
template <class Space, class T, ScoringProduct product>
struct ScoreTiles {
  static constexpr bool host = is_host<Space>, scores = product == ScoringProduct::Scores;
  static constexpr int threads = ScoringTuning::threads(sizeof(T)), rows = threads,
                       poses = ScoringTuning::poses, side = ScoringTuning::side, groups = poses / side,
                       chunk = ScoringTuning::chunk(sizeof(T)), depth = (scores ? 2 : 1) * chunk;
  static constexpr int scratch_level = host ? 1 : 0;
  using Complex = Kokkos::complex<T>;
  using Bounds = Kokkos::LaunchBounds<threads, resident_teams<Space>(ScoringTuning::resident)>;
  using Team = typename Kokkos::TeamPolicy<Space, Bounds>::member_type;

  struct alignas(16) Quad {
    T value[4];
  };
  struct Scratch {
    union {
      Quad row[depth][rows / 4];
      T keys[rows][groups]; ///< of one of the poses of every thread, when the sums are there
    };
    Quad pose[depth]
             [poses / 4 + 1]; ///< where threads write, eight frequencies side by side are in four banks
  };
  struct Sums {
    T value[side][side] = {}; ///< [row][pose]
  };
  /// Of every thread; on GPUs a variable is one for each thread, and this one is in its registers.
  struct AllSums {
    Sums sums[host ? threads : 1];
    KOKKOS_INLINE_FUNCTION Sums& operator[](int thread) { return sums[host ? thread : 0]; }
  };

  ProjectedPoses<T> projected;
  ScoringTables<T, true> tables;
  ScoringRows tile_rows; ///< Powers: of images without shifts
  ScoreOutputs<T> outputs;
  std::int64_t count; ///< of poses of the pass
  T* powers;          ///< [images|1, power_stride] written by Powers
  std::int64_t power_stride;
  bool one_power; ///< all images have the same filter

  void launch(const Space& space, const Label& label) const {
    const std::int64_t league = tile_rows.tiles() * ((count + poses - 1) / poses);
    Kokkos::TeamPolicy<Space, Bounds> policy(space, static_cast<int>(league), host ? 1 : threads, 1);
    policy.set_scratch_size(+scratch_level,
                            Kokkos::PerTeam(static_cast<int>(sizeof(Scratch) + alignof(Scratch))));
    Kokkos::parallel_for(label, policy, *this);
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& scratch = *static_cast<Scratch*>(
        team.team_scratch(+scratch_level).get_shmem_aligned(sizeof(Scratch), alignof(Scratch)));
    const std::int64_t tile = team.league_rank() % tile_rows.tiles(),
                       first = team.league_rank() / tile_rows.tiles() * poses;
    if (scores && outputs.skips(tile_rows.first_image(tile), tile_rows.images_of(tile), first,
                                Kokkos::min(std::int64_t(poses), count - first)))
      return;
    const int used = tile_rows.images_of(tile) * tile_rows.part_shifts;
    AllSums sums;
    for (std::int64_t begin = 0; begin < tables.padded; begin += chunk) {
      team.team_barrier();
      for_threads(team, [&](int thread) {
        form_row(tile, thread, begin, scratch);
        for (int i = thread; i < poses * chunk; i += threads)
          take_pose(first, i / chunk, i % chunk, begin, scratch);
      });
      team.team_barrier();
      for_threads(team, [&](int thread) {
        if (thread / groups * side < used)
          multiply(scratch, thread, sums[thread]);
      });
    }
    if constexpr (scores)
      store_scores(team, scratch, tile, first, sums);
    else
      for_threads(team, [&](int thread) {
        BRACEWELL_UNROLL_FOR (int r = 0; r < side; ++r)
          BRACEWELL_UNROLL_FOR (int c = 0; c < side; ++c) {
            const int row = thread / groups * side + r;
            const std::int64_t pose = first + pose_of(thread, c);
            if (row < used && pose < count)
              powers[(tile_rows.first_image(tile) + row) * power_stride + pose] = sums[thread].value[r][c];
          }
      });
  }

private:
  template <class Work>
  KOKKOS_INLINE_FUNCTION static void for_threads([[maybe_unused]] const Team& team, const Work& work) {
    if constexpr (host)
      for (int thread = 0; thread < threads; ++thread)
        work(thread);
    else
      work(static_cast<int>(team.team_rank()));
  }

  /// Eight threads side by side read 32 numbers of neighbouring poses at once.
  KOKKOS_INLINE_FUNCTION static int pose_of(int thread, int column) {
    return column / 4 * (poses / 2) + thread % groups * 4 + column % 4;
  }

  KOKKOS_INLINE_FUNCTION void form_row(std::int64_t tile, int row, std::int64_t begin,
                                       Scratch& scratch) const {
    const int within = row / tile_rows.part_shifts, shift = row % tile_rows.part_shifts;
    const bool there = within < tile_rows.images_of(tile) && shift < tile_rows.shifts_of(tile);
    const std::int64_t image = tile_rows.first_image(tile) + within;
    BRACEWELL_UNROLL_FOR (int f = 0; f < chunk; ++f) {
      if constexpr (scores) {
        const Complex value = there ? tables.images(image, begin + f) *
                                          tables.phases(tile_rows.first_shift(tile) + shift, begin + f)
                                    : Complex(0);
        scratch.row[2 * f][row / 4].value[row % 4] = value.real();
        scratch.row[2 * f + 1][row / 4].value[row % 4] = value.imag();
      } else {
        scratch.row[f][row / 4].value[row % 4] = there ? tables.filters(image, begin + f) : T(0);
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void take_pose(std::int64_t first, int index, int f, std::int64_t begin,
                                        Scratch& scratch) const {
    const Complex value = projected(Kokkos::min(first + index, count - 1), tables.frequencies[begin + f]);
    if constexpr (scores) {
      scratch.pose[2 * f][index / 4].value[index % 4] = value.real();
      scratch.pose[2 * f + 1][index / 4].value[index % 4] = value.imag();
    } else {
      scratch.pose[f][index / 4].value[index % 4] = value.real() * value.real() + value.imag() * value.imag();
    }
  }

  KOKKOS_INLINE_FUNCTION static void multiply(const Scratch& scratch, int thread, Sums& sums) {
    const int row = thread / groups * (side / 4), pose = thread % groups;
    BRACEWELL_UNROLL_FOR (int j = 0; j < depth; ++j) {
      const Quad a[2] = {scratch.row[j][row], scratch.row[j][row + 1]},
                 b[2] = {scratch.pose[j][pose], scratch.pose[j][pose + groups]};
      BRACEWELL_UNROLL_FOR (int r = 0; r < side; ++r)
        BRACEWELL_UNROLL_FOR (int c = 0; c < side; ++c)
          sums.value[r][c] += a[r / 4].value[r % 4] * b[c / 4].value[c % 4];
    }
  }

  KOKKOS_INLINE_FUNCTION void store_scores(const Team& team, Scratch& scratch, std::int64_t tile,
                                           std::int64_t first, AllSums& sums) const {
    const int part_shifts = tile_rows.part_shifts, shifts = tile_rows.shifts_of(tile),
              images = tile_rows.images_of(tile);
    const std::int64_t first_image = tile_rows.first_image(tile);
    BRACEWELL_UNROLL_FOR (int c = 0; c < side; ++c) {
      team.team_barrier();
      for_threads(team, [&](int thread) {
        const std::int64_t pose = first + pose_of(thread, c);
        BRACEWELL_UNROLL_FOR (int r = 0; r < side; ++r) {
          const int row = thread / groups * side + r, within = row / part_shifts,
                    shift = row - within * part_shifts;
          if (within >= images || shift >= shifts || pose >= count)
            continue;
          const std::int64_t image = first_image + within;
          const auto keys =
              outputs.rule.keys(powers[(one_power ? 0 : image) * power_stride + pose], tables.powers[image]);
          const T key = keys(sums[thread].value[r][c]);
          outputs.store(tile_rows, image, pose, tile_rows.first_shift(tile) + shift, key);
          scratch.keys[row][thread % groups] = key;
        }
      });
      team.team_barrier();
      if (!outputs.best)
        continue;
      for_threads(team, [&](int thread) {
        for (int pair = thread; pair < images * groups; pair += threads) {
          const int within = pair / groups, group = pair % groups;
          const std::int64_t pose = first + pose_of(group, c);
          if (pose >= count)
            continue;
          BestShift<T> best;
          for (int shift = 0; shift < shifts; ++shift)
            best.offer(scratch.keys[within * part_shifts + shift][group],
                       tile_rows.first_shift(tile) + shift);
          outputs.store(tile_rows, first_image + within, static_cast<int>(tile % tile_rows.parts), pose,
                        best);
        }
      });
    }
  }
};

} // namespace Bracewell::Impl
