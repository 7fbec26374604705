// SPDX-License-Identifier: MIT
#include "line_plot.hpp"

#include <cairo.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace Bracewell::Examples {
namespace {

constexpr Colour black{}, grid_grey{228, 228, 228}, dash_grey{120, 120, 120};
// Okabe and Ito's colours, told apart with any kind of colour vision.
constexpr std::array<Colour, 6> curve_colours{
    {{0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {86, 180, 233}, {230, 159, 0}}};

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
  double left, top, right, bottom;
  PlotRange x_range, y_range;

  static constexpr double far_away = 1e4; // points: cairo's coordinates end at 2^23
  double x(double value) const {
    return std::clamp(left + (value - x_range.low) / (x_range.high - x_range.low) * (right - left), -far_away,
                      far_away);
  }
  double y(double value) const {
    return std::clamp(bottom - (value - y_range.low) / (y_range.high - y_range.low) * (bottom - top),
                      -far_away, far_away);
  }
};

void draw_line(cairo_t* context, double x0, double y0, double x1, double y1, double width = 1) {
  cairo_set_line_width(context, width);
  cairo_move_to(context, x0, y0);
  cairo_line_to(context, x1, y1);
  cairo_stroke(context);
}

/// Calls draw(value, label) for some ten round values of a range.
template <class Draw>
void each_tick(PlotRange range, Draw draw) {
  const double step = round_length((range.high - range.low) / 5);
  for (double i = std::ceil(range.low / step - 1e-9); i <= std::floor(range.high / step + 1e-9); ++i) {
    std::array<char, 32> label;
    std::snprintf(label.data(), label.size(), "%.6g", i * step + 0.0);
    draw(i * step, std::string(label.data()));
  }
}

/// 1 / x with three digits; nothing at 0.
std::string period_text(double x) {
  std::array<char, 32> label;
  std::snprintf(label.data(), label.size(), "%.3g", 1 / x);
  return std::abs(x) < 1e-12 ? std::string() : std::string(label.data());
}

void draw_axes(cairo_t* context, const Frame& frame, bool x_as_period) {
  each_tick(frame.x_range, [&](double value, const std::string& label) {
    const double x = frame.x(value);
    set_colour(context, grid_grey);
    draw_line(context, x, frame.top, x, frame.bottom);
    set_colour(context, black);
    draw_text(context, x_as_period ? period_text(value) : label, {x, frame.bottom + 20, 60, 0.5});
  });
  each_tick(frame.y_range, [&](double value, const std::string& label) {
    const double y = frame.y(value);
    set_colour(context, grid_grey);
    draw_line(context, frame.left, y, frame.right, y);
    set_colour(context, black);
    draw_text(context, label, {frame.left - 8, y + 5, 56, 1});
  });
  draw_line(context, frame.left, frame.top, frame.left, frame.bottom + 1, 2);
  draw_line(context, frame.left - 1, frame.bottom, frame.right, frame.bottom, 2);
}

void draw_threshold(cairo_t* context, const Frame& frame, const Threshold& threshold) {
  if (!(threshold.y >= frame.y_range.low && threshold.y <= frame.y_range.high))
    return;
  constexpr double dash = 8;
  set_colour(context, dash_grey);
  cairo_set_dash(context, &dash, 1, 0);
  draw_line(context, frame.left, frame.y(threshold.y), frame.right, frame.y(threshold.y), 1.5);
  cairo_set_dash(context, nullptr, 0, 0);
  draw_text(context, threshold.label, {frame.left + 10, frame.y(threshold.y) - 5, 200});
}

void draw_curve(cairo_t* context, const Frame& frame, const Curve& curve, Colour colour) {
  cairo_save(context);
  cairo_rectangle(context, frame.left, frame.top - 2, frame.right - frame.left + 2,
                  frame.bottom - frame.top + 4);
  cairo_clip(context);
  set_colour(context, colour);
  cairo_set_line_width(context, 2.6);
  cairo_set_line_join(context, CAIRO_LINE_JOIN_ROUND);
  cairo_set_line_cap(context, CAIRO_LINE_CAP_ROUND);
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    if (!std::isfinite(curve.x[i]) || !std::isfinite(curve.y[i])) {
      cairo_stroke(context);
      continue;
    }
    cairo_line_to(context, frame.x(curve.x[i]), frame.y(curve.y[i])); // moves there after a gap
    if (curve.x.size() == 1)
      cairo_close_path(context); // a dot
  }
  cairo_stroke(context);
  cairo_restore(context);
}

