// SPDX-License-Identifier: MIT
#include "image.hpp"

#include "atomic_file.hpp"
#include "font.hpp"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace Bracewell::Examples {
namespace {

void paste(const Picture& source, Picture& target, int x, int y) {
  for (int row = 0; row < source.height; ++row)
    std::copy_n(&source.at(0, row), source.width, &target.at(x, y + row));
}

std::size_t area(int width, int height) {
  if (width < 1 || height < 1)
    throw std::invalid_argument("Picture: width and height have to be above 0");
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
}

} // namespace

Picture::Picture(int picture_width, int picture_height, Colour background)
    : width(picture_width), height(picture_height), pixels(area(picture_width, picture_height), background) {}

GreyRange percentile_range(std::span<const float> values, double low, double high) {
  if (!(low >= 0 && low < high && high <= 1))
    throw std::invalid_argument("percentile_range: expected 0 <= low < high <= 1");
  std::vector<float> finite;
  finite.reserve(values.size());
  std::ranges::copy_if(values, std::back_inserter(finite), [](float value) { return std::isfinite(value); });
  if (finite.empty())
    return {0, 0};
  const auto value_at = [&finite](double fraction) {
    const auto rank =
        static_cast<std::ptrdiff_t>(std::lround(fraction * static_cast<double>(finite.size() - 1)));
    std::ranges::nth_element(finite, finite.begin() + rank);
    return finite[static_cast<std::size_t>(rank)];
  };
  const float black_value = value_at(low);
  return {black_value, value_at(high)};
}

Picture grey_picture(std::span<const float> image, int width, int height, GreyRange range) {
  Picture picture(width, height);
  if (image.size() != picture.pixels.size())
    throw std::invalid_argument("grey_picture: the span does not have the size of the image");
  const double span = static_cast<double>(range.white_value) - range.black_value;
  std::ranges::transform(image, picture.pixels.begin(), [range, span](float value) {
    double level = 0.5;
    if (!std::isfinite(value))
      level = 0;
    else if (span != 0)
      level = std::clamp((static_cast<double>(value) - range.black_value) / span, 0.0, 1.0);
    const auto grey = static_cast<std::uint8_t>(std::lround(255 * level));
    return Colour{grey, grey, grey};
  });
  return picture;
}

Picture grey_picture(std::span<const float> image, int width, int height) {
  return grey_picture(image, width, height, percentile_range(image));
}

Picture enlarged(const Picture& picture, int factor) {
  Picture large(picture.width * factor, picture.height * factor);
  for (int y = 0; y < large.height; ++y)
    for (int x = 0; x < large.width; ++x)
      large.at(x, y) = picture.at(x / factor, y / factor);
  return large;
}

Picture side_by_side(std::span<const Picture> panels, int gap, Colour background) {
  int width = -gap;
  int height = 0;
  for (const auto& panel : panels) {
    width += panel.width + gap;
    height = std::max(height, panel.height);
  }
  Picture row(width, height, background);
  int x = 0;
  for (const auto& panel : panels) {
    paste(panel, row, x, 0);
    x += panel.width + gap;
  }
  return row;
}

Picture stacked(std::span<const Picture> panels, int gap, Colour background) {
  int width = 0;
  int height = -gap;
  for (const auto& panel : panels) {
    width = std::max(width, panel.width);
    height += panel.height + gap;
  }
  Picture column(width, height, background);
  int y = 0;
  for (const auto& panel : panels) {
    paste(panel, column, 0, y);
    y += panel.height + gap;
  }
  return column;
}

Picture with_caption(const Picture& picture, std::string_view caption, int scale) {
  Picture captioned(std::max(picture.width, text_width(caption, scale)),
                    picture.height + text_height(scale) + 2 * scale);
  draw_text(captioned, 0, 0, caption, black, scale);
  paste(picture, captioned, 0, captioned.height - picture.height);
  return captioned;
}

void write_png(const std::filesystem::path& path, const Picture& picture) {
  const bool grey = std::ranges::all_of(picture.pixels, [](Colour colour) {
    return colour.red == colour.green && colour.green == colour.blue;
  });
  std::vector<std::uint8_t> samples;
  samples.reserve(picture.pixels.size() * (grey ? 1 : 3));
  for (const auto& colour : picture.pixels) {
    samples.push_back(colour.red);
    if (!grey)
      samples.insert(samples.end(), {colour.green, colour.blue});
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  const auto fail = [&] {
    throw std::runtime_error(path.string() + ": the picture cannot be encoded: " + image.message);
  };
  png_alloc_size_t bytes = 0;
  if (!png_image_write_to_memory(&image, nullptr, &bytes, 0, samples.data(), 0, nullptr))
    fail();
  std::vector<std::byte> encoded(bytes);
  if (!png_image_write_to_memory(&image, encoded.data(), &bytes, 0, samples.data(), 0, nullptr))
    fail();
  encoded.resize(bytes);
  AtomicFile file(path);
  file.write(encoded);
  file.commit();
}

} // namespace Bracewell::Examples
