// SPDX-License-Identifier: MIT
#include "common/picture.hpp"

#include "common/line_plot.hpp"
#include "support.hpp"

#include <cairo.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

using namespace Bracewell::Examples;
using namespace IoTest;

namespace {

constexpr int margin = 8; ///< around a picture in its file
constexpr Colour white{255, 255, 255}, red{255, 0, 0}, first_curve{0, 114, 178};

constexpr Colour grey(int level) {
  const auto value = static_cast<std::uint8_t>(level);
  return {value, value, value};
}

/// The pixels of a PNG file.
struct Pixels {
  int width, height;
  std::vector<Colour> values;

  Colour at(int x, int y) const { return values[std::size_t(y * width + x)]; }
  std::ptrdiff_t count(Colour colour) const { return std::ranges::count(values, colour); }
  /// Whether something is drawn in a box of it.
  bool ink(int left, int top, int right, int bottom) const {
    for (int y = top; y < bottom; ++y)
      for (int x = left; x < right; ++x)
        if (at(x, y) != white)
          return true;
    return false;
  }
  bool ink_in_margin() const {
    return ink(0, 0, width, margin) || ink(0, height - margin, width, height) || ink(0, 0, margin, height) ||
           ink(width - margin, 0, width, height);
  }
};

Pixels decoded(const fs::path& path) {
  cairo_surface_t* const surface = cairo_image_surface_create_from_png(path.c_str());
  REQUIRE(cairo_surface_status(surface) == CAIRO_STATUS_SUCCESS);
  Pixels pixels{cairo_image_surface_get_width(surface), cairo_image_surface_get_height(surface), {}};
  const auto stride = std::size_t(cairo_image_surface_get_stride(surface));
  for (int y = 0; y < pixels.height; ++y)
    for (int x = 0; x < pixels.width; ++x) {
      const unsigned char* p = cairo_image_surface_get_data(surface) + std::size_t(y) * stride + 4 * x;
      pixels.values.push_back({p[2], p[1], p[0]});
    }
  cairo_surface_destroy(surface);
  return pixels;
}

Pixels drawn(const Picture& picture) {
  const TemporaryFolder folder;
  write_picture(folder / "a.png", picture);
  return decoded(folder / "a.png");
}

} // namespace

TEST_CASE("pictures are PNG, PDF or SVG by the file's name") {
  const TemporaryFolder folder;
  const std::vector<Colour> colours{grey(0), grey(50), red, grey(150), {1, 2, 3}, grey(250)};
  const Picture picture = image_picture(colours, 3, 2, 2);
  for (const char* name : {"a.png", "a.pdf", "a.svg"})
    write_picture(folder / name, picture);
  CHECK(read_text(folder / "a.pdf").starts_with("%PDF-"));
  CHECK(read_text(folder / "a.svg").find("<svg") != std::string::npos);
  const Pixels pixels = decoded(folder / "a.png");
  REQUIRE((pixels.width == 6 + 2 * margin && pixels.height == 4 + 2 * margin));
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 6; ++x)
      CHECK(pixels.at(margin + x, margin + y) == colours[std::size_t(y / 2 * 3 + x / 2)]);
  CHECK_FALSE(pixels.ink_in_margin());
  CHECK(folder.files() == 3);

  const std::string message = input_error([&] { write_picture(folder / "a.jpg", picture); });
  CHECK(message.find("a.jpg: expected a picture's name that ends with .png, .pdf or .svg") !=
        std::string::npos);
  write_text(folder / "old.png", "old");
  CHECK_THROWS_AS(write_picture(folder / "old.png", {1e6, 1e6, [](cairo_t*) {}}), std::runtime_error);
  CHECK(read_text(folder / "old.png") == "old");
  CHECK(folder.files() == 4);
  CHECK_THROWS_AS(image_picture(colours, 4, 2), std::invalid_argument);
}

