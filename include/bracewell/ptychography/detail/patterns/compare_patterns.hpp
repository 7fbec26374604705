// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/host_tasks.hpp>
#include <bracewell/ptychography/detail/scan_store.hpp>
#include <bracewell/ptychography/detail/targets.hpp>
#include <bracewell/ptychography/detail/team_sums.hpp>
#include <bracewell/ptychography/detail/tuning.hpp>

namespace Bracewell::Impl {

/// What a detector sees beside the waves, and the gradients with respect to it; what is null is not there.
template <class T>
struct DetectorTerms {
  const T* factors = nullptr;    ///< h [N]
  const T* background = nullptr; ///< B [n, n]
  T* factor_gradient = nullptr;  ///< [N]
  T* slopes = nullptr;           ///< dL/dI [patterns, n, n], which add up to the gradient of the background
};

/// dL/dB = sum_j dL/dI_j, in rising order.
template <class T>
struct SumSlopes {
  const T* slopes;
  std::int64_t pixels, patterns;
  T* gradient;
  bool accumulate;

  KOKKOS_FUNCTION void operator()(std::int64_t pixel) const {
    T sum = accumulate ? gradient[pixel] : T(0);
    for (std::int64_t i = 0; i < patterns; ++i)
      sum += slopes[i * pixels + pixel];
    gradient[pixel] = sum;
  }
};

/// Waves on the detector, [patterns, modes, n, n]: writes the loss of every pattern and replaces the waves by
/// the gradient of the loss with respect to them. A team per pattern, sums in fixed order.
///   m = sum w I / sum w, J = I C / m, L_j = sum w l(J, t),
///   dL/dI = w (C / m) (l'(J) - c), c = sum(w l' I) / sum(w I), G = 2 Psi dL/dI,
/// with a factor and a background I = h sum |Psi|^2 + B, G = 2 h Psi dL/dI, dL/dh = sum_k dL/dI sum |Psi|^2.
template <class Space, class T, class Storage, PatternLoss kind>
struct ComparePatterns {
  static constexpr int team_size = is_host<Space> ? 1 : PtychographyTuning::pattern_threads;
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
  DetectorTerms<T> detector;

  KOKKOS_INLINE_FUNCTION T energy(const Kokkos::complex<T>* wave, std::int64_t k) const {
    T sum = 0;
    for (int mode = 0; mode < modes; ++mode) {
      const Kokkos::complex<T> value = wave[mode * pixels + k];
      sum += value.real() * value.real() + value.imag() * value.imag();
    }
    return sum;
  }

  KOKKOS_INLINE_FUNCTION T intensity(const Kokkos::complex<T>* wave, T scale, std::int64_t k) const {
    const T sum = scale * energy(wave, k);
    return detector.background ? sum + detector.background[k] : sum;
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t i = team.league_rank(), j = selection(i), at = targets.row(i, j) * pixels;
    Kokkos::complex<T>* const wave = waves + i * modes * pixels;
    const PatternTerm<kind, T, Storage> term{background, targets.units ? targets.units[j] : T(0)};
    const T h = detector.factors ? detector.factors[j] : T(1);
    const auto range = Kokkos::TeamThreadRange(team, pixels);
    double total = 0, weights = 0;
    if (targets.scaled) {
      team_sums<Space>(
          team, pixels,
          [&](std::int64_t k, double& sum, double& sum_weights) {
            const T w = pixel_weight(targets, at + k, static_cast<T>(targets.values[at + k]));
            sum += double(w) * intensity(wave, h, k);
            sum_weights += double(w);
          },
          total, weights);
    }
    const bool counted = !targets.means || targets.means[j] > 0;
    const T scale =
        targets.scaled ? static_cast<T>(scale_of(double(targets.mean(j)) * weights, total)) : T(1);
    double loss = 0, moment = 0;
    if (counted)
      team_sums<Space>(
          team, pixels,
          [&](std::int64_t k, double& sum, double& sum_moment) {
            const T stored = static_cast<T>(targets.values[at + k]),
                    w = pixel_weight(targets, at + k, stored);
            if (w > 0) {
              T value, slope;
              const T I = intensity(wave, h, k);
              term(scale * I, stored, value, slope);
              sum += double(w) * value;
              sum_moment += double(w * slope) * I;
            }
          },
          loss, moment);
    Kokkos::single(Kokkos::PerTeam(team), [&]() { losses[i] = targets.loss(j, loss, norm, double(pixels)); });
    if (!gradients)
      return;
    const T mean_slope = static_cast<T>(total > 0 ? moment / total : 0.0);
    const auto slope_of = [&](std::int64_t k) { // dL/dI
      const T stored = static_cast<T>(targets.values[at + k]), w = pixel_weight(targets, at + k, stored);
      if (!counted || !(w > 0))
        return T(0);
      T value, slope;
      term(scale * intensity(wave, h, k), stored, value, slope);
      return slope_unit(kind) * norm * scale * w * (slope - mean_slope);
    };
    if (detector.factor_gradient || detector.slopes) {
      double sum = 0;
      team_sums<Space>(
          team, pixels,
          [&](std::int64_t k, double& partial) {
            const T slope = slope_of(k);
            partial += double(slope) * energy(wave, k);
            if (detector.slopes)
              detector.slopes[i * pixels + k] = slope;
          },
          sum);
      Kokkos::single(Kokkos::PerTeam(team), [&]() {
        if (detector.factor_gradient)
          detector.factor_gradient[j] = static_cast<T>(sum);
      });
    }
    Kokkos::parallel_for(range, [&](std::int64_t k) {
      const T factor = 2 * h * slope_of(k);
      for (int mode = 0; mode < modes; ++mode)
        wave[mode * pixels + k] *= factor;
    });
  }
};

/// Launches the comparison; it becomes a kernel of its own for every loss.
template <class Storage, class Space, class T>
void compare_waves(const Space& space, const char* label, PatternLoss loss, Kokkos::complex<T>* waves,
                   const Selection& selection, const Targets<T, Storage>& targets, T background, int modes,
                   std::int64_t pixels, T norm, double* losses, bool gradients,
                   const DetectorTerms<T>& detector = {}) {
  visit_loss(loss, [&](auto kind) {
    using Compare = ComparePatterns<Space, T, Storage, decltype(kind)::value>;
    launch_teams(
        label, space, selection.count,
        Compare{waves, selection, targets, background, modes, pixels, norm, losses, gradients, detector});
  });
}

} // namespace Bracewell::Impl
