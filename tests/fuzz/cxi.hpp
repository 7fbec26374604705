// SPDX-License-Identifier: MIT
#pragma once

#include "input.hpp"

#include "bracewell-ptychography/measurement.hpp"

#include <algorithm>
#include <cmath>

namespace Fuzz {

/// A ptychographic measurement, far field and near field, with its first and its last pattern.
inline void cxi(Bytes bytes) {
  using namespace Bracewell::Examples;
  MeasurementOptions options;
  switch (bytes.size() % 3) { // all three took three times as long
  case 1:
    options.focus_distance = 0.1;
    break;
  case 2:
    options.detector = 4;
    options.every = 2;
    break;
  default:
    break;
  }
  accepts([&] {
    Provenance provenance("fuzz");
    const Measurement measurement(as_file(bytes), options, provenance);
    const auto n = static_cast<std::size_t>(measurement.detector());
    require(measurement.positions().size() == static_cast<std::size_t>(measurement.count()));
    require(measurement.weights().empty() || measurement.weights().size() == n * n);
    require(std::isfinite(measurement.step()));
    for (const auto extent : measurement.object_shape(8))
      require(extent >= 8);
    if (n > 64 || measurement.frame_bytes() > 100000)
      return; // the pattern may be one that is nowhere in the file
    std::vector<std::byte> frame(static_cast<std::size_t>(measurement.frame_bytes()));
    const std::int64_t values = measurement.frame_bytes() / bytes_of(measurement.format().type);
    require(std::ranges::all_of(measurement.places(),
                                [=](std::int64_t place) { return place >= -1 && place < values; }));
    for (const std::int64_t number : {std::int64_t(0), measurement.count() - 1})
      accepts([&] { measurement.read({&number, 1}, frame); });
  });
}

} // namespace Fuzz
