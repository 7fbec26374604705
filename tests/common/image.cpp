// SPDX-License-Identifier: MIT
#include "common/image.hpp"

#include "common/font.hpp"
#include "common/line_plot.hpp"
#include "support.hpp"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

using namespace Bracewell::Examples;
using namespace IoTest;

namespace {

constexpr Colour grey(int level) {
  const auto value = static_cast<std::uint8_t>(level);
  return {value, value, value};
}
constexpr Colour red{255, 0, 0};
constexpr Colour first_curve{0, 114, 178};

/// A PNG as the library decodes it, with the number of channels that the file has.
std::pair<Picture, unsigned> decoded(const fs::path& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_file(&image, path.c_str()) != 0);
  const unsigned channels = PNG_IMAGE_SAMPLE_CHANNELS(image.format);
  image.format = PNG_FORMAT_RGB;
  Picture picture(static_cast<int>(image.width), static_cast<int>(image.height));
  std::vector<std::uint8_t> samples(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, samples.data(), 0, nullptr) != 0);
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
    picture.pixels[i] = {samples[3 * i], samples[3 * i + 1], samples[3 * i + 2]};
  return {picture, channels};
}

std::ptrdiff_t count(const Picture& picture, Colour colour) {
  return std::ranges::count(picture.pixels, colour);
}

} // namespace

TEST_CASE("pictures come back from PNG, grey ones with one channel") {
  const TemporaryFolder folder;
  Picture picture(3, 2);
  for (int i = 0; i < 6; ++i)
    picture.at(i % 3, i / 3) = grey(50 * i);
  write_png(folder / "grey.png", picture);
  const auto [grey_again, one] = decoded(folder / "grey.png");
  CHECK(one == 1);
  CHECK(grey_again.width == 3);
  CHECK(grey_again.pixels == picture.pixels);

  picture.at(2, 1) = red;
  write_png(folder / "colour.png", picture);
  const auto [colour_again, three] = decoded(folder / "colour.png");
  CHECK(three == 3);
  CHECK(colour_again.pixels == picture.pixels);
  CHECK(folder.files() == 2);

  write_text(folder / "old.png", "old");
  CHECK_THROWS_AS(write_png(folder / "old.png", Picture()), std::runtime_error);
  CHECK(read_text(folder / "old.png") == "old");
  CHECK(folder.files() == 3);
}

TEST_CASE("values become grey levels") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> image{-2, -1, 0, 1, 2, std::numeric_limits<float>::quiet_NaN(), infinity, -0.5f};
  const Picture picture = grey_picture(image, 4, 2, {-1, 1});
  CHECK(picture.pixels ==
        std::vector<Colour>{grey(0), grey(0), grey(128), grey(255), grey(255), grey(0), grey(0), grey(64)});
  CHECK(grey_picture(image, 4, 2, {1, -1}).at(1, 0) == grey(255)); // inverted contrast
  CHECK(count(grey_picture(std::vector<float>(6, 3.0f), 3, 2), grey(128)) == 6);
  CHECK(count(grey_picture(std::vector<float>(6, infinity), 3, 2), grey(0)) == 6);
  constexpr float largest = std::numeric_limits<float>::max();
  CHECK(grey_picture(std::vector<float>{-largest, largest}, 2, 1, {-largest, largest}).at(1, 0) == grey(255));
  CHECK_THROWS_AS(grey_picture(image, 3, 2, {0, 1}), std::invalid_argument);
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

