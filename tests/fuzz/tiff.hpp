// SPDX-License-Identifier: MIT
#pragma once

#include "input.hpp"

#include "common/tiff.hpp"

#include <algorithm>

namespace Fuzz {

/// The first and the last rows of every page of a TIFF file.
inline void tiff(Bytes bytes) {
  using namespace Bracewell::Examples;
  accepts([&] {
    const TiffReader reader(as_file(bytes));
    std::vector<float> row(static_cast<std::size_t>(reader.width()));
    for (std::int64_t page = 0; page < std::min<std::int64_t>(reader.pages(), 20); ++page)
      for (const std::int64_t first : {std::int64_t(0), reader.height() - 1})
        accepts([&] { reader.read_rows(page, first, 1, row); });
  });
}

} // namespace Fuzz
