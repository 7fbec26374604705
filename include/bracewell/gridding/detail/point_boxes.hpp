// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/reciprocal_transform.hpp>
#include <bracewell/impl/sample_array.hpp>
#include <bracewell/impl/unroll.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>

namespace Bracewell::Impl {

/// The least and the largest coordinate along an axis, and how many are not finite.
template <class Points>
struct BoundsOfPoints {
  Points points;
  int axis;

  KOKKOS_FUNCTION void operator()(std::int64_t i, double& low, double& high, std::int64_t& not_finite) const {
    const double x = points(i, axis);
    if (!(Kokkos::abs(x) < Kokkos::Experimental::infinity_v<double>))
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
  /// @param not_finite  points that are not, added to
  template <class Space, class Points>
  static PointBox make(const Space& space, const Points& points, std::int64_t& not_finite) {
    PointBox box = {};
    for (int d = 0; d < Dim; ++d) {
      double low = 0, high = 0;
      std::int64_t bad = 0;
      const Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>> range(
          space, 0, static_cast<std::int64_t>(points.extent(0)));
      Kokkos::parallel_reduce("Bracewell::NonuniformSums::bounds", range, BoundsOfPoints<Points>{points, d},
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
template <class Points, int Dim>
struct MovePoints {
  Points points;
  double* moved; ///< [points, Dim]
  double middle[Dim], scale[Dim], shift[Dim];

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    BRACEWELL_UNROLL
    for (int d = 0; d < Dim; ++d)
      moved[i * Dim + d] = (points(i, d) - middle[d]) * scale[d] + shift[d];
  }
};

/// factors[i] = exp(2 pi i turns(i)), turns = points(i) . direction.
template <class Points, class T, int Dim>
struct PhasesOfPoints {
  Points points;
  Kokkos::complex<T>* factors;
  double direction[Dim];

  PhasesOfPoints(const Points& points_, Kokkos::complex<T>* factors_, const double (&direction_)[Dim])
      : points(points_), factors(factors_) {
    std::copy_n(direction_, Dim, direction);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    double turns = 0;
    BRACEWELL_UNROLL
    for (int d = 0; d < Dim; ++d)
      turns += points(i, d) * direction[d];
    turns -= Kokkos::round(turns);
    const double angle = 2 * Kokkos::numbers::pi * turns;
    factors[i] = Kokkos::complex<T>(static_cast<T>(Kokkos::cos(angle)), static_cast<T>(Kokkos::sin(angle)));
  }
};

/// The same, over the transform of the kernel at points times `scale`.
template <class Points, class T, int Dim>
struct FactorsOfTargets {
  PhasesOfPoints<Points, T, Dim> phases; ///< of targets seen from the middle of their box
  ReciprocalTransform reciprocal;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    phases(i);
    double product = 1;
    BRACEWELL_UNROLL
    for (int d = 0; d < Dim; ++d)
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

} // namespace Bracewell::Impl