TEST_CASE("pictures are enlarged and put together") {
  Picture small(2, 1, red);
  small.at(1, 0) = black;
  const Picture large = enlarged(small, 3);
  CHECK(large.width == 6);
  CHECK(large.height == 3);
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 6; ++x)
      CHECK(large.at(x, y) == (x < 3 ? red : black));

  const std::vector<Picture> panels{large, small, Picture(1, 5, grey(7))};
  const Picture row = side_by_side(panels, 2);
  CHECK(row.width == 6 + 2 + 2 + 2 + 1);
  CHECK(row.height == 5);
  CHECK(count(row, red) == 10);
  CHECK(row.at(8, 0) == red);
  CHECK(row.at(9, 0) == black);
  CHECK(row.at(12, 4) == grey(7));
  CHECK(row.at(6, 0) == white);
  const Picture column = stacked(panels, 1, grey(9));
  CHECK(column.width == 6);
  CHECK(column.height == 3 + 1 + 1 + 1 + 5);
  CHECK(column.at(0, 4) == red);
  CHECK(column.at(0, 10) == grey(7));
  CHECK(column.at(5, 10) == grey(9));
  CHECK(side_by_side(std::vector<Picture>{small}).pixels == small.pixels);
  CHECK_THROWS_AS(side_by_side({}), std::invalid_argument);

  const Picture captioned = with_caption(small, "Map", 1);
  CHECK(captioned.width == text_width("Map", 1));
  CHECK(captioned.at(0, captioned.height - 1) == red);
}

TEST_CASE("text has its size, is clipped, and turns") {
  Picture picture(40, 12);
  draw_text(picture, 1, 1, "T", red, 1);
  // The letter by hand: a bar of 5 pixels and a stem of 6 below its middle.
  CHECK(count(picture, red) == 11);
  for (int x = 1; x < 6; ++x)
    CHECK(picture.at(x, 1) == red);
  for (int y = 1; y < 8; ++y)
    CHECK(picture.at(3, y) == red);
  CHECK(text_width("T", 1) == 5);
  CHECK(text_width("TT", 3) == 33);
  CHECK(text_width("", 3) == 0);

  Picture turned(12, 40);
  draw_text_upwards(turned, 1, 38, "T", red, 1);
  CHECK(count(turned, red) == 11);
  for (int y = 34; y <= 38; ++y)
    CHECK(turned.at(1, y) == red);
  for (int x = 1; x < 8; ++x)
    CHECK(turned.at(x, 36) == red);

  Picture clipped(3, 3);
  draw_text(clipped, -4, -4, "far\tbeyond \xff", red, 2);
  draw_text(clipped, 1, 1, "WWWW", red, 5);
  draw_text_upwards(clipped, 1, 1, "WWWW", red, 5);
  Picture unknown(12, 9), question(12, 9);
  draw_text(unknown, 0, 0, "\xe2\n", black, 1);
  draw_text(question, 0, 0, "??", black, 1);
  CHECK(unknown.pixels == question.pixels);
}

TEST_CASE("a curve is drawn where its values are") {
  LinePlot plot{.curves = {{.x = {0, 1, 2, 3, 4}, .y = {1, 1, std::nan(""), 0, 0}}}};
  const Picture picture = draw_line_plot(plot);
  REQUIRE(picture.width == plot.width);
  REQUIRE(picture.height == plot.height);
  // The range is that of the values, so y = 1 is the frame's top and y = 0 its bottom, under the axis.
  int left = picture.width, right = 0, top = picture.height, bottom = 0;
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x)
      if (picture.at(x, y) == first_curve) {
        left = std::min(left, x);
        right = std::max(right, x);
        top = std::min(top, y);
        bottom = std::max(bottom, y);
      }
  CHECK(left < 100);  // from the axis
  CHECK(right > 920); // to the right edge
  CHECK(top < 30);
  CHECK(bottom > 550);
  const int quarter = left + (right - left) / 4;
  for (int x = quarter + 5; x < left + 3 * (right - left) / 4 - 5; ++x) // the gap
    for (int y = 40; y < 540; ++y)
      REQUIRE(picture.at(x, y) != first_curve);
}

TEST_CASE("odd plots are drawn without harm") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  draw_line_plot({});
  draw_line_plot({.curves = {{.label = "point", .x = {1}, .y = {1}}}});
  draw_line_plot({.curves = {{.x = {-infinity, std::nan("")}, .y = {infinity, 0}}}});
  draw_line_plot({.curves = {{.x = {0, 1e-300}, .y = {1e300, -1e300}}}});
  draw_line_plot({.curves = {{.x = {1e9, 1e9 + 1}, .y = {0, 0}}},
                  .thresholds = {{0.5, "none"}, {std::nan(""), "none"}}});
  draw_line_plot({.title = std::string(300, 'W'),
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
