// SPDX-License-Identifier: MIT
#pragma once

#include "common/hdf5_blocks.hpp"
#include "common/provenance.hpp"

#include <array>
#include <complex>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace Bracewell::Examples {

/// What is to be read in another way than the file says. Lengths in metres.
struct MeasurementOptions {
  std::string data, mask, probe;      ///< datasets; empty: the first of the known places that is there
  std::vector<std::string> positions; ///< the same of positions: one dataset, or those of rows and columns
  std::vector<double> scan_step; ///< of a raster scan without positions, down and across, or one for both
  std::optional<double> wavelength, distance, detector_pixel;
  std::optional<double> object_pixel;   ///< instead of wavelength distance / (n detector_pixel)
  std::optional<double> focus_distance; ///< near field: from the focus to the sample
  std::vector<double> centre;           ///< row, column of the zero frequency; empty: as the file says
  std::string axes = "yx"; ///< which coordinates rows and columns of the object are: "yx", "xy", "-yx" ...
  double rotation = 0;     ///< degrees by which the scan is turned, from the row axis to the column axis
  std::optional<int> detector; ///< n: a window around the centre, instead of the whole frame
  std::optional<bool>
      positions_in_metres;      ///< absent: those of /scan are pixels, all others metres or as `units` says
  std::size_t every = 1;        ///< take each n-th position only
  bool invert_mask = false;     ///< pixels of a mask are good that are not 0
  bool ignore_probe = false;    ///< of the file
  bool conjugate_probe = false; ///< take the file's probe with the other sign of its curvature
  std::optional<std::int64_t> most; ///< only so many patterns, those next to the middle of the scan
};

/// A ptychographic measurement in an HDF5 file:
/// - CXI, its NeXus form NXcxi_ptycho included: `/entry_1/data_1/data` [N, rows, columns], zero frequency in
///   the middle; `.../translation` [N, 2 or 3] (x, y, z) in metres; `instrument_1/source_1/wavelength` or
///   `energy` (joules); `instrument_1/detector_1/distance`, `x_pixel_size`, `y_pixel_size`, `mask` (0: good; one, or one per
///   pattern, of which a pixel is good that is good in all), `data_dark` (subtracted), `data_white` or `flatfield` (divided by),
///   `basis_vectors` [3, 2] (directions of rows and columns); an attribute `units` of a number is heeded;
///   `beam_center_x`, `beam_center_y` (pixels); `instrument_1/source_1/illumination` [(modes,) m, m], or of a lens
///   `convergence_semi_angle` (radians) and `defocus` (metres).
/// - plain: `/data` [N, n, n], zero frequency at [0, 0], `/scan` [N, 2] (row, column) in object pixels,
///   `/probe`, `/mask`, `/wavelength`, `/energy`, `/distance`, `/convergence_angle`, `/defocus`.
/// - `/dp` [N, n, n], zero frequency in the middle, `/probe_position_y_m` and `/probe_position_x_m` [N], metres.
/// - py4DSTEM: `/ROOT/NAME/data` [rows, columns of the scan, rows, columns], zero frequency in the middle, `dim0` and `dim2` with
///   their `units` beside it, of which follow the step of the scan and the pixel of the object.
/// - PtyPy's .ptyd of one chunk: `/chunks/0/data`, zero frequency in the middle, `weights` (good pixels are not 0) and `positions` (row,
///   column) in metres beside it, `/meta/energy` (keV), `/meta/distance`, `/meta/psize`.
/// - NumPy's .npz: its array `data` is `/data` of a plain file, and so on.
/// - .raw of an EMPAD: frames of 130 x 128 numbers in single precision, of whose rows the last two are no pixels. Its name may end in
///   x256_y128 for 128 rows of 256 patterns, as `scan_x256_y128.raw`. A frame of 130 x 128 is taken so in other files, too.
/// Patterns [rows, columns of the scan, rows, columns] may stand wherever [N, rows, columns] do, and positions [2 or 3, N] where
/// [N, 2 or 3] do, with `units`.
/// Patterns are left in the file and read in groups.
class Measurement {
public:
  /// Such a file. Throws InputError.
  static Hdf5Reader open(const std::filesystem::path& path);

