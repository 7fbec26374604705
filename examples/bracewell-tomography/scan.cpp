// SPDX-License-Identifier: MIT
#include "bracewell-tomography/scan.hpp"

#include "common/input_error.hpp"
#include "common/pipeline.hpp"
#include "common/progress.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <thread>

namespace Bracewell::Examples {

Scan::Scan(const ScanOptions& options, Provenance& provenance) : options_(options) {
  std::int64_t projections = 0;
  std::error_code error;
  const bool hdf5 = std::filesystem::is_regular_file(options.file, error) && !is_tiff_name(options.file);
  if (hdf5 || !(is_tiff_name(options.file) || std::filesystem::is_directory(options.file, error))) {
    hdf5_.emplace(options.file);
    const Hdf5Shape shape = hdf5_->shape(options.data);
    if (shape.size() != 3 || hdf5_elements(shape) == 0)
      hdf5_->fail(options.data,
                  "expected projections [angles, rows, width], found shape " + hdf5_text(shape));
    projections = shape[0], rows_ = shape[1], width_ = shape[2];
    blocks_.emplace(*hdf5_, options.data);
  } else {
    tiff_.emplace(options.file);
    sinogram_ = tiff_->pages() == 1 && !tiff_->series();
    projections = sinogram_ ? tiff_->height() : tiff_->pages();
    rows_ = sinogram_ ? 1 : tiff_->height();
    width_ = tiff_->width();
  }
  flat_ = frames_of(options.flat, ScanOptions{}.flat);
  dark_ = frames_of(options.dark, ScanOptions{}.dark);
  if (has_dark() && !has_flat())
    throw InputError(path().string() + ": has " + options.dark + " but no " + options.flat);
  if (has_flat())
    provenance.took(path(), std::to_string(flat_.count) + " flat and " + std::to_string(dark_.count) +
                                " dark frames");
  if (flat_sets() > 1 && (!has_flat() || flat_.count % flat_sets() != 0))
    throw InputError(path().string() + ": expected a multiple of " + std::to_string(flat_sets()) +
                     " frames without object, as many at every time of --flat-at, found " +
                     std::to_string(flat_.count));
  make_angles(projections, provenance);
}

Scan::Frames Scan::frames_of(const std::string& name, const std::string& usual) const {
  Frames frames{.name = name};
  Hdf5Shape shape;
  if (hdf5_) {
    if (name.empty() || (name == usual && !hdf5_->has(name)))
      return {};
    shape = hdf5_->shape(name);
  } else {
    if (name.empty() || name == usual)
      return {};
    frames.tiff.emplace(name);
    shape = {frames.tiff->pages(), frames.tiff->height(), frames.tiff->width()};
  }
  if (shape.size() != 3 || shape[0] < 1 || shape[1] != rows_ || shape[2] != width_)
    throw InputError((hdf5_ ? path().string() + ": dataset " : std::string()) + name +
                     ": expected frames [any, " + std::to_string(rows_) + ", " + std::to_string(width_) +
                     "] as those of the projections, found shape " + hdf5_text(shape));
  frames.count = shape[0];
  return frames;
}

void Scan::read_angles(std::int64_t count, Provenance& provenance) {
  angles_ = hdf5_->read<double>(options_.angles);
  if (std::int64_t(angles_.size()) != count)
    hdf5_->fail(options_.angles, "expected " + std::to_string(count) + " angles, one per projection, found " +
                                     std::to_string(angles_.size()));
  for (const double angle : angles_)
    if (!std::isfinite(angle))
      hdf5_->fail(options_.angles, "has an angle that is not finite");
  const auto [least, most] = std::ranges::minmax(angles_);
  const std::string range = shortest(least) + " to " + shortest(most),
                    unit = hdf5_->text_attribute(options_.angles, "units");
  bool radians = unit.starts_with("rad");
  if (options_.angle_unit) {
    radians = options_.angle_unit == AngleUnit::Radians;
  } else if (unit.empty() && most - least > 1 && most - least < 6.5 && count > 8) {
    radians = true; // so few degrees are no scan
    provenance.assume(
        path().string() + ": angles from " + range +
        " are taken as radians, as they would be too few degrees; --angle-unit says what they are");
  }
  provenance.took(path(),
                  std::to_string(count) + " angles from " + range + (radians ? " radians" : " degrees"));
  for (double& angle : angles_)
    angle *= radians ? 1 : degree;
}

void Scan::make_angles(std::int64_t count, Provenance& provenance) {
  if (!options_.span && hdf5_ && hdf5_->has(options_.angles)) {
    if (options_.first_angle)
      throw InputError(path().string() + ": has angles of its own: --first-angle goes with --span");
    return read_angles(count, provenance);
  }
  if (!options_.span)
    provenance.assume(path().string() + ": has no angles: " + std::to_string(count) +
                      " even ones over 180 degrees are assumed; use --span and --first-angle");
  const double span = options_.span.value_or(180), first = options_.first_angle.value_or(0); // degrees
  const auto steps = static_cast<double>(options_.both_ends ? std::max<std::int64_t>(1, count - 1) : count);
  for (std::int64_t p = 0; p < count; ++p)
    angles_.push_back((first + span * double(p) / steps) *
                      degree); // to the last bit those of a file that has them
}

std::int64_t Scan::bytes_per_row() const {
  return static_cast<std::int64_t>(angles_.size()) * width_ * bytes_of(format().type);
}

std::int64_t Scan::compressed_rows() const {
  return blocks_ && !blocks_->compressed_chunk().empty() ? blocks_->compressed_chunk()[1] : 1;
}

void Scan::unpack(std::int64_t first, std::int64_t count) {
  const auto angles = static_cast<std::int64_t>(angles_.size()), together = blocks_->compressed_chunk()[0],
             frame = blocks_->bytes({count, width_});
  unpacked_.resize(static_cast<std::size_t>(angles * frame));
  first_unpacked_ = first;
  Progress progress("unpacking", "projections", angles);
  Stage stage{.name = "unpack", .threads = std::max(1, int(std::thread::hardware_concurrency()))};
  stage.work = [&](std::int64_t item) {
    const std::int64_t begin = item * together, number = std::min(together, angles - begin);
    blocks_->read({{begin, first, 0}, {number, count, width_}},
                  std::span(unpacked_).subspan(std::size_t(begin * frame), std::size_t(number * frame)));
    progress.add(number);
  };
  run_stages((angles + together - 1) / together, {stage});
}

void Scan::read(std::int64_t first, std::int64_t count, std::span<std::byte> bytes) const {
  const auto angles = static_cast<std::int64_t>(angles_.size());
  if (!unpacked_.empty()) {
    const auto row = bytes.size() / std::size_t(angles * count),
               frame = unpacked_.size() / std::size_t(angles);
    for (std::size_t p = 0; p < angles_.size(); ++p)
      std::ranges::copy(std::span(unpacked_).subspan(p * frame + std::size_t(first - first_unpacked_) * row,
                                                     std::size_t(count) * row),
                        bytes.subspan(p * std::size_t(count) * row).begin());
    return;
  }
  if (blocks_)
    return blocks_->read({{0, first, 0}, {angles, count, width_}}, bytes);
  const std::span values(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
  TiffReader tiff(*tiff_); // one of this thread
  if (sinogram_)
    return tiff.read_rows(0, 0, angles, values);
  const auto pixels = static_cast<std::size_t>(count * width_);
  for (std::size_t p = 0; p < angles_.size(); ++p)
    tiff.read_rows(std::int64_t(p), first, count, values.subspan(p * pixels, pixels));
}

void Scan::read_flat(std::int64_t set, std::int64_t first, std::int64_t count,
                     std::span<float> values) const {
  const std::int64_t number = flat_.count / flat_sets();
  read_mean(flat_, set * number, number, first, count, values);
}

std::vector<float> Scan::flat_places() const {
  const auto& times = options_.flat_at;
  std::vector<float> places;
  for (std::size_t p = 0; times.size() > 1 && p < angles_.size(); ++p) {
    const double time = double(p) + 0.5; // a set was taken before the projection of its number
    const auto next = std::ranges::upper_bound(times, std::int64_t(p));
    if (next == times.begin() || next == times.end()) {
      places.push_back(next == times.begin() ? 0.F : float(times.size() - 1));
      continue;
    }
    const double share = (time - double(next[-1])) / double(next[0] - next[-1]);
    places.push_back(float(next - times.begin() - 1) +
                     float(options_.nearest_flat ? std::round(share) : share));
  }
  return places;
}

void Scan::read_dark(std::int64_t first, std::int64_t count, std::span<float> values) const {
  read_mean(dark_, 0, dark_.count, first, count, values);
}

void Scan::read_mean(const Frames& frames, std::int64_t start, std::int64_t number, std::int64_t first,
                     std::int64_t count, std::span<float> values) const {
  if (values.empty())
    return;
  std::vector<double> sum(values.size());
  // Small frames are read many at once: a file may have millions.
  const auto pixels = static_cast<std::int64_t>(values.size());
  const std::int64_t most = frames.tiff ? 1 : std::clamp<std::int64_t>((1 << 20) / pixels, 1, number);
  std::vector<float> block(static_cast<std::size_t>(most * pixels));
  std::optional<TiffReader> tiff(frames.tiff); // one of this thread
  for (std::int64_t f = start; f < start + number; f += most) {
    const std::int64_t together = std::min(most, start + number - f);
    const auto read = std::span(block).first(static_cast<std::size_t>(together * pixels));
    if (frames.tiff)
      tiff->read_rows(f, first, count, read);
    else
      hdf5_->read(frames.name, {{f, first, 0}, {together, count, width_}}, read);
    for (std::size_t begin = 0; begin < read.size(); begin += sum.size())
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] += read[begin + i];
  }
  for (std::size_t i = 0; i < sum.size(); ++i)
    values[i] = static_cast<float>(sum[i] / double(number));
}

} // namespace Bracewell::Examples
