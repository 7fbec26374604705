// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/brick_search.hpp>
#include <bracewell/project/gather.hpp>

namespace Bracewell::Impl {

/// Sampling on GPUs, where windows are wide and poses many: a team copies a brick of the reconstruction, with
/// the margin that windows need, to scratch, and takes the samples whose windows begin in it. One lane takes
/// a sample; scratch serves scattered reads several times faster than the cache, which looks up a line at a
/// time. For +q and for -q (windows of x < 0 are those of the mates) there are teams of their own.
template <class Space, class Kernel, class T, int M, int D, class Volume>
struct GatherBricks {
  using Search = BrickSearch<T, M, D, 1>;
  static constexpr int width = Kernel::width, lanes = Search::lanes;
  static constexpr bool host = is_host<Space>; ///< for tests
  static constexpr int team_size = host ? 1 : 8, scratch_level = host ? 1 : 0;
  KOKKOS_FUNCTION static constexpr int edge(int d) {
    return d == 0 ? 16 : (d == 1 ? 12 : (sizeof(T) == 4 ? 10 : 3));
  }
  KOKKOS_FUNCTION static constexpr int tile(int d) { return edge(d) + width - 1; }
  static constexpr int tile_elements = (15 + width) * (11 + width) * ((sizeof(T) == 4 ? 9 : 2) + width);
  static constexpr std::int64_t poses_per_team = 2048;
  using Policy = Kokkos::TeamPolicy<Space, Kokkos::LaunchBounds<team_size * lanes, 3>>;
  using Team = typename Policy::member_type;
  struct Fill {};

  Gather<Kernel, T, M, D, Mates::Single, Volume> gather;
  Bricks<D> bricks;
  std::int64_t pieces = 1, first_piece = 0; ///< a piece: poses_per_team poses of one batch

  explicit GatherBricks(const Gather<Kernel, T, M, D, Mates::Single, Volume>& gather_)
      : gather(gather_), bricks{gather_.amplitudes.samples.reconstruction, {edge(0), edge(1), edge(2)}} {}

  struct Workspace {
    Kokkos::complex<T> values[tile_elements];
    typename Search::Workspace search[team_size];
  };

  /// Batches of more bricks than a league can count are launched one after another.
  void launch(const Space& space, const std::string& label) {
    const auto& samples = gather.amplitudes.samples;
    Kokkos::parallel_for(label + "::fill",
                         Kokkos::RangePolicy<Space, Fill, Kokkos::IndexType<std::int64_t>>(
                             space, 0, samples.batches * samples.poses * samples.projection.elements()),
                         *this);
    pieces = (samples.poses + poses_per_team - 1) / poses_per_team;
    const std::int64_t per_piece = 2 * bricks.count();
    const std::int64_t most = std::numeric_limits<int>::max() / per_piece;
    for (first_piece = 0; first_piece < samples.batches * pieces; first_piece += most) {
      const std::int64_t league = std::min(most, samples.batches * pieces - first_piece) * per_piece;
      Policy policy(space, static_cast<int>(league), team_size, host ? 1 : lanes);
      policy.set_scratch_size(+scratch_level,
                              Kokkos::PerTeam(static_cast<int>(sizeof(Workspace) + alignof(Workspace))));
      Kokkos::parallel_for(label + "::bricks", policy, *this);
    }
  }

  /// Elements beyond the radius are zero; the others will be overwritten, unless the pose is not finite.
  KOKKOS_FUNCTION void operator()(Fill, std::int64_t i) const {
    const auto& samples = gather.amplitudes.samples;
    int k[M];
    samples.projection.frequency(i % samples.projection.elements(), k);
    const T value = samples.inside(k) ? Kokkos::Experimental::quiet_NaN_v<T> : T(0);
    gather.values[i] = Kokkos::complex<T>(value, value);
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto& samples = gather.amplitudes.samples;
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
    const Volume* const volume = gather.volume + batch * gather.volume_batch_stride;

    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int(+tile_elements)), [&](int i) {
      int tap[D], left = i;
      for (int d = 0; d < D; ++d) {
        const int n = samples.reconstruction.size[d];
        tap[d] = sign * (first[d] - (width / 2 - 1) + left % tile(d));
        tap[d] += tap[d] < -n ? n : (tap[d] >= n ? -n : 0); // bricks may end beyond the volume
        left /= tile(d);
      }
      const auto address = samples.reconstruction.resolve(tap);
      const Kokkos::complex<T> value = volume[address.index];
      workspace.values[i] = address.conjugate != (sign < 0) ? conjugate(value) : value;
    });
    team.team_barrier();

    const Search search{samples, bricks, 0, 1};
    search.for_each(
        team, workspace.search[team.team_rank()], first, begin, end, sign,
        [&](const typename Search::Found& found) { sample(team, found, first, workspace.values); }, []() {});
  }

  KOKKOS_INLINE_FUNCTION void sample(const Team& team, const typename Search::Found& found,
                                     const int (&first)[D], const Kokkos::complex<T>* values) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, found.count), [&](int i) {
      const auto& samples = gather.amplitudes.samples;
      const auto& candidate = found.candidate;
      int k[M], corner = 0;
      T q[D], weight[D][width];
      found.frequency(i, k);
      bool own = candidate.position(bricks.layout, k, q) && samples.inside(k);
      const T n = static_cast<T>(bricks.layout.size[0]);
      T side = T(candidate.sign) * q[0]; // of the sample itself, within the period
      if (2 * Kokkos::abs(side) > n)
        side -= n * Kokkos::floor(side / n + T(0.5));
      own = own && (side >= 0) == (candidate.sign > 0);
      for (int d = D - 1; d >= 0; --d) {
        const T lower = Kokkos::floor(q[d]);
        const int tap = static_cast<int>(lower) - candidate.origin[d];
        own = own && tap >= 0 && tap < edge(d) && first[d] + tap <= bricks.layout.size[d] / 2;
        corner = corner * tile(d) + tap;
        Kernel::weights(q[d] - lower, weight[d]);
      }
      if (!own)
        return;
      Kokkos::complex<T> sum(0);
      for (int z = 0; z < width; ++z)
        for (int y = 0; y < width; ++y) {
          const Kokkos::complex<T>* const row = values + corner + (z * tile(1) + y) * tile(0);
          Kokkos::complex<T> row_sum = weight[0][0] * row[0];
          for (int x = 1; x < width; ++x)
            row_sum += weight[0][x] * row[x];
          sum += weight[1][y] * weight[2][z] * row_sum;
        }
      if (candidate.sign < 0)
        sum = conjugate(sum);
      const std::int64_t element = samples.projection.row(k) + k[0];
      gather.values[(candidate.batch * samples.poses + candidate.index) * samples.projection.elements() +
                    element] = gather.amplitudes.factor(candidate.batch, candidate.index, element, k) * sum *
                               samples.phase(candidate.pose, k);
    });
  }
};

} // namespace Bracewell::Impl
