// SPDX-License-Identifier: MIT
#pragma once

#include "mrc.hpp"
#include "tiff.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace Bracewell::Examples {

/// Images of particles: an MRC stack, or the pages of a TIFF file (by the name's ending, as RELION has it), whose last row is
/// the first as in RELION. Reading is thread-safe.
class ImageStack {
public:
  /// Throws InputError for what is neither.
  explicit ImageStack(const std::filesystem::path& path);

  const std::filesystem::path& path() const;
  std::int64_t width() const;
  std::int64_t height() const;
  std::int64_t images() const;
  std::optional<double> pixel_size() const; ///< Angstrom, from the header
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// How read_stored delivers values.
  StoredFormat format() const;
  /// Reads images from `first` on, each to where `images` says. Throws as MrcReader and TiffReader do.
  void read_stored(std::int64_t first, std::span<std::byte* const> images) const;
  /// The message for a value of an image that is not finite, `pixel` counted along the image.
  std::string not_finite(std::int64_t image, std::int64_t pixel) const;

private:
  std::variant<MrcReader, TiffReader> reader_;
  std::vector<std::string> warnings_;
  mutable std::mutex mutex_; ///< of a TIFF file
};

} // namespace Bracewell::Examples
