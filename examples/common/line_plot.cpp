// SPDX-License-Identifier: MIT
#include "line_plot.hpp"

#include "font.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace Bracewell::Examples {
namespace {

constexpr Colour grid_grey{228, 228, 228};
constexpr Colour dash_grey{120, 120, 120};
// Okabe and Ito's colours, told apart with any kind of colour vision.
constexpr std::array<Colour, 6> curve_colours{
    {{0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {86, 180, 233}, {230, 159, 0}}};
constexpr int text_scale = 2;

void blend(Colour& under, Colour over, double opacity) {
  const auto mix = [opacity](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + opacity * (b - a)));
  };
  under = {mix(under.red, over.red), mix(under.green, over.green), mix(under.blue, over.blue)};
}

void fill(Picture& picture, int left, int top, int right, int bottom, Colour colour) {
  for (int y = std::max(top, 0); y < std::min(bottom, picture.height); ++y)
    for (int x = std::max(left, 0); x < std::min(right, picture.width); ++x)
      picture.at(x, y) = colour;
}

/// The smallest of 1, 2, 5 x 10^n that makes at most `most` steps.
double tick_step(PlotRange range, int most) {
  const double least = (range.high - range.low) / most;
  const double decade = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * decade >= least * (1 - 1e-9))
      return factor * decade;
  return 10 * decade;
}

std::string tick_label(double value, double step) {
  if (std::abs(value) < 1e-9 * step)
    value = 0;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

/// The range of the values, widened where it is empty.
PlotRange range_of(const std::vector<Curve>& curves, std::vector<double> Curve::*values) {
  PlotRange range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const auto& curve : curves)
    for (const double value : curve.*values)
      if (std::isfinite(value))
        range = {std::min(range.low, value), std::max(range.high, value)};
  if (range.low > range.high)
    return {0, 1};
  const double least = 1e-9 * std::max({std::abs(range.low), std::abs(range.high), 1e-30});
  if (range.high - range.low < least)
    return {range.low - 0.5 * std::abs(range.low) - 0.5, range.high + 0.5 * std::abs(range.low) + 0.5};
  return range;
}

/// The part of a picture inside the axes.
struct Frame {
  int left, top, right, bottom; // pixels; right and bottom are the last ones inside
  PlotRange x_range, y_range;

  double x(double value) const {
    return left + (value - x_range.low) / (x_range.high - x_range.low) * (right - left);
  }
  double y(double value) const {
    return bottom - (value - y_range.low) / (y_range.high - y_range.low) * (bottom - top);
  }
};

double distance_to_segment(double x, double y, double x0, double y0, double x1, double y1) {
  const double dx = x1 - x0;
  const double dy = y1 - y0;
  const double length = dx * dx + dy * dy;
  const double along = length > 0 ? std::clamp(((x - x0) * dx + (y - y0) * dy) / length, 0.0, 1.0) : 0.0;
  return std::hypot(x - x0 - along * dx, y - y0 - along * dy);
}

/// Draws a curve by the distance of pixels from it: smooth edges, and no darker spots where segments meet.
void draw_curve(Picture& picture, const Frame& frame, const Curve& curve, Colour colour) {
  constexpr double half_width = 1.3;
  constexpr double far_away = 1e6; // pixels: keeps the arithmetic finite for values far outside the frame
  if (curve.x.size() != curve.y.size())
    throw std::invalid_argument("draw_line_plot: x and y of different lengths");
  const int width = frame.right - frame.left + 1;
  std::vector<float> opacity(static_cast<std::size_t>(width) *
                             static_cast<std::size_t>(frame.bottom - frame.top + 1));
  const auto finite = [&curve](std::size_t i) {
    return std::isfinite(curve.x[i]) && std::isfinite(curve.y[i]);
  };
  const auto cover_segment = [&](std::size_t from, std::size_t to) {
    const double x0 = std::clamp(frame.x(curve.x[from]), -far_away, far_away);
    const double y0 = std::clamp(frame.y(curve.y[from]), -far_away, far_away);
    const double x1 = std::clamp(frame.x(curve.x[to]), -far_away, far_away);
    const double y1 = std::clamp(frame.y(curve.y[to]), -far_away, far_away);
    const int margin = 2;
    const int first_x = std::max(frame.left, static_cast<int>(std::min(x0, x1)) - margin);
    const int last_x = std::min(frame.right, static_cast<int>(std::max(x0, x1)) + margin);
    const int first_y = std::max(frame.top, static_cast<int>(std::min(y0, y1)) - margin);
    const int last_y = std::min(frame.bottom, static_cast<int>(std::max(y0, y1)) + margin);
    for (int y = first_y; y <= last_y; ++y)
      for (int x = first_x; x <= last_x; ++x) {
        const double inside =
            std::clamp(half_width + 0.5 - distance_to_segment(x, y, x0, y0, x1, y1), 0.0, 1.0);
        auto& value = opacity[static_cast<std::size_t>(y - frame.top) * static_cast<std::size_t>(width) +
                              static_cast<std::size_t>(x - frame.left)];
        value = std::max(value, static_cast<float>(inside));
      }
  };
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    if (!finite(i))
      continue;
    const bool joined = i > 0 && finite(i - 1);
    cover_segment(joined ? i - 1 : i, i); // a point alone is a dot
  }
  for (std::size_t i = 0; i < opacity.size(); ++i) {
    const int y = frame.top + static_cast<int>(i) / width;
    blend(picture.at(frame.left + static_cast<int>(i) % width, y), colour, opacity[i]);
  }
}

