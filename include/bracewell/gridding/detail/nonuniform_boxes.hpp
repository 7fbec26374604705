// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/point_boxes.hpp>
#include <bracewell/impl/checks.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

namespace Bracewell::Impl {

/// Where points and targets of NonuniformSums lie, and the shape whose grid has room for the points: a cell is
/// 1 / (2 oversampling reach of targets) wide.
template <int Dim>
struct NonuniformBoxes {
  PointBox<Dim> from, to;
  std::array<int, Dim> shape;
  double cells[Dim]; ///< of the grid, at least, fastest axis first

  /// @param room  cells that samples at the ends of a grid reach beyond it, and rounding
  template <class Space, class Points, class Targets>
  static NonuniformBoxes make(const Space& space, const Points& points, const Targets& targets,
                              double oversampling, double room, const Arguments& arguments) {
    check_points("points", points, arguments);
    check_points("targets", targets, arguments);
    std::int64_t bad_points = 0, bad_targets = 0;
    NonuniformBoxes result{PointBox<Dim>::make(space, points, bad_points),
                           PointBox<Dim>::make(space, targets, bad_targets),
                           {},
                           {}};
    arguments.require(bad_points == 0, "points", "finite positions",
                      [&] { return number(bad_points) + " that are not"; });
    arguments.require(bad_targets == 0, "targets", "finite frequencies",
                      [&] { return number(bad_targets) + " that are not"; });
    constexpr double most = Dim == 1 ? 6e7 : 29000; // of NonuniformFFT, less what fast sizes of FFTs add
    for (int d = 0; d < Dim; ++d) {
      const double cycles = 4 * result.from.reach[d] * result.to.reach[d];
      result.cells[d] = oversampling * cycles + room;
      arguments.require(
          result.cells[d] <= most, "points, targets",
          [&] {
            return "boxes whose lengths' product along an axis is at most " +
                   number((most - room) / oversampling);
          },
          [&] { return number(cycles); });
      result.shape[Dim - 1 - d] = static_cast<int>(std::ceil(result.cells[d] / oversampling));
    }
    return result;
  }

private:
  template <class Points>
  static void check_points(const char* argument, const Points& points, const Arguments& arguments) {
    static_assert(
        Points::rank() == 2 && std::is_same_v<typename Points::non_const_value_type, double>,
        "Bracewell::NonuniformSums: points, targets: expected a View [points, axes] of double, found "
        "another.");
    arguments.require(
        points.extent(1) == Dim, argument, [] { return number(Dim) + " columns"; },
        [&] { return number(points.extent(1)); });
  }
};

} // namespace Bracewell::Impl
