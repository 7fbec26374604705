// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace Bracewell::Examples {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

inline constexpr Colour black{0, 0, 0};
inline constexpr Colour white{255, 255, 255};

/// Pixels [height, width], row 0 at the top.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<Colour> pixels;

  Picture() = default;
  Picture(int picture_width, int picture_height, Colour background = white);

  Colour& at(int x, int y) { return pixels[index(x, y)]; }
  const Colour& at(int x, int y) const { return pixels[index(x, y)]; }
  bool contains(int x, int y) const { return x >= 0 && y >= 0 && x < width && y < height; }

private:
  std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
  }
};

/// Values shown as black and white.
struct GreyRange {
  float black_value = 0;
  float white_value = 1;
};

/// The range that leaves out the given fractions of the values at either end (0 to 1, low below high); values
/// that are not finite do not count.
GreyRange percentile_range(std::span<const float> values, double low = 0.005, double high = 0.995);

/// An image [height, width] in grey. Values outside the range are clipped, those that are not finite are
/// black; with an empty range everything is mid-grey.
Picture grey_picture(std::span<const float> image, int width, int height, GreyRange range);
/// The same with the range of the image's own percentiles.
Picture grey_picture(std::span<const float> image, int width, int height);

/// Every pixel as a block of factor x factor pixels.
Picture enlarged(const Picture& picture, int factor);

/// Pictures in a row, aligned at the top, `gap` pixels apart.
Picture side_by_side(std::span<const Picture> panels, int gap = 8, Colour background = white);
/// Pictures in a column, aligned at the left.
Picture stacked(std::span<const Picture> panels, int gap = 8, Colour background = white);
/// The picture under a line of text.
Picture with_caption(const Picture& picture, std::string_view caption, int scale = 2);

/// Writes an 8-bit PNG, grey where all pixels are grey and RGB otherwise; the file appears whole or not at
/// all.
void write_png(const std::filesystem::path& path, const Picture& picture);

} // namespace Bracewell::Examples
