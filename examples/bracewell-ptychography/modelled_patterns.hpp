// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/job.hpp"
#include "bracewell-ptychography/solver_views.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace Bracewell::Examples {

/// A pattern as it was measured, and as it is modelled.
struct ComparedPattern {
  std::int64_t number; ///< of the measurement
  std::vector<float> measured,
      modelled; ///< [n, n], zero frequency in the middle (near field: as in the file); NaN where the
                ///< weight is zero
};

/// Some patterns of this process and their models, by what a solver has found.
/// @param which  of this process' patterns
std::vector<ComparedPattern> compare_with_model(const Space& space, const Job& job, const SolverViews& found,
                                                std::span<const std::int64_t> which);

/// Draws the patterns one below the other: measured, modelled.
void write_compared_patterns(const std::filesystem::path& path, const std::vector<ComparedPattern>& patterns);

} // namespace Bracewell::Examples
