// One golden case of log-polar back-projection and projection.
#pragma once

#include "gridding.hpp"

namespace Golden {

/// Whether its angles are even over half a turn.
bool suits_log_polar(const TomographyCase& golden);

/// Relative errors of the back-projection in the disc, and of the projection of what is in the disc.
struct LogPolarErrors {
  double backprojection, projection;
};
LogPolarErrors run_log_polar(const TomographyCase& golden, bool single_precision);

} // namespace Golden
