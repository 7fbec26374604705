// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/half.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/tomography/detail/beam.hpp>
#include <bracewell/tomography/detail/tuning.hpp>
#include <bracewell/tomography/options.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace Bracewell::Impl {

/// Half a turn in equal spans. Within a span (angles theta about its middle alpha, at most `half_span` away)
/// the disc of radius r, rotated by -alpha, is shrunk by a and moved to (1 - a, 0): z = a x / r + (1 - a, 0).
/// A ray at s then is at e^rho' = a s / r + (1 - a) cos(theta), and with z = e^rho (cos phi, sin phi) it
/// passes where rho' = rho + ln cos(phi - theta): back-projection is a convolution. (Andersson, Carlsson and
/// Nikitin, SIAM J. Imaging Sci. 9(2), 2016.)
struct LogPolarGrid {
  static constexpr int margin = 3; ///< cells beyond the disc, for interpolation
  static constexpr int least_period = 128, largest_period = 2048;

  int width, image; ///< pixels of the detector, and of images along both axes
  int angles, row_upsampling, spans;
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

  /// What one pair of slices takes, by the stages.
  double cost() const {
    using Cost = LogPolarCost;
    const double rows = double(spans) * result_rows();
    return columns *
               (Cost::row_cell * (angles + rows) + Cost::convolution_cell * spans * period * refinement) +
           Cost::pixel * spans * image * image;
  }

  /// The grid of checked options, with the spans that cost least.
  static LogPolarGrid make(const Arguments& arguments, const ParallelBeamGeometry& geometry,
                           const LogPolarTomographyOptions& options) {
    check(arguments, geometry, options);
    LogPolarGrid grid;
    grid.width = geometry.width;
    grid.image = options.image ? options.image : geometry.width;
    grid.angles = static_cast<int>(geometry.angles.size());
    grid.row_upsampling = options.row_upsampling;
    grid.centre = centre_of(geometry);
    grid.first_angle = geometry.angles[0];
    grid.angle_step = std::numbers::pi / grid.angles;
    LogPolarGrid best = grid;
    double least = std::numeric_limits<double>::infinity();
    const int few = std::max(4, grid.angles * 2 / largest_period);
    const int begin = options.spans ? options.spans : few, end = options.spans ? options.spans : 4 * few;
    for (int spans = begin; spans <= end; ++spans)
      if (grid.divide(spans, options.oversampling) && grid.cost() < least) {
        least = grid.cost();
        best = grid;
      }
    if (!is_finite(least))
      arguments.refuse("options.spans",
                       "0 or a number that leaves less than %d angles and about 60 degrees to each, found %d",
                       largest_period / 4, options.spans);
    return best;
  }

private:
  static void check(const Arguments& arguments, const ParallelBeamGeometry& geometry,
                    const LogPolarTomographyOptions& options) {
    const std::vector<double>& angles = geometry.angles;
    check_geometry(arguments, geometry, options.image, 4, 32768, 12, 1 << 20);
    if (!geometry.weights.empty())
      arguments.refuse("geometry.weights", "none, as the angles are even, found %zu",
                       geometry.weights.size());
    if (!geometry.shifts.empty())
      arguments.refuse("geometry.shifts", "none, as views lie on one grid, found %zu",
                       geometry.shifts.size());
    arguments.within("options.oversampling", options.oversampling, 1., 4.);
    arguments.at_least("options.slices", options.slices, std::int64_t(1));
    arguments.within("options.row_upsampling", options.row_upsampling, 1, 8);
    const double step = std::numbers::pi / double(angles.size());
    for (std::size_t p = 0; p < angles.size(); ++p)
      if (!(std::abs(angles[p] - angles[0] - double(p) * step) < 1e-2 * step))
        arguments.refuse("geometry.angles",
                         "even steps of pi / %zu over half a turn, found %.6g at angle %zu", angles.size(),
                         angles[p], p);
  }

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

} // namespace Bracewell::Impl
