// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/run.hpp"

#include <bracewell/tomography/parallel_beam.hpp>

#include <cstddef>
#include <functional>
#include <vector>

namespace Bracewell::Examples {

using Sinograms = Owned<float***>; ///< [slices, angles, width], filtered ones row_upsampling times as long
using Slices = Owned<float***>;    ///< [slices, image, image]

/// Values per pixel that a method takes: log-polar reconstruction interpolates in them.
constexpr int row_upsampling(Method method) { return method == Method::LogPolar ? 2 : 1; }

/// A planned method: any number of sinograms to slices.
using Reconstructor = std::function<void(const Space&, const Sinograms&, const Slices&)>;

/// @param centre  detector pixel of the axis
ParallelBeamGeometry beam_geometry(const RunOptions& options, const std::vector<double>& angles, int width,
                                   double centre);

/// Memory that a method takes which works on so many slices of `image` pixels at once.
std::size_t reconstructor_bytes(const Space& space, const RunOptions& options,
                                const ParallelBeamGeometry& geometry, int image, std::int64_t slices);

Reconstructor make_reconstructor(const Space& space, const RunOptions& options,
                                 const ParallelBeamGeometry& geometry, int image, std::int64_t slices);

} // namespace Bracewell::Examples
