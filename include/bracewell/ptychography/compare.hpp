// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/ptychography/detail/pattern_term.hpp>
#include <bracewell/ptychography/exit_wave.hpp>

namespace Bracewell {

namespace Impl {

/// Measured patterns as a plan keeps them.
template <class T, class Storage>
struct Targets {
  const Storage* values; ///< [N, n, n]
  const T* means;        ///< [N]: mean of t; 0 for patterns without counts, which do not count (null: all do)
  const T* units;        ///< [N]: of counts in half precision, 0 where roots are stored; or null
  const T* pixel_weights;  ///< [N, n, n] or null
  const double* constants; ///< [N]: what the reduced grid leaves out of sum (J - t)^2 / n^2, or null
  T counts;                ///< C, or 0 where patterns are not scaled
  bool masked;             ///< some pixels may not count

  /// The loss of pattern j from what was summed over its pixels.
  KOKKOS_INLINE_FUNCTION double loss(std::int64_t j, double sum, T norm, double pixels) const {
    return double(norm) * (sum + (constants && means[j] > 0 ? constants[j] * pixels : 0));
  }
};

/// Waves on the detector, [patterns, modes, n, n]: writes the loss of every pattern and replaces the waves by
/// the gradient of the loss with respect to them. A team per pattern, sums in fixed order.
///   m = sum w I / sum w, J = I C / m, L_j = sum w l(J, t),
///   dL/dI = w (C / m) (l'(J) - c), c = sum(w l' I) / sum(w I), G = 2 Psi dL/dI.
template <class Space, class T, class Storage, PatternLoss kind>
struct ComparePatterns {
  static constexpr int team_size = is_host<Space> ? 1 : 256;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  Kokkos::complex<T>* waves;
  Selection selection;
  Targets<T, Storage> targets;
  T background;
  int modes;
  std::int64_t pixels;
  T norm; ///< 1 / (patterns pixels)
  double* losses;
  bool gradients;

  KOKKOS_INLINE_FUNCTION T intensity(const Kokkos::complex<T>* wave, std::int64_t k) const {
    T sum = 0;
    for (int mode = 0; mode < modes; ++mode) {
      const Kokkos::complex<T> value = wave[mode * pixels + k];
      sum += value.real() * value.real() + value.imag() * value.imag();
    }
    return sum;
  }

  KOKKOS_INLINE_FUNCTION T weight(std::int64_t at, T stored) const {
    return targets.masked && stored < 0 ? T(0) : targets.pixel_weights ? targets.pixel_weights[at] : T(1);
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t i = team.league_rank(), j = selection(i), at = j * pixels;
    Kokkos::complex<T>* const wave = waves + i * modes * pixels;
    const PatternTerm<kind, T, Storage> term{background, targets.units ? targets.units[j] : T(0)};
    const auto range = Kokkos::TeamThreadRange(team, pixels);
    double total = 0, weights = 0;
    if (targets.counts > 0) {
      Kokkos::parallel_reduce(
          range,
          [&](std::int64_t k, double& sum, double& sum_weights) {
            const T w = weight(at + k, static_cast<T>(targets.values[at + k]));
            sum += double(w) * intensity(wave, k);
            sum_weights += double(w);
          },
          total, weights);
    }
    const bool counted = (!targets.means || targets.means[j] > 0) && (targets.counts == 0 || total > 0);
    const T scale = targets.counts == 0 || !counted ? T(1) : static_cast<T>(targets.counts * weights / total);
    double loss = 0, moment = 0;
    if (counted)
      Kokkos::parallel_reduce(
          range,
          [&](std::int64_t k, double& sum, double& sum_moment) {
            const T stored = static_cast<T>(targets.values[at + k]), w = weight(at + k, stored);
            if (w > 0) {
              T value, slope;
              const T I = intensity(wave, k);
              term(scale * I, stored, value, slope);
              sum += double(w) * value;
              sum_moment += double(w * slope) * I;
            }
          },
          loss, moment);
    Kokkos::single(Kokkos::PerTeam(team), [&]() { losses[i] = targets.loss(j, loss, norm, double(pixels)); });
    if (!gradients)
      return;
    const T mean_slope = targets.counts == 0 || !counted ? T(0) : static_cast<T>(moment / total);
    Kokkos::parallel_for(range, [&](std::int64_t k) {
      const T stored = static_cast<T>(targets.values[at + k]), w = weight(at + k, stored);
      T factor = 0;
      if (counted && w > 0) {
        T value, slope;
        term(scale * intensity(wave, k), stored, value, slope);
        factor = 2 * slope_unit(kind) * norm * scale * w * (slope - mean_slope);
      }
      for (int mode = 0; mode < modes; ++mode)
        wave[mode * pixels + k] *= factor;
    });
  }
};

/// Sum of the losses of all patterns by one team, in fixed order.
template <class Space>
struct SumLosses {
  static constexpr int team_size = is_host<Space> ? 1 : 1024;
  using Team = typename Kokkos::TeamPolicy<Space>::member_type;

