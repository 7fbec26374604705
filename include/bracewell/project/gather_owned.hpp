// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/bricks.hpp>

namespace Bracewell::Impl {

/// Strategy::Owned on GPUs. A team owns a brick of the stored half spectrum, and every lane of its threads
/// (warps) keeps a column of eight elements of the brick in registers. The threads share the poses. The lanes
/// of a thread find the poses whose samples reach the brick, one pose per lane; then, pose by pose, the
/// samples that do, one row of them per lane; and write the samples' separable weights, laid out by the
/// brick's elements, into a queue, one sample per lane. Then all lanes go through the queue and add every
/// sample to their elements. The sums of the threads are added in fixed order at the end.
template <class Space, class Kernel, class T, int M, int D, Mates mates>
struct GatherOwned {
  static constexpr int width = Kernel::width;
  static constexpr int lanes = 32, lanes_x = 8, lanes_y = 4, slots = 8; ///< a lane owns `slots` elements
  static constexpr int team_size = sizeof(T) == 4 ? 4 : 2;              ///< as many as scratch holds
  static constexpr int queue_length = D == 3 ? 48 : 36, images = 27;
  static constexpr int group = 8; ///< poses whose samples are looked for at a time
  static constexpr int scratch_level = 0;
  using Bounds = Kokkos::LaunchBounds<team_size * lanes, 5>;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  struct alignas(4 * sizeof(T)) Quad {
    T value[4];
  };

  /// Weights of one sample for the elements of the brick, zero where its window does not reach. The last axis
  /// runs along the slots; in 2D along the slots of four lanes.
  struct Sample {
    Quad amplitude; ///< real part, imaginary part, weight; 0, 1, 2: reaches the first, both, the last quad
    Quad along[D == 3 ? slots / 4 : lanes_y * slots / 4];
    T across_x[lanes_x];
    T across_y[lanes_y]; ///< 3D alone
  };

  /// A pose, or (sign < 0) the mates of its samples, near one periodic image of the brick.
  struct Candidate {
    Pose<T, M, D> pose;
    std::int64_t batch, index;
    int sign;
    int origin[D];           ///< position of the brick's first element
    T low[D], high[D];       ///< bounds of the positions (of pose, not of the mates) that reach the brick
    T step[D];               ///< reciprocal of the change of position from column to column
    FrequencyRange<M> range; ///< of the samples that may reach the brick
    bool bounded;
  };

  /// Scratch of one thread.
  struct Workspace {
    Sample queue[queue_length];
    Candidate candidates[2 * group];
    std::int64_t list[lanes + group]; ///< poses (times `images`, plus image) near the brick's planes
    int row_end[lanes];               ///< samples in this and the rows before
    int row_column[lanes];            ///< first column
  };
  struct Sums {
    T real[slots] = {}, imaginary[slots] = {}, weight[slots] = {};
  };

  Amplitudes<T, M, D, mates> amplitudes;
  ScatterTarget<T> target;
  Bricks<D> bricks;

  GatherOwned(const Amplitudes<T, M, D, mates>& amplitudes_, const ScatterTarget<T>& target_)
      : amplitudes(amplitudes_), target(target_), bricks{amplitudes_.samples.reconstruction, {}} {
    bricks.edge[0] = lanes_x;
    bricks.edge[1] = D == 3 ? lanes_y : lanes_y * slots;
    if constexpr (D == 3)
      bricks.edge[2] = slots;
  }

  static std::size_t scratch_bytes() { return team_size * sizeof(Workspace) + alignof(Workspace); }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto& samples = amplitudes.samples;
    auto* const workspaces =
        static_cast<Workspace*>(team.team_scratch(+scratch_level)
                                    .get_shmem_aligned(team_size * sizeof(Workspace), alignof(Workspace)));
    Workspace& workspace = workspaces[team.team_rank()];
    const std::int64_t volume = team.league_rank() / bricks.count();
    int first[D];
    bricks.first(static_cast<int>(team.league_rank() % bricks.count()), first);
    const bool shared = target.batches == 1;
    const std::int64_t begin = shared ? 0 : volume * samples.poses;
    const std::int64_t end = shared ? samples.batches * samples.poses : begin + samples.poses;

