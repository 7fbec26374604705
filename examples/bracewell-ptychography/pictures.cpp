// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/pictures.hpp"

#include "common/output_family.hpp"

#include "common/line_plot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace Bracewell::Examples {
namespace {

using Complex = std::complex<double>;

/// The box of pixels with light, and its values as a grey picture; elsewhere black.
struct Lit {
  std::vector<bool> pixels;
  std::int64_t top, left, rows, columns;

  explicit Lit(const Reconstruction& result)
      : pixels(result.amplitude.size()), top(result.rows), left(result.columns) {
    const auto light = illumination(result);
    const double least = 0.05 * *std::ranges::max_element(light);
    std::int64_t bottom = 0, right = 0;
    for (std::int64_t i = 0; i < result.rows * result.columns; ++i) {
      if (!(light[static_cast<std::size_t>(i)] >= least))
        continue;
      pixels[static_cast<std::size_t>(i)] = true;
      const std::int64_t y = i / result.columns, x = i % result.columns;
      top = std::min(top, y), left = std::min(left, x), bottom = std::max(bottom, y),
      right = std::max(right, x);
    }
    rows = std::max<std::int64_t>(1, bottom - top + 1), columns = std::max<std::int64_t>(1, right - left + 1);
    if (top == result.rows)
      top = left = 0;
  }

  Picture picture(const Reconstruction& result, const std::vector<float>& values, const char* caption) const {
    std::vector<float> inside, box;
    for (std::int64_t y = top; y < top + rows; ++y)
      for (std::int64_t x = left; x < left + columns; ++x) {
        const auto i = static_cast<std::size_t>(y * result.columns + x);
        box.push_back(pixels[i] ? values[i] : std::numeric_limits<float>::quiet_NaN());
        if (pixels[i])
          inside.push_back(values[i]);
      }
    const double nanometres = 1e9 * result.pixel_size * double(result.every),
                 field = nanometres * double(columns);
    return grey_panel({.caption = caption,
                       .values = box,
                       .width = static_cast<int>(columns),
                       .height = static_cast<int>(rows),
                       .range = percentile_range(inside, 0.005, 0.995),
                       .pixel_size = field == 0     ? double(result.every)
                                     : field < 2000 ? nanometres
                                                    : nanometres / 1000,
                       .unit = field == 0     ? "px"
                               : field < 2000 ? "nm"
                                              : "\u00b5m",
                       .points = 512});
  }
};

/// Phases without their mean and mean slope, in (-pi, pi].
std::vector<float> flattened_phase(const Reconstruction& result, const std::vector<bool>& lit) {
  const auto rows = static_cast<std::size_t>(result.rows), columns = static_cast<std::size_t>(result.columns);
  Complex down = 0, across = 0;
  for (std::size_t y = 0; y + 1 < rows; ++y)
    for (std::size_t x = 0; x + 1 < columns; ++x) {
      const std::size_t i = y * columns + x;
      if (lit[i] && lit[i + columns] && lit[i + 1]) {
        down += result.object(i + columns) * std::conj(result.object(i));
        across += result.object(i + 1) * std::conj(result.object(i));
      }
    }
  std::vector<Complex> turned;
  Complex mean = 0;
  for (std::size_t i = 0; i < rows * columns; ++i) {
    turned.push_back(result.object(i) * std::polar(1.0, -std::arg(down) * double(i / columns) -
                                                            std::arg(across) * double(i % columns)));
    if (lit[i])
      mean += turned[i];
  }
  std::vector<float> phase;
  for (const auto& value : turned)
    phase.push_back(static_cast<float>(std::arg(value * std::conj(mean))));
  return phase;
}

Colour colour(const Complex& value, double brightest) {
  const double brightness = brightest > 0 ? std::min(1.0, std::abs(value) / brightest) : 0;
  const auto channel = [&](double offset) {
    const double turn = std::arg(value) / (2 * std::numbers::pi) + offset, wave = turn - std::floor(turn);
    const double level =
        std::clamp(2 - std::abs(6 * wave - 3), 0.0, 1.0); // a ramp up, a plateau, a ramp down
    return static_cast<std::uint8_t>(std::lround(255 * brightness * level));
  };
  return {channel(0.5), channel(0.5 - 1.0 / 3), channel(0.5 + 1.0 / 3)};
}

Picture probe_picture(const Reconstruction& result) {
  const int m = result.probe_size;
  double brightest = 0;
  for (const auto& value : result.probe)
    brightest = std::max(brightest, double(std::abs(value)));
  std::vector<Picture> modes;
  for (int mode = 0; mode < result.modes; ++mode) {
    std::vector<Colour> pixels;
    for (int i = mode * m * m; i < (mode + 1) * m * m; ++i)
      pixels.push_back(colour(Complex(result.probe[static_cast<std::size_t>(i)]), brightest));
    modes.push_back(image_picture(pixels, m, m, std::max(1, 256 / m)));
  }
  return side_by_side(modes);
}

} // namespace

std::array<std::filesystem::path, 5> picture_paths(const std::filesystem::path& out,
                                                   const std::string& ending) {
  return {beside(out, "_phase" + ending), beside(out, "_amplitude" + ending), beside(out, "_probe" + ending),
          beside(out, "_loss" + ending), beside(out, "_patterns" + ending)};
}

void write_pictures(const std::array<std::filesystem::path, 5>& paths, const Reconstruction& found) {
  const Reconstruction result = found.projection();
  const auto& [phase, amplitude, probe, loss, patterns] = paths;
  const Lit lit(result);
  write_picture(amplitude, lit.picture(result, result.amplitude, "amplitude"));
  write_picture(phase, lit.picture(result, flattened_phase(result, lit.pixels), "phase (radians)"));
  write_picture(probe, probe_picture(result));
  Curve curve;
  for (std::size_t pass = 0; pass < result.losses.size(); ++pass) {
    curve.x.push_back(static_cast<double>(pass));
    curve.y.push_back(std::log10(result.losses[pass]));
  }
  write_picture(loss, draw_line_plot({.title = "Loss",
                                      .x_label = "pass over the patterns",
                                      .y_label = "log10 of the loss",
                                      .curves = {curve}}));
}

} // namespace Bracewell::Examples
