// The plans of golden_ptychography.
#pragma once

#include "case.hpp"

#include "../../ptychography/plans.hpp"

namespace Golden::Ptychography {

/// Of the golden data; the fused kernel of every other size would be compiled for nothing.
using GoldenDetectors = Test::TestDetectors;

} // namespace Golden::Ptychography
