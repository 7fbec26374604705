// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/ptychography/detail/patterns/compare_patterns.hpp>
#include <bracewell/ptychography/solver_options.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cstdint>

namespace Bracewell {

/// How compare_patterns compares, as in PtychographyOptions.
struct ComparisonOptions {
  PatternLoss loss = PatternLoss::LeastSquares; ///< how a pattern is compared with its model
  double counts = 0;        ///< C: patterns are scaled to this mean; 0: they are not scaled
  double background = 1e-3; ///< of PatternLoss::Poisson
  bool gradients = true;    ///< also replace the waves by the gradient
};

/// Losses of patterns, L_j = 1 / (N n^2) sum_k l(J_jk, t_jk) with J = I C / mean(I) or J = I. Also the gradient of their sum
/// with respect to the waves. Where I is 0 everywhere, J and the gradient are 0.
/// @param waves    View [N, modes, n, n]: waves on the detector, replaced by dL/dRe + i dL/dIm
/// @param targets  View of T [N, n, n]: t, scaled already; roots of t for PatternLoss::Amplitude. Where
///   negative, the pixel does not count
/// @param losses   View of double [N]; overwritten
/// @throws Error on shapes that do not fit, options that are not finite, and outputs that share memory with each
///   other or with the targets
template <class ExecutionSpace, class WavesView, class TargetsView, class LossesView>
void compare_patterns(const ExecutionSpace& space, const WavesView& waves, const TargetsView& targets,
                      const LossesView& losses, const ComparisonOptions& options = {}) {
  using T = Impl::real_of<WavesView>;
  using Memory = typename ExecutionSpace::memory_space;
  const Array<Kokkos::complex<T>, Memory> w(waves);
  const Array<const T, Memory> t(targets);
  const Array<double, Memory> l(losses);
  const Impl::Arguments check{"compare_patterns"};
  if (w.rank != 4 || w.extents[1] < 1 || w.extents[2] < 1 || w.extents[2] != w.extents[3])
    check.refuse("waves", "[N, modes, n, n], found %s", w.shape_text().characters);
  check.shape("targets", t, {w.extents[0], w.extents[2], w.extents[3]});
  check.shape("losses", l, {w.extents[0]});
  check.within("options.counts", options.counts, 0.0, 1e30);
  check.positive("options.background", options.background);
  check.disjoint({{"waves", w}, {"losses", l}}, {{"targets", t}});
  if (w.extents[0] == 0)
    return;
  Kokkos::Profiling::ScopedRegion region("Bracewell::compare_patterns");
  const std::int64_t pixels = w.extents[2] * w.extents[3];
  const Impl::Targets<T, T> measured{
      t.data, nullptr, nullptr, nullptr, nullptr, static_cast<T>(options.counts), options.counts > 0, true};
  Impl::compare_waves<T>(space, "Bracewell::compare_patterns::compare", options.loss, w.data,
                         {nullptr, 0, w.extents[0]}, measured, static_cast<T>(options.background),
                         static_cast<int>(w.extents[1]), pixels, T(1) / (T(w.extents[0]) * T(pixels)), l.data,
                         options.gradients);
}

namespace Impl {

/// What tells how patterns were counted, of a pixel: its mean m, m^2, and values that are no whole numbers.
template <class T>
struct CountsOfPixel {
  const T *patterns, *weights; ///< [patterns, pixels], and weights that count where positive, or null
  std::int64_t count, pixels, weight_stride;

  KOKKOS_FUNCTION void operator()(std::int64_t pixel, double& sum, double& squares, double& broken) const {
    double mean = 0;
    for (std::int64_t j = 0; j < count; ++j) {
      if (weights && !(weights[j * weight_stride + pixel] > T(0)))
        continue;
      const T value = patterns[j * pixels + pixel];
      mean += double(value) / double(count);
      broken += value != Kokkos::floor(value);
    }
    sum += mean;
    squares += mean * mean;
  }
};

} // namespace Impl

/// Chooses the loss for patterns as counted (PatternScale::None). If all values are whole numbers, PtychographySchedule::loss chooses
/// by the counts of a bright pixel, sum m^2 / sum m of the mean pattern m. Otherwise it is PatternLoss::Amplitude. Waits for the space.
/// @param patterns  View of Real [N, n, n]
/// @param weights   View of Real [n, n] or [N, n, n]: pixels without weight do not count. Empty: all do
/// @throws Error on other shapes
template <class ExecutionSpace, class PatternsView>
PatternLoss choose_pattern_loss(
    const ExecutionSpace& space, const PatternsView& patterns,
    const Array<const Impl::real_of<PatternsView>, typename ExecutionSpace::memory_space>& weights = {}) {
  using T = Impl::real_of<PatternsView>;
  const Array<const T, typename ExecutionSpace::memory_space> given(patterns);
  const Impl::Arguments check{"choose_pattern_loss"};
  if (given.rank != 3 || given.extents[1] != given.extents[2])
    check.refuse("patterns", "[N, n, n], found %s", given.shape_text().characters);
  const std::int64_t count = given.extents[0], n = given.extents[1], pixels = n * n;
  if (weights && weights.rank == 2)
    check.shape("weights", weights, {n, n});
  else if (weights)
    check.shape("weights", weights, {count, n, n});
  if (count == 0)
    return PatternLoss::Amplitude;
  double sum = 0, squares = 0, broken = 0;
  Kokkos::parallel_reduce(
      "Bracewell::choose_pattern_loss",
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, pixels),
      Impl::CountsOfPixel<T>{given.data, weights.data, count, pixels,
                             weights && weights.rank == 3 ? pixels : 0},
      sum, squares, broken);
  return broken == 0 && sum > 0 ? PtychographySchedule::loss(squares / sum) : PatternLoss::Amplitude;
}

} // namespace Bracewell
