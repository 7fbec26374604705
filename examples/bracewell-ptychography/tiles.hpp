// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/distributed/overlaps.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace Bracewell::Examples {

/// What a process has of a scan and of its object.
struct Tile {
  std::vector<std::int64_t> patterns; ///< rising
  Rectangle cell;   ///< of the object: the cells of all tiles are the whole, each pixel once
  Rectangle object; ///< the cell, and all that the windows of the patterns reach
};

/// Cuts a scan into tiles with as many patterns each, to one: in two across the longer side of the positions, and so on.
/// @param positions  first pixels of the windows (row, column), to be rounded
/// @param object     rows and columns
/// @param probe      pixels of a window
/// @param margin     pixels by which windows may move, on each axis
std::vector<Tile> cut_into_tiles(std::span<const std::array<double, 2>> positions,
                                 const std::array<std::int64_t, 2>& object, int probe, int margin, int tiles);

} // namespace Bracewell::Examples
