// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/prepare.hpp"
#include "bracewell-tomography/reconstructor.hpp"
#include "common/provenance.hpp"
#include "common/timings.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace Bracewell::Examples {

/// What the middle slice tells of all.
struct MiddleSlice {
  double centre;                   ///< of the axis
  double attenuation;              ///< per pixel
  std::vector<double> places = {}; ///< of the axis by witnesses that do not agree; empty where they do
};

/// Sinogram [angles, width] of a row of the detector.
using RowReader = std::function<DeviceView<float**>(std::int64_t)>;

/// Shows the middle slice before all others are looked at.
using ShowSlice = std::function<void(const MiddleSlice&)>;

/// The middle row, and what it depends on, prepared where there are steps on frames.
std::optional<PreparedRows> prepare_middle(const Space& space, const Job& job, const Stripes& stripes);

/// Sinogram [angles, width] of a row, which is one of those prepared where there are steps on frames.
DeviceView<float**> sinogram_of(const Space& space, const Job& job, const Stripes& stripes,
                                const std::optional<PreparedRows>& prepared, std::int64_t row);

/// The attenuation per pixel that a sinogram's root mean square stands for, were it even over the detector.
double mean_attenuation(const DeviceView<float**>& sinogram);

/// Looks at it, and searches the axis where that is not given. The same in all processes.
/// @param row_of  of other rows, which tell of the detector's roll; empty: they are not looked at
/// @param show    called in all processes before other rows are read: with a first guess of the axis, and when it is known
MiddleSlice look_at_middle(const Space& space, const Job& job, const DeviceView<float**>& sinogram,
                           const RowReader& row_of, const ShowSlice& show, Provenance& provenance,
                           Timings& timings);

/// Says what iterations take for granted.
void check_size(const RunOptions& options, const Place& place, Provenance& provenance);

/// Goes on without the frames whose middle row is no data where those of others are, and says how many values of the middle
/// row are no data: saturated, without light or not finite. Throws InputError where too many are.
/// @param more  rows that are looked at, too, where that one has none
void check_values(const Space& space, Job& job, std::int64_t more, Provenance& provenance);

/// Says where flat frames are no brighter than dark ones, and where there are none of these.
void check_flats(const Job& job, Provenance& provenance);

/// Where the views are: as the scan says, or found with some rows from all of the slices, and written.
Views views_of(const Space& space, const Job& job, const Stripes& stripes,
               const std::optional<PreparedRows>& prepared, double centre, Provenance& provenance,
               Timings& timings);

std::filesystem::path views_path(const RunOptions& options);

} // namespace Bracewell::Examples
