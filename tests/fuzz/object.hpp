// SPDX-License-Identifier: MIT
#pragma once

#include "input.hpp"

#include "bracewell-ptychography/object_file.hpp"

namespace Fuzz {

/// What bracewell-ptychography --reference compares with: an object, a probe and where it was.
inline void object(Bytes bytes) {
  using namespace Bracewell::Examples;
  accepts([&] {
    const Reconstruction result = read_reconstruction(as_file(bytes));
    require(result.amplitude.size() == result.phase.size());
    if (result.positions.size() >= 1000)
      return;
    const auto light = illumination(result);
    require(light.size() == result.amplitude.size());
    Reconstruction third = result; // of the pixels of either axis
    third.every = 3;
    third.rows = (result.rows + 2) / 3, third.columns = (result.columns + 2) / 3;
    third.amplitude.resize(static_cast<std::size_t>(third.rows * third.columns));
    const auto of_third = illumination(third);
    for (std::int64_t i = 0; i < std::ssize(of_third); ++i)
      require(of_third[static_cast<std::size_t>(i)] ==
              light[static_cast<std::size_t>(3 * (i / third.columns) * result.columns +
                                             3 * (i % third.columns))]);
  });
}

} // namespace Fuzz
