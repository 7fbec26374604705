// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/run.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace Bracewell::Examples {

using Sinograms = Owned<float***>; ///< [slices, angles, width], filtered ones row_upsampling times as long
using Slices = Owned<float***>;    ///< [slices, width, width]

/// Values per pixel that a method takes: log-polar reconstruction interpolates in them.
constexpr int row_upsampling(Method method) { return method == Method::LogPolar ? 2 : 1; }

/// A planned method.
struct Reconstructor {
  std::function<void(const Space&, const Sinograms&, const Slices&)> backproject;
  std::size_t fixed_bytes, bytes_per_slice; ///< of the plan, for more slices too

  std::size_t bytes(std::int64_t slices) const {
    return fixed_bytes + bytes_per_slice * static_cast<std::size_t>(slices);
  }
};

/// @param centre  detector pixel of the axis in the sinograms that it is given
Reconstructor make_reconstructor(const Space& space, const RunOptions& options,
                                 const std::vector<double>& angles, int width, double centre,
                                 std::int64_t slices);

} // namespace Bracewell::Examples
