// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/polar.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/memory.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace Bracewell::Impl {

/// The same points with their step.
inline PolarPoints checked_rays(PolarPoints polar, const Arguments& arguments) {
  arguments.at_least("samples", polar.samples, 1);
  if (polar.step == 0)
    polar.step = 1. / polar.samples;
  arguments.positive("step", polar.step);
  for (const double angle : polar.angles)
    arguments.require(std::abs(angle) <= 1e9, "angles", "finite values", [&] { return number(angle); });
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
  static std::size_t bytes_needed(std::size_t rays) { return rays * (3 * sizeof(double) + sizeof(int)); }

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

} // namespace Bracewell::Impl
