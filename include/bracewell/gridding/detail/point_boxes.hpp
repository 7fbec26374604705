// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/kernel.hpp>
#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/half.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/sample_array.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <cmath>
#include <cstdint>

namespace Bracewell::Impl {

/// The least and the largest coordinate along an axis, and how many are not finite.
struct BoundsOfPoints {
  PointArray points;
  int axis;

  KOKKOS_FUNCTION void operator()(std::int64_t i, double& low, double& high, std::int64_t& not_finite) const {
    const double x = points(i, axis);
    if (!is_finite(x))
      ++not_finite;
    low = Kokkos::min(low, x);
    high = Kokkos::max(high, x);
  }
};

/// The box that points lie in: along every axis, fastest first.
template <int Dim>
struct PointBox {
  double middle[Dim], reach[Dim]; ///< half its length

  /// A box whose middle is close to the origin is centred there, which spares phases (Barnett et al., section 3.3).
  template <class Space, class Points>
  static PointBox make(const Space& space, const char* argument, const char* expected, const Points& points,
                       const Arguments& arguments) {
    arguments.require(
        !points.polar && points.extents[1] == Dim, argument, [] { return number(Dim) + " columns"; },
        [&] { return points.polar ? "PolarPoints" : number(points.extents[1]); });
    PointBox box = {};
    std::int64_t not_finite = 0;
    for (int d = 0; d < Dim; ++d) {
      double low = 0, high = 0;
      std::int64_t bad = 0;
      const Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>> range(space, 0, points.count());
      Kokkos::parallel_reduce("Bracewell::NonuniformSums::bounds", range, BoundsOfPoints{points.array, d},
                              Kokkos::Min<double>(low), Kokkos::Max<double>(high),
                              Kokkos::Sum<std::int64_t>(bad));
      not_finite += bad;
      if (low > high) // there are no points
        continue;
      box.middle[d] = (low + high) / 2;
      box.reach[d] = (high - low) / 2;
      if (std::abs(box.middle[d]) < 0.1 * box.reach[d]) {
        box.reach[d] += std::abs(box.middle[d]);
        box.middle[d] = 0;
      }
    }
    arguments.require(not_finite == 0, argument, expected,
                      [&] { return number(not_finite) + " that are not"; });
    return box;
  }

  bool centred() const {
    bool result = true;
    for (int d = 0; d < Dim; ++d)
      result = result && middle[d] == 0;
    return result;
  }
};

/// moved(i, d) = (points(i, d) - middle[d]) scale[d] + shift[d]
template <int Dim>
struct MovePoints {
  PointArray points;
  double* moved; ///< [points, Dim]
  double middle[Dim], scale[Dim], shift[Dim];

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    BRACEWELL_UNROLL_FOR (int d = 0; d < Dim; ++d)
      moved[i * Dim + d] = (points(i, d) - middle[d]) * scale[d] + shift[d];
  }
};

/// factors[i] = exp(2 pi i turns(i)), turns = points(i) . direction.
template <class T, int Dim>
struct PhasesOfPoints {
  PointArray points;
  Kokkos::complex<T>* factors;
  Kokkos::Array<double, Dim> direction;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    double turns = 0;
    BRACEWELL_UNROLL_FOR (int d = 0; d < Dim; ++d)
      turns += points(i, d) * direction[std::size_t(d)];
    turns -= Kokkos::round(turns);
    const double angle = 2 * Kokkos::numbers::pi * turns;
    factors[i] = Kokkos::complex<T>(static_cast<T>(Kokkos::cos(angle)), static_cast<T>(Kokkos::sin(angle)));
  }
};

/// The same, over the transform of the kernel at points times `scale`.
template <class T, int Dim>
struct FactorsOfTargets {
  PhasesOfPoints<T, Dim> phases; ///< of targets seen from the middle of their box
  ReciprocalTransform reciprocal;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    phases(i);
    double product = 1;
    BRACEWELL_UNROLL_FOR (int d = 0; d < Dim; ++d)
      product *= reciprocal(phases.points(i, d));
    phases.factors[i] *= static_cast<T>(product);
  }
};

/// to = from times factors of the points, or their conjugates.
template <class T>
struct MultiplySamples {
  SampleArray<const Kokkos::complex<T>> from;
  SampleArray<Kokkos::complex<T>> to;
  const Kokkos::complex<T>* factors;
  std::int64_t points;
  bool conjugate;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t point = i % points, slice = i / points;
    const Kokkos::complex<T> factor = factors[point];
    to(point, slice) = from(point, slice) * (conjugate ? Kokkos::conj(factor) : factor);
  }
};

/// Where points and targets of NonuniformSums lie.
template <int Dim>
struct NonuniformBoxes {
  PointBox<Dim> from, to;

  template <class Space, class Points>
  static NonuniformBoxes make(const Space& space, const Points& points, const Points& targets,
                              const Arguments& arguments) {
    return {PointBox<Dim>::make(space, "points", "finite positions", points, arguments),
            PointBox<Dim>::make(space, "targets", "finite frequencies", targets, arguments)};
  }

  /// Products of the boxes' lengths along an axis.
  double cycles(int axis) const { return 4 * from.reach[axis] * to.reach[axis]; }
};

/// The shape whose grid has room for the points: a cell is 1 / (2 oversampling reach of targets) wide.
/// @param room  cells that samples at the ends of a grid reach beyond it, and rounding
template <int Dim>
std::array<int, Dim> shape_for_points(const NonuniformBoxes<Dim>& boxes, double oversampling, double room,
                                      const Arguments& arguments) {
  constexpr double most = Dim == 1 ? 6e7 : 29000; // of NonuniformFFT, less what fast sizes of FFTs add
  std::array<int, Dim> shape;
  for (int d = 0; d < Dim; ++d) {
    const double cells = oversampling * boxes.cycles(d) + room;
    if (!(cells <= most))
      arguments.refuse("points, targets",
                       "boxes whose lengths' product along an axis is at most %.6g, found %.6g",
                       (most - room) / oversampling, boxes.cycles(d));
    shape[std::size_t(Dim - 1 - d)] = static_cast<int>(std::ceil(cells / oversampling));
  }
  return shape;
}

} // namespace Bracewell::Impl
