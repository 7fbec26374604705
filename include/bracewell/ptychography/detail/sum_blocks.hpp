// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/ptychography/detail/compare_lines.hpp>

namespace Bracewell::Impl {

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

  using Member = typename Kokkos::TeamPolicy<Space>::member_type;

  static void launch(const Space& space, const SumBlocks& kernel) {
    Kokkos::parallel_for(
        "Bracewell::PtychographyLoss::sum_blocks",
        Kokkos::TeamPolicy<Space>(space, static_cast<int>(kernel.selection.count), is_host<Space> ? 1 : 32),
        kernel);
  }

  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const std::int64_t i = member.league_rank();
    double first = 0, second = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, blocks),
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
    const double counts = targets.counts;
    switch (of) {
    case Of::Energies:
      pattern = {static_cast<T>(first > 0 ? counts / (first * gain) : 0.0), 0, 0};
      return;
    case Of::Means:
      pattern = {static_cast<T>(first > 0 ? counts * second / first : 0.0), 0, 0};
      return;
    case Of::Slopes:
      pattern.mean_slope = static_cast<T>(second > 0 ? first / second : 0.0);
      return;
    case Of::Losses:
      losses[i] = targets.loss(selection(i), first, norm, pixels);
      const double slope = slope_unit(loss) * double(norm) * pattern.scale * second; // sum dL/dI sum |Psi|^2
      if (counts > 0)
        pattern.wave_factor = static_cast<T>(2 * slope * gain * pattern.scale / counts);
      if (factor_gradient)
        factor_gradient[selection(i)] = static_cast<T>(slope);
    }
  }
};

} // namespace Bracewell::Impl
