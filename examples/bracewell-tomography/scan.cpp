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
  flat_ = frames_of(options.flat, ScanOptions{}.flat, flat_sets());
  dark_ = frames_of(options.dark, ScanOptions{}.dark, 1);
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

Scan::Frames Scan::frames_of(const std::string& name, const std::string& usual, std::int64_t sets) const {
  Frames frames{.name = name};
  std::optional<TiffReader> tiff;
  Hdf5Shape shape;
  if (hdf5_) {
    if (name.empty() || (name == usual && !hdf5_->has(name)))
      return {};
    shape = hdf5_->shape(name);
  } else {
    if (name.empty() || name == usual)
      return {};
    tiff.emplace(name);
    shape = {tiff->pages(), tiff->height(), tiff->width()};
  }
  if (shape.size() != 3 || shape[0] < 1 || shape[1] != rows_ || shape[2] != width_)
    throw InputError((hdf5_ ? path().string() + ": dataset " : std::string()) + name +
                     ": expected frames [any, " + std::to_string(rows_) + ", " + std::to_string(width_) +
                     "] as those of the projections, found shape " + hdf5_text(shape));
  frames.count = shape[0];
  if (tiff && frames.count % sets == 0) {
    const auto pixels = static_cast<std::size_t>(rows_ * width_);
    frames.means.resize(static_cast<std::size_t>(sets) * pixels);
    std::vector<float> frame(pixels);
    std::vector<double> sum(pixels);
    const std::int64_t number = frames.count / sets;
    for (std::int64_t f = 0; f < frames.count; ++f) {
      tiff->read_rows(f, 0, rows_, frame);
      for (std::size_t i = 0; i < pixels; ++i)
        sum[i] = (f % number > 0 ? sum[i] : 0) + frame[i];
      if ((f + 1) % number == 0)
        std::ranges::transform(sum, frames.means.begin() + f / number * std::int64_t(pixels),
                               [&](double value) { return static_cast<float>(value / double(number)); });
    }
  }
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

std::int64_t Scan::packed_rows() const {
  if (blocks_)
    return blocks_->compressed_chunk().empty() ? 1 : blocks_->compressed_chunk()[1];
  return sinogram_ || tiff_->stored_format() ? 1 : tiff_->rows_together();
}

void Scan::unpack(std::int64_t first, std::int64_t count) {
  constexpr std::int64_t few = 8; // pages
  const auto angles = static_cast<std::int64_t>(angles_.size()),
             together = blocks_ ? blocks_->compressed_chunk()[0] : few,
             frame = count * width_ * bytes_of(format().type);
  unpacked_.resize(static_cast<std::size_t>(angles * frame));
  first_unpacked_ = first;
  Progress progress("unpacking", "projections", angles);
  Stage stage{.name = "unpack", .threads = std::max(1, int(std::thread::hardware_concurrency()))};
  stage.work = [&](std::int64_t item) {
    const std::int64_t begin = item * together, number = std::min(together, angles - begin);
    const auto unpacked =
        std::span(unpacked_).subspan(std::size_t(begin * frame), std::size_t(number * frame));
    if (blocks_)
      blocks_->read({{begin, first, 0}, {number, count, width_}}, unpacked);
    else
      read_pages(begin, number, first, count, unpacked);
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
  if (tiff_->stored_format())
    return sinogram_ ? tiff_->read_stored(0, angles, bytes) : tiff_->read_stored(first, count, bytes);
  if (sinogram_)
    return read_pages(0, 1, 0, angles, bytes);
  read_pages(0, angles, first, count, bytes);
}

void Scan::read_pages(std::int64_t page, std::int64_t pages, std::int64_t first, std::int64_t count,
                      std::span<std::byte> bytes) const {
  const std::span values(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
  const TiffReader tiff(*tiff_); // one of this thread
  const auto pixels = static_cast<std::size_t>(count * width_);
  for (std::int64_t i = 0; i < pages; ++i)
    tiff.read_rows(page + i, first, count, values.subspan(static_cast<std::size_t>(i) * pixels, pixels));
}

void Scan::read_flat(std::int64_t set, std::int64_t first, std::int64_t count,
                     std::span<float> values) const {
  read_mean(flat_, set, flat_.count / flat_sets(), first, count, values);
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

void Scan::read_mean(const Frames& frames, std::int64_t set, std::int64_t number, std::int64_t first,
                     std::int64_t count, std::span<float> values) const {
  if (values.empty())
    return;
  if (!frames.means.empty()) {
    std::copy_n(frames.means.begin() + (set * rows_ + first) * width_, values.size(), values.begin());
    return;
  }
  std::vector<double> sum(values.size());
  // Small frames are read many at once: a file may have millions.
  const auto pixels = static_cast<std::int64_t>(values.size());
  const std::int64_t most = std::clamp<std::int64_t>((1 << 20) / pixels, 1, number), end = (set + 1) * number;
  std::vector<float> block(static_cast<std::size_t>(most * pixels));
  for (std::int64_t f = set * number; f < end; f += most) {
    const std::int64_t together = std::min(most, end - f);
    const auto read = std::span(block).first(static_cast<std::size_t>(together * pixels));
    hdf5_->read(frames.name, {{f, first, 0}, {together, count, width_}}, read);
    for (std::size_t begin = 0; begin < read.size(); begin += sum.size())
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] += read[begin + i];
  }
  for (std::size_t i = 0; i < sum.size(); ++i)
    values[i] = static_cast<float>(sum[i] / double(number));
}

} // namespace Bracewell::Examples
