// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/error.hpp>
#include <bracewell/impl/memory.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace Bracewell {

/// Points on rays through the origin: sample j of ray p lies at frequency (j - samples/2) step (cos,
/// sin)(angle p), cycles per pixel (axis 0, x, is the last axis of images). Points are numbered [rays,
/// samples].
struct PolarPoints {
  std::vector<double> angles = {}; ///< radians: any number, order and span
  int samples = 0;                 ///< on each ray
  double step = 0;                 ///< cycles per pixel; 1 / samples by default

  std::int64_t count() const { return static_cast<std::int64_t>(angles.size()) * samples; }
};

namespace Impl {

inline PolarPoints checked(PolarPoints polar, const char* function) {
  if (polar.angles.empty())
    fail(function, "angles", "at least one", "none");
  for (const double angle : polar.angles)
    if (!(std::abs(angle) <= 1e9))
      fail(function, "angles", "finite values", std::to_string(angle));
  if (polar.samples < 1)
    fail(function, "samples", "at least 1", std::to_string(polar.samples));
  if (polar.step == 0)
    polar.step = 1. / polar.samples;
  require_positive(function, "step", polar.step);
  return polar;
}

/// Polar points on a device, the rays also sorted by their angle modulo pi (the direction of a line through
/// the origin), which makes those that pass a point of the grid one interval, whatever the angles' order and
/// span.
template <class Space>
struct Rays {
  Kokkos::View<double*, Space> cosine, sine; ///< of ray p
  Kokkos::View<double*, Space> sorted;       ///< angles modulo pi, ascending
  Kokkos::View<int*, Space> order;           ///< rays in that order
  int samples;
  double step;

  Rays(const Space& space, const PolarPoints& polar) : samples(polar.samples), step(polar.step) {
    const int rays = static_cast<int>(polar.angles.size());
    const double pi = std::acos(-1.);
    std::vector<double> angle(rays), c(rays), s(rays), ascending(rays);
    std::vector<int> ray(rays);
    std::iota(ray.begin(), ray.end(), 0);
    for (int p = 0; p < rays; ++p) {
      c[p] = std::cos(polar.angles[p]);
      s[p] = std::sin(polar.angles[p]);
      angle[p] = std::atan2(s[p], c[p]);
      if (angle[p] < 0)
        angle[p] += pi;
    }
    std::stable_sort(ray.begin(), ray.end(), [&](int a, int b) { return angle[a] < angle[b]; });
    for (int p = 0; p < rays; ++p)
      ascending[p] = angle[ray[p]];
    cosine = device_copy(space, "Bracewell::Gridding::cosine", c);
    sine = device_copy(space, "Bracewell::Gridding::sine", s);
    sorted = device_copy(space, "Bracewell::Gridding::sorted_angles", ascending);
    order = device_copy(space, "Bracewell::Gridding::sorted_rays", ray);
  }

  std::int64_t count() const { return std::int64_t(order.size()) * samples; }

  /// As a View of points [point, axis].
  struct Points {
    const double *cosine, *sine;
    int samples;
    double step;
    KOKKOS_FUNCTION double operator()(std::int64_t i, int axis) const {
      const std::int64_t ray = i / samples;
      return (static_cast<int>(i - ray * samples) - samples / 2) * step *
             (axis == 0 ? cosine[ray] : sine[ray]);
    }
  };
  Points points() const { return {cosine.data(), sine.data(), samples, step}; }
};

} // namespace Impl
} // namespace Bracewell
