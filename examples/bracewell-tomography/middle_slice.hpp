// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/prepare.hpp"
#include "bracewell-tomography/reconstructor.hpp"
#include "common/provenance.hpp"
#include "common/timings.hpp"

#include <filesystem>
#include <optional>

namespace Bracewell::Examples {

/// What the middle slice tells of all.
struct MiddleSlice {
  double centre;      ///< of the axis
  double attenuation; ///< per pixel
};

/// The middle row, and what it depends on, prepared where there are steps on frames.
std::optional<PreparedRows> prepare_middle(const Space& space, const Job& job, const Stripes& stripes);

/// Sinogram [angles, width] of the middle row.
DeviceView<float**> middle_sinogram(const Space& space, const Job& job, const Stripes& stripes,
                                    const std::optional<PreparedRows>& prepared);

/// The attenuation per pixel that a sinogram's root mean square stands for, were it even over the detector.
double mean_attenuation(const DeviceView<float**>& sinogram);

/// Looks at it, and searches the axis where that is not given. The same in all processes.
MiddleSlice look_at_middle(const Space& space, const Job& job, const DeviceView<float**>& sinogram,
                           Provenance& provenance, Timings& timings);

/// Says what iterations take for granted.
void check_size(const RunOptions& options, const Place& place, Provenance& provenance);

/// Says how many values of the middle row are no data: saturated, without light or not finite.
void check_values(const Space& space, const Job& job, Provenance& provenance);

/// Says where flat frames are no brighter than dark ones.
void check_flats(const Job& job, Provenance& provenance);

/// Where the views are: as the scan says, or found with some rows from all of the slices, and written.
Views views_of(const Space& space, const Job& job, const Stripes& stripes,
               const std::optional<PreparedRows>& prepared, double centre, Provenance& provenance,
               Timings& timings);

std::filesystem::path views_path(const RunOptions& options);

} // namespace Bracewell::Examples
