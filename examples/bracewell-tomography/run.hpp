// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/scan.hpp"
#include "common/stored_type.hpp"
#include "common/timings.hpp"
#include "common/views.hpp"

#include <bracewell/optimize/least_squares_options.hpp>
#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/outliers.hpp>
#include <bracewell/tomography/phase.hpp>
#include <bracewell/tomography/stripes.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// Angles: these and shifts.
enum class AlignedViews { None, Shifts, Angles };
enum class Method { Fourier, LogPolar, Line };

/// Numbers first, first + step ... last.
struct TrialRange {
  double first = 0, last = 0, step = 1;
};

/// Least squares by iterations.
struct SolverOptions {
  LeastSquaresMethod method = LeastSquaresMethod::ConjugateGradients;
  int iterations = 0;         ///< at most
  bool nonnegative = false;   ///< not of conjugate gradients
  double total_variation = 0; ///< over the attenuation per pixel of the scan
  double noise = 0;           ///< standard deviation of sinograms, where a slice ends; 0: none ends early
  bool transmission_weights = false; ///< of their values; all are 1 otherwise
};

struct RunOptions {
  ScanOptions scan;
  std::filesystem::path out;
  StoredType output_type = StoredType::Float32; ///< or Float16
  Method method = Method::Fourier;
  std::optional<SolverOptions> solver; ///< absent: filtered back-projection
  TomographyFilter filter = TomographyFilter::Shepp;
  ProjectionPadding padding = ProjectionPadding::Edge;
  double tolerance = 1e-4;               ///< of the Fourier method
  std::optional<double> centre;          ///< pixel; absent: searched for in the middle slice
  std::optional<TrialRange> try_centres; ///< pixels; OUT is a picture of the middle slice at each of them
  std::optional<TrialRange> try_tilts;   ///< degrees of roll, likewise
  int binning = 1;                   ///< pixels of the detector, of which all below count squares of so many
  std::optional<IndexRange> columns; ///< of the detector; absent: all; others count from the first of these
  std::optional<OutlierOptions> zingers;   ///< absent: they stay
  double roll = 0;                         ///< of the detector, degrees
  std::optional<PhaseOptions> phase;       ///< absent: there is none
  std::vector<double> hardening;           ///< coefficients of the polynomial; empty: none
  std::optional<double> laminography;      ///< degrees of the axis' tilt; absent: there is none
  std::optional<int> depth;                ///< slices of laminography; absent: as many as rows
  bool half_acquisition = false;           ///< the axis is near an end of the detector
  std::optional<int> size;                 ///< pixels of a slice; absent: as the detector sees
  std::optional<bool> logarithm;           ///< false: values are attenuation already; absent: as they look
  std::optional<IndexRange> air;           ///< columns without object
  std::optional<StripeOptions> stripes;    ///< absent: they stay
  AlignedViews align = AlignedViews::None; ///< the scan drifts: what of its views is searched for
  /// Weigh projections by the share of half a turn that is theirs; absent: where angles are not evenly spread.
  std::optional<bool> density_weights = {};
  /// Where y of slices points to: up is what ASTRA, scikit-image and algotom have, down what geometries of the library have.
  bool y_up = true;
  bool corners = false;                ///< keep what lies outside of the disc that every projection sees
  std::optional<IndexRange> rows;      ///< of the detector; absent: all
  std::optional<double> memory_limit;  ///< megabytes; absent: half of the machine's
  std::string picture_ending = ".png"; ///< of the middle slice
};

struct RunResult {
  std::string summary; ///< one line
  double centre;
};

/// Reconstructs a scan, some slices at a time: the next ones are read and the last ones written meanwhile.
/// Throws InputError for bad input, with nothing written.
RunResult reconstruct(const Space& space, const RunOptions& options, Provenance& provenance,
                      Timings& timings);

/// The middle slice at several centres or rolls, as one picture; returns the summary.
std::string try_values(const Space& space, const RunOptions& options, Provenance& provenance);

} // namespace Bracewell::Examples
