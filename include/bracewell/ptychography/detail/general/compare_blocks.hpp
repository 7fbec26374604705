// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/division.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/ptychography/detail/patterns/compare_patterns.hpp>
#include <bracewell/ptychography/detail/patterns/pattern_sums.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>

namespace Bracewell::Impl {

/// What ComparePatterns does, by a team for each block of pixels: few patterns fill a GPU, too. What is known of a pattern
/// only when all of its blocks have been seen, SumBlocks adds before the next launch; where patterns are not scaled, there is
/// one, which reads the waves once.
template <class Space, class T, class Storage, PatternLoss kind>
struct CompareBlocks {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::pattern_threads;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  Kokkos::complex<T>* waves; ///< [patterns, modes, n, n]
  Selection selection;
  Targets<T, Storage> targets;
  T background;
  int modes;
  std::int64_t pixels;
  Divisor blocks; ///< of a pattern
  T norm;
  const PatternSums<T>* patterns;
  double* sums; ///< [patterns, blocks, 2]
  CompareTask task;
  bool gradients;
  DetectorTerms<T> detector; ///< but for the gradient of factors

  /// Blocks of a pattern.
  static int count(std::int64_t pixels) {
    return static_cast<int>((pixels + PtychographyTuning::team_pixels - 1) / PtychographyTuning::team_pixels);
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    std::uint32_t block = static_cast<std::uint32_t>(team.league_rank());
    const std::int64_t i = blocks.divide(block), j = selection(i), at = targets.row(i, j) * pixels;
    const std::int64_t begin = std::int64_t(block) * PtychographyTuning::team_pixels,
                       end = Kokkos::min(begin + PtychographyTuning::team_pixels, pixels);
    Kokkos::complex<T>* const wave = waves + i * modes * pixels;
    const bool counts = !targets.means || targets.means[j] > 0;
    const auto compare = compare_pixel<kind>(task, targets, j, background, norm, patterns[i]);
    const T h = detector.factors ? detector.factors[j] : T(1);
    const bool writes = task == CompareTask::Compare && (gradients || detector.slopes);
    double first = 0, second = 0;
    for (std::int64_t k = begin + team.team_rank(); k < end; k += team.team_size()) {
      T factor = 0;
      if (counts) {
        const T t = static_cast<T>(targets.values[at + k]);
        T energy = 0, a = 0, b = 0;
        for (int mode = 0; mode < modes; ++mode) {
          const Kokkos::complex<T> value = wave[mode * pixels + k];
          energy += value.real() * value.real() + value.imag() * value.imag();
        }
        const T intensity = h * energy + (detector.background ? detector.background[k] : T(0));
        factor = compare(energy, intensity, t, pixel_weight(targets, at + k, t), a, b);
        first += a, second += b;
      }
      if (!writes)
        continue;
      if (detector.slopes)
        detector.slopes[i * pixels + k] = factor / 2;
      for (int mode = 0; mode < modes; ++mode) // from the cache
        wave[mode * pixels + k] *= h * factor;
    }
    write_team_sums<Space>(team, first, second, sums + 2 * std::int64_t(team.league_rank()));
  }
};

/// What a comparison in blocks needs beside the waves.
template <class T>
struct BlockSums {
  PatternSums<T>* patterns; ///< [patterns]
  double* sums;             ///< [patterns, blocks, 2]
};

/// All launches of a comparison. Where patterns are not scaled, `workspace.patterns` are {1, 0, 0}.
template <class Storage, class Space, class T>
void compare_in_blocks(const Space& space, PatternLoss loss, Kokkos::complex<T>* waves,
                       const Selection& selection, const Targets<T, Storage>& targets, T background,
                       int modes, std::int64_t pixels, T norm, double* losses, bool gradients,
                       const DetectorTerms<T>& detector, const BlockSums<T>& workspace) {
  using Sum = SumBlocks<Space, T, Storage>;
  visit_loss(loss, [&](auto kind) {
    using Compare = CompareBlocks<Space, T, Storage, decltype(kind)::value>;
    const int blocks = Compare::count(pixels);
    const auto pass = [&](const char* label, CompareTask task, typename Sum::Of of) {
      launch_teams(label, space, selection.count * blocks,
                   Compare{waves, selection, targets, background, modes, pixels,
                           Divisor(static_cast<std::uint32_t>(blocks)), norm, workspace.patterns,
                           workspace.sums, task, gradients, detector});
      Sum::launch(space, Sum{of, workspace.sums, blocks, selection, targets, loss, norm, double(pixels), 0,
                             workspace.patterns, losses, detector.factor_gradient});
    };
    if (targets.scaled) {
      pass("Bracewell::PtychographyLoss::means", CompareTask::Mean, Sum::Of::Means);
      pass("Bracewell::PtychographyLoss::slopes", CompareTask::Slope, Sum::Of::Slopes);
    }
    pass("Bracewell::PtychographyLoss::compare", CompareTask::Compare, Sum::Of::Losses);
  });
}

} // namespace Bracewell::Impl