  /// Throws InputError, one sentence with file and dataset, for what is missing or malformed.
  Measurement(const std::filesystem::path& path, const MeasurementOptions& options, Provenance& provenance);
  Measurement(const Measurement&) = delete;
  /// Another scan behind this one: the patterns of both, whose windows and frames are the same; a pixel is good that is good in
  /// both. The probe stays that of the first.
  /// @param gap  rows between the windows of the object so far and those of the other, which lies below; absent: both scans are
  ///   of one object, and positions count from one place
  /// Throws InputError for scans of different detectors, wavelengths or pixels.
  void append(std::unique_ptr<Measurement> other, const std::optional<int>& gap, Provenance& provenance);

  const std::filesystem::path& path() const { return file_.path(); }
  std::int64_t count() const { return static_cast<std::int64_t>(positions_.size()); }
  int detector() const { return static_cast<int>(rows_.size()); } ///< n
  bool near_field() const { return fresnel_number_.has_value(); }
  /// Of the window of n x n.
  const std::optional<double>& fresnel_number() const { return fresnel_number_; }
  double object_pixel() const { return object_pixel_; } ///< metres; 0: not known
  double wavelength() const { return wavelength_; }     ///< metres; 0: not known
  /// Of the lens, where the file has them: radians, nanometres.
  const std::optional<double>& convergence_angle() const { return convergence_angle_; }
  const std::optional<double>& defocus() const { return defocus_; }
  /// Median distance from a position to the next one, object pixels; 0 for a single one.
  double step() const;
  /// Row and column of the frame that a pixel of a pattern comes from.
  std::array<std::int64_t, 2> in_frame(std::int64_t row, std::int64_t column) const {
    return {rows_[static_cast<std::size_t>(row)], columns_[static_cast<std::size_t>(column)]};
  }
  /// (row, column) in object pixels, the least of either being zero.
  const std::vector<std::array<double, 2>>& positions() const { return positions_; }
  /// What was subtracted from them: they are in the stage's frame, turned by --axes and --rotation, with it.
  const std::array<double, 2>& origin() const { return origin_; }
  /// Rows and columns that windows of `probe` pixels at all positions cover.
  std::array<std::int64_t, 2> object_shape(int probe) const;
  /// [n, n] in the order of the patterns: 1, or 0 for bad pixels and beyond the frame. Empty: all are good.
  const std::vector<float>& weights() const { return weights_; }
  /// Marks pixels [n, n] as bad that are not 0.
  void mask(std::span<const std::uint8_t> bad);
  /// Counts at a place of the frame without dark counts, divided by the flat field.
  double corrected(std::int64_t place, double value) const {
    const auto at = static_cast<std::size_t>(place);
    return (value - (dark_.empty() ? 0.0f : dark_[at])) * (gain_.empty() ? 1.0f : gain_[at]);
  }
  /// [rows, columns] of a frame: what corrected() subtracts, and multiplies by; empty where the file has nothing of the kind.
  const std::vector<float>& dark() const { return dark_; }
  const std::vector<float>& gain() const { return gain_; }
  /// [modes, m, m], origin in the middle, where the file has one.
  const std::vector<std::complex<float>>& probe() const { return probe_; }
  int probe_modes() const { return probe_modes_; }
  int probe_size() const { return probe_size_; }

