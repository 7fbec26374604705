// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/gridding/detail/locations.hpp>
#include <bracewell/gridding/detail/rays.hpp>
#include <bracewell/gridding/detail/tuning.hpp>
#include <bracewell/impl/host_tasks.hpp>

namespace Bracewell::Impl {

/// GriddingStrategy::PrunedGather: a thread owns a grid point of a few slices and visits the rays whose angle
/// lets them pass its kernel, and on them the samples in reach.
template <class Space, class T>
struct SpreadPruned {
  static constexpr int slices_per_thread = tuning_of<Space>.slices_per_thread;

  SpreadingProblem<T, 2> problem;
  Rays<Space> rays;
  SampleArray<const Kokkos::complex<T>> samples;
  Kokkos::complex<T>* grid;

  template <class Plan>
  static void launch(const Space& space, const Plan& plan, std::int64_t slices,
                     const SampleArray<const Kokkos::complex<T>>& samples, Kokkos::complex<T>* grid) {
    const SpreadPruned functor{plan.problem_of(slices), *plan.rays, samples, grid};
    launch_kernel("Bracewell::Gridding::spread_pruned", typename Plan::Range(space, 0, functor.threads()),
                  functor);
  }

  std::int64_t threads() const {
    return problem.grid.elements() * ((problem.slices + slices_per_thread - 1) / slices_per_thread);
  }

  struct Sums {
    std::int64_t first_slice;
    int cell[2];
    T real[slices_per_thread] = {}, imaginary[slices_per_thread] = {};
  };

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    const std::int64_t elements = problem.grid.elements(), element = thread % elements;
    Sums sums;
    sums.first_slice = thread / elements * slices_per_thread;
    sums.cell[0] = static_cast<int>(element % problem.grid.size[0]);
    sums.cell[1] = static_cast<int>(element / problem.grid.size[0]);
    // Samples near the edge of the grid reach beyond it, to the other side.
    for (int down = -1; down <= 1; ++down)
      for (int across = -1; across <= 1; ++across)
        add_period(centred(sums.cell[0], 0) + across * problem.grid.size[0],
                   centred(sums.cell[1], 1) + down * problem.grid.size[1], sums);
    for (int i = 0; i < slices_per_thread; ++i)
      if (sums.first_slice + i < problem.slices)
        grid[(sums.first_slice + i) * elements + element] =
            Kokkos::complex<T>(sums.real[i], sums.imaginary[i]);
  }

private:
  KOKKOS_FUNCTION double centred(int cell, int axis) const {
    return 2 * cell < problem.grid.size[axis] ? cell : cell - problem.grid.size[axis];
  }

  KOKKOS_FUNCTION void add_period(double x, double y, Sums& sums) const {
    // On grids that are not square circles are ellipses: angles and radii are those in cycles per pixel.
    const double half = 0.5 * problem.kernel.width + 1e-3;
    const double fx = x / problem.grid.size[0], fy = y / problem.grid.size[1];
    const double hx = half / problem.grid.size[0], hy = half / problem.grid.size[1];
    const double reach = Kokkos::sqrt(hx * hx + hy * hy), radius = Kokkos::sqrt(fx * fx + fy * fy);
    if (radius > (rays.samples / 2) * rays.step + reach)
      return;
    const int all = static_cast<int>(rays.order.extent(0));
    if (radius <= reach)
      return add_rays(0, all, fx, fy, hx, hy, sums);
    const double pi = Kokkos::numbers::pi;
    const double direction = Kokkos::atan2(fy, fx), spread = Kokkos::asin(reach / radius) + 1e-9;
    double low = direction - spread;
    low -= pi * Kokkos::floor(low / pi);
    const double high = low + 2 * spread;
    if (2 * spread >= pi)
      return add_rays(0, all, fx, fy, hx, hy, sums);
    if (high >= pi)
      add_rays(0, lower_bound(high - pi), fx, fy, hx, hy, sums);
    add_rays(lower_bound(low), high >= pi ? all : lower_bound(high), fx, fy, hx, hy, sums);
  }

  /// The first sorted ray whose angle is not below.
  KOKKOS_FUNCTION int lower_bound(double angle) const {
    int low = 0, high = static_cast<int>(rays.order.extent(0));
    while (low < high) {
      const int middle = (low + high) / 2;
      if (rays.sorted(middle) < angle)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  KOKKOS_FUNCTION void add_rays(int begin, int end, double fx, double fy, double hx, double hy,
                                Sums& sums) const {
    for (int i = begin; i < end; ++i) {
      const int ray = rays.order(i);
      double low = -rays.samples, high = rays.samples; // in steps
      narrow(low, high, fx, hx, rays.cosine(ray) * rays.step);
      narrow(low, high, fy, hy, rays.sine(ray) * rays.step);
      const int middle = rays.samples / 2;
      const int from = Kokkos::max(static_cast<int>(Kokkos::ceil(low)) + middle, 0);
      const int to = Kokkos::min(static_cast<int>(Kokkos::floor(high)) + middle, rays.samples - 1);
      for (int j = from; j <= to; ++j)
        add_sample(std::int64_t(ray) * rays.samples + j, sums);
    }
  }

  /// Limits low .. high to where |t slope - centre| <= half.
  KOKKOS_FUNCTION static void narrow(double& low, double& high, double centre, double half, double slope) {
    if (Kokkos::abs(slope) < 1e-300) {
      if (Kokkos::abs(centre) > half)
        high = low - 1;
      return;
    }
    const double a = (centre - half) / slope, b = (centre + half) / slope;
    low = Kokkos::max(low, Kokkos::min(a, b));
    high = Kokkos::min(high, Kokkos::max(a, b));
  }

  KOKKOS_FUNCTION void add_sample(std::int64_t point, Sums& sums) const {
    const Location<T, 2> at = problem.locations[point];
    T weight[2];
    for (int d = 0; d < 2; ++d) {
      int tap = sums.cell[d] - at.first[d];
      tap += tap < 0 ? problem.grid.size[d] : 0;
      if (tap >= problem.kernel.width)
        return;
      weight[d] = problem.kernel.evaluate_one(at.offset[d], tap);
    }
    const T both = weight[1] * weight[0];
    for (int i = 0; i < slices_per_thread; ++i)
      if (sums.first_slice + i < problem.slices) {
        const Kokkos::complex<T> value = samples(point, sums.first_slice + i);
        sums.real[i] += both * value.real();
        sums.imaginary[i] += both * value.imag();
      }
  }
};

} // namespace Bracewell::Impl
