// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/tiles.hpp>
#include <bracewell/interpolation/stencil.hpp>
#include <bracewell/project/amplitudes.hpp>
#include <bracewell/project/gather_rows.hpp>

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
template <class Kernel, class T, int M, int D, Mates mates, class Volume = Kokkos::complex<T>>
struct Gather {
  Tiles<M> tiles;
  Amplitudes<T, M, D, mates> amplitudes; ///< `values` is read only for the sums over a pose
  const Volume* volume = nullptr;        ///< [B|1, ...], complex numbers as stored; null: no values
  const T* weight_volume = nullptr;      ///< [B|1, ...]; null: no weights
  std::int64_t volume_batch_stride = 0;
  bool absolute = false;

  Kokkos::complex<T>* values = nullptr; ///< sampled volume times phase and factor; null: not wanted
  T* weights = nullptr;                 ///< sampled weight volume times scale; null: not wanted

  /// What belongs to one pose: its volumes, its outputs and its filter, where there are any.
  struct OfPose {
    const Volume* volume;
    const T* weight_volume;
    Kokkos::complex<T>* values;
    T* weights;
    const T* filter;
  };

  KOKKOS_INLINE_FUNCTION OfPose of_pose(std::int64_t batch, std::int64_t index) const {
    const auto& samples = amplitudes.samples;
    const std::int64_t begin = batch * volume_batch_stride;
    const std::int64_t output = (batch * samples.poses + index) * samples.projection.elements();
    return {volume ? volume + begin : nullptr, weight_volume ? weight_volume + begin : nullptr,
            values ? values + output : nullptr, weights ? weights + output : nullptr,
            samples.filters ? samples.filters(batch, index) : nullptr};
  }

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto& samples = amplitudes.samples;
    std::int64_t batch, index;
    samples.split(tiles.first_pose + team.league_rank() / tiles.per_pose, batch, index);
    const auto tile = tiles.tile(team.league_rank() % tiles.per_pose);
    const auto pose = samples.pose(batch, index);
    const OfPose at = of_pose(batch, index);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tiles.elements), [&](int i) {
      int k[M];
      std::int64_t element;
      if (tiles.element(tile, i, k, element))
        sample(at, pose, k, element);
    });
  }

  KOKKOS_INLINE_FUNCTION void sample(const OfPose& at, const Pose<T, M, D>& pose, const int (&k)[M],
                                     std::int64_t element) const {
    const auto& samples = amplitudes.samples;
    Kokkos::complex<T> value(0);
    T weight(0);
    if (samples.inside(k)) {
      T q[D];
      pose.position(k, q);
      Stencil<Kernel, D, mates, T> stencil;
      if (stencil.place(samples.reconstruction, q, pose.folds)) {
        if (at.values) {
          const T factor = amplitudes.scale(k) * (at.filter ? at.filter[element] : T(1));
          value = factor * stencil.gather(at.volume) * samples.phase(pose, k);
        }
        if (at.weights) {
          if (absolute)
            stencil.make_absolute();
          weight = amplitudes.scale(k) * stencil.gather(at.weight_volume);
        }
      } else {
        weight = Kokkos::Experimental::quiet_NaN_v<T>;
        value = Kokkos::complex<T>(weight, weight);
      }
    }
    if (at.values)
      at.values[element] = value;
    if (at.weights)
      at.weights[element] = weight;
  }
};

