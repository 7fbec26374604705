// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/job.hpp"
#include "bracewell-ptychography/solver_views.hpp"

#include <cmath>
#include <complex>
#include <vector>

namespace Bracewell::Examples {

using Probe = std::vector<std::complex<float>>; ///< [modes, m, m]

/// Sums over the patterns, for starting values and for the record.
struct Totals {
  double counts = 0;                ///< of all good pixels
  std::vector<double> pattern = {}; ///< [n, n], summed over the scan
  std::vector<double> roots = {};   ///< [n, n]: of the square roots of the same
  std::vector<double> logs = {};    ///< [n, n]: of t log t of counts t

  /// The root of the mean count of a pixel.
  double root(const Job& job) const {
    return std::sqrt(counts / double(job.measurement().count()) / double(pattern.size()));
  }
};

double energy(const Probe& probe);

/// The probe to start from: that of a lens, of the file, or of the mean pattern, in this order.
Probe first_probe(const Space& space, const Job& job, const Totals& totals);

/// Fills a solver's arrays with what it starts from.
void set_start(const Space& space, const Job& job, const SolverViews& own, const Probe& probe,
               const Totals& totals);

} // namespace Bracewell::Examples
