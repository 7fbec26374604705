// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/project/detail/bricks.hpp>

namespace Bracewell::Impl {

/// A quick look at poses (3D -> 2D) whose positions all lie within the period, so that their samples reach
/// the brick itself but no image of it, and whose matrices are well conditioned.
template <class T, int M, int D>
struct PlainPoses {
  T centre[D], half[D]; ///< where samples are near
  T squared_distance;   ///< of that box from the origin
  T most[D];            ///< largest squared row norms of the matrix that keep positions within the period
  T squared_radius;     ///< of the samples, and a margin
  bool possible;

  /// Of the brick that begins at `first`; reach_width: of windows.
  KOKKOS_INLINE_FUNCTION PlainPoses(const Samples<T, M, D>& samples, const Bricks<D>& bricks,
                                    const int (&first)[D], const T (&centre_)[D], const T (&half_)[D],
                                    int reach_width)
      : squared_distance(0), squared_radius(samples.radius * samples.radius * Margin<T>::squared_length),
        possible(!samples.curved()) {
    for (int d = 0; d < D; ++d) {
      centre[d] = centre_[d];
      half[d] = half_[d];
      const T outside = Kokkos::max(T(0), Kokkos::abs(centre[d]) - half[d]);
      squared_distance += outside * outside;
      const int n = bricks.layout.size[d], reach = reach_width / 2;
      const T extent = T(Kokkos::min(n + first[d], n + 1 - first[d] - bricks.edge[d]) - reach);
      const T bound = Kokkos::min(extent, T(1.5) * T(n) - T(reach_width));
      most[d] = bound > 0 ? bound * bound / squared_radius : T(-1);
    }
  }

  /// Sets the bits of the poses among chunk ... chunk + count - 1 whose samples may lie near the brick;
  /// false where it cannot tell.
  template <class Team>
  KOKKOS_INLINE_FUNCTION bool survey(const Team& team, const Samples<T, M, D>& samples, std::int64_t chunk,
                                     int count, unsigned& near) const {
    if (M != 2 || D != 3 || !possible)
      return false;
    bool unclear = false;
    near = lane_bits(team, count, [&](int i) {
      std::int64_t batch, index;
      samples.split(chunk + i, batch, index);
      const T* const m = samples.matrices(batch, index);
      T a[D], b[D], aa = 0, bb = 0, ab = 0, nn = 0, distance = 0, allowed = 0;
      bool clear = true;
      for (int d = 0; d < D; ++d) {
        a[d] = samples.oversampling * m[std::int64_t(d) * D];
        b[d] = samples.oversampling * m[d * D + 1];
        clear = clear && a[d] * a[d] + b[d] * b[d] < most[d];
        aa += a[d] * a[d];
        bb += b[d] * b[d];
        ab += a[d] * b[d];
      }
      for (int d = 0; d < D; ++d) {
        const T normal = a[(d + 1) % D] * b[(d + 2) % D] - a[(d + 2) % D] * b[(d + 1) % D];
        nn += normal * normal;
        distance += normal * centre[d];
        allowed += Kokkos::abs(normal) * half[d];
      }
      clear = clear && nn > Margin<T>::plainly_conditioned * aa * bb;
      unclear = unclear || !clear;
      return Kokkos::abs(distance) <= Margin<T>::length * allowed &&
             squared_distance <= squared_radius * (Kokkos::max(aa, bb) + Kokkos::abs(ab));
    });
    return lane_bits(team, count, [&](int) { return unclear; }) == 0;
  }
};

/// Finds, on GPUs, the samples that lie near a brick of the reconstruction: the threads of a team (warps)
/// share the poses; the lanes of a thread find the poses whose samples pass near the brick, one pose per
/// lane, then, pose by pose, the rows of their samples that do, one row per lane.
/// signs: 1, it looks for samples or for their mates; 2, for both.
template <class T, int M, int D, int signs>
struct BrickSearch {
  using Candidate = BrickCandidate<T, M, D>;
  static constexpr int lanes = 32, images = D == 2 ? 9 : 27;
  /// Poses whose samples are looked for at a time (H200, 2026-11-21, bench/tune_projection).
  static constexpr int group = 8;

  /// Scratch of one thread.
  struct Workspace {
    Candidate candidates[signs * group];
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
  int lower, upper; ///< a sample at q is near when -lower <= q - first element < edge - 1 + upper