void draw_ticks(Picture& picture, const Frame& frame) {
  constexpr int gap = 8;
  const auto each_tick = [](PlotRange range, double step, auto draw) {
    const double first = std::ceil(range.low / step - 1e-9);
    const double last = std::floor(range.high / step + 1e-9);
    for (double i = first; i <= last; ++i)
      draw(i * step);
  };
  const double x_step = tick_step(frame.x_range, 10);
  each_tick(frame.x_range, x_step, [&](double value) {
    const int x = static_cast<int>(std::lround(frame.x(value)));
    fill(picture, x, frame.top, x + 1, frame.bottom, grid_grey);
    fill(picture, x, frame.bottom, x + 2, frame.bottom + 6, black);
    const std::string label = tick_label(value, x_step);
    draw_text(picture, x - text_width(label, text_scale) / 2, frame.bottom + gap + 4, label, black,
              text_scale);
  });
  const double y_step = tick_step(frame.y_range, 8);
  each_tick(frame.y_range, y_step, [&](double value) {
    const int y = static_cast<int>(std::lround(frame.y(value)));
    fill(picture, frame.left, y, frame.right, y + 1, grid_grey);
    fill(picture, frame.left - 5, y, frame.left, y + 2, black);
    const std::string label = tick_label(value, y_step);
    draw_text(picture, frame.left - gap - 6 - text_width(label, text_scale), y - 7 * text_scale / 2, label,
              black, text_scale);
  });
}

void draw_threshold(Picture& picture, const Frame& frame, const Threshold& threshold) {
  if (!(threshold.y >= frame.y_range.low && threshold.y <= frame.y_range.high))
    return;
  const int y = static_cast<int>(std::lround(frame.y(threshold.y)));
  constexpr int dash = 8;
  for (int x = frame.left; x < frame.right; x += 2 * dash)
    fill(picture, x, y, std::min(x + dash, frame.right), y + 2, dash_grey);
  draw_text(picture, frame.left + 10, y - text_height(text_scale) - 1, threshold.label, dash_grey,
            text_scale);
}

void draw_legend(Picture& picture, const Frame& frame, const std::vector<Curve>& curves) {
  constexpr int padding = 10, sample = 34, line_height = 24;
  int lines = 0;
  int widest = 0;
  for (const auto& curve : curves) {
    if (curve.label.empty())
      continue;
    ++lines;
    widest = std::max(widest, text_width(curve.label, text_scale));
  }
  if (lines == 0)
    return;
  const int width = widest + sample + 3 * padding;
  const int left = frame.right - width - padding;
  int top = frame.top + padding;
  fill(picture, left, top, left + width, top + lines * line_height + padding, grid_grey);
  fill(picture, left + 1, top + 1, left + width - 1, top + lines * line_height + padding - 1, white);
  top += padding / 2;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].label.empty())
      continue;
    const int middle = top + line_height / 2;
    fill(picture, left + padding, middle - 1, left + padding + sample, middle + 2,
         curve_colours[i % curve_colours.size()]);
    draw_text(picture, left + 2 * padding + sample, middle - 7 * text_scale / 2, curves[i].label, black,
              text_scale);
    top += line_height;
  }
}

} // namespace

Picture draw_line_plot(const LinePlot& plot) {
  const auto checked = [](PlotRange range) {
    if (!(range.low < range.high) || !std::isfinite(range.high - range.low))
      throw std::invalid_argument("draw_line_plot: a range is empty or not finite");
    return range;
  };
  if (plot.width < 320 || plot.height < 240)
    throw std::invalid_argument("draw_line_plot: expected at least 320 x 240 pixels");
  Picture picture(plot.width, plot.height);
  const Frame frame{.left = 92,
                    .top = plot.title.empty() ? 24 : 52,
                    .right = plot.width - 30,
                    .bottom = plot.height - 76,
                    .x_range = checked(plot.x_range.value_or(range_of(plot.curves, &Curve::x))),
                    .y_range = checked(plot.y_range.value_or(range_of(plot.curves, &Curve::y)))};

  draw_ticks(picture, frame);
  for (const auto& threshold : plot.thresholds)
    draw_threshold(picture, frame, threshold);
  for (std::size_t i = 0; i < plot.curves.size(); ++i)
    draw_curve(picture, frame, plot.curves[i], curve_colours[i % curve_colours.size()]);
  fill(picture, frame.left - 1, frame.top, frame.left + 1, frame.bottom + 2, black);
  fill(picture, frame.left - 1, frame.bottom, frame.right, frame.bottom + 2, black);
  draw_legend(picture, frame, plot.curves);

  const int middle = (frame.left + frame.right) / 2;
  draw_text(picture, middle - text_width(plot.title, text_scale) / 2, 16, plot.title, black, text_scale);
  draw_text(picture, middle - text_width(plot.x_label, text_scale) / 2, plot.height - 30, plot.x_label, black,
            text_scale);
  draw_text_upwards(picture, 10, (frame.top + frame.bottom + text_width(plot.y_label, text_scale)) / 2,
                    plot.y_label, black, text_scale);
  return picture;
}

} // namespace Bracewell::Examples
