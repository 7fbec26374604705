// SPDX-License-Identifier: MIT
#pragma once

#include "atomic_file.hpp"
#include "input_file.hpp"
#include "stored_type.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// MRC and CCP4 maps and image stacks (MRC2014, https://www.ccpem.ac.uk/mrc_format/mrc2014.php).
namespace Bracewell::Examples {

/// How one value is stored.
enum class MrcMode : std::int32_t { Int8 = 0, Int16 = 1, Float32 = 2, UInt16 = 6, Float16 = 12 };

/// Whether reading accepts values that are not finite.
enum class NonFinite { Reject, Accept };

/// What a header says. Arrays are in the order x, y, z, whatever the order of the axes in the file.
struct MrcHeader {
  MrcMode mode = MrcMode::Float32;
  std::array<std::int64_t, 3> size{};  ///< voxels
  std::array<std::int64_t, 3> start{}; ///< grid index of the first voxel
  std::array<std::optional<double>, 3>
      voxel_size; ///< Angstrom: cell length / sampling; absent where either is not above 0
  std::array<double, 3> cell_angles{};    ///< degrees
  std::array<double, 3> origin{};         ///< Angstrom
  std::array<int, 3> axis_order{0, 1, 2}; ///< axis (0 is x) of columns, rows and sections of the file
  std::int32_t space_group = 0;           ///< 0: images, 1 to 230: a map, 401 to 630: a stack of maps
  std::int64_t data_offset = 0;           ///< bytes
  bool big_endian = false;
  bool unsigned_bytes = false; ///< mode 0 of IMOD before its bytes were signed
  std::vector<std::string> labels;
};

/// Reads a map, or a stack by ranges of images. Opening reads the header alone; all sizes are checked against
/// the size of the file before anything is allocated. Reading is thread-safe.
class MrcReader {
public:
  /// Throws InputError where the file is not MRC, its mode is not one of MrcMode, its sizes make no sense or
  /// it is truncated.
  explicit MrcReader(std::filesystem::path path);

  const std::filesystem::path& path() const { return file_.path(); }
  const MrcHeader& header() const { return header_; }
  /// What the header lacks and how it was read in spite of that; sentences without the file name.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// Columns, rows and sections as stored: width, height and number of the images of a stack.
  std::int64_t width() const { return stored_[0]; }
  std::int64_t height() const { return stored_[1]; }
  std::int64_t images() const { return stored_[2]; }

  /// How values are stored, and the bytes of an image.
  StoredFormat format() const;
  std::int64_t image_bytes() const { return width() * height() * bytes_of(format().type); }
  /// Reads images from `first` on as they are stored, each to where `images` says. Throws InputError for a range
  /// outside the file and for axes that are not x, y, z in this order.
  void read_stored(std::int64_t first, std::span<std::byte* const> images) const;
  /// The message for a value of an image that is not finite, `pixel` counted along the image.
  std::string not_finite(std::int64_t image, std::int64_t pixel) const;

  /// Reads images [first, first + count) into `out` [count, height, width]. Throws InputError as read_stored, and
  /// with the number of the image for values that are not finite.
  void read_images(std::int64_t first, std::int64_t count, std::span<float> out,
                   NonFinite non_finite = NonFinite::Reject) const;

  /// Reads the whole map, [z, y, x] whatever the order of the axes in the file. Throws InputError for a stack
  /// of maps and for values that are not finite.
  std::vector<float> read_volume(NonFinite non_finite = NonFinite::Reject) const;

private:
  void check_range(std::int64_t first, std::int64_t count) const;
  void read_sections(std::int64_t first, std::int64_t count, std::span<float> out,
                     NonFinite non_finite) const;

  InputFile file_;
  MrcHeader header_;
  std::array<std::int64_t, 3> stored_{};
  std::vector<std::string> warnings_;
};

struct MrcWriteOptions {
  MrcMode mode = MrcMode::Float32;      ///< Float32 or Float16
  double pixel_size = 0;                ///< Angstrom; 0: not known
  std::vector<std::string> labels = {}; ///< Provenance::lines(): what of it fits ten labels of 80 characters
  bool may_be_constant = false;         ///< otherwise the same value everywhere is an error
  std::string likeliest =
      "the inputs"; ///< where values that are no result come from, most likely (require_sensible)
  std::int64_t shared_images =
      0; ///< of a file that all processes write together, each its images; 0: it is this one's
};

/// Writes a map or an image stack. The file appears whole on close(), or not at all.
class MrcWriter {
public:
  enum class Kind { Stack, Volume };

  /// Of the values of an image as they are stored.
  struct Moments {
    float minimum, maximum;
    double mean, squared_deviations; ///< the latter a sum
    bool written = false;
  };

  /// Throws InputError where the file cannot be written or the mode is neither Float32 nor Float16.
  MrcWriter(std::filesystem::path path, Kind kind, std::int64_t width, std::int64_t height,
            const MrcWriteOptions& options = {});

  /// Says that threads will write so many images, as AtomicFile::reserve; done for shared images.
  void reserve(std::int64_t images);
  /// Appends whole images (sections), `images` [any number, height, width]. Throws InputError where a value
  /// is too large for Float16 and std::runtime_error where a value is not finite or the disk is full.
  void write(std::span<const float> images);
  /// The same from index `first` on, by any number of threads in any order.
  void write_at(std::int64_t first, std::span<const float> images);
  /// The same for Float32 where the moments of the images, [any number], are known: nothing looks at values again.
  void write_at(std::int64_t first, std::span<const float> images, std::span<const Moments> moments);
  /// Throws InputError for what is no result (require_sensible), where a program makes it.
  /// Writes the header with the number of sections and the statistics of what was stored, which do not depend on
  /// the order of writing, and gives the file its name.
  void close();

private:
  std::size_t count_images(std::int64_t first, std::span<const float> images) const;
  void keep(std::int64_t first, std::span<const Moments> moments);
  Moments moments_of(std::span<const float> image, std::int64_t index) const;

  AtomicFile file_;
  Kind kind_;
  std::int64_t width_;
  std::int64_t height_;
  MrcWriteOptions options_;
  void exchange_moments();
  bool writes_header() const;

  std::mutex mutex_;
  std::vector<Moments> moments_; ///< [images]
};

/// Writes a map [z, y, x] of `size` (x, y, z) voxels.
void write_volume(const std::filesystem::path& path, std::span<const float> volume,
                  std::array<std::int64_t, 3> size, const MrcWriteOptions& options = {});

} // namespace Bracewell::Examples
