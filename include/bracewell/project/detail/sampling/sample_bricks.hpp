// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/project/detail/brick_search.hpp>
#include <bracewell/project/detail/sampling/sampler.hpp>
#include <bracewell/project/detail/tiles.hpp>
#include <bracewell/project/detail/tuning.hpp>

namespace Bracewell::Impl {

/// Sampling on GPUs, where windows are wide and poses many: a team copies a brick of the volume, with the
/// margin that windows need, to scratch, and takes the samples whose windows begin in it. One lane takes a
/// sample; scratch serves scattered reads several times faster than the caches, and a brick is read once for
/// thousands of poses. For +q and for -q (windows of x < 0 are those of the mates) there are teams of their
/// own. weighted: two volumes, that of the values and that of the weights.
template <class Space, class Sampler, bool weighted>
struct SampleBricks {
  using Kernel = typename Sampler::Kernel;
  using T = typename Sampler::Real;
  static constexpr int M = Sampler::projected_dimensions, D = Sampler::dimensions;
  static constexpr Mates mates = Sampler::mates;
  static_assert(M == 2 && D == 3);
  using Search = BrickSearch<T, M, D, 1>;
  static constexpr int width = Kernel::width, lanes = Search::lanes;
  static constexpr bool host = is_host<Space>; ///< for tests
  using Tuning = BrickTuning<Space, T, weighted>;
  static constexpr int team_size = Tuning::team_size, scratch_level = host ? 1 : 0;
  KOKKOS_FUNCTION static constexpr int edge(int d) { return Tuning::edge(d); }
  KOKKOS_FUNCTION static constexpr int tile(int d) { return edge(d) + width - 1; }
  static constexpr int tile_elements = tile(0) * tile(1) * tile(2);
  static constexpr std::int64_t poses_per_team = Tuning::poses_per_team;
  using Policy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<team_size * lanes, Tuning::resident>>;
  using Team = typename Policy::member_type;

  Sampler sampler;
  Bricks<D> bricks;
  std::int64_t pieces = 1, first_piece = 0; ///< a piece: poses_per_team poses of one batch

  explicit SampleBricks(const Sampler& sampler_)
      : sampler(sampler_), bricks{sampler_.amplitudes.samples.reconstruction, {edge(0), edge(1), edge(2)}} {}

  struct Workspace {
    Kokkos::complex<T> values[tile_elements];
    T weights[weighted ? tile_elements : 1];
    typename Search::Workspace search[team_size];
  };

  /// Batches of more bricks than a league can count are launched one after another.
  void launch(const Space& space, const Label& label) {
    const auto& samples = sampler.amplitudes.samples;
    using Outside = FillRest<tile_lanes<Space>>;
    const std::int64_t threads = samples.batches * samples.poses * Outside::parts * tile_lanes<Space>;
    Kokkos::parallel_for(Label(label.function, "::fill"),
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, threads),
                         Outside{sampler});
    pieces = (samples.poses + poses_per_team - 1) / poses_per_team;
    const std::int64_t per_piece = 2 * bricks.count();
    const std::int64_t most = std::numeric_limits<int>::max() / per_piece;
    for (first_piece = 0; first_piece < samples.batches * pieces; first_piece += most) {
      const std::int64_t league = std::min(most, samples.batches * pieces - first_piece) * per_piece;
      Policy policy(space, static_cast<int>(league), team_size, host ? 1 : lanes);
      policy.set_scratch_size(+scratch_level,
                              Kokkos::PerTeam(static_cast<int>(sizeof(Workspace) + alignof(Workspace))));
      Kokkos::parallel_for(Label(label.function, "::bricks"), policy, *this);
    }
  }

  /// What the bricks leave out: elements beyond the radius, and samples whose position is unusable.
  template <int row_lanes>
  struct FillRest {
    static constexpr int parts = 8; ///< of the rows of a projection
    Sampler sampler;

    KOKKOS_FUNCTION void operator()(std::int64_t i) const {
      const auto& samples = sampler.amplitudes.samples;
      const auto& layout = samples.projection;
      const std::int64_t item = i / row_lanes;
      const auto at = sampler.of_pose(item / parts);
      for (int row = static_cast<int>(item % parts); row < layout.size[1]; row += parts)
        for (int column = static_cast<int>(i % row_lanes); column < layout.columns(); column += row_lanes) {
          const int k[M] = {column, layout.frequency(row, layout.size[1])};
          const bool inside = samples.inside(k);
          if (inside && usable(at.pose, k))
            continue;
          const T value = inside ? Kokkos::Experimental::quiet_NaN_v<T> : T(0);
          const std::int64_t element = layout.row_begin(row) + column;
          at.values[element] = Kokkos::complex<T>(value, value);
          if constexpr (weighted)
            at.weights[element] = value;
        }
    }

    KOKKOS_INLINE_FUNCTION bool usable(const Pose<T, M, D>& pose, const int (&k)[M]) const {
      if (!pose.folds)
        return true;
      T q[D];
      pose.position(k, q);
      return fold(sampler.amplitudes.samples.reconstruction, q);
    }
  };

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto& samples = sampler.amplitudes.samples;
    auto& workspace = *static_cast<Workspace*>(
        team.team_scratch(+scratch_level).get_shmem_aligned(sizeof(Workspace), alignof(Workspace)));
    const int count = static_cast<int>(bricks.count());
    const int brick = team.league_rank() % count, side = team.league_rank() / count % 2;
    const int sign = side == 0 ? 1 : -1;
    const std::int64_t piece = first_piece + team.league_rank() / count / 2, batch = piece / pieces;
    const std::int64_t begin = batch * samples.poses + piece % pieces * poses_per_team;
    const std::int64_t end = Kokkos::min(begin + poses_per_team, (batch + 1) * samples.poses);
    int first[D];
    bricks.first(brick, first);
    copy(team, batch, first, sign, workspace);
    team.team_barrier();

