// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/lanes.hpp>
#include <bracewell/project/detail/amplitudes.hpp>
#include <bracewell/project/detail/padded_copy.hpp>
#include <bracewell/project/detail/sample_rows.hpp>
#include <bracewell/project/detail/stencil.hpp>
#include <bracewell/project/detail/tiles.hpp>

namespace Bracewell {
namespace Impl {

template <class T, int M, int D>
struct PoseSums {
  T matrix[D][M] = {};
  T bend[D] = {};
  T shift[M] = {};

  KOKKOS_INLINE_FUNCTION PoseSums& operator+=(const PoseSums& other) {
    for (int d = 0; d < D; ++d) {
      for (int c = 0; c < M; ++c)
        matrix[d][c] += other.matrix[d][c];
      bend[d] += other.bend[d];
    }
    for (int c = 0; c < M; ++c)
      shift[c] += other.shift[c];
    return *this;
  }
};

} // namespace Impl
} // namespace Bracewell

template <class T, int M, int D>
struct Kokkos::reduction_identity<Bracewell::Impl::PoseSums<T, M, D>> {
  KOKKOS_FORCEINLINE_FUNCTION static Bracewell::Impl::PoseSums<T, M, D> sum() { return {}; }
};

namespace Bracewell::Impl {

/// Samples a volume (a reconstruction, or the cotangents of back-projected data and weight) at every stored
/// frequency of every pose.
template <class Kernel, class T, int M, int D, Mates mates, class Stored = Kokkos::complex<T>>
struct Gather {
  Amplitudes<T, M, D, mates> amplitudes; ///< `values` is read only for the sums over a pose
  StoredSpectra<Stored> volumes = {};    ///< none: no values
  StoredSpectra<T> weight_volumes = {};  ///< none: no weights
  bool absolute = false;

  /// Sampled volume times phase and factor; null: not wanted (with Mates::Both, or beside sums over a pose).
  Kokkos::complex<T>* values = nullptr;
  T* weights = nullptr; ///< sampled weight volume times scale; null: not wanted (always with Mates::Single)

  /// What belongs to one pose: its volumes, outputs, and filter if there is one.
  struct OfPose {
    Pose<T, M, D> pose;
    const Stored* volume;
    const T* weight_volume;
    Kokkos::complex<T>* values;
    T* weights;
    const T* filter;
  };

  KOKKOS_INLINE_FUNCTION OfPose of_pose(std::int64_t flat) const {
    const auto& samples = amplitudes.samples;
    std::int64_t batch, index;
    samples.split(flat, batch, index);
    const std::int64_t output = flat * samples.projection.elements();
    return {samples.pose(batch, index),     volumes(batch),
            weight_volumes(batch),          computed_once(values, output),
            computed_once(weights, output), samples.filters ? samples.filters(batch, index) : nullptr};
  }

  template <class Index>
  KOKKOS_INLINE_FUNCTION void sample(const OfPose& at, const int (&k)[M], Index element) const {
    const auto& samples = amplitudes.samples;
    const bool valued = mates == Mates::Single || values, weighted = mates == Mates::Both && weights;
    Kokkos::complex<T> value(0);
    T weight(0);
    if (samples.inside(k)) {
      T q[D];
      at.pose.position(k, q);
      Stencil<Kernel, D, mates, T> stencil;
      if (stencil.place(samples.reconstruction, q, at.pose.folds)) {
        if (valued) {
          value = amplitudes.scale(k) * stencil.gather(at.volume) * at.pose.phase(k);
          if (at.filter)
            value *= at.filter[element];
        }
        if (weighted) {
          if (absolute)
            stencil.make_absolute();
          weight = amplitudes.scale(k) * stencil.gather(at.weight_volume);
        }
      } else {
        weight = Kokkos::Experimental::quiet_NaN_v<T>;
        value = Kokkos::complex<T>(weight, weight);
      }
    }
    if (valued)
      store_streaming(at.values + element, value);
    if (weighted)
      at.weights[element] = weight;
  }
};

/// Gather, and with it the gradients with respect to matrices and shifts: both are sums over the samples of a
/// pose of Re(conj(amplitude) dF) with dF the sampled volume's gradient, times k and times -2 pi i k / n.
template <class Kernel, class T, int M, int D, Mates mates>
struct GatherGradients {
  static constexpr int width = Kernel::width;

