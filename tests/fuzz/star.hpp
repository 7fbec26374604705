// SPDX-License-Identifier: MIT
#pragma once

#include "input.hpp"

#include "common/star.hpp"

namespace Fuzz {

/// A STAR file as tables, which are the same when they were written and read again, and as particles with and
/// without their images.
inline void star(Bytes bytes) {
  using namespace Bracewell::Examples;
  const auto& file = as_file(bytes);
  StarDocument document;
  if (!accepts([&] { document = read_star(file); }))
    return;
  for (const bool images : {false, true})
    accepts([&] {
      auto particles = read_particles(file, {.images = images});
      require(particles.count > 0);
      set_pixel_size(particles, 1.5);
    });
  const auto again = file.string() + ".again";
  write_star(again, document);
  const StarDocument copy = read_star(again);
  std::filesystem::remove(again);
  require(copy.tables.size() == document.tables.size());
  for (std::size_t i = 0; i < copy.tables.size(); ++i)
    require(copy.tables[i].columns == document.tables[i].columns &&
            copy.tables[i].values == document.tables[i].values);
}

} // namespace Fuzz
