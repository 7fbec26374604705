// SPDX-License-Identifier: MIT
#pragma once

#include "input.hpp"

#include "common/mrc.hpp"

#include <algorithm>

namespace Fuzz {

/// An MRC file as a map, and image by image: the values are the same.
inline void mrc(Bytes bytes) {
  using namespace Bracewell::Examples;
  accepts([&] {
    const MrcReader reader(as_file(bytes));
    const auto pixels = reader.width() * reader.height();
    // A file has at least a byte per value.
    require(pixels > 0 && reader.images() > 0 && pixels * reader.images() <= std::int64_t(bytes.size()));
    std::vector<float> volume, image(static_cast<std::size_t>(pixels));
    if (!accepts([&] { volume = reader.read_volume(NonFinite::Accept); }))
      return;
    accepts([&] { static_cast<void>(reader.read_volume()); });
    if (reader.header().axis_order != std::array{0, 1, 2})
      return;
    reader.read_images(reader.images() - 1, 1, image, NonFinite::Accept);
    const auto same = [](float a, float b) { return a == b || (a != a && b != b); };
    require(std::ranges::equal(image, std::span(volume).last(image.size()), same));
  });
}

} // namespace Fuzz