  /// Calls visit(Found) for all samples of poses begin ... end - 1 in fixed order, finish() after those of a
  /// few poses. sign: 1, samples; -1, their mates (not used for both).
  template <class Team, class Visit, class Finish>
  KOKKOS_INLINE_FUNCTION void for_each(const Team& team, Workspace& workspace, const int (&first)[D],
                                       std::int64_t begin, std::int64_t end, int sign, const Visit& visit,
                                       const Finish& finish) const {
    int listed = 0;
    T centre[D], half[D];
    middle(first, centre, half);
    const PlainPoses<T, M, D> plain(samples, bricks, first, centre, half, reach_width());
    const std::int64_t stride = std::int64_t(lanes) * team.team_size();
    for (std::int64_t chunk = begin + team.team_rank() * lanes; chunk < end; chunk += stride) {
      const int count = static_cast<int>(Kokkos::min<std::int64_t>(lanes, end - chunk));
      unsigned reached = 0; // images that any pose reaches
      int image = 0;
      do {
        unsigned near = 0;
        if (image > 0 || !plain.survey(team, samples, chunk, count, near))
          near = survey(team, chunk, count, image, first, reached);
        listed += list_poses(team, chunk, near, image, workspace.list + listed);
        image = next_image(image, reached);
        const bool last = image == 0 && chunk + stride >= end;
        while (listed >= group || (last && listed > 0)) {
          const int some = Kokkos::min(int(+group), listed);
          listed -= some;
          for_each_listed(team, workspace, workspace.list + listed, some, first, sign, visit);
          finish();
        }
      } while (image != 0);
    }
  }

private:
  template <class Team, class Visit>
  KOKKOS_INLINE_FUNCTION void for_each_listed(const Team& team, Workspace& workspace,
                                              const std::int64_t* list, int count, const int (&first)[D],
                                              int sign, const Visit& visit) const {
    // Written by one loop and read by another: lanes see each other's writes at the end of a parallel_for.
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, signs * count), [&](int i) {
      workspace.candidates[i] = make_candidate(list[i / signs], signs == 1 ? sign : 1 - 2 * (i % 2), first);
    });
    const unsigned reaching = // bits: candidates
        lane_bits(team, signs * count, [&](int i) { return !workspace.candidates[i].range.empty(); });
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

  KOKKOS_INLINE_FUNCTION int reach_width() const { return 2 * Kokkos::max(lower, upper); }

  /// Middle of a brick, and how far from it samples may lie to be near.
  KOKKOS_INLINE_FUNCTION void middle(const int (&origin)[D], T (&centre)[D], T (&half)[D]) const {
    for (int d = 0; d < D; ++d) {
      centre[d] = T(origin[d]) + T(bricks.edge[d] - 1 + upper - lower) / 2;
      half[d] = T(bricks.edge[d] - 1 + upper + lower) / 2;
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
          const Reach<T, M, D> reach(samples, samples.pose(batch, index), reach_width());
          bool near = reach.near_plane(centre, half);
          for (int d = 0; d < D; ++d)
            near = near && Kokkos::abs(centre[d]) <= reach.extent[d] + half[d] + 1;
          bits |= std::uint64_t(near) << i;
          int from[D], to[D];
          bricks.reached_images(reach.extent, first, last, reach_width(), from, to);
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
    const Reach<T, M, D> reach(samples, result.pose, reach_width());
    result.sign = sign;
    result.bounded = reach.bounded;
    corner(image, first, result.origin);
    T centre[D], half[D], inverse[M][D];
    middle(result.origin, centre, half);
    result.range = FrequencyRange<M>::all(samples);
    for (int d = 0; d < D; ++d) {
      centre[d] *= T(sign);
      const T margin = half[d] + reach.bulge[d] + Margin<T>::spacing + Margin<T>::sum * reach.extent[d];
      result.low[d] = centre[d] - margin;
      result.high[d] = centre[d] + margin;
      const T change = result.pose.matrix[d][0];
      result.step[d] = Kokkos::abs(change) > T(1e-30) ? 1 / change : T(1e30);
    }
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
      if (candidate.bounded)
        for (int d = 0; d < D; ++d) {
          T at = 0;
          for (int c = 1; c < M; ++c)
            at += candidate.pose.matrix[d][c] * T(row[c]);
          const T a = (candidate.low[d] - at) * candidate.step[d],
                  b = (candidate.high[d] - at) * candidate.step[d];
          low = Kokkos::max(low, Kokkos::min(a, b) - Margin<T>::spacing - Margin<T>::sum * Kokkos::abs(a));
          high = Kokkos::min(high, Kokkos::max(a, b) + Margin<T>::spacing + Margin<T>::sum * Kokkos::abs(b));
        }
      const bool some = row[1] <= range.high[1] && rest >= 0 && low <= high;
      const int column = static_cast<int>(Kokkos::ceil(low));
      workspace.row_column[i] = column;
      workspace.row_end[i] = some ? Kokkos::max(0, static_cast<int>(Kokkos::floor(high)) - column + 1) : 0;
    });
    return sum_lanes(team, workspace.row_end);
  }
};

} // namespace Bracewell::Impl
