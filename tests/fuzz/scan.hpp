// SPDX-License-Identifier: MIT
#pragma once

#include "input.hpp"

#include "bracewell-tomography/scan.hpp"

#include <algorithm>
#include <cmath>

namespace Fuzz {

/// A tomographic scan (Scientific Data Exchange), with its first rows of everything.
inline void scan(Bytes bytes) {
  using namespace Bracewell::Examples;
  accepts([&] {
    Provenance provenance("fuzz");
    const Scan scan({.file = as_file(bytes)}, provenance);
    require(std::ranges::all_of(scan.angles(), [](double angle) { return std::isfinite(angle); }));
    require(scan.rows() > 0 && scan.width() > 0);
    if (scan.width() * std::int64_t(scan.angles().size()) > 100000)
      return; // values that may be nowhere in the file
    std::vector<float> row(static_cast<std::size_t>(scan.width()));
    std::vector<std::byte> projections(static_cast<std::size_t>(scan.bytes_per_row()));
    accepts([&] { scan.read(scan.rows() - 1, 1, projections); });
    if (scan.has_flat())
      accepts([&] { scan.read_flat(0, 0, 1, row); });
    if (scan.has_dark())
      accepts([&] { scan.read_dark(0, 1, row); });
  });
}

} // namespace Fuzz
