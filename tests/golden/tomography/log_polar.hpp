// One golden case of log-polar back-projection.
#pragma once

#include "gridding.hpp"

namespace Golden {

/// Whether its angles are even over half a turn.
bool suits_log_polar(const TomographyCase& golden);

/// Relative error of the back-projection in the disc.
double run_log_polar(const TomographyCase& golden, bool single_precision);

} // namespace Golden
