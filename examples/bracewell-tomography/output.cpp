// SPDX-License-Identifier: MIT
#include "bracewell-tomography/output.hpp"

#include "common/input_error.hpp"

namespace Bracewell::Examples {
namespace {

constexpr const char* dataset = "/exchange/data";

} // namespace

SliceOutput::SliceOutput(const std::filesystem::path& path, std::int64_t slices, std::int64_t width)
    : width_(width) {
  const std::string extension = path.extension().string();
  if (extension == ".h5" || extension == ".hdf5" || extension == ".hdf") {
    hdf5_.emplace(path);
    hdf5_->create_dataset<float>(dataset, {slices, width, width});
    hdf5_->write_attribute(dataset, "units", std::string("1/pixel"));
  } else if (extension == ".tif" || extension == ".tiff") {
    tiff_.emplace(path, width, width, slices);
  } else {
    throw InputError("--out " + path.string() + ": expected a name that ends with .h5 or .tif");
  }
}

void SliceOutput::write(std::int64_t first, std::span<const float> values) {
  const auto pixels = static_cast<std::size_t>(width_ * width_);
  const auto count = static_cast<std::int64_t>(values.size() / pixels);
  if (hdf5_)
    hdf5_->write<float>(dataset, {{first, 0, 0}, {count, width_, width_}}, values);
  for (std::int64_t page = 0; tiff_ && page < count; ++page)
    tiff_->write(values.subspan(static_cast<std::size_t>(page) * pixels, pixels),
                 first + page == 0 ? description_ : std::string());
}

void SliceOutput::write_attribute(const std::string& name, double value) {
  if (hdf5_)
    hdf5_->write_attribute(dataset, name, value);
}

void SliceOutput::write_provenance(const std::string& text) {
  description_ = text;
  if (hdf5_)
    hdf5_->write_attribute("/", "provenance", text);
}

void SliceOutput::commit() {
  if (hdf5_)
    hdf5_->commit();
  else
    tiff_->commit();
}

} // namespace Bracewell::Examples
