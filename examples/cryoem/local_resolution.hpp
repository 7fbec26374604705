// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <bracewell/reconstruct/mask.hpp>

namespace Bracewell::Examples {

/// Where half maps agree, in windows around the points of a lattice, linearly between them (Cardone, Heymann & Steven,
/// J. Struct. Biol. 184 (2013) 226).
struct LocalResolution {
  static constexpr double threshold = 0.5;
  Map map; ///< Angstrom (pixels without a pixel size), from two pixels to the window's width; 0 outside of the sphere
  double width = 0; ///< of a window at half its height, in the map's unit
};

/// The width of windows that tell resolutions around one: seven periods, of which a window then has some at every frequency near
/// it, and at most half the box. Pixels.
/// @param period  in pixels; infinity: none
double window_width(double period, int box);

/// Both half maps are divided by the power of their shells first, so that what a window brings from strong frequencies to weak
/// ones does not count.
/// @param halves  not masked
/// @param within  the sphere whose points get a value
/// @param width   of a window at half its height, at least four pixels
LocalResolution local_resolution(const Space& space, const Map& first, const Map& second,
                                 const SoftSphere& within, double width, double pixel_size);

} // namespace Bracewell::Examples
