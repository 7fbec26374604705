// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

using cairo_t = struct _cairo; // NOLINT(bugprone-reserved-identifier): a name of cairo

namespace Bracewell::Examples {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

/// Something that can be drawn, so many points wide and high (pixels of a PNG file), its upper left corner at
/// the origin.
struct Picture {
  double width = 0, height = 0;
  std::function<void(cairo_t*)> draw = {};
};

/// Values shown as black and white.
struct GreyRange {
  float black_value = 0;
  float white_value = 1;
};

/// The range that leaves out the given fractions of the values at either end (0 to 1, low below high); values
/// that are not finite do not count.
GreyRange percentile_range(std::span<const float> values, double low = 0.005, double high = 0.995);

/// Greys of an image. Values outside the range are clipped, those that are not finite are black; with an
/// empty range everything is mid-grey.
std::vector<Colour> greys(std::span<const float> values, GreyRange range);

/// An image [height, width], every pixel a square of `scale` points.
Picture image_picture(std::span<const Colour> pixels, int width, int height, int scale = 1);

/// An image [height, width] in grey, below its caption, above a scale bar and the range of greys.
struct GreyPanel {
  std::string caption = {};
  std::span<const float> values;
  int width = 0, height = 0;
  GreyRange range = {};
  double pixel_size = 1; ///< in `unit`
  std::string unit = "px";
  int points = 320; ///< small images are enlarged to as much, those beyond 4096 pixels reduced
};
Picture grey_panel(const GreyPanel& panel);

/// Pictures in a row, aligned at the top, and in a column, aligned at the left.
Picture side_by_side(const std::vector<Picture>& pictures);
Picture stacked(const std::vector<Picture>& pictures);

/// Text with its baseline from (x, y) on, made smaller where it is longer than `room`: aligned to the left (0),
/// the middle (0.5) or the right (1) of (x, y), `upwards` from bottom to top.
struct TextLine {
  double x, y, room, alignment = 0, size = 14;
  bool upwards = false;
};
void draw_text(cairo_t* context, const std::string& text, const TextLine& line);
/// Width of a line of text in points.
double text_width(cairo_t* context, const std::string& text, double size = 14);
void set_colour(cairo_t* context, Colour colour);
/// The largest of 1, 2, 5 x 10^n that is not above a length.
double round_length(double most);

/// Throws InputError where a name does not end with .png, .pdf or .svg.
void require_picture_name(const std::filesystem::path& path);

/// Writes PNG, PDF or SVG by the ending of the name; the file appears whole or not at all.
void write_picture(const std::filesystem::path& path, const Picture& picture);

} // namespace Bracewell::Examples
