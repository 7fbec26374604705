// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/detail/targets.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace Bracewell::Impl {

/// What the comparison knows of a pattern, and what it leaves for it.
template <class T>
struct PatternSums {
  T scale;       ///< of the intensity, to J; scale_of
  T mean_slope;  ///< c = sum(w l' I) / sum(w I), where it has to be known before the comparison
  T wave_factor; ///< of the exit wave, to be taken from its gradient: otherwise
};

/// What the sums of a comparison are, first and second.
enum class CompareTask {
  Mean,    ///< sum w I, sum w
  Slope,   ///< sum w l'(J) I, sum w I
  Compare, ///< sum w l(J), sum w (l'(J) - c) sum |Psi|^2 with the c that is known before; and the gradients
};

/// The comparison of a pixel whose intensity is I, added to both sums; returns 2 dL/dI.
/// @param energy  sum |Psi|^2: I, if there are no factors and no background
template <PatternLoss kind, class T, class Storage>
struct ComparePixel {
  PatternTerm<kind, T, Storage> term;
  CompareTask task;
  T scale, mean_slope; ///< PatternSums
  T unit;              ///< of the gradient

  KOKKOS_FORCEINLINE_FUNCTION T operator()(T energy, T intensity, T target, T weight, T& first,
                                           T& second) const {
    if (task == CompareTask::Mean) {
      first += weight * intensity;
      second += weight;
      return 0;
    }
    if (!(weight > 0))
      return 0;
    T value, slope;
    term(scale * intensity, target, value, slope);
    const bool known = task == CompareTask::Slope;
    first += weight * (known ? slope * intensity : value);
    second += weight * (known ? intensity : (slope - mean_slope) * energy);
    return unit * weight * (slope - mean_slope);
  }
};

template <PatternLoss kind, class T, class Storage>
KOKKOS_FORCEINLINE_FUNCTION ComparePixel<kind, T, Storage>
compare_pixel(CompareTask task, const Targets<T, Storage>& targets, std::int64_t j, T background, T norm,
              const PatternSums<T>& pattern) {
  return {{background, targets.units ? targets.units[j] : T(0)},
          task,
          pattern.scale,
          pattern.mean_slope,
          2 * slope_unit(kind) * norm * pattern.scale};
}

/// Adds what the blocks of every pattern left, and draws the consequence. A team per pattern.
template <class Space, class T, class Storage>
struct SumBlocks {
  enum class Of {
    Energies, ///< of exit waves: the scale of patterns without weights
    Means,    ///< the scale of patterns with weights
    Slopes,   ///< the mean slope of these
    Losses    ///< the losses, and what follows from the second sum of a comparison
  } of;
  const double* sums; ///< [patterns, blocks, 2]
  int blocks;
  Selection selection;
  Targets<T, Storage> targets;
  PatternLoss loss;
  T norm;
  double pixels;
  double gain; ///< mean intensity of an exit wave of energy 1; 0 where wave factors are not asked for
  PatternSums<T>* patterns;
  double* losses;
  T* factor_gradient; ///< [N], or null

  static constexpr int team_size = is_host<Space> ? 1 : 32;
  using Member = typename Kokkos::TeamPolicy<Space>::member_type;

  static void launch(const Space& space, const SumBlocks& kernel) {
    launch_teams("Bracewell::PtychographyLoss::sum_blocks", space, kernel.selection.count, kernel);
  }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const std::int64_t i = member.league_rank();
    double first = 0, second = 0;
    team_sums<Space>(
        member, blocks,
        [&](int block, double& a, double& b) {
          a += sums[2 * (i * blocks + block)];
          b += sums[2 * (i * blocks + block) + 1];
        },
        first, second);
    Kokkos::single(Kokkos::PerTeam(member), [&]() { finish(i, first, second); });
  }

private:
  KOKKOS_INLINE_FUNCTION void finish(std::int64_t i, double first, double second) const {
    PatternSums<T>& pattern = patterns[i];
    const double mean = targets.scaled ? targets.mean(selection(i)) : 0;
    switch (of) {
    case Of::Energies:
      pattern = {static_cast<T>(scale_of(mean, first * gain)), 0, 0};
      return;
    case Of::Means:
      pattern = {static_cast<T>(scale_of(mean * second, first)), 0, 0};
      return;
    case Of::Slopes:
      pattern.mean_slope = static_cast<T>(second > 0 ? first / second : 0.0);
      return;
    case Of::Losses:
      losses[i] = targets.loss(selection(i), first, norm, pixels);
      const double slope = slope_unit(loss) * double(norm) * pattern.scale * second; // sum dL/dI sum |Psi|^2
      if (mean > 0)
        pattern.wave_factor = static_cast<T>(2 * slope * gain * pattern.scale / mean);
      if (factor_gradient)
        factor_gradient[selection(i)] = static_cast<T>(slope);
    }
  }
};

} // namespace Bracewell::Impl
