// SPDX-License-Identifier: MIT
#pragma once

#include "image.hpp"

#include <string_view>

/// A small bitmap font, printable ASCII alone: letters 5 pixels wide and 7 high, 2 more below the line.
namespace Bracewell::Examples {

/// Pixels of a line of text, every pixel of the font being scale x scale.
int text_width(std::string_view text, int scale);
int text_height(int scale);

/// Draws a line of text with its upper left corner at (x, y); what falls outside the picture is left out.
/// Other letters than printable ASCII become '?'.
void draw_text(Picture& picture, int x, int y, std::string_view text, Colour colour = black, int scale = 2);
/// The same, read from bottom to top: (x, y) is the lower left corner of what is drawn.
void draw_text_upwards(Picture& picture, int x, int y, std::string_view text, Colour colour = black,
                       int scale = 2);

} // namespace Bracewell::Examples