    const Search search{samples, bricks, 0, 1};
    search.for_each(
        team, workspace.search[team.team_rank()], first, begin, end, sign,
        [&](const typename Search::Found& found) { sample(team, found, first, workspace); }, []() {});
  }

private:
  /// The brick's elements, or (sign < 0) those of its mates.
  KOKKOS_INLINE_FUNCTION void copy(const Team& team, std::int64_t batch, const int (&first)[D], int sign,
                                   Workspace& workspace) const {
    const auto& layout = sampler.amplitudes.samples.reconstruction;
    const auto* const volume = sampler.volumes(batch);
    const T* const weight_volume = sampler.weight_volumes(batch);
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int(+tile_elements)), [&](int i) {
      int tap[D], left = i;
      for (int d = 0; d < D; ++d) {
        tap[d] =
            sign * (first[d] - (width / 2 - 1) + left % tile(d)) % layout.size[d]; // ends beyond the volume
        left /= tile(d);
      }
      const auto address = layout.resolve(tap);
      const bool conjugated = address.conjugate != (sign < 0);
      const Kokkos::complex<T> value = volume[address.index];
      workspace.values[i] = conjugated ? conjugate(value) : value;
      if constexpr (weighted)
        workspace.weights[i] = weight_volume[address.index];
      if constexpr (mates == Mates::Both) {
        if (layout.self_mated(address.column)) {
          for (int d = 1; d < D; ++d)
            tap[d] = -tap[d];
          const std::int64_t mate = layout.row(tap) + address.column;
          const Kokkos::complex<T> other = volume[mate];
          workspace.values[i] += conjugated ? other : conjugate(other);
          if constexpr (weighted)
            workspace.weights[i] += weight_volume[mate];
        }
      }
    });
  }

  /// Where the window of a position begins in the workspace, and its weights; clears `own` where another brick
  /// owns it.
  KOKKOS_FORCEINLINE_FUNCTION static int place(const T (&q)[D], const int (&origin)[D],
                                               const unsigned (&extent)[D], bool& own,
                                               T (&weight)[D][width]) {
    int corner = 0;
    for (int d = D - 1; d >= 0; --d) {
      int tap;
      T fraction;
      split(q[d], tap, fraction);
      tap -= origin[d];
      own = own && static_cast<unsigned>(tap) < extent[d];
      corner = corner * tile(d) + tap;
      Kernel::weights(fraction, weight[d]);
    }
    return corner;
  }

  KOKKOS_FORCEINLINE_FUNCTION static void make_absolute(T (&weight)[D][width]) {
    for (int d = 0; d < D; ++d)
      for (int x = 0; x < width; ++x)
        weight[d][x] = Kokkos::abs(weight[d][x]);
  }

  KOKKOS_INLINE_FUNCTION void sample(const Team& team, const typename Search::Found& found,
                                     const int (&first)[D], const Workspace& workspace) const {
    const auto& samples = sampler.amplitudes.samples;
    const auto& layout = bricks.layout;
    const auto candidate = found.candidate; // in registers
    const bool straight = candidate.bounded && !candidate.pose.curved;
    const std::int64_t flat = candidate.batch * samples.poses + candidate.index;
    const std::int64_t output = flat * samples.projection.elements();
    const T* const filter = samples.filters ? samples.filters(candidate.batch, candidate.index) : nullptr;
    const T sign = T(candidate.sign), half_period = T(layout.size[0]) / 2;
    T matrix[D][M];
    unsigned extent[D]; // elements of the brick on each axis
    for (int d = 0; d < D; ++d) {
      extent[d] = Kokkos::min(edge(d), layout.size[d] / 2 + 1 - first[d]);
      for (int c = 0; c < M; ++c)
        matrix[d][c] = sign * candidate.pose.matrix[d][c];
    }
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, found.count), [&](int i) {
      int k[M];
      T q[D], weight[D][width];
      found.frequency(i, k);
      bool own = samples.inside(k);
      if (straight)
        multiply(matrix, k, q);
      else
        own = candidate.position(layout, k, q) && own;
      T side = sign * q[0]; // of the sample itself, within the period
      if (Kokkos::abs(side) > half_period)
        fold_axis(layout.size[0], side);
      own = own && (side >= 0) == (sign > 0);
      const int corner = place(q, candidate.origin, extent, own, weight);
      if (!own)
        return;
      const std::int64_t element = samples.projection.row(k) + k[0];
      const T scale = sampler.amplitudes.scale(k);
      Kokkos::complex<T> value = scale * sum(workspace.values + corner, weight);
      if (sign < 0)
        value = conjugate(value);
      if (filter)
        value *= filter[element];
      sampler.values[output + element] = value * candidate.pose.phase(k);
      if constexpr (weighted) {
        if (sampler.absolute)
          make_absolute(weight);
        sampler.weights[output + element] = scale * sum(workspace.weights + corner, weight);
      }
    });
  }

  template <class Sum>
  KOKKOS_INLINE_FUNCTION static Sum sum(const Sum* taps, const T (&weight)[D][width]) {
    Sum total(0);
    for (int z = 0; z < width; ++z) {
      Sum plane(0);
      for (int y = 0; y < width; ++y) {
        const Sum* const row = taps + (z * tile(1) + y) * tile(0);
        Sum row_sum = weight[0][0] * row[0];
        for (int x = 1; x < width; ++x)
          row_sum += weight[0][x] * row[x];
        plane += weight[1][y] * row_sum;
      }
      total += weight[2][z] * plane;
    }
    return total;
  }
};

} // namespace Bracewell::Impl