  Gather<Kernel, T, M, D, mates> gather;
  Tiles<M> tiles;
  std::int64_t first_pose; ///< of batch and pose axes in one sequence
  int parts;               ///< teams that share a pose
  T* matrices;             ///< like Samples::matrices, accumulated; null: not wanted
  T* shifts;               ///< like Samples::shifts, accumulated; null: not wanted

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    constexpr int lanes = tile_lanes<typename Team::execution_space>;
    const auto& samples = gather.amplitudes.samples;
    const std::int64_t flat = first_pose + team.league_rank() / parts;
    const int part = team.league_rank() % parts;
    std::int64_t batch, index;
    samples.split(flat, batch, index);
    const auto pose = samples.pose(batch, index);
    PoseSums<T, M, D> sums; // of one thread, then of the team
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, team.team_size()), [&](int thread) {
      const int groups = team.team_size() / lanes * parts;
      for (int tile = part * (team.team_size() / lanes) + thread / lanes; tile < tiles.per_pose;
           tile += groups)
        tiles.template for_each<lanes>(tile, thread % lanes, [&](const int(&k)[M], std::int64_t element) {
          sample(batch, index, pose, k, element, sums);
        });
    });
    team.team_reduce(Kokkos::Sum<PoseSums<T, M, D>>(sums));
    Kokkos::single(Kokkos::PerTeam(team), [&]() {
      if (matrices) {
        T* const m = matrices + samples.matrices.offset(batch, index);
        for (int d = 0; d < D; ++d) {
          for (int c = 0; c < M; ++c)
            Kokkos::atomic_add(m + d * D + c, samples.oversampling * sums.matrix[d][c]);
          if (samples.curved())
            Kokkos::atomic_add(m + d * D + D - 1, samples.oversampling * samples.curvature * sums.bend[d]);
        }
      }
      if (shifts) {
        T* const s = shifts + samples.shifts.offset(batch, index);
        for (int c = 0; c < M; ++c)
          Kokkos::atomic_add(s + M - 1 - c,
                             2 * Kokkos::numbers::pi_v<T> * samples.inverse_size[c] * sums.shift[c]);
      }
    });
  }

  KOKKOS_INLINE_FUNCTION void sample(std::int64_t batch, std::int64_t index, const Pose<T, M, D>& pose,
                                     const int (&k)[M], std::int64_t element, PoseSums<T, M, D>& sum) const {
    const auto& amplitudes = gather.amplitudes;
    const auto& samples = amplitudes.samples;
    const std::int64_t output = (batch * samples.poses + index) * samples.projection.elements() + element;
    const std::int64_t begin = batch * gather.volumes.batch_stride;
    Kokkos::complex<T> value(0);
    T weight(0);
    if (samples.inside(k)) {
      T q[D];
      pose.position(k, q);
      Stencil<Kernel, D, mates, T> stencil;
      if (stencil.place(samples.reconstruction, q, pose.folds)) {
        const Kokkos::complex<T> phase = samples.phase(pose, k);
        T slope[D] = {};
        if (gather.volumes) {
          Kokkos::complex<T> gradient[D];
          const Kokkos::complex<T> sampled = stencil.gather(gather.volumes.data + begin, gradient);
          const Kokkos::complex<T> amplitude = amplitudes.value(batch, index, element, k, phase);
          value = amplitudes.factor(batch, index, element, k) * sampled * phase;
          for (int d = 0; d < D; ++d)
            slope[d] = amplitude.real() * gradient[d].real() + amplitude.imag() * gradient[d].imag();
          const T turned = amplitude.real() * sampled.imag() - amplitude.imag() * sampled.real();
          for (int c = 0; c < M; ++c)
            sum.shift[c] += T(k[c]) * turned;
        }
        if (gather.weight_volumes) {
          T gradient[D];
          weight = amplitudes.scale(k) *
                   stencil.gather(gather.weight_volumes.data + begin, gradient, gather.absolute);
          const T amplitude = amplitudes.weight(batch, index, element, k);
          for (int d = 0; d < D; ++d)
            slope[d] += amplitude * gradient[d];
        }
        for (int d = 0; d < D; ++d) {
          for (int c = 0; c < M; ++c)
            sum.matrix[d][c] += slope[d] * T(k[c]);
          if (pose.curved)
            sum.bend[d] += slope[d] * T(k[0] * k[0] + k[1] * k[1]);
        }
      } else {
        weight = Kokkos::Experimental::quiet_NaN_v<T>;
        value = Kokkos::complex<T>(weight, weight);
        sum.matrix[0][0] = weight;
        sum.shift[0] = weight;
      }
    }
    if (gather.values)
      gather.values[output] = value;
    if (gather.weights)
      gather.weights[output] = weight;
  }
};

template <class Space, class Kernel, class T, int M, int D, Mates mates, class Stored, bool weighted>
struct SampleBricks;

