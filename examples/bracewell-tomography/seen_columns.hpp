// SPDX-License-Identifier: MIT
#pragma once

#include "bracewell-tomography/reconstructor.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace Bracewell::Examples {

/// A sinogram on the host.
struct HostSinogram {
  std::vector<float> values;
  std::size_t count, width;

  explicit HostSinogram(const DeviceView<float**>& sinogram)
      : values(sinogram.size()), count(sinogram.extent(0)), width(sinogram.extent(1)) {
    copy_values(host_view(values), Part<const float*>(sinogram.data(), sinogram.size()));
  }
  const float* row(std::size_t p) const { return values.data() + p * width; }
};

/// Columns that see the object now and then, and air on either side of them.
struct SeenColumns {
  std::vector<double> means;                         ///< over all views
  std::size_t begin = 0, end, left_end, right_begin; ///< of the object and of air
  double left, right;                                ///< means of air
  double scatter = 0; ///< variance of columns of air, which is the same in all views

  explicit SeenColumns(const HostSinogram& sinogram) : means(sinogram.width), end(sinogram.width) {
    const std::size_t width = sinogram.width, some = std::max<std::size_t>(1, width / 50);
    for (std::size_t p = 0; p < sinogram.count; ++p)
      for (std::size_t x = 0; x < width; ++x)
        means[x] += double(sinogram.row(p)[x]) / double(sinogram.count);
    // The object by means of some: columns beyond add noise alone, with a long lever.
    const double least = std::min(mean(0, some), mean(width - some, width));
    double most = least;
    for (std::size_t x = 0; x + some <= width; ++x)
      most = std::max(most, mean(x, x + some));
    while (begin + some < end && mean(begin, begin + some) < least + 0.02 * (most - least))
      ++begin;
    while (begin + some < end && mean(end - some, end) < least + 0.02 * (most - least))
      --end;
    begin -= std::min(begin, some), end = std::min(width, end + some);
    left_end = std::max(some, begin), right_begin = std::min(width - some, end);
    left = mean(0, left_end), right = mean(right_begin, width);
    for (std::size_t x = 0; x < width; ++x)
      if (x < left_end || x >= right_begin)
        scatter += std::pow(means[x] - air(x), 2) / double(left_end + width - right_begin);
  }

  /// The attenuation of air, which goes evenly from one side to the other.
  double air(std::size_t x) const {
    return left + (right - left) * double(x) / double(std::max<std::size_t>(1, means.size() - 1));
  }

private:
  double mean(std::size_t first, std::size_t last) const {
    return std::accumulate(means.begin() + std::ptrdiff_t(first), means.begin() + std::ptrdiff_t(last), 0.0) /
           double(std::max<std::size_t>(1, last - first));
  }
};

} // namespace Bracewell::Examples
