// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/options.hpp>
#include <bracewell/half.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/memory.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

namespace Bracewell::Impl {

/// The same points with their step.
inline PolarPoints checked_rays(PolarPoints polar, const Arguments& arguments) {
  arguments.at_least("samples", polar.samples, 1);
  if (polar.step == 0)
    polar.step = 1. / polar.samples;
  arguments.positive("step", polar.step);
  for (const double angle : polar.angles)
    arguments.require(is_finite(double(angle)) && std::abs(angle) <= 1e9, "angles", "finite values",
                      [&] { return number(angle); });
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
    const std::size_t rays = polar.angles.size();
    const double pi = std::acos(-1.);
    std::vector<double> angle(rays), c(rays), s(rays), ascending(rays);
    std::vector<int> ray(rays);
    std::iota(ray.begin(), ray.end(), 0);
    for (std::size_t p = 0; p < rays; ++p) {
      c[p] = std::cos(polar.angles[p]);
      s[p] = std::sin(polar.angles[p]);
      angle[p] = std::atan2(s[p], c[p]);
      if (angle[p] < 0)
        angle[p] += pi;
    }
    std::stable_sort(ray.begin(), ray.end(),
                     [&](int a, int b) { return angle[std::size_t(a)] < angle[std::size_t(b)]; });
    for (std::size_t p = 0; p < rays; ++p)
      ascending[p] = angle[std::size_t(ray[p])];
    cosine = device_copy(space, "Bracewell::Gridding::cosine", c);
    sine = device_copy(space, "Bracewell::Gridding::sine", s);
    sorted = device_copy(space, "Bracewell::Gridding::sorted_angles", ascending);
    order = device_copy(space, "Bracewell::Gridding::sorted_rays", ray);
  }

  std::int64_t count() const { return std::int64_t(order.size()) * samples; }
  static std::size_t bytes_needed(std::size_t rays) { return rays * (3 * sizeof(double) + sizeof(int)); }

  PointArray points() const {
    return {.cosine = cosine.data(), .sine = sine.data(), .samples = samples, .step = step};
  }
};

/// What a View [points, axes] of double, of any layout, and PolarPoints convert to. Does not own them.
template <class Space, int Dim>
struct GriddingPoints {
  using MemorySpace = typename Space::memory_space;

  PointArray array = {};
  std::int64_t extents[2] = {}; ///< of the View
  const PolarPoints* polar = nullptr;
  Rays<Space> (*make_rays)(const Space&,
                           const PolarPoints&) = nullptr; ///< compiled where there are PolarPoints

  template <class View>
  GriddingPoints(const View& view) {
    constexpr bool is_view = Kokkos::is_view_v<View>;
    static_assert(is_view,
                  "Bracewell: points: expected a View [points, axes] of double, found another type.");
    if constexpr (is_view) {
      constexpr bool fits = View::rank() == 2 && std::is_same_v<typename View::non_const_value_type, double>;
      constexpr bool accessible =
          Kokkos::SpaceAccessibility<MemorySpace, typename View::memory_space>::accessible;
      static_assert(fits, "Bracewell: points: expected a View [points, axes] of double, found another.");
      static_assert(accessible, "Bracewell: points: expected a View in memory that the execution space can "
                                "access, found another memory space.");
      if constexpr (fits && accessible) {
        array.data = view.data();
        for (int axis = 0; axis < 2; ++axis) {
          extents[axis] = static_cast<std::int64_t>(view.extent(static_cast<std::size_t>(axis)));
          array.strides[axis] = static_cast<std::int64_t>(view.stride(static_cast<std::size_t>(axis)));
        }
      }
    }
  }

  GriddingPoints(const PolarPoints& rays)
      : polar(&rays),
        make_rays([](const Space& space, const PolarPoints& points) { return Rays<Space>(space, points); }) {
    static_assert(Dim == 2, "Bracewell: points: polar points lie in two dimensions.");
  }

  Rays<Space> rays(const Space& space, const Arguments& arguments) const {
    return make_rays(space, checked_rays(*polar, arguments));
  }
  std::int64_t count() const { return polar ? polar->count() : extents[0]; }
};

} // namespace Bracewell::Impl
