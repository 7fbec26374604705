// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/options.hpp>

#include <cstdint>
#include <optional>
#include <ranges>
#include <type_traits>
#include <vector>

namespace Bracewell {

/// Angles in radians, from numbers of any type.
struct Angles : std::vector<double> {
  using std::vector<double>::vector;

  /// From a std::vector<float>, for instance.
  template <std::ranges::input_range Range>
  requires(std::is_arithmetic_v<std::ranges::range_value_t<Range>>) Angles(const Range& range)
      : std::vector<double>(std::ranges::begin(range), std::ranges::end(range)) {}
};

/// How FourierTomography is planned.
struct FourierTomographyOptions {
  /// Radians, any number, order and span. Multiples of 1/4 over more than a turn are degrees, and refused.
  Angles angles = {};
  int width = 0;           ///< pixels of the detector
  std::int64_t slices = 1; ///< how many a call reconstructs
  std::optional<double> centre =
      std::nullopt;                 ///< detector coordinate of the axis; by default floor(width / 2)
  double tolerance = 1e-4;          ///< relative error (L2)
  std::vector<double> weights = {}; ///< of the angles, 1 on average; empty: all are 1
  GriddingStrategy strategy = GriddingStrategy::Automatic; ///< of the gridding, see GriddingOptions
  GriddingKernel kernel = GriddingKernel::KaiserBessel;    ///< of the gridding
  std::optional<double> oversampling = std::nullopt;       ///< of the grid, see GriddingOptions
  int image = 0; ///< pixels along both axes of images; 0: the detector's width
};

/// How LineTomography is planned.
struct LineTomographyOptions {
  /// Radians, any number, order and span. Multiples of 1/4 over more than a turn are degrees, and refused.
  Angles angles = {};
  int width = 0; ///< pixels of the detector, and of images along both axes
  std::optional<double> centre =
      std::nullopt;                 ///< detector coordinate of the axis; by default floor(width / 2)
  std::vector<double> weights = {}; ///< of the angles, 1 on average; empty: all are 1
  bool projection = true; ///< project() will be called: it needs room for 2 width^2 pixels of 4 to 8 slices
};

/// How LogPolarTomography is planned.
struct LogPolarTomographyOptions {
  Angles angles = {};      ///< radians: P angles in steps of pi / P, from any first one
  int width = 0;           ///< pixels of the detector, and of images along both axes
  std::int64_t slices = 1; ///< the most that are worked on at once: less takes less memory
  std::optional<double> centre =
      std::nullopt; ///< detector coordinate of the axis; by default floor(width / 2)
  /// Values per pixel of the rows, 1 to 8: 2 (see FilterOptions) leaves little of the interpolation's error
  /// at high frequencies.
  int row_upsampling = 1;
  double oversampling = 1.1; ///< of the log-polar grid, 1 to 4: more is more accurate
  int spans = 0; ///< into which half a turn is divided, 4 or more; 0: those that take the least time
};

} // namespace Bracewell