/// Gather on GPUs: from bricks of the volume in scratch where windows are wide, poses many enough to pay for
/// copying the bricks, and bricks many enough for all multiprocessors (measured: docs/performance.md); else
/// directly.
template <class ExecutionSpace, class Kernel, class T, int M, int D, Mates mates, class Stored>
void launch_gather_tiles(const ExecutionSpace& space, const std::string& label,
                         const Gather<Kernel, T, M, D, mates, Stored>& gather, std::int64_t poses) {
  if constexpr (M == 2 && D == 3 && Kernel::width > 2 && sizeof(T) == 4) {
    const auto& samples = gather.amplitudes.samples;
    if (gather.values && samples.poses >= 1024 &&
        samples.batches * samples.reconstruction.elements() >= (gather.weights ? 1 << 20 : 1 << 22)) {
      if (!gather.weights)
        return SampleBricks<ExecutionSpace, Kernel, T, M, D, mates, Stored, false>(gather).launch(space,
                                                                                                  label);
      if constexpr (mates == Mates::Both)
        return SampleBricks<ExecutionSpace, Kernel, T, M, D, mates, Stored, true>(gather).launch(space,
                                                                                                 label);
    }
  }
  // Measured on an H200: registers for 16 to 32 warps, tiles whose rows complete cache lines of projections.
  constexpr bool wide = D == 3 && Kernel::width > 2,
                 light = sizeof(T) == 4 && (D == 2 || mates == Mates::Single);
  constexpr int columns = D == 2 ? 16 : 8, most_rows = D == 2 ? 32 : 64;
  const auto tiles = Tiles<M, columns>::make(space, gather.amplitudes.samples.projection, poses, most_rows);
  launch_tiles<wide ? 128 : 256, wide ? 5 : light ? 4 : 3>(space, label, gather, tiles, poses);
}

/// Launches one team per pose, or more for few poses, in as few launches as a league of 2^31 teams allows.
template <class ExecutionSpace, class Functor>
void launch_pose_sums(const ExecutionSpace& space, const std::string& label, Functor functor,
                      std::int64_t poses) {
  constexpr int team_size = is_host<ExecutionSpace> ? 1 : 256;
  const std::int64_t teams = space.concurrency() / (is_host<ExecutionSpace> ? 1 : 128);
  functor.parts = static_cast<int>(std::clamp<std::int64_t>(teams / poses, 1, functor.tiles.per_pose));
  const std::int64_t most = std::numeric_limits<int>::max() / functor.parts;
  for (; functor.first_pose < poses; functor.first_pose += most) {
    const int league = static_cast<int>(std::min(most, poses - functor.first_pose)) * functor.parts;
    // Two teams on a multiprocessor: Catmull-Rom in 2D 1.7 times as fast, linear a fifth slower.
    using Bounds =
        std::conditional_t<Functor::width == 2, Kokkos::LaunchBounds<>, Kokkos::LaunchBounds<team_size, 2>>;
    using Policy =
        Kokkos::TeamPolicy<ExecutionSpace, Bounds, Kokkos::Schedule<Kokkos::Dynamic>>; // corners: no work
    Kokkos::parallel_for(label, Policy(space, league, team_size), functor);
  }
}

/// Launches a gather alone.
template <class ExecutionSpace, class Kernel, class T, int M, int D, Mates mates, class Stored>
void launch_gather(const ExecutionSpace& space, const std::string& label,
                   const Gather<Kernel, T, M, D, mates, Stored>& gather) {
  const std::int64_t poses = gather.amplitudes.samples.batches * gather.amplitudes.samples.poses;
  if (poses == 0)
    return;
  if constexpr (is_host<ExecutionSpace>)
    launch_gather_rows<Kernel, T, M, D, mates>(space, label, gather, poses);
  else
    launch_gather_tiles(space, label, gather, poses);
}

/// Launches a gather alone, or, where gradients with respect to poses are wanted, both in one pass.
template <class ExecutionSpace, class Kernel, class T, int M, int D, Mates mates>
void launch_gather(const ExecutionSpace& space, const std::string& label,
                   const Gather<Kernel, T, M, D, mates>& gather, T* matrices, T* shifts) {
  if (matrices == nullptr && shifts == nullptr)
    return launch_gather(space, label, gather);
  const std::int64_t poses = gather.amplitudes.samples.batches * gather.amplitudes.samples.poses;
  if (poses == 0)
    return;
  const auto tiles = Tiles<M>::make(space, gather.amplitudes.samples.projection, poses, 16);
  launch_pose_sums(space, label + "::poses",
                   GatherGradients<Kernel, T, M, D, mates>{gather, tiles, 0, 1, matrices, shifts}, poses);
}

} // namespace Bracewell::Impl

#include <bracewell/project/detail/sample_bricks.hpp>
