// SPDX-License-Identifier: MIT
#include "picture.hpp"

#include "atomic_file.hpp"
#include "input_error.hpp"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace Bracewell::Examples {
namespace {

constexpr double gap = 8, line_height = 22;

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

std::string short_number(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

/// Draws a picture with its upper left corner at (x, y).
void draw_at(cairo_t* context, const Picture& picture, double x, double y) {
  cairo_save(context);
  cairo_translate(context, x, y);
  picture.draw(context);
  cairo_restore(context);
}

/// The bar below an image, left: a length in round numbers, at most a third of the image.
void draw_scale_bar(cairo_t* context, const GreyPanel& panel, double width, double y) {
  const double points = width / (panel.width * panel.pixel_size);
  const double length = round_length(width / points / 3);
  cairo_rectangle(context, 0, y + 9, length * points, 4);
  cairo_fill(context);
  draw_text(context, short_number(length) + " " + panel.unit,
            {length * points + 6, y + 16, width / 2 - length * points - 10});
}

/// Below an image, right: what is black and what is white.
void draw_grey_range(cairo_t* context, GreyRange range, double right, double room, double y) {
  const std::string low = short_number(range.black_value), high = short_number(range.white_value);
  const double bar = room / 4, label = (room - bar) / 2 - 6;
  const double widest = std::max(text_width(context, low), text_width(context, high));
  const double size = 14 * std::min(1.0, label / widest); // both as large
  const double end = right - text_width(context, high, size) - 6;
  const std::unique_ptr<cairo_pattern_t, decltype(&cairo_pattern_destroy)> ramp(
      cairo_pattern_create_linear(end - bar, 0, end, 0), cairo_pattern_destroy);
  cairo_pattern_add_color_stop_rgb(ramp.get(), 0, 0, 0, 0);
  cairo_pattern_add_color_stop_rgb(ramp.get(), 1, 1, 1, 1);
  cairo_rectangle(context, end - bar, y + 5, bar, 12);
  cairo_set_source(context, ramp.get());
  cairo_fill_preserve(context);
  set_colour(context, {});
  cairo_set_line_width(context, 0.5);
  cairo_stroke(context);
  draw_text(context, high, {right, y + 16, label, 1, size});
  draw_text(context, low, {end - bar - 6, y + 16, label, 1, size});
}

/// Means of blocks of n x n values; what is left over at the ends is left out.
std::vector<float> reduced(const GreyPanel& panel, int n) {
  std::vector<float> means;
  for (int y = 0; y + n <= panel.height; y += n)
    for (int x = 0; x + n <= panel.width; x += n) {
      float sum = 0;
      for (int i = 0; i < n * n; ++i)
        sum += panel.values[std::size_t(y + i / n) * std::size_t(panel.width) + std::size_t(x + i % n)];
      means.push_back(sum / float(n * n));
    }
  return means;
}

} // namespace

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

std::vector<Colour> greys(std::span<const float> values, GreyRange range) {
  std::vector<Colour> pixels(values.size());
  const double span = static_cast<double>(range.white_value) - range.black_value;
  std::ranges::transform(values, pixels.begin(), [range, span](float value) {
    double level = 0.5;
    if (!std::isfinite(value))
      level = 0;
    else if (span != 0)
      level = std::clamp((static_cast<double>(value) - range.black_value) / span, 0.0, 1.0);
    const auto grey = static_cast<std::uint8_t>(std::lround(255 * level));
    return Colour{grey, grey, grey};
  });
  return pixels;
}

Picture image_picture(std::span<const Colour> pixels, int width, int height, int scale) {
  if (width < 1 || height < 1 || pixels.size() != std::size_t(width) * std::size_t(height))
    throw std::invalid_argument("image_picture: the span does not have the size of the image");
  std::vector<std::uint32_t> words; // as cairo wants them
  for (const Colour& pixel : pixels)
    words.push_back(std::uint32_t(pixel.red << 16 | pixel.green << 8 | pixel.blue));
  return {double(width * scale), double(height * scale),
          [words = std::move(words), width, height, scale](cairo_t* context) {
            auto* const data = reinterpret_cast<unsigned char*>(const_cast<std::uint32_t*>(words.data()));
            const Surface image(
                cairo_image_surface_create_for_data(data, CAIRO_FORMAT_RGB24, width, height, 4 * width),
                cairo_surface_destroy);
            cairo_save(context);
            cairo_scale(context, scale, scale);
            cairo_set_source_surface(context, image.get(), 0, 0);
            cairo_pattern_set_filter(cairo_get_source(context), CAIRO_FILTER_NEAREST);
            cairo_paint(context);
            cairo_restore(context);
          }};
}

Picture grey_panel(const GreyPanel& panel) {
  constexpr int most = 4096; // cairo ends at 32767
  const int largest = std::max(panel.width, panel.height), n = (largest + most - 1) / most;
  const std::vector<float> small = n > 1 ? reduced(panel, n) : std::vector<float>();
  const Picture image = n > 1 ? image_picture(greys(small, panel.range), panel.width / n, panel.height / n)
                              : image_picture(greys(panel.values, panel.range), panel.width, panel.height,
                                              std::max(1, panel.points / std::max(1, largest)));
  const double width = std::max(image.width, 140.0), top = panel.caption.empty() ? 0 : line_height;
  GreyPanel words = panel; // the values need not live on
  words.values = {};
  return {width, top + image.height + line_height, [=](cairo_t* context) {
            set_colour(context, {});
            draw_text(context, words.caption, {0, 15, width});
            draw_at(context, image, 0, top);
            set_colour(context, {});
            draw_scale_bar(context, words, image.width, top + image.height);
            draw_grey_range(context, words.range, width, width / 2, top + image.height);
          }};
}

Picture side_by_side(const std::vector<Picture>& pictures) {
  Picture row{-gap, 0};
  for (const auto& picture : pictures)
    row = {row.width + gap + picture.width, std::max(row.height, picture.height)};
  row.draw = [pictures](cairo_t* context) {
    double x = 0;
    for (const auto& picture : pictures) {
      draw_at(context, picture, x, 0);
      x += picture.width + gap;
    }
  };
  return row;
}

Picture stacked(const std::vector<Picture>& pictures) {
  Picture column{0, -gap};
  for (const auto& picture : pictures)
    column = {std::max(column.width, picture.width), column.height + gap + picture.height};
  column.draw = [pictures](cairo_t* context) {
    double y = 0;
    for (const auto& picture : pictures) {
      draw_at(context, picture, 0, y);
      y += picture.height + gap;
    }
  };
  return column;
}

double text_width(cairo_t* context, const std::string& text, double size) {
  cairo_select_font_face(context, "sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context, size);
  const std::unique_ptr<cairo_font_options_t, decltype(&cairo_font_options_destroy)> exact(
      cairo_font_options_create(), cairo_font_options_destroy);
  cairo_font_options_set_hint_metrics(exact.get(), CAIRO_HINT_METRICS_OFF); // smaller text fits as well
  cairo_set_font_options(context, exact.get());
  cairo_text_extents_t extents;
  cairo_text_extents(context, text.c_str(), &extents);
  return extents.x_advance;
}

void draw_text(cairo_t* context, const std::string& text, const TextLine& line) {
  const double width = text_width(context, text, line.size);
  if (!(width > 0 && line.room > 0))
    return;
  const double shrink = std::min(1.0, line.room / width);
  cairo_save(context);
  cairo_translate(context, line.x, line.y);
  if (line.upwards)
    cairo_rotate(context, -std::acos(0.0));
  cairo_scale(context, shrink, shrink);
  cairo_move_to(context, -line.alignment * width, 0);
  cairo_show_text(context, text.c_str());
  cairo_restore(context);
}

void set_colour(cairo_t* context, Colour colour) {
  cairo_set_source_rgb(context, colour.red / 255.0, colour.green / 255.0, colour.blue / 255.0);
}

double round_length(double most) {
  const double decade = std::pow(10.0, std::floor(std::log10(most) + 1e-9));
  for (const double factor : {5.0, 2.0})
    if (factor * decade <= most * (1 + 1e-9))
      return factor * decade;
  return decade;
}

void require_picture_name(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending != ".png" && ending != ".pdf" && ending != ".svg")
    throw InputError(path.string() + ": expected a picture's name that ends with .png, .pdf or .svg");
}

namespace {

/// Says in the bytes of a picture what made it: a chunk of PNG, a comment behind the end of the others.
void say_origin(const std::string& ending, std::vector<std::byte>& bytes) {
  const std::string& made = creator();
  if (made.empty())
    return;
  std::string text = ending == ".pdf" ? "% " + made + "\n" : "<!-- " + made + " -->\n";
  auto at = bytes.end();
  if (ending == ".png") {
    constexpr std::ptrdiff_t header = 33; // the signature and the first chunk
    if (std::ssize(bytes) < header)
      return;
    at = bytes.begin() + header;
    const auto number = [](std::uint32_t value) {
      std::string digits;
      for (int shift = 24; shift >= 0; shift -= 8)
        digits += char(value >> shift & 255);
      return digits;
    };
    const std::string body = "tEXtSoftware" + std::string(1, '\0') + made;
    const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), uInt(body.size()));
    text = number(std::uint32_t(body.size() - 4)) + body + number(std::uint32_t(sum));
  }
  const auto more = std::as_bytes(std::span(text));
  bytes.insert(at, more.begin(), more.end());
}

} // namespace

