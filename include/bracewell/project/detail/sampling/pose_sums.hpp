// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/project/detail/sampling/padded_windows.hpp>
#include <bracewell/project/detail/sampling/sampler.hpp>
#include <bracewell/project/detail/tiles.hpp>
#include <bracewell/project/detail/tuning.hpp>
#include <bracewell/project/pose_sums.hpp>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace Bracewell::Impl {

/// Where SamplePoseSums adds the gradients.
template <class T>
struct PoseGradients {
  T *matrices, *shifts; ///< like those of Samples; null: not wanted
  bool in_order;        ///< the samples of a pose are summed in one order, whatever the threads
};

/// Samples, and with them the gradients with respect to matrices and shifts: both are sums over the samples
/// of a pose of Re(conj(amplitude) dF) with dF the sampled volume's gradient, times k and times -2 pi i k / n.
/// Spectra are stored ones, or padded copies.
template <class Sampler, class Spectra>
struct SamplePoseSums {
  using Kernel = typename Sampler::Kernel;
  using T = typename Sampler::Real;
  static constexpr int M = Sampler::projected_dimensions, D = Sampler::dimensions;
  static constexpr int width = Kernel::width;
  static constexpr bool padded = !std::is_same_v<Spectra, StoredSpectra<typename Sampler::Stored>>;

  Sampler sampler; ///< its `volumes` are not used
  CopiedPositions<width, T, D> copied;
  Spectra spectra;
  PoseGradients<T> gradients;
  Tiles<M> tiles;
  std::int64_t first_pose = 0; ///< of batch and pose axes in one sequence
  int parts = 1;               ///< teams that share a pose

  template <class ExecutionSpace>
  SamplePoseSums(const ExecutionSpace& space, const Sampler& sampler_, const Spectra& spectra_,
                 const PoseGradients<T>& gradients_)
      : sampler(sampler_), copied(sampler_.amplitudes.samples.reconstruction), spectra(spectra_),
        gradients(gradients_),
        tiles(gradients.in_order ? Tiles<M>::of_rows(sampler.amplitudes.samples.projection,
                                                     ProjectionTuning::pose_sum_most_rows)
                                 : Tiles<M>::make(space, sampler.amplitudes.samples.projection, poses(),
                                                  ProjectionTuning::pose_sum_most_rows)) {}

  /// One team per pose, or more for few poses unless sums are in order, in as few launches as a league of 2^31
  /// teams allows.
  template <class ExecutionSpace>
  void launch(const ExecutionSpace& space, const Label& label) {
    constexpr bool host = is_host<ExecutionSpace>;
    constexpr int team_size = host ? 1 : ProjectionTuning::pose_sum_threads;
    constexpr int resident = ProjectionTuning::pose_sum_teams(width);
    const std::int64_t teams = space.concurrency() / (host ? 1 : 128);
    if (!gradients.in_order)
      parts = static_cast<int>(std::clamp<std::int64_t>(teams / poses(), 1, tiles.per_pose));
    const std::int64_t most = std::numeric_limits<int>::max() / parts;
    for (; first_pose < poses(); first_pose += most) {
      const int league = static_cast<int>(std::min(most, poses() - first_pose)) * parts;
      using Bounds =
          std::conditional_t<resident == 0, Kokkos::LaunchBounds<>,
                             Kokkos::LaunchBounds<team_size, resident_teams<ExecutionSpace>(resident)>>;
      using Policy =
          Kokkos::TeamPolicy<ExecutionSpace, Bounds, Kokkos::Schedule<Kokkos::Dynamic>>; // corners: no work
      Kokkos::parallel_for(label, Policy(space, league, team_size), *this);
    }
  }

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    constexpr int lanes = tile_lanes<typename Team::execution_space>;
    const auto& samples = sampler.amplitudes.samples;
    const std::int64_t flat = first_pose + team.league_rank() / parts;
    const int part = team.league_rank() % parts;
    std::int64_t batch, index;
    samples.split(flat, batch, index);
    const auto pose = samples.pose(batch, index, padded);
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
    Kokkos::single(Kokkos::PerTeam(team), [&]() { add_to_gradients(batch, index, sums); });
  }

  KOKKOS_INLINE_FUNCTION void sample(std::int64_t batch, std::int64_t index, const Pose<T, M, D>& pose,
                                     const int (&k)[M], std::int64_t element, PoseSums<T, M, D>& sum) const {
    const auto& amplitudes = sampler.amplitudes;
    const auto& samples = amplitudes.samples;
    const std::int64_t output = (batch * samples.poses + index) * samples.projection.elements() + element;
    Kokkos::complex<T> value(0);
    T weight(0);
    if (samples.inside(k)) {
      T q[D];
      pose.position(k, q);
      T slope[D] = {};
      Kokkos::complex<T> sampled(0), gradient[D];
      Stencil<Kernel, D, Sampler::mates, T> stencil;
      bool usable = true;
      if constexpr (padded)
        usable = sample_padded(batch, q, pose.folds, sampled, gradient);
      if (!padded || sampler.weight_volumes)
        usable = stencil.place(samples.reconstruction, q, pose.folds) && usable;
      if (usable) {
        if (spectra) {
          if constexpr (!padded)
            sampled = stencil.gather(spectra.data + batch * spectra.batch_stride, gradient);
          sampled = spectra.gain.restored(sampled);
          const Kokkos::complex<T> phase = samples.phase(pose, k);
          const Kokkos::complex<T> amplitude = amplitudes.value(batch, index, element, k, phase);
          value = amplitudes.factor(batch, index, element, k) * sampled * phase;
          for (int d = 0; d < D; ++d)
            slope[d] = spectra.gain.restored(amplitude.real() * gradient[d].real() +
                                             amplitude.imag() * gradient[d].imag());
          sum.add_turn(k, amplitude.real() * sampled.imag() - amplitude.imag() * sampled.real());
        }
        if (sampler.weight_volumes) {
          T weight_gradient[D];
          const T* const volume = sampler.weight_volumes.data + batch * sampler.weight_volumes.batch_stride;
          weight = amplitudes.scale(k) * stencil.gather(volume, weight_gradient, sampler.absolute);
          const T amplitude = amplitudes.weight(batch, index, element, k);
          for (int d = 0; d < D; ++d)
            slope[d] += amplitude * weight_gradient[d];
        }
        sum.add_slope(k, slope, pose.curved);
      } else {
        spoil(value, weight, sum);
      }
    }
    if (sampler.values)
      sampler.values[output] = value;
    if (sampler.weights)
      sampler.weights[output] = weight;
  }

