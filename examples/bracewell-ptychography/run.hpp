// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/measurement.hpp"
#include "common/checkpoint.hpp"
#include "common/provenance.hpp"
#include "common/timings.hpp"
#include "cryoem/views.hpp"

#include <bracewell/ptychography/solver.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace Bracewell::Examples {

enum class Start { Random, Flat };
enum class Train { Nothing, Pixels, Aberrations };
enum class StorageType { Float, Half };
enum class Algorithm { Adam, EPIE, RPIE, LSQML, Automatic }; ///< Automatic: whole steps of rPIE, then Adam

struct RunOptions {
  std::vector<std::filesystem::path> data; ///< scans with one probe
  bool one_object = false;                 ///< of all of them
  std::filesystem::path out;
  std::optional<std::filesystem::path> reference;
  std::optional<std::filesystem::path> continued; ///< a reconstruction of the same patterns to set out from
  bool try_axes = false;
  MeasurementOptions measurement;
  std::optional<PatternLoss> loss;    ///< absent: by the counts of a bright pixel
  std::optional<bool> scale_patterns; ///< absent: for least squares only
  bool keep_counts = false;           ///< scales models alone, to the counts of their patterns
  std::optional<int> probe_size;      ///< m; absent: that of the probe given, or the detector
  std::optional<int> modes;           ///< absent: 1
  bool subpixel = false, reduced_grid = false;
  int slices = 1;                       ///< of the object, along the beam
  std::vector<double> slice_distance;   ///< metres: of all, or from each slice to the next
  std::vector<double> specimen_tilt;    ///< milliradians, two numbers: towards rows and columns; empty: none
  int relaxation = 0;                   ///< modes by which the probe of a pattern may differ from that of all
  std::vector<double> amplitude_limits; ///< of the object, two numbers; empty: none
  std::optional<double> probe_support;  ///< radius, pixels; absent: all pixels
  std::optional<std::filesystem::path>
      object_support;            ///< HDF5 with /support [rows, columns], positive where it is sought
  double beyond_support = 1;     ///< amplitude elsewhere
  double total_variation = 0;    ///< weight; 0: not smoothed
  bool correlate_halves = false; ///< of the scan, each reconstructed by itself
  bool find_factors = false, find_background = false; ///< of patterns; per detector pixel
  StorageType storage = StorageType::Float;
  /// Given, the probe starts as that of a lens: radians, and nm, mm, nm, rad, 1 (ProbeParameter).
  std::optional<double> convergence_angle;
  std::array<double, probe_parameter_count> aberrations{0, 0, 0, 0, 0.05};
  std::vector<std::string> lens_options; ///< those given
  Train train = Train::Pixels;
  Start start = Start::Flat;
  std::uint64_t seed = 0;
  std::optional<int> passes, batches; ///< absent: as PtychographySchedule says
  std::optional<bool>
      decay; ///< of the rates from pass to pass; absent: with several batches, and with positions
  bool reproducible = false;           ///< sums over processes in a fixed order
  std::optional<double> memory_limit;  ///< megabytes; absent: half of the machine's
  std::optional<double> device_memory; ///< megabytes; absent: as much as it takes
  std::string picture_ending = ".png";
  Algorithm algorithm = Algorithm::Automatic;
  std::optional<double> object_rate;    ///< absent: as PtychographySchedule says by Adam, else 1
  std::optional<double> regularisation; ///< of rPIE and LSQ-ML; absent: 0.1
  bool refine_positions = false;
  PositionMoves position_moves = PositionMoves::Single;
  double position_rate = 0.1, position_limit = 5; ///< object pixels
  std::optional<int> margin; ///< of the object around its windows; absent: what positions may move by
  /// Of pixels, as a part of their root mean square by Adam; absent: as PtychographySchedule says by Adam, else 1.
  std::optional<double> probe_rate;
  std::array<double, probe_parameter_count> aberration_rates{0.05, 1e-4, 0.05, 0.01, 1e-3};
  CheckpointOptions checkpoint;
};

/// Reconstructs a measurement and writes OUT and its pictures; returns the summary, one line. Throws
/// InputError for bad input, with nothing written.
std::string reconstruct(const Space& space, const RunOptions& options, Provenance& provenance,
                        Timings& timings);

} // namespace Bracewell::Examples
