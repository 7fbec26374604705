// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/run.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace Bracewell::Examples {

using Sinograms = DeviceView<float***>; ///< [slices, angles, width]
using Slices = DeviceView<float***>;    ///< [slices, image, image]

/// The rows that are reconstructed and the slices that come of them.
struct Place {
  int width;           ///< of these rows
  double centre;       ///< of the axis in them
  int offset;          ///< of the detector's first pixel in them
  int seen;            ///< pixels of the detector
  int image;           ///< pixels of a slice along both axes
  int depth = 0;       ///< slices of laminography, which come of all rows at once; 0: a slice comes of a row
  bool masked = false; ///< iterations get masks, [slices, angles, seen] 1 where a value is data

  std::int64_t slices(std::int64_t rows) const { return depth ? depth : rows; }
};

/// Where the views of a scan are.
struct Views {
  std::vector<double> angles;      ///< radians
  std::vector<double> shifts = {}; ///< pixels of the axis beside the centre; empty: none
};

/// What iterations did with some slices.
struct Iterations {
  int made = 0;
  double squares = 0; ///< sum of weight (sinogram - projections)^2
};

/// A planned method: sinograms, as many as it was planned for or fewer (of laminography: as many), to slices. Writes over the sinograms.
/// The last argument is the mask of a place that is masked, otherwise empty.
using Reconstructor =
    std::function<Iterations(const Space&, const Sinograms&, const Slices&, const Sinograms& valid)>;

/// What is said of an iteration: slices that it was made for, and their sum of squares where that is known.
using Watch = std::function<void(std::int64_t slices, std::optional<double> squares)>;

/// Weights of views by the share of half a turn that is theirs; empty where all are 1.
std::vector<double> angle_weights(const RunOptions& options, const std::vector<double>& angles);

/// Throws InputError where angles and options are none that the method takes.
void check_method(const RunOptions& options, const std::vector<double>& angles);

/// Memory that a method takes which works on so many slices at once.
std::size_t reconstructor_bytes(const Space& space, const RunOptions& options, const Views& views,
                                const Place& place, std::int64_t slices);

/// @param attenuation  per pixel, which the factor of total variation counts
Reconstructor make_reconstructor(const Space& space, const RunOptions& options, const Views& views,
                                 const Place& place, std::int64_t slices, double attenuation,
                                 const Watch& watch = {});

} // namespace Bracewell::Examples