private:
  /// The sampled copy and its gradient at a position; false where none can be placed there.
  KOKKOS_INLINE_FUNCTION bool sample_padded(std::int64_t batch, const T (&position)[D], bool folds,
                                            Kokkos::complex<T>& sampled,
                                            Kokkos::complex<T> (&gradient)[D]) const {
    T q[D];
    for (int d = 0; d < D; ++d)
      q[d] = position[d];
    bool mirrored = false;
    if (!copied.bring_back(q, folds, mirrored))
      return false;
    sampled = sum_of_window<Kernel, true>(spectra.order, spectra(batch), q, gradient);
    if (mirrored) {
      sampled = conjugate(sampled);
      for (int d = 0; d < D; ++d)
        gradient[d] = -conjugate(gradient[d]);
    }
    return true;
  }

  /// Makes no numbers of what a position gives that is none.
  KOKKOS_FORCEINLINE_FUNCTION static void spoil(Kokkos::complex<T>& value, T& weight,
                                                PoseSums<T, M, D>& sum) {
    weight = Kokkos::Experimental::quiet_NaN_v<T>;
    value = Kokkos::complex<T>(weight, weight);
    sum.matrix[0][0] = weight;
    sum.shift[0] = weight;
  }

  std::int64_t poses() const { return sampler.amplitudes.samples.batches * sampler.amplitudes.samples.poses; }

  KOKKOS_INLINE_FUNCTION void add_to_gradients(std::int64_t batch, std::int64_t index,
                                               const PoseSums<T, M, D>& sums) const {
    const auto& samples = sampler.amplitudes.samples;
    if (gradients.matrices) {
      T* const m = gradients.matrices + samples.matrices.offset(batch, index);
      for (int d = 0; d < D; ++d) {
        for (int c = 0; c < M; ++c)
          Kokkos::atomic_add(m + d * D + c, samples.oversampling * sums.matrix[d][c]);
        if (samples.curved())
          Kokkos::atomic_add(m + d * D + D - 1, samples.oversampling * samples.curvature * sums.bend[d]);
      }
    }
    if (gradients.shifts) {
      T* const s = gradients.shifts + samples.shifts.offset(batch, index);
      for (int c = 0; c < M; ++c)
        Kokkos::atomic_add(s + M - 1 - c,
                           2 * Kokkos::numbers::pi_v<T> * samples.inverse_size[c] * sums.shift[c]);
    }
  }
};

} // namespace Bracewell::Impl
