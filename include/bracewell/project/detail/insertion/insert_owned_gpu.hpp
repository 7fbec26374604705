// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/lanes.hpp>
#include <bracewell/project/detail/brick_search.hpp>
#include <bracewell/project/detail/insertion/insert_sample.hpp>
#include <bracewell/project/detail/tuning.hpp>

namespace Bracewell::Impl {

/// Strategy::Owned on GPUs. A team owns a brick of the stored half spectrum, and every lane of its threads
/// (warps) keeps a column of eight elements (four in 2D) of the brick in registers. The samples that reach
/// the brick are written into a queue, one per lane, as separable weights laid out by the brick's elements;
/// then all lanes go through the queue and add every sample to their elements. The sums of the threads are
/// added in fixed order at the end.
template <class Space, class Kernel, class T, int M, int D, Mates mates>
struct InsertOwnedGpu {
  using Search = BrickSearch<T, M, D>;
  static constexpr int width = Kernel::width;
  static constexpr int lanes = Search::lanes, lanes_x = 8, lanes_y = 4;
  using Tuning = OwnedTuning<Space, T, D>;
  static constexpr bool host = is_host<Space>; ///< for tests
  static constexpr int slots = Tuning::slots, team_size = Tuning::team_size,
                       queue_length = Tuning::queue_length;
  static constexpr int scratch_level = host ? 1 : 0;
  using Bounds = Kokkos::LaunchBounds<team_size * lanes, Tuning::resident>;
  using Team = typename Kokkos::TeamPolicy<Space, Bounds>::member_type;

  struct alignas(4 * sizeof(T)) Quad {
    T value[4];
  };

  /// Weights of one sample for the elements of the brick, zero where its window does not reach. The last axis
  /// runs along the slots; in 2D along the slots of four lanes.
  struct Sample {
    Quad amplitude; ///< real part, imaginary part, weight
    Quad along[D == 3 ? slots / 4 : lanes_y * slots / 4];
    T across_x[lanes_x];
    T across_y[lanes_y]; ///< 3D alone
  };

  /// Scratch of one thread.
  struct Workspace {
    Sample queue[queue_length];
    typename Search::Workspace search;
  };
  struct Sums {
    T real[slots] = {}, imaginary[slots] = {}, weight[slots] = {};
  };
  /// Of every lane; on GPUs a variable is one for each lane, and this one is in its registers.
  struct AllSums {
    Sums sums[host ? lanes : 1];
    KOKKOS_INLINE_FUNCTION Sums& operator[](int lane) { return sums[host ? lane : 0]; }
  };

  Amplitudes<T, M, D, mates> amplitudes;
  InsertionTarget<T> target;
  Bricks<D> bricks;

  InsertOwnedGpu(const Amplitudes<T, M, D, mates>& amplitudes_, const InsertionTarget<T>& target_)
      : amplitudes(amplitudes_), target(target_), bricks{amplitudes_.samples.reconstruction, {}} {
    bricks.edge[0] = lanes_x;
    bricks.edge[1] = D == 3 ? lanes_y : lanes_y * slots;
    if constexpr (D == 3)
      bricks.edge[2] = slots;
  }

  /// Adds to all volumes.
  void launch(const Space& space, const Label& label) const {
    const int league = static_cast<int>(target.batches * bricks.count());
    Kokkos::TeamPolicy<Space, Bounds> policy(space, league, team_size, host ? 1 : lanes);
    policy.set_scratch_size(+scratch_level, Kokkos::PerTeam(static_cast<int>(scratch_bytes())));
    Kokkos::parallel_for(label, policy, *this);
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
    const bool one_for_all = target.batches == 1;
    const std::int64_t begin = one_for_all ? 0 : volume * samples.poses;
    const std::int64_t end = one_for_all ? samples.batches * samples.poses : begin + samples.poses;

    AllSums sums;
    int queued = 0;
    bool touched = false;
    const auto add_queued = [&]() {
      if (mates == Mates::Both && target.absolute)
        add_samples<true>(team, workspace.queue, queued, sums);
      else
        add_samples<false>(team, workspace.queue, queued, sums);
      queued = 0;
    };
    const Search search{samples, bricks, width};
    search.for_each(
        team, workspace.search, first, begin, end,
        [&](const typename Search::Found& found) {
          for (int start = 0; start < found.count; start += lanes) {
            const int count = Kokkos::min(int(+lanes), found.count - start);
            if (queued + count > queue_length)
              add_queued();
            enqueue(team, found, start, count, first[0], workspace.queue + queued, touched);
            queued += count;
          }
        },
        add_queued);
    touched = any_lane(touched);
    add_threads(team, workspaces, sums, touched);
    if (touched && team.team_rank() == 0)
      store(team, volume, first, sums);
  }

