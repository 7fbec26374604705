// SPDX-License-Identifier: MIT
#include "bracewell-tomography/output.hpp"

#include "common/input_error.hpp"
#include "common/processes.hpp"

namespace Bracewell::Examples {
namespace {

constexpr const char* dataset = "/exchange/data";

} // namespace

SliceOutput::SliceOutput(const std::filesystem::path& path, std::int64_t slices, std::int64_t width,
                         StoredType type)
    : pixels_(width * width), bytes_(pixels_ * bytes_of(type)) {
  const std::string extension = path.extension().string();
  if (extension == ".h5" || extension == ".hdf5" || extension == ".hdf") {
    constexpr auto all = AtomicFile::Writers::All;
    if (is_first_process()) {
      hdf5_.emplace(path, all);
      offset_ = hdf5_->create_stored(dataset, {slices, width, width}, type);
      hdf5_->write_attribute(dataset, "units", std::string("1/pixel"));
    } else {
      part_.emplace(path, all);
    }
    offset_ = std::int64_t(sum_over_processes(double(offset_)));
  } else if (process_count() > 1 && !is_null_output(path)) {
    throw InputError("--out " + path.string() +
                     ": expected a name that ends with .h5, which several processes write");
  } else if (extension == ".tif" || extension == ".tiff") {
    tiff_.emplace(path, width, width, slices, type);
  } else if (!is_null_output(path)) {
    throw InputError("--out " + path.string() + ": expected a name that ends with .h5 or .tif");
  }
}

void SliceOutput::write(std::int64_t first, std::span<const std::byte> values) {
  if (hdf5_)
    hdf5_->write_stored(dataset, first * pixels_, values);
  if (part_)
    part_->write_at(offset_ + first * bytes_, values);
  for (; tiff_ && !values.empty(); values = values.subspan(std::size_t(bytes_)), ++first)
    tiff_->write(values.first(std::size_t(bytes_)), first == 0 ? description_ : std::string());
}

void SliceOutput::write_attribute(const std::string& name, double value) {
  if (hdf5_)
    hdf5_->write_attribute(dataset, name, value);
}

void SliceOutput::write_attribute(const std::string& name, const std::string& value) {
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
  if (part_)
    part_->commit();
  if (tiff_)
    tiff_->commit();
}

} // namespace Bracewell::Examples
