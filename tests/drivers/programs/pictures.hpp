// SPDX-License-Identifier: MIT
#pragma once

#include "support.hpp"

#include <cairo.h>

#include <memory>

/// Whether the pictures of the pages are what the programs draw.
namespace DriverTest {

struct Region {
  int x, y, width, height;
};

/// Reads a PNG file. An empty region is the whole picture.
class PictureFile {
public:
  explicit PictureFile(const fs::path& path, Region region = {})
      : surface_(cairo_image_surface_create_from_png(path.c_str()), cairo_surface_destroy), region_(region) {
    INFO(path);
    REQUIRE(cairo_surface_status(surface_.get()) == CAIRO_STATUS_SUCCESS);
    const int width = cairo_image_surface_get_width(surface_.get()),
              height = cairo_image_surface_get_height(surface_.get());
    if (region_.width == 0)
      region_ = {0, 0, width, height};
    REQUIRE(region_.x + region_.width <= width);
    REQUIRE(region_.y + region_.height <= height);
  }

  int width() const { return region_.width; }
  int height() const { return region_.height; }

  /// Green value of the pixel nearest to (x, y), which count from 0 to 1 over the region.
  double operator()(double x, double y) const {
    const int column = region_.x + int(x * width()), row = region_.y + int(y * height());
    return cairo_image_surface_get_data(
        surface_.get())[row * cairo_image_surface_get_stride(surface_.get()) + 4 * column + 1];
  }

private:
  std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)> surface_;
  Region region_;
};

/// Mean difference of two pictures, from 0 to 255, at the pixels of the first.
inline double difference(const PictureFile& shown, const PictureFile& drawn) {
  double sum = 0;
  for (int y = 0; y < shown.height(); ++y)
    for (int x = 0; x < shown.width(); ++x) {
      const double across = (x + 0.5) / shown.width(), down = (y + 0.5) / shown.height();
      sum += std::abs(shown(across, down) - drawn(across, down));
    }
  return sum / (double(shown.width()) * shown.height());
}

/// A picture of the pages, by its path in the repository.
inline fs::path page_picture(const char* path) { return fs::path(BRACEWELL_SOURCE_DIR) / path; }

} // namespace DriverTest