  /// Writes samples into the queue; touched becomes true in lanes whose samples reach the brick.
  KOKKOS_INLINE_FUNCTION void enqueue(const Team& team, const typename Search::Found& found, int start,
                                      int count, int first_column, Sample* queue, bool& touched) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, count), [&](int i) {
      const auto& samples = amplitudes.samples;
      const auto& candidate = found.candidate;
      int k[M];
      T q[D];
      found.frequency(start + i, k);
      bool near = candidate.position(bricks.layout, k, q) && samples.inside(k);
      for (int d = 0; d < D; ++d) {
        q[d] -= T(candidate.origin[d]);
        near = near && q[d] > -T(width / 2) && q[d] < T(bricks.edge[d] - 1 + width / 2);
      }
      Sample sample = {};
      if (near) {
        const std::int64_t element = samples.projection.row(k) + k[0];
        const Kokkos::complex<T> value =
            amplitudes.value(candidate.batch, candidate.index, element, k, samples.phase(candidate.pose, k));
        sample.amplitude = {{value.real(), T(candidate.sign) * value.imag(), T(0), T(0)}};
        if (target.weight)
          sample.amplitude.value[2] = amplitudes.weight(candidate.batch, candidate.index, element, k);
      }
      queue[i] = sample;
      if (near)
        write_weights(q, candidate.sign, first_column, queue[i]);
      touched = touched || near;
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
  template <bool absolute>
  KOKKOS_INLINE_FUNCTION void add_samples(const Team& team, const Sample* queue, int count,
                                          AllSums& all) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)), [&](int lane) {
      Sums& sums = all[lane];
      const int x = lane % lanes_x, y = lane / lanes_x;
      for (int i = 0; i < count; ++i) {
        const Sample& sample = queue[i];
        const Quad amplitude = sample.amplitude;
        T across = sample.across_x[x];
        if constexpr (D == 3)
          across *= sample.across_y[y];
        const T real = across * amplitude.value[0], imaginary = across * amplitude.value[1];
        const T weight = (absolute ? Kokkos::abs(across) : across) * amplitude.value[2];
        for (int q = 0; q < slots / 4; ++q) {
          const Quad along = sample.along[D == 3 ? q : y * (slots / 4) + q];
          for (int s = 0; s < 4; ++s) {
            sums.real[4 * q + s] += along.value[s] * real;
            sums.imaginary[4 * q + s] += along.value[s] * imaginary;
            if constexpr (mates == Mates::Both)
              sums.weight[4 * q + s] += (absolute ? Kokkos::abs(along.value[s]) : along.value[s]) * weight;
          }
        }
      }
    });
  }

  /// Adds the sums of all threads to those of the first.
  KOKKOS_INLINE_FUNCTION void add_threads(const Team& team, Workspace* workspaces, AllSums& sums,
                                          bool& touched) const {
    static_assert(sizeof(Workspace) >= lanes * sizeof(Sums) + sizeof(bool));
    if constexpr (team_size > 1) {
      team.team_barrier();
      auto* const own = reinterpret_cast<Sums*>(workspaces + team.team_rank());
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)),
                           [&](int lane) { own[lane] = sums[lane]; });
      Kokkos::single(Kokkos::PerThread(team), [&]() { *reinterpret_cast<bool*>(own + lanes) = touched; });
      team.team_barrier();
      if (team.team_rank() != 0)
        return;
      for (int thread = 1; thread < team_size; ++thread) {
        const auto* const other = reinterpret_cast<const Sums*>(workspaces + thread);
        touched = touched || *reinterpret_cast<const bool*>(other + lanes);
        Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, int(+lanes)), [&](int lane) {
          for (int s = 0; s < slots; ++s) {
            sums[lane].real[s] += other[lane].real[s];
            sums[lane].imaginary[s] += other[lane].imaginary[s];
            sums[lane].weight[s] += other[lane].weight[s];
          }
        });
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void store(const Team& team, std::int64_t volume, const int (&first)[D],
                                    AllSums& sums) const {
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
        target.data[i] += Kokkos::complex<T>(sums[lane].real[s], sums[lane].imaginary[s]);
        if (target.weight)
          target.weight[i] += sums[lane].weight[s];
      }
    });
  }
};

} // namespace Bracewell::Impl
