// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/project/detail/bricks.hpp>

namespace Bracewell::Impl {

/// Finds, on GPUs, the samples, and the mates of samples, that lie near a brick of the reconstruction: the threads of a team (warps)
/// share the poses; the lanes of a thread find the poses whose samples pass near the brick, one pose per
/// lane, then, pose by pose, the rows of their samples that do, one row per lane.
template <class T, int M, int D>
struct BrickSearch {
  using Candidate = BrickCandidate<T, M, D>;
  static constexpr int lanes = 32, images = D == 2 ? 9 : 27;
  /// Poses whose samples are looked for at a time (H200, 2026-11-21, bench/tune_projection).
  static constexpr int group = 8;

  /// Scratch of one thread.
  struct Workspace {
    Candidate candidates[2 * group];
    std::int64_t list[lanes + group]; ///< poses (times `images`, plus image) near the brick's planes
    int row_end[lanes];               ///< samples in a row and those before it
    int row_column[lanes];            ///< first column
  };

  /// Samples found: those in up to 32 rows.
  struct Found {
    const Candidate& candidate;
    const Workspace& workspace;
    int first_row, layer, count;

    KOKKOS_INLINE_FUNCTION void frequency(int i, int (&k)[M]) const {
      int row = 0; // the first that ends beyond i
      for (int half = lanes / 2; half > 0; half /= 2)
        if (workspace.row_end[row + half - 1] <= i)
          row += half;
      k[M - 1] = candidate.range.low[M - 1] + layer;
      k[1] = candidate.range.low[1] + first_row + row;
      k[0] = workspace.row_column[row] + i - (row == 0 ? 0 : workspace.row_end[row - 1]);
    }
  };

  Samples<T, M, D> samples;
  Bricks<D> bricks;
  int width; ///< of windows; a sample at q is near when -width / 2 <= q - first element < edge - 1 + width / 2

