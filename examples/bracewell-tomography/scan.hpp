// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/frame_stack.hpp"
#include "common/provenance.hpp"

#include <bracewell/tomography/scan.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

inline constexpr double degree = std::numbers::pi / 180; ///< in radians

enum class AngleUnit { Degrees, Radians };

/// Whole numbers [begin, end).
struct IndexRange {
  std::int64_t begin = 0, end = 0;
};

/// Where the data of a scan are: datasets of `file`, FILE:DATASET, or other files. What is named so and is not there is
/// an error; the usual names may be absent.
struct ScanOptions {
  std::filesystem::path file; ///< HDF5, MRC, or as TiffReader takes it
  std::string data = "/exchange/data";
  std::string flat = "/exchange/data_white";
  std::string dark = "/exchange/data_dark";
  std::string angles = "/exchange/theta";   ///< degrees, or as their attribute "units" says; may be a text
  std::optional<AngleUnit> angle_unit = {}; ///< instead of the attribute
  std::optional<double> span = {};          ///< degrees: even angles over it, instead of those of the file
  std::optional<double> first_angle = {};   ///< degrees: of these even angles; absent: 0
  bool both_ends = false;                   ///< the last one is at `span` itself
  /// Projections before which flat frames were taken, as many each time, in order; empty: their mean is for all.
  std::vector<std::int64_t> flat_at = {};
  bool nearest_flat = false;                    ///< of these times, instead of a line between two of them
  std::vector<IndexRange> leave_out = {};       ///< projections, counted from 0 in the order of the file
  std::vector<IndexRange> leave_out_flats = {}; ///< flat frames, likewise
};

/// A scan by parallel beam, open for reading: HDF5 in the layout of Scientific Data Exchange (De Carlo et
/// al., J. Synchrotron Rad. 21, 2014) or of NXtomo (with an image_key), projections [angles, rows, width]; TIFF,
/// projections [rows, width] as pages or as a series of files, or one sinogram [angles, width]; or MRC, images [rows,
/// width]. Views come in the order of their angles, whatever the order in which they were taken, so that what looks at
/// neighbouring views sees neighbouring angles.
class Scan {
public:
  /// Throws InputError for what is missing or does not fit together.
  Scan(const ScanOptions& options, Provenance& provenance);
  Scan(const Scan&) = delete;

  const std::filesystem::path& path() const { return options_.file; }
  std::int64_t rows() const { return stack_->rows(); }
  std::int64_t width() const { return stack_->width(); }
  const std::vector<double>& angles() const { return angles_; } ///< radians
  /// Projections of these angles; times count them from 0 in the order in which they were taken.
  const std::vector<ScanFrame>& views() const { return views_; }
  bool is_tilt_series() const { return stack_->mrc() != nullptr; }
  bool has_flat() const { return !flat_.sets.empty(); }
  bool has_dark() const { return !dark_.sets.empty(); }
  /// Times at which flat frames were taken; 1 where that is not known.
  std::int64_t flat_sets() const { return std::max<std::int64_t>(1, std::int64_t(flat_.sets.size())); }
  /// For every projection the place of its flat field among those times; empty where there is one.
  std::vector<float> flat_places() const;
  /// All frames that are known, of every kind, and which of them are left out.
  const TomographyScan& frames() const { return scan_; }

  /// How the projections are stored.
  StoredFormat format() const { return stack_->format(); }
  std::int64_t bytes_per_row() const; ///< of all projections
  /// Rows that are unpacked together, from compressed parts or numbers of odd bits; 1 where nothing is.
  std::int64_t packed_rows() const { return stack_->packed_rows(); }
  /// Goes on without some of the views, [views()]; before others ask for rows.
  void drop(const std::vector<bool>& views);
  /// Unpacks detector rows [first, first + count) of all projections, once for all that read them later.
  void unpack(std::int64_t first, std::int64_t count);
  /// Detector rows [first, first + count) of all projections, [angles, count, width], as they are stored. From any
  /// number of threads, as the two below.
  void read(std::int64_t first, std::int64_t count, std::span<std::byte> values) const;
  /// Means of the frames without object, of one set, and without beam, [count, width].
  void read_flat(std::int64_t set, std::int64_t first, std::int64_t count, std::span<float> values) const;
  void read_dark(std::int64_t first, std::int64_t count, std::span<float> values) const;

private:
  using Numbers = std::vector<std::int64_t>;
  /// Frames without object or without beam.
  struct Frames {
    std::shared_ptr<const FrameStack> stack = {};
    std::vector<Numbers> sets = {}; ///< places in the stack of frames that are averaged, of every time
    /// Of files that would be read whole for a few rows: [sets, rows, width].
    std::vector<float> means = {};
  };
  void open_series(Provenance& provenance);
  void open_hdf5();
  void read_image_key(const std::string& name, Provenance& provenance);
  std::vector<ScanFrame*> all(FrameKind kind);
  void open_frames(FrameKind kind, const std::string& name, const std::string& usual,
                   const std::vector<std::int64_t>& times);
  void leave_out(FrameKind kind, const std::vector<IndexRange>& ranges, const std::string& option,
                 Provenance& provenance);
  void check_frames(Provenance& provenance);
  /// Of the middle row.
  double brightness(const Frames& frames, std::int64_t number) const;
  /// Leaves out frames of a kind that differ in brightness by more than `most` from the median of theirs, where they are few;
  /// returns how many are averaged. Sets and their brightness: of every time.
  std::int64_t choose_frames(FrameKind kind, const std::vector<std::vector<ScanFrame>>& sets,
                             const std::vector<std::vector<double>>& values, double most,
                             Provenance& provenance);
  void keep_means(Frames& frames) const;
  void read_mean(const Frames& frames, std::int64_t set, std::int64_t first, std::int64_t count,
                 std::span<float> values) const;
  /// The same for views [begin, begin + number).
  void read_views(std::int64_t begin, std::int64_t number, std::int64_t first, std::int64_t count,
                  std::span<std::byte> bytes) const;
  std::optional<FramePlace> place_of_angles() const;
  void take_angles(const FramePlace& place, Provenance& provenance);
  /// Those of the views, where a file has angles of all frames, or of files that are missing.
  std::vector<double> angles_of(const std::vector<ScanFrame*>& views, std::vector<double> angles,
                                Provenance& provenance) const;
  void make_angles(Provenance& provenance);
  void leave_out_unwritten(Provenance& provenance);
  void sort_views(Provenance& provenance);

  ScanOptions options_;
  std::shared_ptr<const FrameStack> stack_; ///< of the projections, which may hold other frames, too
  Frames flat_, dark_;
  TomographyScan scan_;
  std::vector<ScanFrame> views_;
  std::vector<double> angles_;
  std::vector<std::byte> unpacked_; ///< [angles, rows, width]: those from first_unpacked_ on
  std::int64_t first_unpacked_ = 0;
};

} // namespace Bracewell::Examples
