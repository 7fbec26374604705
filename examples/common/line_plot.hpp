// SPDX-License-Identifier: MIT
#pragma once

#include "picture.hpp"

#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// A curve; points that are not finite leave a gap.
struct Curve {
  std::string label = {}; ///< for the legend; empty: not in it
  std::vector<double> x = {};
  std::vector<double> y = {};
};

/// A dashed horizontal line with its label on it.
struct Threshold {
  double y = 0;
  std::string label = {};
};

struct PlotRange {
  double low = 0;
  double high = 1;
};

/// Curves with axes, ticks and a legend in the corner where it covers least of them.
struct LinePlot {
  std::string title = {};
  std::string x_label = {};
  std::string y_label = {};
  bool x_as_period = false; ///< 1 / x is written at the ticks of x
  std::vector<Curve> curves = {};
  std::vector<Threshold> thresholds = {};
  std::optional<PlotRange> x_range = {}; ///< absent: that of the curves
  std::optional<PlotRange> y_range = {};
  double width = 960; ///< points
  double height = 640;
};

Picture draw_line_plot(const LinePlot& plot);

} // namespace Bracewell::Examples
