// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/tiles.hpp>
#include <bracewell/project/scatter_samples.hpp>

namespace Bracewell::Impl {

/// Edge of the bricks: large enough that few windows are cut by a face, small enough that a GPU's scratch
/// holds many.
template <int D, class Space>
inline constexpr int brick_edge = D == 2 ? 32 : (is_host<Space> ? 16 : 8);

/// Strategy::Owned: every team owns a brick of the stored half spectrum, finds the samples whose windows
/// reach it, in fixed order, and adds their taps in scratch memory; the lanes of a team share the taps of one
/// sample. No atomics: results are the same bits for every run and number of threads.
///
/// A sample at q, and its mate at -q, reach a brick with each of their periodic images q + N e. Which samples
/// do is bounded by the pseudo-inverse of the pose's matrix; where that is ill-conditioned, or positions lie
/// far outside the grid, all samples are tried.
template <class Space, class Kernel, class T, int M, int D, Mates mates>
struct ScatterOwned {
  static constexpr int width = Kernel::width, lanes = 32, edge = brick_edge<D, Space>;
  static constexpr int scratch_level = is_host<Space> ? 1 : 0; ///< Kokkos keeps level 0 of hosts below 32 KB
  static constexpr int taps = D == 2 ? width * width : width * width * width;
  static constexpr int voxels = D == 2 ? edge * edge : edge * edge * edge;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;
  using Scratch = typename Space::scratch_memory_space;

  Amplitudes<T, M, D, mates> amplitudes;
  ScatterTarget<T> target;

  /// A sample whose window reaches the brick.
  struct Staged {
    Kokkos::complex<T> value;
    T weight;
    bool mate;
    int first[D]; ///< lowest tap, counted from the brick's first voxel
    T factor[D][width];
  };

  template <class Value>
  using Buffer = Kokkos::View<Value*, Scratch, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  static std::size_t scratch_bytes() {
    return Buffer<T>::shmem_size(3 * voxels) + Buffer<Staged>::shmem_size(lanes) +
           Buffer<int>::shmem_size(lanes);
  }

  struct Brick {
    int first[D]; ///< lowest frequency on each axis
    T* sums;      ///< real parts, imaginary parts, weights
    Staged* staged;
    int* listed;
  };

  /// Integer range of projection frequencies per axis.
  struct Range {
    int low[M], high[M];
    KOKKOS_FUNCTION std::int64_t count() const {
      std::int64_t product = 1;
      for (int c = 0; c < M; ++c)
        product *= high[c] < low[c] ? 0 : high[c] - low[c] + 1;
      return product;
    }
  };

  /// What a pose's matrix says about where its samples lie.
  struct Reach {
    T inverse[M][D]; ///< pseudo-inverse of oversampling times matrix
    T normal[D];     ///< of the plane of samples (3D -> 2D)
    T extent[D];     ///< largest |q| on each axis
    bool bounded;    ///< the pseudo-inverse is sound and every image that matters has |e| <= 1
  };

