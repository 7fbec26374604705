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
    if (result.positions.size() < 1000)
      require(illumination(result).size() == result.amplitude.size());
  });
}

} // namespace Fuzz
