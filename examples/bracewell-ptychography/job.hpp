// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-ptychography/object_file.hpp"
#include "bracewell-ptychography/run.hpp"
#include "bracewell-ptychography/tiles.hpp"
#include "common/processes.hpp"

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace Bracewell::Examples {

/// Four digits, for people.
std::string four_digits(double value);

/// Everything that is decided before patterns are read, and what follows from it.
class Job {
public:
  /// Throws InputError for options and measurements that do not go together, and where memory does not suffice.
  Job(const Space& space, const RunOptions& options, Provenance& provenance);

  const RunOptions& options() const { return options_; }
  Provenance& provenance() const { return provenance_; }
  const Measurement& measurement() const { return measurement_; }
  /// Its object is that of the tile.
  const PtychographyShape& shape() const { return shape_; }
  /// Rows and columns of the whole object.
  const std::array<std::int64_t, 2>& object() const { return object_; }
  const std::optional<ProbeOptics>& optics() const { return optics_; }
  /// At first.
  const std::array<double, probe_parameter_count>& aberrations() const { return aberrations_; }
  /// Of all patterns, in the whole object.
  const std::vector<std::array<double, 2>>& positions() const { return positions_; }
  const std::optional<Reconstruction>& reference() const { return reference_; }

  /// Of all processes.
  const std::vector<Tile>& tiles() const { return tiles_; }
  /// That of this process.
  const Tile& tile() const { return tiles_[static_cast<std::size_t>(processes().rank())]; }
  /// How many patterns it has.
  std::int64_t own_count() const { return std::ssize(tile().patterns); }
  /// The objects of all tiles.
  std::vector<Rectangle> rectangles() const;

  /// How patterns are compared: by the option, or by their counts.
  PatternLoss loss() const { return loss_; }
  bool by_adam() const {
    return options_.algorithm == Algorithm::Adam || options_.algorithm == Algorithm::Automatic;
  }
  /// Whether patterns have more than object, probe and positions.
  bool has_more() const { return shape_.relaxation > 0 || options_.find_factors || options_.find_background; }
  /// Passes, batches and rates: those of the options, and else the library's.
  const PtychographySchedule& schedule() const { return schedule_; }
  int passes() const { return schedule_.passes; }
  int batches() const { return schedule_.batches; }
  bool decays() const { return options_.decay.value_or(batches() > 1 || options_.refine_positions); }
  double object_rate() const { return options_.object_rate.value_or(by_adam() ? schedule_.object_rate : 1); }
  double probe_rate() const { return options_.probe_rate.value_or(by_adam() ? schedule_.probe_rate : 1); }

  using Positions =
      Kokkos::View<const double**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  /// [N, 2], of this process' patterns, in its tile.
  Positions positions_view() const { return Positions(own_positions_.data(), own_positions_.size() / 2, 2); }
  PtychographyOptions loss_options() const;
  /// @param probe_value  about the absolute value of the probe's pixels
  /// @param root_value   the same of the roots of patterns
  PtychographySolverOptions solver_options(double probe_value, double root_value) const;

  /// Of --object-support: the pixels of the tile's object. Throws InputError where the file has not the shape of the object.
  std::vector<float> object_support() const;

  /// Pixels of the object around the windows, into which they may move.
  int margin() const;
  /// What the run sets out from, of --continue, and which of its pixels is the first of the object.
  const std::optional<Reconstruction>& continued() const { return continued_; }
  const std::array<std::int64_t, 2>& continued_from() const { return continued_from_; }

  /// Which pixels of an axis the first process has at the end, for pictures and to compare with a reference: each so
  /// many-th.
  std::int64_t pixel_of_pictures() const;

  /// Says where the light is not around the zero frequency.
  /// @param pattern  [n, n], summed over the scan
  void check_centre(const std::vector<double>& pattern) const;

private:
  double regularisation() const { // ePIE's is 1
    return options_.algorithm == Algorithm::EPIE ? 1 : options_.regularisation.value_or(0.1);
  }
  void append_scans();
  /// Where the positions of --continue lie: its pixel for the first one of windows, and how far they have moved.
  void read_continued();
  /// Takes the positions of --continue.
  void continue_positions();
  /// @param bright  counts of a bright pixel, where values are counts
  void choose_loss(const std::optional<double>& bright);
  void choose_algorithm() const;
  /// What goes beyond one probe on a thin object.
  void choose_model();
  void choose_slices();
  void choose_schedule();
  void choose_optics();
  void choose_shape();
  /// The patterns of every process, and its part of the object.
  void share_out();
  /// Says where positions are hardly in object pixels.
  void check_positions() const;
  /// What --device-memory leaves for patterns.
  void choose_target_bytes();
  void check_memory();
  /// Throws InputError where it has an object of another size, before any work.
  void read_reference(const std::filesystem::path& file);
  /// Bytes of a solver with so many for patterns on the device.
  double solver_bytes(const std::optional<std::size_t>& target_bytes) const;
  /// Bytes through which overlaps with other tiles go.
  double overlap_bytes() const;

  const Space& space_;
  const RunOptions& options_;
  Provenance& provenance_;
  Measurement measurement_;
  std::array<double, probe_parameter_count> aberrations_; ///< at first
  PatternLoss loss_ = PatternLoss::Amplitude;
  PtychographySchedule schedule_;
  PtychographyShape shape_{};            ///< the object is that of the tile
  std::array<std::int64_t, 2> object_{}; ///< the whole
  std::optional<ProbeOptics> optics_;
  std::vector<double> slice_fresnel_numbers_;       ///< from each slice to the next
  std::vector<std::array<double, 2>> slice_shifts_; ///< pixels, likewise, of a tilted specimen; or none
  std::vector<std::array<double, 2>> positions_;
  std::vector<Tile> tiles_;             ///< of all processes
  std::vector<double> own_positions_;   ///< [N, 2], in the tile
  std::optional<double> device_memory_; ///< megabytes
  std::optional<std::size_t> target_bytes_;
  std::optional<Reconstruction> reference_, continued_;
  std::array<std::int64_t, 2> continued_from_{};
  int continued_margin_ = 0; ///< pixels that its positions have moved by
};

/// Reconstructs with patterns stored as Storage, and writes the result; returns the summary in the first process.
template <class Storage>
std::string run_with(const Space& space, const Job& job, Checkpoint& checkpoint, Timings& timings);
/// The loss after the passes of a job, of which nothing is written. In one process.
double trial_loss(const Space& space, const Job& job, Timings& timings);
extern template std::string run_with<float>(const Space&, const Job&, Checkpoint&, Timings&);
extern template std::string run_with<Half>(const Space&, const Job&, Checkpoint&, Timings&);

} // namespace Bracewell::Examples
