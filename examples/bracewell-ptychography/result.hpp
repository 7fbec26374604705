// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/job.hpp"
#include "bracewell-ptychography/object_file.hpp"
#include "bracewell-ptychography/solver_views.hpp"
#include "bracewell-ptychography/start.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// What the first process writes, and draws: with all but some pixels of the object. Collective.
/// @param losses  of every pass, and at the end
Reconstruction collect(const Space& space, const Job& job, const SolverViews& found,
                       std::vector<double> losses);

/// Writes options.out and its pictures, in the first process. Collective.
void write_result(const Space& space, const Job& job, const SolverViews& found, const Reconstruction& result);

/// The line that ends a run.
/// @param bytes  on the device
std::string summary(const Job& job, const Reconstruction& result, const Totals& totals, std::size_t bytes,
                    double seconds);

} // namespace Bracewell::Examples
