// SPDX-License-Identifier: MIT
#include "bracewell-tomography/scan.hpp"

#include "common/input_error.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace Bracewell::Examples {
namespace {

bool is_tiff(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension == ".tif" || extension == ".tiff";
}

} // namespace

Scan::Scan(const ScanOptions& options) : options_(options) {
  if (is_tiff(options.file)) {
    tiff_.emplace(options.file);
    rows_ = 1;
    width_ = tiff_->width();
    make_angles(tiff_->height());
    return;
  }
  hdf5_.emplace(options.file);
  const Hdf5Shape shape = hdf5_->shape(options.data);
  if (shape.size() != 3 || hdf5_elements(shape) == 0)
    hdf5_->fail(options.data, "expected projections [angles, rows, width], found shape " + hdf5_text(shape));
  rows_ = shape[1];
  width_ = shape[2];
  flat_frames_ = frames_of(options.flat);
  dark_frames_ = frames_of(options.dark);
  if (dark_frames_ > 0 && flat_frames_ == 0)
    throw InputError(path().string() + ": has " + options.dark + " but no " + options.flat);
  make_angles(shape[0]);
}

std::int64_t Scan::frames_of(const std::string& name) const {
  if (name.empty() || !hdf5_->has(name))
    return 0;
  const Hdf5Shape shape = hdf5_->shape(name);
  const bool stack = shape.size() == 3 && shape[0] > 0 && shape[1] == rows_ && shape[2] == width_;
  if (!stack)
    hdf5_->fail(name, "expected frames [any, " + std::to_string(rows_) + ", " + std::to_string(width_) +
                          "] as those of the projections, found shape " + hdf5_text(shape));
  return shape[0];
}

void Scan::make_angles(std::int64_t count) {
  const double degree = std::numbers::pi / 180;
  const bool in_file = !options_.span && hdf5_ && hdf5_->has(options_.angles);
  if (in_file) {
    angles_ = hdf5_->read<double>(options_.angles);
    if (std::int64_t(angles_.size()) != count)
      hdf5_->fail(options_.angles, "expected " + std::to_string(count) +
                                       " angles, one per projection, found " +
                                       std::to_string(angles_.size()));
    for (double& angle : angles_) {
      if (!std::isfinite(angle))
        hdf5_->fail(options_.angles, "has an angle that is not finite");
      angle *= degree;
    }
    return;
  }
  const double span = options_.span.value_or(180) * degree;
  const auto steps = static_cast<double>(options_.both_ends ? std::max<std::int64_t>(1, count - 1) : count);
  for (std::int64_t p = 0; p < count; ++p)
    angles_.push_back(span * double(p) / steps);
}

void Scan::read(std::int64_t first, std::int64_t count, std::span<float> values) const {
  if (tiff_)
    tiff_->read_rows(0, tiff_->height(), values);
  else
    hdf5_->read(options_.data, {{0, first, 0}, {std::int64_t(angles_.size()), count, width_}}, values);
}

void Scan::read_flat(std::int64_t first, std::int64_t count, std::span<float> values) const {
  read_mean(options_.flat, flat_frames_, first, count, values);
}

void Scan::read_dark(std::int64_t first, std::int64_t count, std::span<float> values) const {
  read_mean(options_.dark, dark_frames_, first, count, values);
}

void Scan::read_mean(const std::string& name, std::int64_t frames, std::int64_t first, std::int64_t count,
                     std::span<float> values) const {
  std::vector<double> sum(values.size());
  std::vector<float> frame(values.size());
  for (std::int64_t f = 0; f < frames; ++f) {
    hdf5_->read(name, {{f, first, 0}, {1, count, width_}}, std::span<float>(frame));
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += frame[i];
  }
  for (std::size_t i = 0; i < sum.size(); ++i)
    values[i] = static_cast<float>(sum[i] / double(frames));
}

} // namespace Bracewell::Examples