/// Gather, and with it the gradients with respect to matrices and shifts: both are sums over the samples of a
/// pose of Re(conj(amplitude) dF) with dF the sampled volume's gradient, times k and times -2 pi i k / n.
template <class Kernel, class T, int M, int D, Mates mates>
struct GatherGradients {
  Gather<Kernel, T, M, D, mates> gather;
  Tiles<M> tiles;
  int parts;   ///< teams that share a pose
  T* matrices; ///< like Samples::matrices, accumulated; null: not wanted
  T* shifts;   ///< like Samples::shifts, accumulated; null: not wanted

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto& samples = gather.amplitudes.samples;
    const std::int64_t flat = tiles.first_pose + team.league_rank() / parts;
    const int part = team.league_rank() % parts;
    const std::int64_t batch = flat / samples.poses, index = flat % samples.poses;
    const auto pose = samples.pose(batch, index);
    PoseSums<T, M, D> sums; // of one thread, then of the team
    for (int own = part; own < tiles.per_pose; own += parts) {
      const auto tile = tiles.tile(own);
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tiles.elements), [&](int i) {
        int k[M];
        std::int64_t element;
        if (tiles.element(tile, i, k, element))
          sample(batch, index, pose, k, element, sums);
      });
    }
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
    const std::int64_t begin = batch * gather.volume_batch_stride;
    Kokkos::complex<T> value(0);
    T weight(0);
    if (samples.inside(k)) {
      T q[D];
      pose.position(k, q);
      Stencil<Kernel, D, mates, T> stencil;
      if (stencil.place(samples.reconstruction, q, pose.folds)) {
        const Kokkos::complex<T> phase = samples.phase(pose, k);
        T slope[D] = {};
        if (gather.volume) {
          Kokkos::complex<T> gradient[D];
          const Kokkos::complex<T> sampled = stencil.gather(gather.volume + begin, gradient);
          const Kokkos::complex<T> amplitude = amplitudes.value(batch, index, element, k, phase);
          value = amplitudes.factor(batch, index, element, k) * sampled * phase;
          for (int d = 0; d < D; ++d)
            slope[d] = amplitude.real() * gradient[d].real() + amplitude.imag() * gradient[d].imag();
          const T turned = amplitude.real() * sampled.imag() - amplitude.imag() * sampled.real();
          for (int c = 0; c < M; ++c)
            sum.shift[c] += T(k[c]) * turned;
        }
        if (gather.weight_volume) {
          T gradient[D];
          weight =
              amplitudes.scale(k) * stencil.gather(gather.weight_volume + begin, gradient, gather.absolute);
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

/// Teams that share a pose when sums over poses are wanted: one where poses fill the device, more for few
/// poses.
template <class ExecutionSpace>
int parts_per_pose(const ExecutionSpace& space, std::int64_t poses, int tiles_per_pose) {
  const std::int64_t teams = is_host<ExecutionSpace> ? space.concurrency() : space.concurrency() / 128;
  return static_cast<int>(std::clamp<std::int64_t>(teams / poses, 1, tiles_per_pose));
}

template <class Space, class Kernel, class T, int M, int D, class Volume>
struct GatherBricks;

/// Gather on GPUs: from bricks of the reconstruction in scratch where windows are wide and poses many enough
/// to pay for copying the bricks (measured: docs/performance.md), else directly.
template <class ExecutionSpace, class Kernel, class T, int M, int D, Mates mates, class Volume>
void launch_gather_tiles(const ExecutionSpace& space, const std::string& label,
                         const Gather<Kernel, T, M, D, mates, Volume>& gather, std::int64_t poses) {
  if constexpr (mates == Mates::Single && M == 2 && D == 3 && Kernel::width > 2 && sizeof(T) == 4) {
    const auto& samples = gather.amplitudes.samples;
    const int* const size = samples.reconstruction.size;
    if (samples.poses >= 1024 && *std::min_element(size, size + D) >= 64)
      return GatherBricks<ExecutionSpace, Kernel, T, M, D, Volume>(gather).launch(space, label);
  }
  launch_tiles<(Kernel::width > 2 ? 3 : 0)>(space, label, gather, poses, gather.tiles.per_pose);
}

/// Launches the gather alone.
template <class ExecutionSpace, class Kernel, class T, int M, int D, Mates mates, class Volume>
void launch_gather(const ExecutionSpace& space, const std::string& label,
                   const Gather<Kernel, T, M, D, mates, Volume>& gather) {
  const std::int64_t poses = gather.amplitudes.samples.batches * gather.amplitudes.samples.poses;
  if (poses == 0)
    return;
  if constexpr (is_host<ExecutionSpace>)
    launch_gather_rows<Kernel, T, M, D, mates>(space, label, gather, poses);
  else
    launch_gather_tiles(space, label, gather, poses);
}

/// Launches the gather alone, or, where gradients with respect to poses are wanted, both in one pass.
template <class ExecutionSpace, class Kernel, class T, int M, int D, Mates mates>
void launch_gather(const ExecutionSpace& space, const std::string& label,
                   const Gather<Kernel, T, M, D, mates>& gather, T* matrices, T* shifts) {
  if (matrices == nullptr && shifts == nullptr)
    return launch_gather(space, label, gather);
  const std::int64_t poses = gather.amplitudes.samples.batches * gather.amplitudes.samples.poses;
  if (poses == 0)
    return;
  const int parts = parts_per_pose(space, poses, gather.tiles.per_pose);
  launch_tiles(space, label + "::poses",
               GatherGradients<Kernel, T, M, D, mates>{gather, gather.tiles, parts, matrices, shifts}, poses,
               parts);
}

} // namespace Bracewell::Impl

#include <bracewell/project/gather_bricks.hpp>
