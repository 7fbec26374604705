// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/impl/row_loop.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

namespace Bracewell {

namespace Impl {

/// Parallel projections of square images of `width` x `width` pixels on a detector of `width` pixels: pixel
/// (X, Y) = (column - floor(n/2), row - floor(n/2)) is seen at s = X cos(theta) + Y sin(theta) + centre.
struct ParallelBeam {
  const std::vector<double>& angles; ///< radians
  int width;
  std::optional<double> centre;       ///< detector pixel of the rotation axis; absent: floor(n/2)
  const std::vector<double>& weights; ///< of the angles, 1 on average; empty: all are 1
};

struct BeamAngle {
  double cosine, sine, weight; ///< the weight with pi / P in it
};

template <class ExecutionSpace>
struct BeamView {
  const BeamAngle* data;
  int angles, width;
  double centre;
};

/// Slices of projections [S, P, n] and images [S, n, n], which have to fit.
template <class P, class I, class MemorySpace>
int check_parallel_beam(const char* function, int angles, int width, const Array<P, MemorySpace>& projections,
                        const Array<I, MemorySpace>& image, int row_upsampling = 1) {
  const std::string n = std::to_string(width);
  if (!projections || projections.rank != 3 || projections.extents[1] != angles ||
      projections.extents[2] != row_upsampling * width)
    fail(function, "projections",
         "[slices, " + std::to_string(angles) + ", " + std::to_string(row_upsampling * width) + "]",
         projections.shape());
  const std::int64_t slices = projections.extents[0];
  if (!image || image.rank != 3 || image.extents[0] != slices || image.extents[1] != width ||
      image.extents[2] != width)
    fail(function, "image", "[" + std::to_string(slices) + ", " + n + ", " + n + "]", image.shape());
  if (slices > (1 << 20))
    fail(function, "projections", "at most 2^20 slices", std::to_string(slices));
  if (overlap(projections, image))
    fail(function, "image", "memory of its own", "memory shared with projections");
  return static_cast<int>(slices);
}

/// A checked ParallelBeam in the memory of the execution space.
template <class ExecutionSpace>
class Beam {
public:
  Beam(const ExecutionSpace& space, const char* function, const ParallelBeam& beam)
      : width_(beam.width), centre_(beam.centre.value_or(beam.width / 2)) {
    if (width_ < 1 || width_ > (1 << 20))
      fail(function, "width", "1 to 2^20 pixels", std::to_string(width_));
    if (beam.angles.empty() || beam.angles.size() > (1u << 24))
      fail(function, "angles", "1 to 2^24 angles", std::to_string(beam.angles.size()));
    if (!(std::abs(centre_) <= 4.0 * width_))
      fail(function, "centre", "a pixel within four widths of the detector", std::to_string(centre_));
    if (!beam.weights.empty() && beam.weights.size() != beam.angles.size())
      fail(function, "weights", "none or one per angle (" + std::to_string(beam.angles.size()) + ")",
           std::to_string(beam.weights.size()));
    angles_ =
        Angles(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, "Bracewell::ParallelBeam::angles"),
               beam.angles.size());
    const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace(), angles_);
    for (std::size_t p = 0; p < beam.angles.size(); ++p) {
      const double angle = beam.angles[p], weight = beam.weights.empty() ? 1 : beam.weights[p];
      if (!std::isfinite(angle) || !std::isfinite(weight))
        fail(function, std::isfinite(angle) ? "weights" : "angles", "finite values", "one that is not");
      host(p) = {std::cos(angle), std::sin(angle), weight * std::numbers::pi / double(beam.angles.size())};
    }
    Kokkos::deep_copy(space, angles_, host);
    space.fence("Bracewell::ParallelBeam::angles"); // the host's copy ends here
  }

  int width() const { return width_; }
  int angles() const { return static_cast<int>(angles_.size()); }
  BeamView<ExecutionSpace> view() const { return {angles_.data(), angles(), width_, centre_}; }

  template <class P, class I, class MemorySpace>
  int check(const char* function, const Array<P, MemorySpace>& projections,
            const Array<I, MemorySpace>& image) const {
    return check_parallel_beam(function, angles(), width_, projections, image);
  }

private:
  using Angles = Kokkos::View<BeamAngle*, typename ExecutionSpace::memory_space>;

  int width_;
  double centre_;
  Angles angles_;
};

} // namespace Impl

/// Weights for angles that are not evenly spread: the share of half a turn that is nearer to an angle than to
/// any other (angles half a turn apart see the same lines), 1 on average.
inline std::vector<double> angular_density_weights(const std::vector<double>& angles) {
  constexpr double pi = std::numbers::pi;
  const std::size_t count = angles.size();
  std::vector<double> folded(count), weights(count, 1.0);
  std::vector<std::size_t> order(count);
  for (std::size_t p = 0; p < count; ++p) {
    if (!std::isfinite(angles[p]))
      Impl::fail("angular_density_weights", "angles", "finite values", "one that is not");
    folded[p] = angles[p] - pi * std::floor(angles[p] / pi);
    order[p] = p;
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return folded[a] < folded[b]; });
  for (std::size_t i = 0; count > 1 && i < count; ++i) {
    const double next = i + 1 < count ? folded[order[i + 1]] : folded[order[0]] + pi;
    const double previous = i > 0 ? folded[order[i - 1]] : folded[order[count - 1]] - pi;
    weights[order[i]] = (next - previous) / 2 * double(count) / pi;
  }
  return weights;
}

} // namespace Bracewell