TEST_CASE("values become grey levels") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> image{-2, -1, 0, 1, 2, std::numeric_limits<float>::quiet_NaN(), infinity, -0.5f};
  CHECK(greys(image, {-1, 1}) ==
        std::vector<Colour>{grey(0), grey(0), grey(128), grey(255), grey(255), grey(0), grey(0), grey(64)});
  CHECK(greys(image, {1, -1})[1] == grey(255)); // inverted contrast
  CHECK(greys(std::vector<float>(6, 3.0f), {3, 3}) == std::vector<Colour>(6, grey(128)));
  CHECK(greys(std::vector<float>(6, infinity), {0, 0}) == std::vector<Colour>(6, grey(0)));
  constexpr float largest = std::numeric_limits<float>::max();
  CHECK(greys(std::vector<float>{-largest, largest}, {-largest, largest})[1] == grey(255));
}

TEST_CASE("percentiles leave out both ends and whatever is not finite") {
  std::vector<float> values{std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()};
  for (int i = 0; i <= 100; ++i)
    values.push_back(static_cast<float>((37 * i) % 101));
  const GreyRange range = percentile_range(values, 0.1, 0.95);
  CHECK(range.black_value == 10);
  CHECK(range.white_value == 95);
  const GreyRange whole = percentile_range(values, 0, 1);
  CHECK(whole.black_value == 0);
  CHECK(whole.white_value == 100);
  CHECK_THROWS_AS(percentile_range(values, 0.5, 0.5), std::invalid_argument);
}

TEST_CASE("pictures are put together") {
  const std::vector<Colour> colours{red, grey(0)};
  const Picture small = image_picture(colours, 2, 1), large = image_picture(colours, 2, 1, 3);
  const Pixels row = drawn(side_by_side({large, small}));
  CHECK(row.width == 6 + 8 + 2 + 2 * margin);
  CHECK(row.height == 3 + 2 * margin);
  CHECK(row.count(red) == 10);
  CHECK(row.at(margin + 14, margin) == red);
  CHECK(row.at(margin + 15, margin) == grey(0));
  const Pixels column = drawn(stacked({large, small}));
  CHECK(column.width == 6 + 2 * margin);
  CHECK(column.height == 3 + 8 + 1 + 2 * margin);
  CHECK(column.at(margin, margin + 11) == red);
}

TEST_CASE("Pictures: labels that fit, scale bar, grey range") {
  for (const int width : {5, 40, 333}) {
    CAPTURE(width);
    std::vector<float> values(std::size_t(width * 3), 0.f);
    const GreyPanel panel{.caption = "",
                          .values = values,
                          .width = width,
                          .height = 3,
                          .range = {-1.234e-5f, 1.234e-5f},
                          .pixel_size = 0.37,
                          .unit = "nm",
                          .points = 320};
    GreyPanel captioned = panel;
    captioned.caption = std::string(200, 'W');
    const Pixels plain = drawn(grey_panel(panel)), with_caption = drawn(grey_panel(captioned));
    CHECK_FALSE(plain.ink_in_margin());
    CHECK_FALSE(with_caption.ink_in_margin());
    CHECK(with_caption.width == plain.width); // a caption does not push the next panel away
    CHECK(with_caption.height > plain.height);
    // The bar is black, of a round length of at most a third of the image, and nearly so.
    const int scale = std::max(1, 320 / width), below = margin + 3 * scale;
    int bar = 0;
    while (plain.at(margin + bar, below + 11) == grey(0))
      ++bar;
    const double length = bar * 0.37 / scale, third = width * 0.37 / 3;
    CHECK(length <= third * 1.05);
    CHECK(length >= third / 2.6);
    CHECK(std::abs(length - round_length(length * 1.02)) < 0.04 * length);
    // The ramp of the grey range has both of its ends, at the right.
    int darkest = 255, brightest = 0;
    for (int x = plain.width / 2; x < plain.width - margin; ++x) {
      const Colour colour = plain.at(x, below + 11);
      darkest = std::min<int>(darkest, colour.red), brightest = std::max<int>(brightest, colour.red);
    }
    CHECK(darkest < 40);
    CHECK(brightest > 215);
  }
  for (const auto& [most, expected] : {std::pair{1.0, 1.0}, {4.99, 2.0}, {0.06, 0.05}, {1999.0, 1000.0}})
    CHECK(std::abs(round_length(most) - expected) < 1e-9 * expected);
}

