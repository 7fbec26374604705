// SPDX-License-Identifier: MIT
#include "image_stack.hpp"

#include "input_error.hpp"

#include <cstring>

namespace Bracewell::Examples {
namespace {

std::variant<MrcReader, TiffReader> open(const std::filesystem::path& path) {
  if (is_tiff_name(path) && std::filesystem::is_regular_file(path))
    return std::variant<MrcReader, TiffReader>(std::in_place_type<TiffReader>, path);
  return std::variant<MrcReader, TiffReader>(std::in_place_type<MrcReader>, path);
}

} // namespace

ImageStack::ImageStack(const std::filesystem::path& path) : reader_(open(path)) {
  if (const auto* const mrc = std::get_if<MrcReader>(&reader_))
    warnings_ = mrc->warnings();
}

const std::filesystem::path& ImageStack::path() const {
  return std::visit([](const auto& reader) -> const std::filesystem::path& { return reader.path(); },
                    reader_);
}
std::int64_t ImageStack::width() const {
  return std::visit([](const auto& reader) { return reader.width(); }, reader_);
}
std::int64_t ImageStack::height() const {
  return std::visit([](const auto& reader) { return reader.height(); }, reader_);
}
std::int64_t ImageStack::images() const {
  if (const auto* const tiff = std::get_if<TiffReader>(&reader_))
    return tiff->pages();
  return std::get<MrcReader>(reader_).images();
}
std::optional<double> ImageStack::pixel_size() const {
  const auto* const mrc = std::get_if<MrcReader>(&reader_);
  return mrc ? mrc->header().voxel_size[0] : std::nullopt;
}
StoredFormat ImageStack::format() const {
  const auto* const mrc = std::get_if<MrcReader>(&reader_);
  return mrc ? mrc->format() : StoredFormat{};
}

void ImageStack::read_stored(std::int64_t first, std::span<std::byte* const> images) const {
  if (const auto* const mrc = std::get_if<MrcReader>(&reader_))
    return mrc->read_stored(first, images);
  const auto& tiff = std::get<TiffReader>(reader_);
  const std::lock_guard lock(mutex_);
  const auto columns = static_cast<std::size_t>(width()), rows = static_cast<std::size_t>(height());
  std::vector<float> values(columns * rows);
  for (std::size_t i = 0; i < images.size(); ++i) {
    tiff.read_rows(first + static_cast<std::int64_t>(i), 0, height(), values);
    for (std::size_t row = 0; row < rows; ++row)
      std::memcpy(images[i] + row * columns * sizeof(float), values.data() + (rows - 1 - row) * columns,
                  columns * sizeof(float));
  }
}

std::string ImageStack::not_finite(std::int64_t image, std::int64_t pixel) const {
  if (const auto* const mrc = std::get_if<MrcReader>(&reader_))
    return mrc->not_finite(image, pixel);
  return path().string() + ": image " + std::to_string(image + 1) + ", line " +
         std::to_string(height() - pixel / width()) + ", column " + std::to_string(pixel % width() + 1) +
         ": expected finite values";
}

} // namespace Bracewell::Examples
