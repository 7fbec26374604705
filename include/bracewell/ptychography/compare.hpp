// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/checks.hpp>
#include <bracewell/ptychography/detail/patterns/compare_patterns.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// How compare_patterns compares, as in PtychographyOptions.
struct ComparisonOptions {
  PatternLoss loss = PatternLoss::LeastSquares; ///< how a pattern is compared with its model
  double counts = 0;        ///< C: patterns are scaled to this mean; 0: they are not scaled
  double background = 1e-3; ///< of PatternLoss::Poisson
  bool gradients = true;    ///< also replace the waves by the gradient
};

/// Losses of patterns, L_j = 1 / (N n^2) sum_k l(J_jk, t_jk) with J = I C / mean(I) or J = I, and the
/// gradient of their sum with respect to the waves. Where I is 0 everywhere, J and the gradient are 0.
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
  check.require(w.rank == 4 && w.extents[1] >= 1 && w.extents[2] >= 1 && w.extents[2] == w.extents[3],
                "waves", "[N, modes, n, n]", [&] { return w.shape(); });
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
      t.data, nullptr, nullptr, nullptr, nullptr, static_cast<T>(options.counts), true};
  Impl::compare_waves<T>(space, "Bracewell::compare_patterns::compare", options.loss, w.data,
                         {nullptr, 0, w.extents[0]}, measured, static_cast<T>(options.background),
                         static_cast<int>(w.extents[1]), pixels, T(1) / (T(w.extents[0]) * T(pixels)), l.data,
                         options.gradients);
}

} // namespace Bracewell