TEST_CASE("an image that is too large for a picture is reduced by means") {
  std::vector<float> values(9000 * 3);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = float(i % 3) + (i / 9000 == 0 ? -1.f : 1.f); // means 0 and 2 of blocks of 3 x 3 are 1 + 1/3
  const Pixels pixels = drawn(grey_panel(
      {.values = values, .width = 9000, .height = 3, .range = {0, 2 * (1 + 1.f / 3)}, .pixel_size = 1}));
  CHECK(pixels.width == 3000 + 2 * margin);
  CHECK(pixels.at(margin + 1500, margin) == grey(128));
}

TEST_CASE("a curve is drawn where its values are") {
  LinePlot plot{.curves = {{.x = {0, 1, 2, 3, 4}, .y = {1, 1, std::nan(""), 0, 0}}}};
  const Pixels picture = drawn(draw_line_plot(plot));
  REQUIRE(picture.width == plot.width + 2 * margin);
  REQUIRE(picture.height == plot.height + 2 * margin);
  // The range is that of the values, so y = 1 is the frame's top and y = 0 its bottom, over the axis.
  int left = picture.width, right = 0, top = picture.height, bottom = 0;
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x)
      if (picture.at(x, y) == first_curve) {
        left = std::min(left, x);
        right = std::max(right, x);
        top = std::min(top, y);
        bottom = std::max(bottom, y);
      }
  CHECK(left < 105);  // from the axis
  CHECK(right > 920); // to the right edge
  CHECK(top < 30);
  CHECK(bottom > 550);
  const int quarter = left + (right - left) / 4;
  for (int x = quarter + 5; x < left + 3 * (right - left) / 4 - 5; ++x) // the gap
    for (int y = 40; y < 540; ++y)
      REQUIRE(picture.at(x, y) != first_curve);
}

TEST_CASE("a legend leaves the curve in sight") {
  const auto in_sight = [](const Curve& curve) { // columns of the picture that have some of it
    const Pixels picture = drawn(draw_line_plot({.curves = {curve}, .y_range = PlotRange{0, 1}}));
    int columns = 0;
    for (int x = 0; x < picture.width; ++x) {
      int y = 0;
      while (y < picture.height && picture.at(x, y) != first_curve)
        ++y;
      columns += y < picture.height;
    }
    return columns;
  };
  for (const auto& y : {std::vector<double>{1, 1, 0.9}, {0, 0, 0}, {1, 0.5, 0}, {0, 0.5, 1}}) {
    const int alone = in_sight({.x = {0, 1, 2}, .y = y});
    CHECK(alone > 500);
    CHECK(in_sight({.label = "half maps", .x = {0, 1, 2}, .y = y}) >=
          alone); // the legend's sample lies there, too
  }
}

TEST_CASE("Pictures: labels of plots fit, and odd plots are drawn without harm") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto draw = [](const LinePlot& plot) { CHECK_FALSE(drawn(draw_line_plot(plot)).ink_in_margin()); };
  draw({});
  draw({.curves = {{.label = "point", .x = {1}, .y = {1}}}});
  draw({.curves = {{.x = {-infinity, std::nan("")}, .y = {infinity, 0}}}});
  draw({.curves = {{.x = {0, 1e-300}, .y = {1e300, -1e300}}}});
  draw({.curves = {{.x = {1e9, 1e9 + 1}, .y = {0, 0}}},
        .thresholds = {{0.5, "none"}, {std::nan(""), "none"}}});
  draw({.title = std::string(300, 'W'),
        .x_label = std::string(300, 'x'),
        .y_label = std::string(300, 'y'),
        .curves = {{.label = std::string(300, 'c'), .x = {0, 1}, .y = {0, 1e30}}},
        .y_range = PlotRange{0, 1},
        .width = 320,
        .height = 240});
  CHECK_THROWS_AS(draw_line_plot({.curves = {{.x = {0, 1}, .y = {0}}}}), std::invalid_argument);
  CHECK_THROWS_AS(draw_line_plot({.x_range = PlotRange{1, 1}}), std::invalid_argument);
  CHECK_THROWS_AS(draw_line_plot({.width = 10}), std::invalid_argument);
}
