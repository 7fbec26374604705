// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/prepare.hpp"
#include "bracewell-tomography/reconstructor.hpp"
#include "common/handout.hpp"
#include "common/processes.hpp"

#include <cstdint>

namespace Bracewell::Examples {

/// Of what is read and of what is written; laminography has all of it in one.
inline int slots_of(const Place& place) { return place.depth ? 1 : io_threads() + 1; }

/// Throws InputError for slices that are larger than what half acquisition sees.
/// @param axis  in rows of the detector
Place place_of(const Job& job, double axis);

inline bool is_wider(const Place& place) { return place.width > place.seen; }

/// Of rows of the detector to those that are reconstructed. (Iterations weigh by themselves.)
void widen(const Space& space, const RunOptions& options, const Place& place, double axis,
           const Sinograms& rows, const Sinograms& wider);

/// The last step on rows of the detector.
void harden(const Space& space, const RunOptions& options, const Sinograms& sinograms);

/// The slices of this process, where steps on frames prepare them in a fixed share: whole pairs, as the Fourier method
/// takes them, so that they are those of one process.
Share share_of(std::int64_t slices);

/// Chunks of slices that processes take: whole pairs, too.
Handout chunks_of(const Job& job, std::int64_t chunk);

/// The axis before it is searched: that of the widest slices of half acquisition.
double axis_or_widest(const Job& job);

/// How many slices at a time: as many as the limit allows and are of use. Throws InputError where it allows none.
/// @param occupied  bytes before there are buffers and plans
std::int64_t chunk_size(const Space& space, const Job& job, const RunOptions& options, double occupied);

} // namespace Bracewell::Examples
