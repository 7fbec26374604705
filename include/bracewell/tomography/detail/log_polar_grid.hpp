// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>
#include <bracewell/fft/fast_size.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell {

struct LogPolarTomographyOptions {
  std::vector<double> angles = {}; ///< radians: P angles in steps of pi / P, from any first one
  int width = 0;                   ///< pixels of the detector, and of images along both axes
  std::int64_t slices = 1;         ///< the most that are worked on at once: less takes less memory
  std::optional<double> centre =
      std::nullopt;          ///< detector coordinate of the axis; floor(width / 2) by default
  int row_upsampling = 1;    ///< values per pixel of the rows, 1 to 8: 2 (see FilterOptions) leaves little of
                             ///< the interpolation's error at high frequencies
  double oversampling = 1.1; ///< of the log-polar grid, 1 to 4: more is more accurate
  int spans = 0; ///< into which half a turn is divided, 4 or more; 0: those that take the least time
};

namespace Impl {

/// Half a turn in equal spans. Within a span (angles theta about its middle alpha, at most `half_span` away)
/// the disc of radius r, turned by -alpha, is shrunk by a and moved to (1 - a, 0): z = a x / r + (1 - a, 0).
/// A ray at s then is at e^rho' = a s / r + (1 - a) cos(theta), and with z = e^rho (cos phi, sin phi) it
/// passes where rho' = rho + ln cos(phi - theta): back-projection is a convolution. (Andersson, Carlsson and
/// Nikitin, SIAM J. Imaging Sci. 9(2), 2016.)
struct LogPolarGrid {
  static constexpr int margin = 3; ///< cells beyond the disc, for interpolation
  static constexpr int least_period = 128, largest_period = 2048;

  int width, angles, row_upsampling, spans;
  double centre, first_angle, angle_step;
  double radius, shrink; ///< r in pixels, a
  int most;              ///< steps of the angle from the middle of a span, at most
  int period;            ///< of the convolution, in steps of the angle: a power of two
  int refinement;        ///< rows of the result per step of the angle
  int columns;           ///< steps of rho, a multiple of 8
  double rho_begin, rho_step;

  KOKKOS_FUNCTION int span_begin(int span) const {
    return static_cast<int>(std::int64_t(span) * angles / spans);
  }
  KOKKOS_FUNCTION int span_middle(int span) const { return (span_begin(span) + span_begin(span + 1)) / 2; }
  int span_of(int angle) const { return static_cast<int>(((angle + std::int64_t(1)) * spans - 1) / angles); }
  double alpha(int span) const { return first_angle + span_middle(span) * angle_step; }
  /// (1 - a) cos(theta) of an angle, where the axis is on its row as it is shrunk and moved.
  double origin(int angle) const {
    return (1 - shrink) * std::cos((angle - span_middle(span_of(angle))) * angle_step);
  }
  /// Steps of the angle that results reach on either side of a span's middle, and their rows.
  KOKKOS_FUNCTION int result_steps() const { return most + margin; }
  KOKKOS_FUNCTION int result_rows() const { return 2 * result_steps() * refinement; }
  KOKKOS_FUNCTION double result_step() const { return angle_step / refinement; }
  KOKKOS_FUNCTION int row_values() const { return width * row_upsampling; }

  /// Bytes that one pair of slices moves, by the stages; the interpolations as what takes an H200 as long.
  double cost() const {
    const double rows = double(spans) * result_rows();
    return columns * (40 * (angles + rows) + 30. * spans * period * refinement) + 50. * spans * width * width;
  }

  static LogPolarGrid make(const LogPolarTomographyOptions& options) {
    constexpr const char* function = "LogPolarTomography";
    const std::vector<double>& angles = options.angles;
    if (options.width < 4 || options.width > 32768)
      fail(function, "width", "from 4 to 32768 pixels", std::to_string(options.width));
    if (angles.size() < 12 || angles.size() > (1u << 20))
      fail(function, "angles", "from 12 to 2^20 angles", std::to_string(angles.size()));
    if (!(options.oversampling >= 1 && options.oversampling <= 4))
      fail(function, "oversampling", "from 1 to 4", std::to_string(options.oversampling));
    if (options.slices < 1)
      fail(function, "slices", "at least 1", std::to_string(options.slices));
    if (options.row_upsampling < 1 || options.row_upsampling > 8)
      fail(function, "row_upsampling", "from 1 to 8", std::to_string(options.row_upsampling));
    LogPolarGrid grid;
    grid.width = options.width;
    grid.angles = static_cast<int>(angles.size());
    grid.row_upsampling = options.row_upsampling;
    grid.centre = options.centre.value_or(options.width / 2);
    if (!(std::abs(grid.centre) <= 4.0 * options.width))
      fail(function, "centre", "a pixel within four widths of the detector", std::to_string(grid.centre));
    grid.first_angle = angles[0];
    grid.angle_step = std::numbers::pi / grid.angles;
    for (std::size_t p = 0; p < angles.size(); ++p)
      if (!(std::abs(angles[p] - angles[0] - double(p) * grid.angle_step) < 1e-2 * grid.angle_step))
        fail(function, "angles", "even steps of pi / " + std::to_string(angles.size()) + " over half a turn",
             std::to_string(angles[p]) + " at angle " + std::to_string(p));

    LogPolarGrid best = grid;
    double least = std::numeric_limits<double>::infinity();
    const int few = std::max(4, grid.angles * 2 / largest_period);
    for (int spans = options.spans ? options.spans : few; spans <= (options.spans ? options.spans : 4 * few);
         ++spans)
      if (grid.divide(spans, options.oversampling) && grid.cost() < least) {
        least = grid.cost();
        best = grid;
      }
    if (least == std::numeric_limits<double>::infinity())
      fail(function, "spans",
           "0 or a number that leaves less than " + std::to_string(largest_period / 4) +
               " angles and about 60 degrees to each",
           std::to_string(options.spans));
    return best;
  }

private:
  /// The grid with so many spans; false where they are too wide.
  bool divide(int count, double oversampling) {
    if (count < 4 || count > angles)
      return false;
    spans = count;
    most = (angles / spans + 2) / 2; // at least one more than a span has
    const double half_span = most * angle_step;
    period = least_period;
    while (period < 4 * result_steps())
      period *= 2;
    if (half_span > 0.56 || period > largest_period)
      return false;
    radius = width / 2.0;
    shrink = std::sin(half_span) / (1 + std::sin(half_span));
    const double pixel = shrink / radius; // on the circle |z| = 1, where the disc is the farthest
    // Tangentially a span's result has frequencies up to sin(2 half_span) / 2 per pixel.
    const double fine_step = pixel / (std::sin(2 * half_span) * oversampling);
    refinement = std::max(1, static_cast<int>(std::ceil(angle_step / fine_step - 0.25)));
    const double least = std::log((1 - shrink) * std::cos(half_span) - shrink);
    std::int64_t eighth = (static_cast<std::int64_t>(-least / pixel * oversampling) + 4 * margin + 7) / 8;
    do // no factor 7, either: one pass of cuFFT up to 8192
      eighth = next_fast_size(eighth);
    while (eighth % 7 == 0 && ++eighth);
    columns = static_cast<int>(8 * eighth);
    rho_step = -least / (columns - 4 * margin);
    rho_begin = least - 2 * margin * rho_step;
    return true;
  }
};

} // namespace Impl
} // namespace Bracewell