    Sums sums;
    int listed = 0;
    bool touched = false;
    for (std::int64_t chunk = begin + team.team_rank() * lanes; chunk < end; chunk += team_size * lanes) {
      const int count = static_cast<int>(Kokkos::min<std::int64_t>(lanes, end - chunk));
      unsigned reached = 0; // images that any pose reaches
      int image = 0;
      do {
        const unsigned near = survey(team, chunk, count, image, first, reached);
        listed += list_poses(team, chunk, near, image, workspace.list + listed);
        image = next_image(image, reached);
        const bool last = image == 0 && chunk + team_size * lanes >= end;
        while (listed >= group || (last && listed > 0)) {
          const int some = Kokkos::min(int(+group), listed);
          listed -= some;
          touched = add_poses(team, workspace, workspace.list + listed, some, first, sums) || touched;
        }
      } while (image != 0);
    }
    add_threads(team, workspaces, sums, touched);
    if (touched && team.team_rank() == 0)
      store(team, volume, first, sums);
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

  /// Middle of a brick, and how far from it samples may lie to reach it.
  KOKKOS_INLINE_FUNCTION void middle(const int (&origin)[D], T (&centre)[D], T (&half)[D]) const {
    for (int d = 0; d < D; ++d) {
      centre[d] = T(origin[d]) + T(bricks.edge[d] - 1) / 2;
      half[d] = T(bricks.edge[d] - 1 + width) / 2;
    }
  }