  const double* losses;
  std::int64_t count;
  double* loss;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    double sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, count), [&](std::int64_t i, double& partial) { partial += losses[i]; },
        sum);
    Kokkos::single(Kokkos::PerTeam(team), [&]() { *loss = sum; });
  }
};

} // namespace Impl

/// How compare_patterns compares, as in PtychographyOptions.
struct ComparisonOptions {
  PatternLoss loss = PatternLoss::LeastSquares;
  double counts = 0;        ///< C: patterns are scaled to this mean; 0: they are not scaled
  double background = 1e-3; ///< of PatternLoss::Poisson
  bool gradients = true;    ///< also replace the waves by the gradient
};

/// Losses of patterns, L_j = 1 / (N n^2) sum_k l(J_jk, t_jk) with J = I C / mean(I) or J = I, and the
/// gradient of their sum with respect to the waves.
/// @param waves    View [N, modes, n, n]: waves on the detector, replaced by dL/dRe + i dL/dIm
/// @param targets  View of T [N, n, n]: t, scaled already; roots of t for PatternLoss::Amplitude. Where
///   negative, the pixel does not count
/// @param losses   View of double [N]; overwritten
/// @throws Error on shapes that do not fit
template <class ExecutionSpace, class WavesView, class TargetsView, class LossesView>
void compare_patterns(const ExecutionSpace& space, const WavesView& waves, const TargetsView& targets,
                      const LossesView& losses, const ComparisonOptions& options = {}) {
  using T = Impl::real_of<WavesView>;
  using Memory = typename ExecutionSpace::memory_space;
  const Array<Kokkos::complex<T>, Memory> w(waves);
  const Array<const T, Memory> t(targets);
  const Array<double, Memory> l(losses);
  if (w.rank != 4 || w.extents[2] != w.extents[3] || w.size() == 0)
    Impl::fail("compare_patterns", "waves", "[N, modes, n, n]", w.shape());
  if (t.rank != 3 || t.extents[0] != w.extents[0] || t.extents[1] != w.extents[2] ||
      t.extents[2] != w.extents[3])
    Impl::fail("compare_patterns", "targets", "[N, n, n] as the waves " + w.shape(), t.shape());
  if (l.rank != 1 || l.size() != w.extents[0])
    Impl::fail("compare_patterns", "losses", "[" + std::to_string(w.extents[0]) + "]", l.shape());
  const std::int64_t pixels = w.extents[2] * w.extents[3];
  const Impl::Targets<T, T> measured{
      t.data, nullptr, nullptr, nullptr, nullptr, static_cast<T>(options.counts), true};
  Impl::visit(options.loss, [&](auto kind) {
    using Compare = Impl::ComparePatterns<ExecutionSpace, T, T, decltype(kind)::value>;
    Kokkos::parallel_for(
        "Bracewell::compare_patterns::compare",
        Kokkos::TeamPolicy<ExecutionSpace>(space, static_cast<int>(w.extents[0]), +Compare::team_size),
        Compare{w.data,
                {nullptr, 0, w.extents[0]},
                measured,
                static_cast<T>(options.background),
                static_cast<int>(w.extents[1]),
                pixels,
                T(1) / (T(w.extents[0]) * T(pixels)),
                l.data,
                options.gradients});
  });
}

} // namespace Bracewell
