// SPDX-License-Identifier: MIT
#pragma once

#include "common/hdf5_blocks.hpp"
#include "common/mrc.hpp"
#include "common/tiff.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace Bracewell::Examples {

/// Where frames or numbers lie: a file, and a dataset in it where it is HDF5.
struct FramePlace {
  std::filesystem::path file;
  std::string dataset = {};

  /// What `name` means to a scan in `home`: a dataset of that file, "FILE:DATASET", or another file. A file is what
  /// exists as such, has the ending of TIFF, or is a pattern; everything is where `home` is no HDF5 file.
  static FramePlace of(const std::string& name, const std::filesystem::path& home);
  std::string text() const {
    return dataset.empty() ? file.string() : file.string() + ": dataset " + dataset;
  }
};

/// Whether a file can be HDF5: it is neither TIFF nor MRC by its name.
bool may_be_hdf5(const std::filesystem::path& file);

/// What frames are for, and so what a dataset of fewer than three dimensions means.
enum class FrameRole {
  Projections, ///< [angles, width]: a sinogram, of whose rows each is a frame
  Beside,      ///< flat or dark frames; [rows, width]: one frame
  BesideRow    ///< flat or dark frames of one detector row; [any, width] or [width]
};

/// Frames [count, rows, width], open for reading: a dataset of HDF5, pages or files of TIFF, or images of MRC. A TIFF
/// of a single page is a sinogram [angles, width], where projections are asked for.
class FrameStack {
public:
  /// Throws InputError for what is missing or malformed.
  FrameStack(const FramePlace& place, FrameRole role);
  FrameStack(const FrameStack&) = delete;

  const FramePlace& place() const { return place_; }
  std::int64_t count() const { return count_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t width() const { return width_; }
  /// How read() gives values.
  StoredFormat format() const;
  /// Rows, and frames, that are unpacked together, from compressed parts or numbers of odd bits; 1 row where nothing is.
  std::int64_t packed_rows() const;
  std::int64_t packed_frames() const;
  const Hdf5Reader* hdf5() const { return hdf5_ ? &*hdf5_ : nullptr; }
  const TiffReader* tiff() const { return tiff_ ? &*tiff_ : nullptr; }
  const MrcReader* mrc() const { return mrc_ ? &*mrc_ : nullptr; }

  /// Detector rows [first, first + count) of frames from `frame` on, [frames, count, width], in format(). From any
  /// number of threads, as below.
  void read(std::int64_t frame, std::int64_t frames, std::int64_t first, std::int64_t count,
            std::span<std::byte> bytes) const;
  /// The same as floats.
  void read_floats(std::int64_t frame, std::int64_t frames, std::int64_t first, std::int64_t count,
                   std::span<float> values) const;
  /// Numbers of the frames that were never written to HDF5.
  std::vector<std::int64_t> never_written() const;

private:
  void open_dataset(FrameRole role);
  /// The same rows of the same frames in the dimensions that the dataset has.
  Hdf5Slab slab(std::int64_t frame, std::int64_t frames, std::int64_t first, std::int64_t count) const;

  FramePlace place_;
  std::int64_t count_ = 0, rows_ = 0, width_ = 0;
  bool sinogram_ = false;
  bool has_frames_ = true, has_rows_ = true; ///< dimensions of the dataset
  std::optional<Hdf5Reader> hdf5_;
  std::optional<Hdf5Blocks> blocks_;
  std::optional<TiffReader> tiff_;
  std::optional<MrcReader> mrc_;
  std::optional<InputFile> raw_; ///< the file of mrc_
};

} // namespace Bracewell::Examples