  /// Bit i: the samples of pose chunk + i may lie near an image of the brick. Bits 2 d and 2 d + 1 of
  /// `reached`: images 1 and -1 on axis d may be reached by any of the poses.
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
          const auto& samples = amplitudes.samples;
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
  KOKKOS_INLINE_FUNCTION static int list_poses(const Team& team, std::int64_t chunk, unsigned near, int image,
                                               std::int64_t* list) {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)), [&](int i) {
      if (near >> i & 1u)
        list[Kokkos::Experimental::popcount_builtin(near & ((1u << i) - 1))] = (chunk + i) * images + image;
    });
    return Kokkos::Experimental::popcount_builtin(near);
  }

  /// Adds the samples of `count` listed poses: into the queue, and from it, whenever it is full, to the sums.
  /// Returns whether there were any.
  KOKKOS_INLINE_FUNCTION bool add_poses(const Team& team, Workspace& workspace, const std::int64_t* list,
                                        int count, const int (&first)[D], Sums& sums) const {
    // Written by one loop and read by another: lanes see each other's writes at the end of a parallel_for.
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, 2 * count), [&](int i) {
      workspace.candidates[i] = make_candidate(list[i / 2], i % 2 ? -1 : 1, first);
    });
    unsigned reaching = 0; // bit i: candidate i, of pose i / 2
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, 2 * count),
        [&](int i, unsigned& bits) { bits |= unsigned(!workspace.candidates[i].range.empty()) << i; },
        Kokkos::BOr<unsigned>(reaching));
    const bool any = reaching != 0;
    int current = -1;                             // candidate
    int row = 0, rows = 0, layer = 0, layers = 0; // 32 rows of one layer at a time
    int sample = 0, in_rows = 0, queued = 0;
    while (true) {
      while (sample == in_rows && (row < rows || reaching >> (current + 1) != 0)) {
        if (row >= rows && ++layer < layers)
          row = 0;
        if (row >= rows) {
          do
            ++current;
          while ((reaching >> current & 1u) == 0);
          const auto& range = workspace.candidates[current].range;
          rows = range.high[1] - range.low[1] + 1;
          layers = M == 3 ? range.high[M - 1] - range.low[M - 1] + 1 : 1;
          row = layer = 0;
        }
        sample = 0;
        in_rows = find_rows(team, workspace, workspace.candidates[current], row, layer);
        row += lanes;
      }
      const int some = Kokkos::min(int(+lanes), in_rows - sample);
      if (some == 0 || queued + some > queue_length) {
        add_samples(team, workspace, queued, sums);
        queued = 0;
      }
      if (some == 0)
        return any;
      enqueue(team, workspace, workspace.candidates[current], row - lanes, layer, sample, some, first[0],
              queued);
      queued += some;
      sample += some;
    }
  }

  KOKKOS_INLINE_FUNCTION Candidate make_candidate(std::int64_t listed, int sign,
                                                  const int (&first)[D]) const {
    const auto& samples = amplitudes.samples;
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
    for (int d = 0; d < D; ++d) {
      centre[d] *= T(sign);
      const T margin = half[d] + reach.bulge[d] + T(1e-3) + T(1e-6) * reach.extent[d];
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
  KOKKOS_INLINE_FUNCTION int find_rows(const Team& team, Workspace& workspace, const Candidate& candidate,
                                       int first_row, int layer) const {
    int own = 0, end = 0, total = 0; // of the lane's row; with the rows before; of all rows
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)), [&](int i) {
      const auto& range = candidate.range;
      int row[M];
      row[M - 1] = range.low[M - 1] + layer;
      row[1] = range.low[1] + first_row + i;
      int rest = amplitudes.samples.squared_radius;
      for (int c = 1; c < M; ++c)
        rest -= row[c] * row[c];
      T low = T(range.low[0]), high = Kokkos::min(T(range.high[0]), Kokkos::sqrt(T(rest)) + T(1e-2));
      if (candidate.bounded)
        for (int d = 0; d < D; ++d) {
          T at = 0;
          for (int c = 1; c < M; ++c)
            at += candidate.pose.matrix[d][c] * T(row[c]);
          const T a = (candidate.low[d] - at) * candidate.step[d],
                  b = (candidate.high[d] - at) * candidate.step[d];
          low = Kokkos::max(low, Kokkos::min(a, b) - T(1e-3) - T(1e-6) * Kokkos::abs(a));
          high = Kokkos::min(high, Kokkos::max(a, b) + T(1e-3) + T(1e-6) * Kokkos::abs(b));
        }
      const bool some = row[1] <= range.high[1] && rest >= 0 && low <= high;
      const int column = static_cast<int>(Kokkos::ceil(low));
      workspace.row_column[i] = column;
      own = some ? Kokkos::max(0, static_cast<int>(Kokkos::floor(high)) - column + 1) : 0;
    });
    Kokkos::parallel_scan(
        Kokkos::ThreadVectorRange(team, int(+lanes)),
        [&](int, int& sum, bool) {
          sum += own;
          end = sum;
        },
        total);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)),
                         [&](int i) { workspace.row_end[i] = end; });
    return total;
  }

  /// Writes `count` samples of the rows found, from number `start` on, into the queue.
  KOKKOS_INLINE_FUNCTION void enqueue(const Team& team, Workspace& workspace, const Candidate& candidate,
                                      int first_row, int layer, int start, int count, int first_column,
                                      int queued) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, count), [&](int i) {
      const auto& samples = amplitudes.samples;
      const int number = start + i;
      int row = 0; // the first that ends beyond `number`
      for (int half = lanes / 2; half > 0; half /= 2)
        if (workspace.row_end[row + half - 1] <= number)
          row += half;
      int k[M];
      k[M - 1] = candidate.range.low[M - 1] + layer;
      k[1] = candidate.range.low[1] + first_row + row;
      k[0] = workspace.row_column[row] + number - (row == 0 ? 0 : workspace.row_end[row - 1]);

      T q[D];
      candidate.pose.position(k, q);
      bool near = samples.inside(k);
      for (int d = 0; d < D; ++d) {
        const T n = static_cast<T>(samples.reconstruction.size[d]);
        if (!candidate.bounded)
          q[d] -= n * Kokkos::floor(q[d] / n + T(0.5));
        q[d] = T(candidate.sign) * q[d] - T(candidate.origin[d]); // from the brick's first element
        near = near && q[d] > -T(width / 2) && q[d] < T(bricks.edge[d] - 1 + width / 2);
      }
      Sample& sample = workspace.queue[queued + i];
      Sample clear = {};
      if (near) {
        const std::int64_t element = samples.projection.row(k) + k[0];
        const Kokkos::complex<T> value =
            amplitudes.value(candidate.batch, candidate.index, element, k, samples.phase(candidate.pose, k));
        const int tap = static_cast<int>(Kokkos::floor(q[D - 1])) - (width / 2 - 1);
        const T quads = tap >= 4 ? T(2) : (tap + width > 4 ? T(1) : T(0));
        clear.amplitude = {{value.real(), T(candidate.sign) * value.imag(), T(0), quads}};
        if (target.weight)
          clear.amplitude.value[2] = amplitudes.weight(candidate.batch, candidate.index, element, k);
      }
      sample = clear;
      if (near)
        write_weights(q, candidate.sign, first_column, sample);
    });
  }

  KOKKOS_INLINE_FUNCTION void write_weights(const T (&q)[D], int sign, int first_column,
                                            Sample& sample) const {
    for (int d = 0; d < D; ++d) {
      T* const weights = d == D - 1 ? sample.along[0].value : (d == 0 ? sample.across_x : sample.across_y);
      const T lower = Kokkos::floor(q[d]);
      const int tap = static_cast<int>(lower) - (width / 2 - 1);
      T weight[width];
      Kernel::weights(q[d] - lower, weight);
      for (int i = 0; i < width; ++i) {
        const bool left_out =
            mates == Mates::Single && d == 0 && sign < 0 && bricks.layout.self_mated(first_column + tap + i);
        if (tap + i >= 0 && tap + i < bricks.edge[d] && !left_out)
          weights[tap + i] = weight[i];
      }
    }
  }

  /// Adds the samples of the queue to the elements of every lane.
  KOKKOS_INLINE_FUNCTION void add_samples(const Team& team, const Workspace& workspace, int count,
                                          Sums& sums) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)), [&](int lane) {
      const int x = lane % lanes_x, y = lane / lanes_x;
      for (int i = 0; i < count; ++i) {
        const Sample& sample = workspace.queue[i];
        const Quad amplitude = sample.amplitude;
        T across = sample.across_x[x];
        if constexpr (D == 3)
          across *= sample.across_y[y];
        const T real = across * amplitude.value[0], imaginary = across * amplitude.value[1];
        const T weight = (target.absolute ? Kokkos::abs(across) : across) * amplitude.value[2];
        for (int q = 0; q < slots / 4; ++q) {
          if (D == 3 && (q == 0 ? amplitude.value[3] > T(1.5) : amplitude.value[3] < T(0.5)))
            continue; // nothing in this quad
          const Quad along = sample.along[D == 3 ? q : y * (slots / 4) + q];
          for (int s = 0; s < 4; ++s) {
            sums.real[4 * q + s] += along.value[s] * real;
            sums.imaginary[4 * q + s] += along.value[s] * imaginary;
          }
          if constexpr (mates == Mates::Both) {
            if (target.absolute)
              for (int s = 0; s < 4; ++s)
                sums.weight[4 * q + s] += Kokkos::abs(along.value[s]) * weight;
            else
              for (int s = 0; s < 4; ++s)
                sums.weight[4 * q + s] += along.value[s] * weight;
          }
        }
      }
    });
  }

  /// Adds the sums of all threads to those of the first.
  KOKKOS_INLINE_FUNCTION void add_threads(const Team& team, Workspace* workspaces, Sums& sums,
                                          bool& touched) const {
    static_assert(sizeof(Workspace) >= lanes * sizeof(Sums) + sizeof(bool));
    team.team_barrier();
    auto* const all = reinterpret_cast<Sums*>(workspaces + team.team_rank());
    auto* const any = reinterpret_cast<bool*>(all + lanes);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)), [&](int lane) { all[lane] = sums; });
    Kokkos::single(Kokkos::PerThread(team), [&]() { *any = touched; });
    team.team_barrier();
    if (team.team_rank() != 0)
      return;
    for (int thread = 1; thread < team_size; ++thread) {
      const auto* const other = reinterpret_cast<const Sums*>(workspaces + thread);
      touched = touched || *reinterpret_cast<const bool*>(other + lanes);
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)), [&](int lane) {
        for (int s = 0; s < slots; ++s) {
          sums.real[s] += other[lane].real[s];
          sums.imaginary[s] += other[lane].imaginary[s];
          sums.weight[s] += other[lane].weight[s];
        }
      });
    }
  }

  KOKKOS_INLINE_FUNCTION void store(const Team& team, std::int64_t volume, const int (&first)[D],
                                    const Sums& sums) const {
    const auto& layout = bricks.layout;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)), [&](int lane) {
      for (int s = 0; s < slots; ++s) {
        int voxel[D];
        voxel[0] = first[0] + lane % lanes_x;
        voxel[1] = first[1] + (D == 3 ? lane / lanes_x : lane / lanes_x * slots + s);
        if constexpr (D == 3)
          voxel[2] = first[2] + s;
        bool stored = true;
        for (int d = 0; d < D; ++d)
          stored = stored && voxel[d] <= layout.size[d] / 2;
        if (!stored)
          continue;
        const std::int64_t i = volume * target.batch_stride + layout.row(voxel) + voxel[0];
        target.data[i] += Kokkos::complex<T>(sums.real[s], sums.imaginary[s]);
        if (target.weight)
          target.weight[i] += sums.weight[s];
      }
    });
  }
};

} // namespace Bracewell::Impl
