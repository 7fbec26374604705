// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/options.hpp>
#include <bracewell/tomography/parallel_beam.hpp>

#include <cstdint>
#include <optional>

namespace Bracewell {

/// How FourierTomography is planned.
struct FourierTomographyOptions {
  int image = 0; ///< pixels along both axes of images; 0: the detector's width
  /// The most that a pass works on; calls take any number. Memory grows with it, and a pass of fewer has
  /// FFTs of as many: 64 is good on GPUs. Two real slices are transformed as one complex slice.
  std::int64_t slices = 1;
  ProjectionUnits units = ProjectionUnits::Transpose;      ///< of `project`
  double tolerance = 1e-4;                                 ///< relative error (L2)
  GriddingStrategy strategy = GriddingStrategy::Automatic; ///< of the gridding, see GriddingOptions
  std::optional<double> oversampling = std::nullopt;       ///< of the grid, see GriddingOptions
};

/// How FourierLaminography is planned.
struct FourierLaminographyOptions {
  int image = 0; ///< columns and rows of the volume's slices; 0: the detector's width
  int depth = 0; ///< slices of the volume; 0: as many as the detector has rows
  ProjectionUnits units = ProjectionUnits::Transpose;      ///< of `project`
  double tolerance = 1e-4;                                 ///< relative error (L2)
  GriddingStrategy strategy = GriddingStrategy::Automatic; ///< of the gridding, see GriddingOptions
  std::optional<double> oversampling = std::nullopt;       ///< of the grid, see GriddingOptions
};

/// How LineLaminography is planned.
struct LineLaminographyOptions {
  int image = 0; ///< columns and rows of the volume's slices; 0: the detector's width
  int depth = 0; ///< slices of the volume; 0: as many as the detector has rows
  ProjectionUnits units = ProjectionUnits::Transpose; ///< of `project`
};

/// How LineTomography is planned. Calls take any number of slices, at no cost in memory.
struct LineTomographyOptions {
  int image = 0; ///< pixels along both axes of images; 0: the detector's width
  ProjectionUnits units = ProjectionUnits::Transpose; ///< of `project`
  bool projection = true; ///< project() will be called: it needs room for 2 images of 4 to 8 slices
};

/// How LogPolarTomography is planned.
struct LogPolarTomographyOptions {
  int image = 0; ///< pixels along both axes of images; 0: the detector's width
  /// The most that a pass works on, less where they take gigabytes; calls take any number.
  std::int64_t slices = 1;
  ProjectionUnits units = ProjectionUnits::Transpose; ///< of `project`
  /// Values per pixel of the rows, 1 to 8: 2 (see FilterOptions) leaves little of the interpolation's error
  /// at high frequencies.
  int row_upsampling = 1;
  double oversampling = 1.1; ///< of the log-polar grid, 1 to 4: more is more accurate
  int spans = 0; ///< into which half a turn is divided, 4 or more; 0: as many as take the least time
};

} // namespace Bracewell