  /// Calls visit(Found) for all samples of poses begin ... end - 1 in fixed order, finish() after those of a
  /// few poses.
  template <class Team, class Visit, class Finish>
  KOKKOS_INLINE_FUNCTION void for_each(const Team& team, Workspace& workspace, const int (&first)[D],
                                       std::int64_t begin, std::int64_t end, const Visit& visit,
                                       const Finish& finish) const {
    int listed = 0;
    const std::int64_t stride = std::int64_t(lanes) * team.team_size();
    for (std::int64_t chunk = begin + team.team_rank() * lanes; chunk < end; chunk += stride) {
      const int count = static_cast<int>(Kokkos::min<std::int64_t>(lanes, end - chunk));
      unsigned reached = 0; // images that any pose reaches
      int image = 0;
      do {
        const unsigned near = survey(team, chunk, count, image, first, reached);
        listed += list_poses(team, chunk, near, image, workspace.list + listed);
        image = next_image(image, reached);
        const bool last = image == 0 && chunk + stride >= end;
        while (listed >= group || (last && listed > 0)) {
          const int some = Kokkos::min(int(+group), listed);
          listed -= some;
          for_each_listed(team, workspace, workspace.list + listed, some, first, visit);
          finish();
        }
      } while (image != 0);
    }
  }

private:
  template <class Team, class Visit>
  KOKKOS_INLINE_FUNCTION void for_each_listed(const Team& team, Workspace& workspace,
                                              const std::int64_t* list, int count, const int (&first)[D],
                                              const Visit& visit) const {
    // Written by one loop and read by another: lanes see each other's writes at the end of a parallel_for.
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, 2 * count), [&](int i) {
      workspace.candidates[i] = make_candidate(list[i / 2], 1 - 2 * (i % 2), first);
    });
    const unsigned reaching = // bits: candidates
        lane_bits(team, 2 * count, [&](int i) { return !workspace.candidates[i].range.empty(); });
    for (int i = 0; reaching >> i != 0; ++i) {
      if ((reaching >> i & 1u) == 0)
        continue;
      const Candidate& candidate = workspace.candidates[i];
      const auto& range = candidate.range;
      const int rows = range.high[1] - range.low[1] + 1;
      const int layers = M == 3 ? range.high[M - 1] - range.low[M - 1] + 1 : 1;
      for (int layer = 0; layer < layers; ++layer)
        for (int row = 0; row < rows; row += lanes) {
          const int total = find_rows(team, workspace, candidate, row, layer);
          if (total > 0)
            visit(Found{candidate, workspace, row, layer, total});
        }
    }
  }

  /// Periodic images are numbered in base 3, a digit per axis: 0, 1, 2 for e = 0, 1, -1.
  KOKKOS_INLINE_FUNCTION static int next_image(int image, unsigned reached) {
    while (reached != 0 && image < images - 1) {
      int rest = ++image;
      bool possible = true;
      for (int d = 0; d < D; ++d) {
        possible = possible && (rest % 3 == 0 || (reached >> (2 * d + rest % 3 - 1) & 1u) != 0);
        rest /= 3;
      }
      if (possible)
        return image;
    }
    return 0;
  }

  /// Where the brick's first element lies, seen from the samples that reach it as an image.
  KOKKOS_INLINE_FUNCTION void corner(int image, const int (&first)[D], int (&origin)[D]) const {
    for (int d = 0; d < D; ++d) {
      const int n = bricks.layout.size[d], digit = image % 3;
      origin[d] = first[d] - (digit == 2 ? -n : digit * n);
      image /= 3;
    }
  }

  /// Middle of a brick, and how far from it samples may lie to be near.
  KOKKOS_INLINE_FUNCTION void middle(const int (&origin)[D], T (&centre)[D], T (&half)[D]) const {
    for (int d = 0; d < D; ++d) {
      centre[d] = T(origin[d]) + T(bricks.edge[d] - 1) / 2;
      half[d] = T(bricks.edge[d] - 1 + width) / 2;
    }
  }

  /// Bit i: the samples of pose chunk + i may lie near an image of the brick. Bits 2 d and 2 d + 1 of
  /// `reached`: images 1 and -1 on axis d may be reached by any of the poses.
  template <class Team>
  KOKKOS_INLINE_FUNCTION unsigned survey(const Team& team, std::int64_t chunk, int count, int image,
                                         const int (&first)[D], unsigned& reached) const {
    int origin[D], last[D];
    T centre[D], half[D];
    corner(image, first, origin);
    middle(origin, centre, half);
    for (int d = 0; d < D; ++d)
      last[d] = first[d] + bricks.edge[d] - 1;
    std::uint64_t all = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, count),
        [&](int i, std::uint64_t& bits) {
          std::int64_t batch, index;
          samples.split(chunk + i, batch, index);
          const Reach<T, M, D> reach(samples, samples.pose(batch, index), width);
          bool near = reach.near_plane(centre, half);
          for (int d = 0; d < D; ++d)
            near = near && Kokkos::abs(centre[d]) <= reach.extent[d] + half[d] + 1;
          bits |= std::uint64_t(near) << i;
          int from[D], to[D];
          bricks.reached_images(reach.extent, first, last, width, from, to);
          for (int d = 0; d < D; ++d)
            bits |= std::uint64_t(to[d] - 2 * from[d]) << (lanes + 2 * d);
        },
        Kokkos::BOr<std::uint64_t>(all));
    reached = static_cast<unsigned>(all >> lanes);
    return static_cast<unsigned>(all);
  }

  /// Writes the poses whose bits are set, and the image, to a list; returns their number.
  template <class Team>
  KOKKOS_INLINE_FUNCTION static int list_poses(const Team& team, std::int64_t chunk, unsigned near, int image,
                                               std::int64_t* list) {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)), [&](int i) {
      if (near >> i & 1u)
        list[Kokkos::Experimental::popcount_builtin(near & ((1u << i) - 1))] = (chunk + i) * images + image;
    });
    return Kokkos::Experimental::popcount_builtin(near);
  }

  KOKKOS_INLINE_FUNCTION Candidate make_candidate(std::int64_t listed, int sign,
                                                  const int (&first)[D]) const {
    Candidate result;
    const std::int64_t flat = listed / images;
    const int image = static_cast<int>(listed - flat * images);
    samples.split(flat, result.batch, result.index);
    result.pose = samples.pose(result.batch, result.index);
    const Reach<T, M, D> reach(samples, result.pose, width);
    result.sign = sign;
    result.bounded = reach.bounded;
    corner(image, first, result.origin);
    T centre[D], half[D], inverse[M][D];
    middle(result.origin, centre, half);
    result.range = FrequencyRange<M>::all(samples);
    for (T& middle_of_axis : centre)
      middle_of_axis *= T(sign);
    result.bound(reach, centre, half);
    if (reach.bounded) {
      reach.invert(result.pose.matrix, inverse);
      result.range.narrow(reach, inverse, centre, half);
    }
    return result;
  }

  /// Finds, for 32 rows of a layer of the candidate's range, the columns whose samples may reach the brick;
  /// returns the number of samples.
  template <class Team>
  KOKKOS_INLINE_FUNCTION int find_rows(const Team& team, Workspace& workspace, const Candidate& candidate,
                                       int first_row, int layer) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)), [&](int i) {
      const auto& range = candidate.range;
      int row[M];
      row[M - 1] = range.low[M - 1] + layer;
      row[1] = range.low[1] + first_row + i;
      int rest = samples.squared_radius;
      for (int c = 1; c < M; ++c)
        rest -= row[c] * row[c];
      T low = T(range.low[0]), high = Kokkos::min(T(range.high[0]), Kokkos::sqrt(T(rest)) + Margin<T>::root);
      candidate.narrow_columns(row, low, high);
      const bool some = row[1] <= range.high[1] && rest >= 0 && low <= high;
      const int column = static_cast<int>(Kokkos::ceil(low));
      workspace.row_column[i] = column;
      workspace.row_end[i] = some ? Kokkos::max(0, static_cast<int>(Kokkos::floor(high)) - column + 1) : 0;
    });
    return sum_lanes(team, workspace.row_end);
  }
};

} // namespace Bracewell::Impl
