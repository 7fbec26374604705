// SPDX-License-Identifier: MIT
#pragma once

#include "common/hdf5_blocks.hpp"
#include "common/provenance.hpp"
#include "common/tiff.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace Bracewell::Examples {

inline constexpr double degree = std::numbers::pi / 180; ///< in radians

enum class AngleUnit { Degrees, Radians };

/// Where the data of a scan are. Of a TIFF scan `flat` and `dark` are names of files, too.
struct ScanOptions {
  std::filesystem::path file; ///< HDF5, or as TiffReader takes it
  std::string data = "/exchange/data";
  std::string flat = "/exchange/data_white";
  std::string dark = "/exchange/data_dark";
  std::string angles = "/exchange/theta";   ///< degrees, or as their attribute "units" says
  std::optional<AngleUnit> angle_unit = {}; ///< instead of the attribute
  std::optional<double> span = {};          ///< degrees: even angles over it, instead of those of the file
  std::optional<double> first_angle = {};   ///< degrees: of these even angles; absent: 0
  bool both_ends = false;                   ///< the last one is at `span` itself
  /// Projections before which flat frames were taken, as many each time, in order; empty: their mean is for all.
  std::vector<std::int64_t> flat_at = {};
  bool nearest_flat = false; ///< of these times, instead of a line between two of them
};

/// A scan by parallel beam, open for reading: HDF5 in the layout of Scientific Data Exchange (De Carlo et
/// al., J. Synchrotron Rad. 21, 2014), projections [angles, rows, width]; or TIFF, projections [rows, width] as
/// pages or as a series of files, or one sinogram [angles, width].
class Scan {
public:
  /// Throws InputError for what is missing or does not fit together.
  Scan(const ScanOptions& options, Provenance& provenance);
  Scan(const Scan&) = delete;

  const std::filesystem::path& path() const { return options_.file; }
  std::int64_t rows() const { return rows_; }
  std::int64_t width() const { return width_; }
  const std::vector<double>& angles() const { return angles_; } ///< radians
  bool has_flat() const { return flat_.count > 0; }
  bool has_dark() const { return dark_.count > 0; }
  /// Times at which flat frames were taken; 1 where that is not known.
  std::int64_t flat_sets() const { return std::max<std::int64_t>(1, std::int64_t(options_.flat_at.size())); }
  /// For every projection the place of its flat field among those times; empty where there is one.
  std::vector<float> flat_places() const;

  /// How the projections are stored.
  StoredFormat format() const {
    return blocks_ ? blocks_->format() : tiff_->stored_format().value_or(StoredFormat{});
  }
  std::int64_t bytes_per_row() const; ///< of all projections
  /// Rows that are unpacked together, from compressed parts or numbers of odd bits; 1 where nothing is.
  std::int64_t packed_rows() const;
  /// Unpacks detector rows [first, first + count) of all projections, once for all that read them later.
  void unpack(std::int64_t first, std::int64_t count);
  /// Detector rows [first, first + count) of all projections, [angles, count, width], as they are stored. From any
  /// number of threads, as the two below.
  void read(std::int64_t first, std::int64_t count, std::span<std::byte> values) const;
  /// Means of the frames without object, of one set, and without beam, [count, width].
  void read_flat(std::int64_t set, std::int64_t first, std::int64_t count, std::span<float> values) const;
  void read_dark(std::int64_t first, std::int64_t count, std::span<float> values) const;

private:
  /// Frames [count, rows, width] without object or without beam.
  struct Frames {
    std::string name = {}; ///< of the dataset
    std::int64_t count = 0;
    std::vector<float> means =
        {}; ///< of TIFF files, which would be read whole for a few rows: [sets, rows, width]
  };
  /// In `sets` that follow each other.
  Frames frames_of(const std::string& name, const std::string& usual, std::int64_t sets) const;
  /// Of a set of `number` frames.
  void read_mean(const Frames& frames, std::int64_t set, std::int64_t number, std::int64_t first,
                 std::int64_t count, std::span<float> values) const;
  /// Rows of `pages` pages of TIFF files from `page` on, as floats.
  void read_pages(std::int64_t page, std::int64_t pages, std::int64_t first, std::int64_t count,
                  std::span<std::byte> bytes) const;
  void make_angles(std::int64_t count, Provenance& provenance);
  void read_angles(std::int64_t count, Provenance& provenance);

  ScanOptions options_;
  std::optional<Hdf5Reader> hdf5_;
  std::optional<Hdf5Blocks> blocks_; ///< the projections
  std::optional<TiffReader> tiff_;
  bool sinogram_ = false; ///< a TIFF of a single page
  std::int64_t rows_ = 0, width_ = 0;
  Frames flat_, dark_;
  std::vector<double> angles_;
  std::vector<std::byte> unpacked_; ///< [angles, rows, width]: those from first_unpacked_ on
  std::int64_t first_unpacked_ = 0;
};

} // namespace Bracewell::Examples
