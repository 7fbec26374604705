// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/reconstructor.hpp"
#include "common/progress.hpp"

namespace Bracewell::Examples {

/// Rows that the alignment looks at: 8 at most. Fewer on hosts where the search for shifts alone would take long, 2 at least.
/// @param whole  the detector sees all of the object; slices are half as wide again otherwise
std::int64_t aligned_rows(int width, std::int64_t views, bool angles, bool whole = true);

/// Memory that the alignment of so many rows takes.
double alignment_bytes(const Space& space, const Views& views, int width, std::int64_t rows);

/// Where views were found to be.
struct Alignment {
  Views views;
  std::int64_t rows = 0; ///< that the search took
  double before = 0,
         after =
             0; ///< root mean square of what slices leave of the sinograms; the same where nothing was better
};

/// Finds shifts of the views of a scan that drifts, and angles if asked for, with the slices of some rows. Begins with the
/// centres of mass of the rows. Then it takes Gauss-Newton steps on slices and views together, each by conjugate gradients. Coarse
/// pixels come first if the centres of mass say nothing. Slices are 0 where some views do not see them. What the data do
/// not say stays as it is: the mean of the angles, and the place of the object. Views stay as they are if the slices do
/// not fit the sinograms better afterwards.
/// @param sinograms  [rows, angles, width] attenuation, not filtered
/// @param before     where the search begins, without shifts
/// @param centre     detector pixel of the axis
Alignment align_views(const Space& space, const Sinograms& sinograms, const Views& before, double centre,
                      bool angles, Progress& progress);

/// Iterations that align_views reports to `progress`, at most.
int alignment_steps(int width, bool angles);

} // namespace Bracewell::Examples
