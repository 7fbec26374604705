// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/options.hpp>
#include <bracewell/impl/checks.hpp>

namespace Bracewell::Impl {

/// Plans of Gridding and NonuniformFFT for other classes of the library, whose names errors have.
struct NamedPlans {
  template <class Plan, class Space, class Points, class Shape>
  static Plan make(const Arguments& arguments, const Space& space, const Points& points, const Shape& shape,
                   const GriddingOptions& options) {
    return Plan(arguments, space, points, shape, options);
  }
  template <class Plan, class Space, class Points, class Shape>
  static Shape grid_shape(const Arguments& arguments, const Space& space, const Points& points,
                          const Shape& shape, const GriddingOptions& options) {
    return Plan::grid_shape(arguments, space, points, shape, options);
  }
  template <class Plan, class Space, class Points, class Shape>
  static std::size_t bytes_needed(const Arguments& arguments, const Space& space, const Points& points,
                                  const Shape& shape, const GriddingOptions& options) {
    return Plan::bytes_needed(arguments, space, points, shape, options);
  }
  template <class Plan, class Space, class Points>
  static void set_points(const Arguments& arguments, Plan& plan, const Space& space, const Points& points) {
    plan.set_points(arguments, space, points);
  }
};

} // namespace Bracewell::Impl
