// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/prepare.hpp"
#include "common/provenance.hpp"

namespace Bracewell::Examples {

/// Says what a sinogram tells: the object is wider than the detector, the beam changed, columns differ in all views alike.
/// @param sinogram  [angles, columns that the beam reaches]
/// @param first     number of its first column, as --columns leaves them
void check_sinogram(const Job& job, const DeviceView<float**>& sinogram, std::size_t first,
                    Provenance& provenance);

} // namespace Bracewell::Examples
