// SPDX-License-Identifier: MIT
#include "bracewell-tomography/pictures.hpp"

#include "bracewell-tomography/output.hpp"
#include "bracewell-tomography/prepare.hpp"
#include "common/picture.hpp"
#include "common/processes.hpp"

#include <cmath>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>

namespace Bracewell::Examples {
namespace {

/// Greys by the values in the disc of a slice.
GreyRange range_in_disc(std::span<const float> slice, int width) {
  std::vector<float> inside;
  for (int y = 0; y < width; ++y)
    for (int x = 0; x < width; ++x)
      if (std::hypot(x - width / 2, y - width / 2) < 0.49 * width)
        inside.push_back(slice[size(y) * size(width) + size(x)]);
  return percentile_range(inside, 0.002, 0.998);
}

/// A picture of the middle slice.
void write_middle(const std::filesystem::path& path, const std::vector<float>& slice, int width) {
  write_picture(path, grey_panel({.caption = "middle slice: attenuation per pixel",
                                  .values = slice,
                                  .width = width,
                                  .height = width,
                                  .range = range_in_disc(slice, width),
                                  .points = 400}));
}

} // namespace

std::filesystem::path picture_path(const RunOptions& options) {
  return beside_slices(options.out, "_middle" + options.picture_ending);
}

std::filesystem::path FirstPicture::path(const RunOptions& options) {
  return beside_slices(options.out, "_first" + options.picture_ending);
}

FirstPicture::FirstPicture(const RunOptions& options, const std::vector<float>& slice, int width)
    : path_(path(options)), removed_on_signals_(path_) {
  write_middle(path_, slice, width);
}

FirstPicture::~FirstPicture() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

void MiddlePicture::take(std::vector<float> slice) {
  if (process_count() > 1)
    slice_ = std::move(slice);
  else
    draw(std::move(slice));
}

void MiddlePicture::collect(const Space& space) {
  if (process_count() == 1)
    return;
  slice_.resize(size(width_) * size(width_));
  processes().sum(space, host_view(slice_));
  if (is_first_process())
    draw(std::move(slice_));
}

void MiddlePicture::draw(std::vector<float> slice) {
  if (!path_.empty())
    drawn_ = std::async(std::launch::async, write_middle, path_, std::move(slice), width_);
}

void write_panels(const std::filesystem::path& path, const std::vector<std::vector<float>>& slices,
                  const std::vector<std::string>& captions, int width) {
  const GreyRange grey = range_in_disc(slices[slices.size() / 2], width);
  const auto columns = size(std::int64_t(std::ceil(std::sqrt(double(slices.size())))));
  std::vector<Picture> rows, row;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    row.push_back(grey_panel({.caption = captions[i],
                              .values = slices[i],
                              .width = width,
                              .height = width,
                              .range = grey,
                              .points = 400}));
    if (row.size() == columns || i + 1 == slices.size())
      rows.push_back(side_by_side(std::exchange(row, {})));
  }
  write_picture(path, stacked(rows));
}

} // namespace Bracewell::Examples
