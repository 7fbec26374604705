// SPDX-License-Identifier: MIT
#include "bracewell-tomography/output.hpp"

#include "common/atomic_file.hpp"
#include "common/input_error.hpp"
#include "common/output_family.hpp"
#include "common/processes.hpp"
#include "common/provenance.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace Bracewell::Examples {
namespace {

constexpr const char* dataset = "/exchange/data";

bool is_zarr(const std::filesystem::path& path) { return path.extension() == ".zarr"; }

std::string json_text(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    char escaped[8];
    if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      result += escaped;
    } else {
      result += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
  }
  return result + '"';
}

std::string json_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return std::isfinite(value) ? text : "null";
}

void write_file(const OutputFolder& folder, const std::string& name, std::span<const std::byte> bytes) {
  folder.write(name, [&](const std::filesystem::path& path) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
    if (!file.flush())
      throw std::runtime_error(path.string() + ": cannot be written: the disk may be full");
  });
}

void write_file(const OutputFolder& folder, const std::string& name, const std::string& text) {
  write_file(folder, name, std::as_bytes(std::span(text)));
}

} // namespace

SliceOutput::SliceOutput(const std::filesystem::path& path, std::int64_t slices, std::int64_t width,
                         StoredType type)
    : slices_(slices), width_(width), pixels_(width * width), bytes_(pixels_ * bytes_of(type)), type_(type),
      names_(output_folder(path)) {
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
  } else if (names_) {
    folder_.emplace(*names_, slices, ".zgroup");
  } else if (extension == ".tif" || extension == ".tiff") {
    tiff_.emplace(path, width, width, slices, type);
  } else if (!is_null_output(path)) {
    throw InputError("--out " + path.string() + ": expected a name that ends with .h5, .tif or .zarr");
  }
}

void SliceOutput::write_zarr() const {
  const std::string shape =
      std::to_string(slices_) + ", " + std::to_string(width_) + ", " + std::to_string(width_);
  write_file(*folder_, ".zgroup", "{\"zarr_format\": 2}\n");
  write_file(*folder_, "0/.zarray",
             "{\"zarr_format\": 2, \"shape\": [" + shape + "], \"chunks\": [1, " + std::to_string(width_) +
                 ", " + std::to_string(width_) + "], \"dtype\": \"" +
                 (type_ == StoredType::Float16 ? "<f2" : "<f4") +
                 "\", \"compressor\": null, \"fill_value\": 0, \"order\": \"C\", \"filters\": null, "
                 "\"dimension_separator\": \"/\"}\n");
  std::string own = "\"units\": \"1/pixel\"";
  for (const auto& [name, value] : attributes_)
    own += ", " + json_text(name) + ": " + value;
  write_file(
      *folder_, ".zattrs",
      "{\"multiscales\": [{\"version\": \"0.4\", \"name\": \"slices\", \"axes\": [{\"name\": \"z\", "
      "\"type\": "
      "\"space\"}, {\"name\": \"y\", \"type\": \"space\"}, {\"name\": \"x\", \"type\": \"space\"}], "
      "\"datasets\": [{\"path\": \"0\", \"coordinateTransformations\": [{\"type\": \"scale\", \"scale\": [1, "
      "1, 1]}]}]}], \"bracewell\": {" +
          own + "}}\n");
}

void SliceOutput::write(std::int64_t first, std::span<const std::byte> values) {
  if (hdf5_)
    hdf5_->write_stored(dataset, first * pixels_, values);
  if (part_)
    part_->write_at(offset_ + first * bytes_, values);
  for (; folder_ && !values.empty(); values = values.subspan(std::size_t(bytes_)), ++first) {
    const auto slice = values.first(std::size_t(bytes_));
    if (names_->is_whole())
      write_file(*folder_, "0/" + std::to_string(first) + "/0/0", slice);
    else
      folder_->write(names_->name(first), [&](const std::filesystem::path& path) {
        write_tiff(path, width_, width_, type_, slice, first == 0 ? description_ : std::string());
      });
  }
  for (; tiff_ && !values.empty(); values = values.subspan(std::size_t(bytes_)), ++first)
    tiff_->write(values.first(std::size_t(bytes_)), first == 0 ? description_ : std::string());
}

void SliceOutput::write_attribute(const std::string& name, double value) {
  attributes_.emplace_back(name, json_number(value));
  if (hdf5_)
    hdf5_->write_attribute(dataset, name, value);
}

void SliceOutput::write_attribute(const std::string& name, const std::string& value) {
  attributes_.emplace_back(name, json_text(value));
  if (hdf5_)
    hdf5_->write_attribute(dataset, name, value);
}

void SliceOutput::write_provenance(const std::string& text) {
  description_ = text;
  attributes_.emplace_back("provenance", json_text(text));
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
  if (folder_ && names_->is_whole())
    write_zarr();
  if (folder_)
    folder_->commit();
}

std::optional<FolderNames> output_folder(const std::filesystem::path& out) {
  if (is_zarr(out))
    return FolderNames{.folder = out};
  const bool is_series = is_tiff_name(out) && FolderNames::is_pattern(out);
  return is_series ? FolderNames::of_pattern(out) : std::optional<FolderNames>();
}

std::filesystem::path beside_slices(const std::filesystem::path& out, const std::string& ending) {
  const auto names = output_folder(out);
  if (!names || names->is_whole())
    return beside(out, ending);
  const std::size_t last = names->prefix.find_last_not_of("_-. ");
  const std::string stem = last == std::string::npos ? "slices" : names->prefix.substr(0, last + 1);
  return out.parent_path() / (stem + ending);
}

} // namespace Bracewell::Examples