void write_picture(const std::filesystem::path& path, const Picture& picture) {
  constexpr double margin = 8;
  const double width = std::ceil(picture.width + 2 * margin), height = std::ceil(picture.height + 2 * margin);
  require_picture_name(path);
  const std::string ending = path.extension().string();
  std::vector<std::byte> bytes;
  const cairo_write_func_t append = [](void* to, const unsigned char* data, unsigned int count) {
    try {
      const auto part = std::as_bytes(std::span(data, count));
      static_cast<std::vector<std::byte>*>(to)->insert(static_cast<std::vector<std::byte>*>(to)->end(),
                                                       part.begin(), part.end());
      return CAIRO_STATUS_SUCCESS;
    } catch (const std::bad_alloc&) {
      return CAIRO_STATUS_NO_MEMORY;
    }
  };
  const auto made = [&] {
    if (ending == ".png")
      return cairo_image_surface_create(CAIRO_FORMAT_RGB24, int(width), int(height));
    if (ending == ".pdf")
      return cairo_pdf_surface_create_for_stream(append, &bytes, width, height);
    return cairo_svg_surface_create_for_stream(append, &bytes, width, height);
  };
  const Surface surface(made(), cairo_surface_destroy);
  const Context context(cairo_create(surface.get()), cairo_destroy);
  set_colour(context.get(), {255, 255, 255});
  cairo_paint(context.get());
  draw_at(context.get(), picture, margin, margin);
  cairo_status_t status = cairo_status(context.get());
  if (status == CAIRO_STATUS_SUCCESS && ending == ".png")
    status = cairo_surface_write_to_png_stream(surface.get(), append, &bytes);
  cairo_surface_finish(surface.get());
  if (status == CAIRO_STATUS_SUCCESS)
    status = cairo_surface_status(surface.get());
  if (status != CAIRO_STATUS_SUCCESS)
    throw std::runtime_error(path.string() + ": cannot be drawn: " + cairo_status_to_string(status));
  say_origin(ending, bytes);
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

} // namespace Bracewell::Examples
