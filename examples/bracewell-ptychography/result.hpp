// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/job.hpp"
#include "bracewell-ptychography/object_file.hpp"
#include "bracewell-ptychography/solver_views.hpp"
#include "bracewell-ptychography/start.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// What the first process writes, and draws: with all but some pixels of the object. Collective.
/// @param losses       of every pass, and at the end
/// @param of_patterns  of the patterns of this process, at the end
Reconstruction collect(const Space& space, const Job& job, const SolverViews& found,
                       std::vector<double> losses, std::span<const float> of_patterns);

/// Writes options.out and its pictures, in the first process. Collective.
void write_result(const Space& space, const Job& job, const SolverViews& found, const Reconstruction& result);

/// The line that ends a run.
/// @param bytes  on the device
/// Warns of a result that explains the patterns hardly better than an empty place, with options to try.
/// @param losses  of the passes, and at the end
void judge(const Job& job, const Totals& totals, const std::vector<double>& losses);

std::string summary(const Job& job, const Reconstruction& result, const Totals& totals, std::size_t bytes,
                    double seconds);

} // namespace Bracewell::Examples