  /// How the frames are stored.
  StoredFormat format() const { return blocks_->format(); }
  std::int64_t frame_bytes() const { return blocks_->bytes({shape_[1], shape_[2]}); }
  /// Whole frames [count, rows, columns] of patterns, as they are stored. From any number of threads.
  void read(std::span<const std::int64_t> patterns, std::span<std::byte> frames) const;
  /// Where in its frame every pixel of a pattern [n, n] is, zero frequency at [0, 0] (near field: as in the file); -1
  /// where its weight is zero.
  std::vector<std::int64_t> places() const;
  /// The same for all pixels, -1 beyond the frame.
  std::vector<std::int64_t> places_in_frame() const;

private:
  std::string find(const std::string& asked, const std::vector<std::string>& places, const char* what) const;
  std::optional<double> scalar(const std::optional<double>& asked,
                               const std::vector<std::string>& places) const;
  std::optional<double> any_sign(const std::vector<std::string>& places) const;
  void read_geometry(const MeasurementOptions& options, Provenance& provenance);
  void leave_out_unwritten(Provenance& provenance);
  bool is_ptyd() const { return data_ == "/chunks/0/data"; }
  /// The shape of the patterns, and of a grid that they were taken on.
  void read_shape();
  /// Pixel of the object and step of a scan that has its axes beside it, as py4DSTEM does: metres, 0: not known.
  std::array<double, 2> read_axes() const;
  void read_window(const MeasurementOptions& options);
  void read_mask(const MeasurementOptions& options, Provenance& provenance);
  void read_corrections(Provenance& provenance);
  /// The mean of the frames in the first of these datasets that is there, `found`; empty where none is.
  std::vector<float> mean_frame(const std::vector<std::string>& names, std::string& found) const;
  /// Empty where there is none.
  std::string mask_dataset(const MeasurementOptions& options) const;
  /// The file's mask [rows, columns]; of one per pattern their union.
  std::vector<std::uint32_t> stored_mask(const MeasurementOptions& options, Provenance& provenance) const;
  void read_positions(const MeasurementOptions& options, Provenance& provenance);
  /// (x, y) or (row, column) of every pattern of the file, and whether they are pixels.
  struct Places {
    std::string name;
    std::vector<std::array<double, 2>> values;
    bool row_first = false, pixels = false;
  };
  Places read_places(const MeasurementOptions& options) const;
  void read_two_columns(const std::vector<std::string>& names,
                        std::vector<std::array<double, 2>>& places) const;
  void read_one_table(const std::string& name, bool is_plain,
                      std::vector<std::array<double, 2>>& places) const;
  /// Directions of the frame's columns and rows, [3, 2] of length 1; empty where the file has none.
  std::vector<double> basis_vectors() const;
  Places raster(const MeasurementOptions& options, Provenance& provenance) const;
  /// Leaves out a few patterns that overlap with no other one.
  void leave_out_lone_positions(Provenance& provenance);
  /// Keeps so many patterns, those next to the middle of the scan.
  void keep_middle(std::int64_t most);
  void read_probe(const MeasurementOptions& options);
  /// The scan that a pattern is of, and its number in the file of that.
  std::pair<const Measurement*, std::int64_t> stored(std::int64_t pattern) const;

  Hdf5Reader file_;
  std::optional<Hdf5Blocks> blocks_; ///< the frames
  std::string data_;
  Hdf5Shape shape_; ///< [patterns, rows, columns]
  std::array<std::int64_t, 2>
      grid_{}; ///< rows and columns of a scan that is stored as [rows, columns, ...]; 0: it is not
  std::vector<std::int64_t> rows_, columns_; ///< frame's index of every row and column of a pattern, -1: none
  std::vector<std::int64_t> numbers_;        ///< of the patterns that are taken
  std::vector<float> weights_, dark_, gain_;
  std::vector<std::array<double, 2>> positions_; ///< of the appended ones, too
  std::array<double, 2> origin_{};               ///< what was subtracted from them
  std::vector<std::unique_ptr<Measurement>> others_;
  std::vector<std::complex<float>> probe_;
  int probe_modes_ = 0, probe_size_ = 0;
  double wavelength_ = 0, distance_ = 0, detector_pixel_ = 0, object_pixel_ = 0;
  std::optional<double> fresnel_number_, convergence_angle_, defocus_;
};

/// Writes a measurement as CXI, group by group.
class MeasurementWriter {
public:
  struct Geometry {
    double wavelength, distance, detector_pixel, object_pixel; ///< metres
  };
  /// `positions` in object pixels.
  MeasurementWriter(const std::filesystem::path& path, int detector,
                    std::span<const std::array<double, 2>> positions, const Geometry& geometry);
  /// Counts [count, n, n], zero frequency at [0, 0].
  void write(std::int64_t first, std::int64_t count, std::span<const std::uint16_t> patterns);
  /// [n, n], 0 for good pixels, zero frequency at [0, 0].
  void write_mask(std::span<const std::uint32_t> mask);
  void commit() { file_.commit(); }

private:
  /// The zero frequency moved from [0, 0].
  template <class Value>
  std::vector<Value> in_the_middle(std::span<const Value> patterns) const;

  Hdf5Writer file_;
  int detector_;
};

} // namespace Bracewell::Examples
