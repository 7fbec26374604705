// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/measurement.hpp"
#include "common/pipeline.hpp"
#include "common/views.hpp"

#include <functional>
#include <vector>

namespace Bracewell::Examples {

using PatternGroup = Part<const float***>; ///< [count, n, n] on the device

/// Patterns of a measurement in groups, which are read by several threads while others are worked on.
/// @param which  patterns of the measurement
/// @param work  called with the number of the group's first pattern among these and the patterns, zero frequency at [0, 0] (near
///   field: as in the file), zero where the weight is zero, negative counts as zero, all of a pattern with a value that is not
///   finite; in order, on this thread
/// @param sums  [3, n, n]: over these patterns, of counts t, of their square roots and of t log t
std::vector<StageTime> for_each_group(const Space& space, const Measurement& measurement,
                                      std::span<const std::int64_t> which,
                                      const std::function<void(std::int64_t, const PatternGroup&)>& work,
                                      std::vector<double>& sums);

/// Bytes that it has at once for so many patterns.
double bytes_for_groups(const Measurement& measurement, std::int64_t count);

} // namespace Bracewell::Examples
