// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/prepare.hpp"
#include "common/provenance.hpp"

namespace Bracewell::Examples {

/// Says what a sinogram [angles, columns that the beam reaches] tells of the detector and the beam: that the object is wider than
/// the detector, that the beam changed, that columns differ in all views alike.
/// @param first  the column of the slices' sinograms that its first one is
void check_sinogram(const Job& job, const DeviceView<float**>& sinogram, std::size_t first,
                    Provenance& provenance);

} // namespace Bracewell::Examples
