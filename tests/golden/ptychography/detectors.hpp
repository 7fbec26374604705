// The plans of golden_ptychography.
#pragma once

#include "case.hpp"

#include <bracewell/ptychography/ptychography_loss.hpp>

namespace Golden::Ptychography {

/// Of the golden data; the fused kernel of every other size would be compiled for nothing.
using GoldenDetectors = Bracewell::Impl::FusedDetectors<40, 48>;

} // namespace Golden::Ptychography
