// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/measurement.hpp"
#include "common/views.hpp"

#include <optional>

namespace Bracewell::Examples {

/// Looks through patterns, before any are used, for pixels that did not count: those that are mostly negative, that hold the
/// greatest values of their type, that are always the same, that never count among pixels that do, and that count far more
/// than all neighbours. Masks them, and says how many of each kind there are and how much of the light a mask leaves.
/// Returns the counts of a bright pixel, sum m^2 / sum m of the mean pattern m; nothing where values are no whole numbers.
std::optional<double> mask_detector_faults(const Space& space, Measurement& measurement,
                                           Provenance& provenance);

} // namespace Bracewell::Examples