  KOKKOS_FUNCTION int bricks_along(int d) const {
    const auto& layout = amplitudes.samples.reconstruction;
    return ((d == 0 ? layout.columns() : layout.size[d]) + edge - 1) / edge;
  }
  KOKKOS_FUNCTION int bricks() const {
    int product = 1;
    for (int d = 0; d < D; ++d)
      product *= bricks_along(d);
    return product;
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto& samples = amplitudes.samples;
    Brick brick;
    const Buffer<T> sums(team.team_scratch(+scratch_level), 3 * voxels);
    const Buffer<Staged> staged(team.team_scratch(+scratch_level), lanes);
    const Buffer<int> listed(team.team_scratch(+scratch_level), lanes);
    brick.sums = sums.data();
    brick.staged = staged.data();
    brick.listed = listed.data();
    const std::int64_t volume = team.league_rank() / bricks();
    int rest = team.league_rank() % bricks();
    for (int d = 0; d < D; ++d) {
      brick.first[d] =
          rest % bricks_along(d) * edge - (d == 0 ? 0 : (samples.reconstruction.size[d] - 1) / 2);
      rest /= bricks_along(d);
    }
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, 3 * voxels), [&](int i) { brick.sums[i] = 0; });
    team.team_barrier();
    const bool shared = target.batches == 1;
    const std::int64_t begin = shared ? 0 : volume * samples.poses;
    const std::int64_t end = shared ? samples.batches * samples.poses : begin + samples.poses;
    for (std::int64_t chunk = begin; chunk < end; chunk += lanes) {
      const int count = compact(
          team, end - chunk < lanes ? int(end - chunk) : lanes,
          [&](int i) { return pose_reaches(chunk + i, brick); },
          [&](int i, int slot) { brick.listed[slot] = i; });
      for (int i = 0; i < count; ++i)
        add_pose(team, chunk + brick.listed[i], brick);
      team.team_barrier();
    }
    store(team, volume, brick);
  }

  /// Calls keep(i, slot) for the i < count that pass, slots in order; returns their number.
  template <class Test, class Keep>
  KOKKOS_FUNCTION int compact(const Team& team, int count, const Test& test, const Keep& keep) const {
    int kept = 0;
    Kokkos::parallel_scan(
        Kokkos::ThreadVectorRange(team, count),
        [&](int i, int& slot, bool final) {
          const bool passes = test(i);
          if (final && passes)
            keep(i, slot);
          slot += passes;
        },
        kept);
    team.team_barrier();
    return kept;
  }

  KOKKOS_FUNCTION Reach reach(const Pose<T, M, D>& pose) const {
    const auto& samples = amplitudes.samples;
    Reach result;
    T a[D][M], gram[M][M], adjugate[M][M];
    const T radius = Kokkos::sqrt(static_cast<T>(samples.squared_radius));
    result.bounded = true;
    for (int d = 0; d < D; ++d) {
      T row = 0;
      for (int c = 0; c < M; ++c) {
        a[d][c] = samples.oversampling * pose.matrix[d][c];
        row += a[d][c] * a[d][c];
      }
      result.extent[d] = radius * Kokkos::sqrt(row) * T(1.001);
      result.bounded =
          result.bounded && 2 * (result.extent[d] + width) <= 3 * T(samples.reconstruction.size[d]);
    }
    for (int c = 0; c < M; ++c)
      for (int e = 0; e < M; ++e) {
        gram[c][e] = 0;
        for (int d = 0; d < D; ++d)
          gram[c][e] += a[d][c] * a[d][e];
      }
    T determinant, scale = 1;
    for (int c = 0; c < M; ++c)
      scale *= gram[c][c];
    if constexpr (M == 2) {
      adjugate[0][0] = gram[1][1];
      adjugate[1][1] = gram[0][0];
      adjugate[0][1] = adjugate[1][0] = -gram[0][1];
      determinant = gram[0][0] * gram[1][1] - gram[0][1] * gram[1][0];
    } else {
      for (int c = 0; c < M; ++c)
        for (int e = 0; e < M; ++e)
          adjugate[c][e] = gram[(c + 1) % 3][(e + 1) % 3] * gram[(c + 2) % 3][(e + 2) % 3] -
                           gram[(c + 1) % 3][(e + 2) % 3] * gram[(c + 2) % 3][(e + 1) % 3];
      determinant = gram[0][0] * adjugate[0][0] + gram[0][1] * adjugate[0][1] + gram[0][2] * adjugate[0][2];
    }
    result.bounded = result.bounded && determinant > T(1e-3) * scale;
    for (int c = 0; c < M; ++c)
      for (int d = 0; d < D; ++d) {
        result.inverse[c][d] = 0;
        for (int e = 0; e < M; ++e)
          result.inverse[c][d] += adjugate[c][e] * a[d][e] / determinant;
      }
    for (int d = 0; d < D; ++d) {
      if constexpr (M == 2 && D == 3)
        result.normal[d] = a[(d + 1) % 3][0] * a[(d + 2) % 3][1] - a[(d + 2) % 3][0] * a[(d + 1) % 3][1];
      else
        result.normal[d] = 0;
    }
    return result;
  }

  /// The samples of a pose that may reach the brick with sign `sign` and image `image`.
  KOKKOS_FUNCTION Range candidates(const Reach& reach, const Brick& brick, int sign,
                                   const int (&image)[D]) const {
    const auto& samples = amplitudes.samples;
    const int radius = static_cast<int>(Kokkos::sqrt(static_cast<double>(samples.squared_radius)));
    Range range;
    for (int c = 0; c < M; ++c) {
      const int n = samples.projection.size[c];
      range.low[c] = c == 0 ? 0 : Kokkos::max(-((n - 1) / 2), -radius);
      range.high[c] = Kokkos::min(n / 2, radius);
    }
    if (!reach.bounded)
      return range;
    const T half = T(edge - 1) / 2 + T(width) / 2;
    T centre[D], distance = 0, allowed = 0;
    for (int d = 0; d < D; ++d) {
      centre[d] = T(brick.first[d] - image[d] * samples.reconstruction.size[d]) + T(edge - 1) / 2;
      distance += reach.normal[d] * centre[d];
      allowed += Kokkos::abs(reach.normal[d]) * half;
    }
    if (Kokkos::abs(distance) > T(1.001) * allowed) {
      range.high[0] = range.low[0] - 1;
      return range;
    }
    for (int c = 0; c < M; ++c) {
      T middle = 0, spread = 0;
      for (int d = 0; d < D; ++d) {
        middle += T(sign) * reach.inverse[c][d] * centre[d];
        spread += Kokkos::abs(reach.inverse[c][d]) * half;
      }
      const T margin = T(1e-4) * (Kokkos::abs(middle) + spread) + T(1e-3);
      const T low = Kokkos::ceil(middle - spread - margin), high = Kokkos::floor(middle + spread + margin);
      if (low > T(range.low[c]))
        range.low[c] = static_cast<int>(Kokkos::min(low, T(range.high[c] + 1)));
      if (high < T(range.high[c]))
        range.high[c] = static_cast<int>(Kokkos::max(high, T(range.low[c] - 1)));
    }
    return range;
  }

  /// Calls visit(sign, image) for the mates and periodic images that may reach the brick.
  template <class Visit>
  KOKKOS_FUNCTION void for_each_image(const Reach& reach, const Brick& brick, const Visit& visit) const {
    const auto& layout = amplitudes.samples.reconstruction;
    int low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
    for (int d = 0; d < D; ++d) {
      const int n = layout.size[d];
      const T extent = reach.bounded ? reach.extent[d] : T(n) / 2;
      low[d] = T(brick.first[d] - width / 2 + n) <= extent ? -1 : 0;
      high[d] = T(brick.first[d] + edge - 1 + width / 2 - n) >= -extent ? 1 : 0;
    }
    int image[3];
    for (image[2] = low[2]; image[2] <= high[2]; ++image[2])
      for (image[1] = low[1]; image[1] <= high[1]; ++image[1])
        for (image[0] = low[0]; image[0] <= high[0]; ++image[0]) {
          int own[D];
          for (int d = 0; d < D; ++d)
            own[d] = image[d];
          for (int sign = 1; sign >= -1; sign -= 2)
            visit(sign, own);
        }
  }

  KOKKOS_FUNCTION bool pose_reaches(std::int64_t flat, const Brick& brick) const {
    const auto& samples = amplitudes.samples;
    const Reach bounds = reach(samples.pose(flat / samples.poses, flat % samples.poses));
    bool any = false;
    for_each_image(bounds, brick, [&](int sign, const int(&image)[D]) {
      any = any || candidates(bounds, brick, sign, image).count() > 0;
    });
    return any;
  }

  KOKKOS_FUNCTION void add_pose(const Team& team, std::int64_t flat, const Brick& brick) const {
    const auto& samples = amplitudes.samples;
    const std::int64_t batch = flat / samples.poses, index = flat % samples.poses;
    const auto pose = samples.pose(batch, index);
    const Reach bounds = reach(pose);
    for_each_image(bounds, brick, [&](int sign, const int(&image)[D]) {
      const Range range = candidates(bounds, brick, sign, image);
      const std::int64_t count = range.count();
      for (std::int64_t begin = 0; begin < count; begin += lanes) {
        const int kept = compact(
            team, count - begin < lanes ? int(count - begin) : lanes,
            [&](int i) {
              int k[M];
              Staged staged;
              return place(range, begin + i, pose, bounds, sign, image, brick, k, staged);
            },
            [&](int i, int slot) {
              int k[M];
              Staged& staged = brick.staged[slot];
              place(range, begin + i, pose, bounds, sign, image, brick, k, staged);
              std::int64_t element = 0;
              for (int c = M - 1; c > 0; --c)
                element = element * samples.projection.size[c] +
                          samples.projection.wrap(k[c], samples.projection.size[c]);
              element = element * samples.projection.columns() + k[0];
              staged.value = amplitudes.value(batch, index, element, k, samples.phase(pose, k));
              staged.mate = sign < 0;
              if (staged.mate)
                staged.value = conjugate(staged.value);
              staged.weight = target.weight ? amplitudes.weight(batch, index, element, k) : T(0);
            });
        for (int i = 0; i < kept; ++i)
          add_taps(team, brick.staged[i], brick);
        team.team_barrier();
      }
    });
  }

  /// Candidate i of a range: its frequency, taps and weights; false if its window misses the brick.
  KOKKOS_FUNCTION bool place(const Range& range, std::int64_t i, const Pose<T, M, D>& pose,
                             const Reach& reach, int sign, const int (&image)[D], const Brick& brick,
                             int (&k)[M], Staged& staged) const {
    const auto& samples = amplitudes.samples;
    for (int c = 0; c < M; ++c) {
      const int extent = range.high[c] - range.low[c] + 1;
      k[c] = range.low[c] + static_cast<int>(i % extent);
      i /= extent;
    }
    if (!samples.inside(k))
      return false;
    T q[D];
    pose.position(k, samples.oversampling, q);
    for (int d = 0; d < D; ++d) {
      const T n = static_cast<T>(samples.reconstruction.size[d]);
      if (!reach.bounded && 2 * Kokkos::abs(q[d]) > n)
        q[d] -= n * Kokkos::floor(q[d] / n + T(0.5));
      if (!(Kokkos::abs(q[d]) <= 2 * n))
        return false;
      const T position = T(sign) * q[d];
      const T lower = Kokkos::floor(position);
      staged.first[d] = static_cast<int>(lower) - (width / 2 - 1) +
                        image[d] * samples.reconstruction.size[d] - brick.first[d];
      if (staged.first[d] <= -width || staged.first[d] >= edge)
        return false;
      Kernel::weights(position - lower, staged.factor[d]);
    }
    return true;
  }

  KOKKOS_FUNCTION void add_taps(const Team& team, const Staged& staged, const Brick& brick) const {
    const auto& layout = amplitudes.samples.reconstruction;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, taps), [&](int tap) {
      int voxel = 0, stride = 1;
      T factor = 1;
      bool own = true;
      for (int d = 0; d < D; ++d) {
        const int i = tap % width, at = staged.first[d] + i;
        tap /= width;
        own = own && at >= 0 && at < edge;
        voxel += at * stride;
        stride *= edge;
        factor *= staged.factor[d][i];
        if (mates == Mates::Single && d == 0)
          own = own && !(staged.mate && layout.self_mated(brick.first[0] + at));
      }
      if (!own)
        return;
      brick.sums[voxel] += factor * staged.value.real();
      brick.sums[voxels + voxel] += factor * staged.value.imag();
      if (target.weight)
        brick.sums[2 * voxels + voxel] += (target.absolute ? Kokkos::abs(factor) : factor) * staged.weight;
    });
  }

  KOKKOS_FUNCTION void store(const Team& team, std::int64_t volume, const Brick& brick) const {
    const auto& layout = amplitudes.samples.reconstruction;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, voxels), [&](int voxel) {
      int tap[D], rest = voxel;
      bool stored = true;
      for (int d = 0; d < D; ++d) {
        tap[d] = brick.first[d] + rest % edge;
        rest /= edge;
        stored = stored && tap[d] <= layout.size[d] / 2;
      }
      if (!stored)
        return;
      const std::int64_t i = volume * target.batch_stride + layout.row(tap) + tap[0];
      target.data[i] += Kokkos::complex<T>(brick.sums[voxel], brick.sums[voxels + voxel]);
      if (target.weight)
        target.weight[i] += brick.sums[2 * voxels + voxel];
    });
  }
};

} // namespace Bracewell::Impl
