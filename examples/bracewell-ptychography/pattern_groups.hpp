// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/measurement.hpp"
#include "common/pipeline.hpp"
#include "common/views.hpp"

#include <functional>
#include <vector>

namespace Bracewell::Examples {

using PatternGroup = Part<const float***>; ///< [count, n, n] on the device

/// All patterns of a measurement, in groups that are read by several threads while others are worked on.
/// @param work  called with the number of the group's first pattern and the patterns, zero frequency at [0, 0] (near
///   field: as in the file), zero where the weight is zero, negative counts as zero; in order, on this thread
/// @param sums  [n, n]: over all patterns
/// Throws InputError for values that are not finite.
std::vector<StageTime> for_each_group(const Space& space, const Measurement& measurement,
                                      const std::function<void(std::int64_t, const PatternGroup&)>& work,
                                      std::vector<double>& sums);

/// Bytes that it has at once.
double bytes_for_groups(const Measurement& measurement);

} // namespace Bracewell::Examples