struct Corner {
  double left, top;
};

/// The corner for a box of that size where it covers least of the curves; of equal ones the upper right comes first.
Corner emptiest_corner(const Frame& frame, const std::vector<Curve>& curves, double width, double height) {
  constexpr double gap = 10;
  constexpr int steps = 16; // looked at from a point of a curve to the next one
  const double left = frame.left + gap, right = frame.right - gap - width, top = frame.top + gap,
               bottom = frame.bottom - gap - height;
  const std::array<Corner, 4> corners{{{right, top}, {right, bottom}, {left, bottom}, {left, top}}};
  const auto covered = [&](const Corner& corner) {
    int count = 0;
    for (const auto& curve : curves)
      for (std::size_t i = 0; i + 1 < curve.x.size(); ++i)
        for (int step = 0; step <= steps; ++step) {
          const double t = double(step) / steps,
                       x = frame.x(curve.x[i]) * (1 - t) + frame.x(curve.x[i + 1]) * t - corner.left,
                       y = frame.y(curve.y[i]) * (1 - t) + frame.y(curve.y[i + 1]) * t - corner.top;
          count += x >= 0 && x <= width && y >= 0 && y <= height;
        }
    return count;
  };
  return *std::ranges::min_element(corners, {}, covered);
}

void draw_legend(cairo_t* context, const Frame& frame, const std::vector<Curve>& curves) {
  constexpr double padding = 10, sample = 34, line_height = 24;
  double widest = 0, lines = 0;
  for (const auto& curve : curves)
    if (!curve.label.empty())
      ++lines, widest = std::max(widest, text_width(context, curve.label));
  if (lines == 0)
    return;
  const double room = std::min(widest, frame.right - frame.left - sample - 5 * padding);
  const double width = room + sample + 3 * padding, height = lines * line_height + padding;
  const auto [left, top] = emptiest_corner(frame, curves, width, height);
  cairo_rectangle(context, left, top, width, height);
  set_colour(context, {255, 255, 255});
  cairo_fill_preserve(context);
  set_colour(context, grid_grey);
  cairo_set_line_width(context, 1);
  cairo_stroke(context);
  double y = top + padding / 2 + line_height / 2;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].label.empty())
      continue;
    set_colour(context, curve_colours[i % curve_colours.size()]);
    draw_line(context, left + padding, y, left + padding + sample, y, 3);
    set_colour(context, black);
    draw_text(context, curves[i].label, {left + 2 * padding + sample, y + 5, room});
    y += line_height;
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
    throw std::invalid_argument("draw_line_plot: expected at least 320 x 240 points");
  for (const auto& curve : plot.curves)
    if (curve.x.size() != curve.y.size())
      throw std::invalid_argument("draw_line_plot: x and y of different lengths");
  const Frame frame{.left = 92,
                    .top = plot.title.empty() ? 16.0 : 44.0,
                    .right = plot.width - 30,
                    .bottom = plot.height - 60,
                    .x_range = checked(plot.x_range.value_or(range_of(plot.curves, &Curve::x))),
                    .y_range = checked(plot.y_range.value_or(range_of(plot.curves, &Curve::y)))};
  return {plot.width, plot.height, [plot, frame](cairo_t* context) {
            draw_axes(context, frame, plot.x_as_period);
            for (const auto& threshold : plot.thresholds)
              draw_threshold(context, frame, threshold);
            for (std::size_t i = 0; i < plot.curves.size(); ++i)
              draw_curve(context, frame, plot.curves[i], curve_colours[i % curve_colours.size()]);
            draw_legend(context, frame, plot.curves);
            set_colour(context, black);
            const double across = (frame.left + frame.right) / 2, down = (frame.top + frame.bottom) / 2;
            const double width = frame.right - frame.left, height = frame.bottom - frame.top;
            draw_text(context, plot.title, {across, 24, width, 0.5, 18});
            draw_text(context, plot.x_label, {across, plot.height - 12, width, 0.5, 16});
            draw_text(context, plot.y_label, {18, down, height, 0.5, 16, true});
          }};
}

} // namespace Bracewell::Examples
