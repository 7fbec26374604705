// SPDX-License-Identifier: MIT
#include "bracewell-tomography/frame_stack.hpp"

#include "common/input_error.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace Bracewell::Examples {
namespace {

namespace fs = std::filesystem;

bool is_mrc_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  constexpr std::array names{".mrc", ".mrcs", ".st", ".ali", ".rec"};
  return std::ranges::find(names, ending) != names.end();
}

bool is_hdf5_name(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".h5" || ending == ".hdf5" || ending == ".nxs" || ending == ".hdf";
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

} // namespace

bool may_be_hdf5(const fs::path& file) {
  return !is_tiff_name(file) && !is_mrc_name(file) && !is_folder(file);
}

FramePlace FramePlace::of(const std::string& name, const fs::path& home) {
  if (const std::size_t colon = name.rfind(":/"); colon != std::string::npos && colon > 0)
    return {name.substr(0, colon), name.substr(colon + 1)};
  if (may_be_hdf5(home) && !is_file(name) && !is_tiff_name(name) && !is_mrc_name(name) &&
      !(name.find('/') != 0 && is_folder(name)))
    return {home, name};
  return {name};
}

FrameStack::FrameStack(const FramePlace& place, FrameRole role) : place_(place) {
  if (is_mrc_name(place.file)) {
    mrc_.emplace(place.file), raw_.emplace(place.file);
    if (mrc_->header().axis_order != std::array{0, 1, 2})
      throw InputError(place.file.string() + ": expected axes in the order x, y, z");
    count_ = mrc_->images(), rows_ = mrc_->height(), width_ = mrc_->width();
  } else if (place.dataset.empty() && may_be_hdf5(place.file) && is_hdf5_name(place.file)) {
    throw InputError(place.file.string() + ": is HDF5, expected FILE:/DATASET");
  } else if (!place.dataset.empty()) {
    open_dataset(role);
  } else {
    tiff_.emplace(place.file);
    sinogram_ = role == FrameRole::Projections && tiff_->pages() == 1 && !tiff_->series();
    count_ = sinogram_ ? tiff_->height() : tiff_->pages();
    rows_ = sinogram_ ? 1 : tiff_->height();
    width_ = tiff_->width();
  }
}

void FrameStack::open_dataset(FrameRole role) {
  hdf5_.emplace(place_.file);
  const Hdf5Shape shape = hdf5_->shape(place_.dataset);
  const std::size_t rank = shape.size();
  has_frames_ = rank == 3 || (rank == 2 && role != FrameRole::Beside);
  has_rows_ = rank == 3 || (rank == 2 && role == FrameRole::Beside);
  const bool is_known = rank == 3 || rank == 2 || (rank == 1 && role == FrameRole::BesideRow);
  if (!is_known || hdf5_elements(shape) == 0)
    hdf5_->fail(place_.dataset,
                (role == FrameRole::Projections
                     ? "expected projections [angles, rows, width] or a sinogram [angles, width]"
                     : "expected frames [any, rows, width] or one frame [rows, width]") +
                    (", found shape " + hdf5_text(shape)));
  count_ = has_frames_ ? shape[0] : 1, rows_ = has_rows_ ? shape[rank - 2] : 1, width_ = shape[rank - 1];
  blocks_.emplace(*hdf5_, place_.dataset);
}

Hdf5Slab FrameStack::slab(std::int64_t frame, std::int64_t frames, std::int64_t first,
                          std::int64_t count) const {
  Hdf5Slab result;
  const auto add = [&](std::int64_t offset, std::int64_t number) {
    result.offset.push_back(offset), result.count.push_back(number);
  };
  if (has_frames_)
    add(frame, frames);
  if (has_rows_)
    add(first, count);
  add(0, width_);
  return result;
}

std::vector<std::int64_t> FrameStack::never_written() const {
  if (!hdf5_)
    return {};
  std::vector<std::int64_t> numbers = hdf5_->never_written(place_.dataset);
  if (!has_frames_ && !numbers.empty()) // a part of the one frame
    numbers = {0};
  return numbers;
}

StoredFormat FrameStack::format() const {
  return blocks_ ? blocks_->format()
         : mrc_  ? mrc_->format()
                 : tiff_->stored_format().value_or(StoredFormat{});
}

std::int64_t FrameStack::packed_rows() const {
  if (blocks_)
    return blocks_->compressed_chunk().empty() || !has_rows_
               ? 1
               : blocks_->compressed_chunk()[has_frames_ ? 1 : 0];
  return mrc_ || sinogram_ || tiff_->stored_format() ? 1 : tiff_->rows_together();
}

std::int64_t FrameStack::packed_frames() const {
  constexpr std::int64_t few = 8; // pages
  return blocks_ && has_frames_ && !blocks_->compressed_chunk().empty() ? blocks_->compressed_chunk()[0]
                                                                        : few;
}

void FrameStack::read(std::int64_t frame, std::int64_t frames, std::int64_t first, std::int64_t count,
                      std::span<std::byte> bytes) const {
  if (blocks_)
    return blocks_->read(slab(frame, frames, first, count), bytes);
  if (mrc_) {
    const std::int64_t row = width_ * bytes_of(format().type);
    const auto part = static_cast<std::size_t>(count * row);
    for (std::int64_t i = 0; i < frames; ++i)
      raw_->read_at(mrc_->header().data_offset + ((frame + i) * rows_ + first) * row,
                    bytes.subspan(static_cast<std::size_t>(i) * part, part));
    return;
  }
  if (tiff_->stored_format())
    return sinogram_ ? tiff_->read_stored(0, frame, frames, bytes)
                     : tiff_->read_stored(frame, first, count, bytes);
  read_floats(frame, frames, first, count,
              {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)});
}

void FrameStack::read_floats(std::int64_t frame, std::int64_t frames, std::int64_t first, std::int64_t count,
                             std::span<float> values) const {
  if (hdf5_)
    return hdf5_->read(place_.dataset, slab(frame, frames, first, count), values);
  const auto part = static_cast<std::size_t>(count * width_);
  if (mrc_) {
    std::vector<float> image(static_cast<std::size_t>(rows_ * width_));
    for (std::int64_t i = 0; i < frames; ++i) {
      mrc_->read_images(frame + i, 1, image, NonFinite::Accept);
      std::copy_n(image.begin() + first * width_, part, values.begin() + i * std::int64_t(part));
    }
    return;
  }
  const TiffReader tiff(*tiff_); // one of this thread
  if (sinogram_)
    return tiff.read_rows(0, frame, frames, values);
  for (std::int64_t i = 0; i < frames; ++i)
    tiff.read_rows(frame + i, first, count, values.subspan(static_cast<std::size_t>(i) * part, part));
}

} // namespace Bracewell::Examples
