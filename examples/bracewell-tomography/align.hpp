// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/reconstructor.hpp"
#include "common/progress.hpp"

namespace Bracewell::Examples {

/// Rows that the alignment looks at, at most.
inline constexpr std::int64_t aligned_rows = 8;

/// Memory that the alignment of so many rows takes.
double alignment_bytes(const Space& space, const Views& views, int width, std::int64_t rows);

/// Finds angles and shifts of the views of a scan that drifts, with the slices of some rows: Gauss-Newton steps on
/// slices and views together, each by conjugate gradients, from coarse pixels to fine ones. What the data do not say
/// stays as it is: the mean of the angles, and shifts as those of an object elsewhere.
/// @param sinograms  [rows, angles, width] attenuation, not filtered
/// @param views      where the search begins
/// @param centre     detector pixel of the axis
Views align_views(const Space& space, const Sinograms& sinograms, Views views, double centre,
                  Progress& progress);

/// Steps that align_views reports to `progress`.
int alignment_steps(int width);

} // namespace Bracewell::Examples
