// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/gridding/cost.hpp>
#include <bracewell/gridding/detail/plans/plan.hpp>
#include <bracewell/gridding/detail/plans/switches.hpp>
#include <bracewell/gridding/detail/rays.hpp>
#include <bracewell/gridding/options.hpp>
#include <bracewell/impl/checks.hpp>
#include <bracewell/impl/compiled.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>
#include <type_traits>

namespace Bracewell {

/// Plan that carries samples at non-uniform frequencies to a periodic Cartesian grid, 1D to 3D, and back:
///   spread       grid(l) = sum_j sample_j phi(N x_j - l)
///   interpolate  sample_j = sum_l phi(N x_j - l) grid(l)
/// exact transposes of each other. x_j are the points in cycles per pixel, N the size of the grid, phi a
/// product of kernels with periodic continuation. A backward FFT of the grid, multiplied by rolloff(), gives
///   image(X) = sum_j sample_j exp(+2 pi i x_j . X)
/// at pixel X (stored at X modulo N), to the tolerance that was asked for, for |X| up to half the image size.
/// NonuniformFFT does all of it.
///
/// Movable, not copyable. The constructor sorts the points; spread and interpolate are const and run on the
/// instance that they are given without waiting. Calls of spread that can overlap need a plan each where the
/// strategy is Tiles or Bins (they have memory for partial sums). Without points `spread`
/// makes the grid zero; without points or slices there is nothing else to do.
template <class ExecutionSpace, int Dim, class T>
class Gridding {
  static_assert(Dim >= 1 && Dim <= 3, "Bracewell::Gridding: grids have one, two or three dimensions.");
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "Bracewell::Gridding: values are complex numbers of float or double.");
  using MemorySpace = typename ExecutionSpace::memory_space;
  using Complex = Kokkos::complex<T>;
  using Shape = std::array<int, Dim>;
  using Plan = Impl::GriddingPlan<ExecutionSpace, T, Dim>;
  using Points = Impl::GriddingPoints<ExecutionSpace, Dim>;

public:
  /// @param points  View [points, Dim] of double: frequencies in cycles per pixel, finite, any (periodic
  ///                with period 1); axis 0 (x) is the last axis of images. Or PolarPoints, for 2D grids; the only
  ///                ones that PrunedGather knows
  /// @param shape   image size {((depth,) height,) width}
  /// @throws Error on sizes and options out of range and points that are not finite
  Gridding(const ExecutionSpace& space, const Points& points, const Shape& shape,
           const GriddingOptions& options = {})
      : Gridding(Impl::Arguments{"Gridding"}, space, points, shape, options) {}

  Gridding(Gridding&&) noexcept = default;            ///< The other can only be destroyed or assigned to.
  Gridding& operator=(Gridding&&) noexcept = default; ///< The same.

  /// Other points, as many, instead of the plan's: they are sorted, grid and kernel stay. The strategy stays, too, but
  /// where it is Automatic and samples are sorted into bins, choose_sorted_strategy decides anew. Waits for the instance;
  /// calls that use the plan must have ended.
  /// @param points  View [points(), Dim] of double: see the constructor
  /// @throws Error on a View of another shape, points that are not finite (the plan has none then that can be
  ///         used) and where the strategy is PrunedGather
  void set_points(const ExecutionSpace& space, const Points& points) {
    set_points(Impl::Arguments{"Gridding::set_points"}, space, points);
  }

  /// Grid size, slowest axis first: at least oversampling times the image, only factors 2, 3, 5 and 7.
  Shape grid_shape() const { return shape_of(plan_.problem.grid); }

  /// What grid_shape() of a plan of these arguments would be; points: a View or PolarPoints.
  static Shape grid_shape(const ExecutionSpace& space, const Points& points, const Shape& shape,
                          const GriddingOptions& options = {}) {
    return grid_shape(Impl::Arguments{"Gridding::grid_shape"}, space, points, shape, options);
  }

  std::int64_t points() const { return plan_.problem.points; } ///< Samples of a slice.
  std::int64_t slices() const { return plan_.problem.slices; } ///< Of one call, at most.
  int width() const { return plan_.problem.kernel.width; }     ///< Of the kernel, in grid points.
  GriddingStrategy strategy() const { return plan_.strategy; } ///< What spreads, never Automatic.
  GriddingInterpolation interpolation() const { return plan_.interpolation; } ///< What interpolates.
  SampleOrder order() const { return plan_.order; }                           ///< Of the axes of samples.

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const { return plan_.memory_bytes(); }

  /// What memory_bytes() of a plan of these arguments would be. It counts the samples of every bin or tile of the
  /// grid, with a few bytes of memory for each, and waits. (While a plan sorts its points, it takes up to 8
  /// bytes for every tile that a sample reaches beyond that.)
  /// @throws Error as the constructor, but for points that are not finite
  static std::size_t bytes_needed(const ExecutionSpace& space, const Points& points, const Shape& shape,
                                  const GriddingOptions& options = {}) {
    return bytes_needed(Impl::Arguments{"Gridding::bytes_needed"}, space, points, shape, options);
  }

  /// Reciprocal transform of the kernel along an axis of the View (0 slowest): View [size] for pixels X =
  /// index - size / 2. The product over the axes undoes the kernel.
  Kokkos::View<const T*, ExecutionSpace> rolloff(int axis) const {
    Impl::Arguments{"Gridding::rolloff"}.within("axis", axis, 0, Dim - 1);
    return plan_.rolloff[std::size_t(axis)];
  }

  /// Samples to the grid.
  /// @param samples  View of complex, [slices, points] or [points, slices] as options.order says; at most
  ///                 slices() slices
  /// @param grid     View of complex [slices, grid_shape()], overwritten
  /// @throws Error on shapes that do not fit or memory that both use
  void spread(const ExecutionSpace& space, const Array<const Complex, MemorySpace>& samples,
              const Array<Complex, MemorySpace>& grid) const;

  /// The grid at the points.
  /// @param grid     View of complex [slices, grid_shape()]
  /// @param samples  View of complex, [slices, points] or [points, slices] as options.order says, overwritten
  /// @throws Error on shapes that do not fit or memory that both use
  void interpolate(const ExecutionSpace& space, const Array<const Complex, MemorySpace>& grid,
                   const Array<Complex, MemorySpace>& samples) const;

private:
  friend struct Impl::NamedPlans;

  Gridding(const Impl::Arguments& arguments, const ExecutionSpace& space, const Points& points,
           const Shape& shape, const GriddingOptions& options);

  void set_points(const Impl::Arguments& arguments, const ExecutionSpace& space, const Points& points);

  static Shape grid_shape(const Impl::Arguments& arguments, const ExecutionSpace& space, const Points& points,
                          const Shape& shape, const GriddingOptions& options);

  static std::size_t bytes_needed(const Impl::Arguments& arguments, const ExecutionSpace& space,
                                  const Points& points, const Shape& shape, const GriddingOptions& options);

  static Plan make(const Impl::Arguments& arguments, const ExecutionSpace& space, const Points& points,
                   const Shape& shape, const GriddingOptions& options) {
    check(arguments, points, shape, options);
    Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::plan");
    if constexpr (Dim == 2)
      if (points.polar) {
        const Impl::Rays<ExecutionSpace> rays = points.rays(space, arguments);
        return {space, rays.points(), points.count(), shape, options, arguments, rays};
      }
    return {space, points.array, points.count(), shape, options, arguments};
  }

  static Shape shape_of(const Impl::GridShape<Dim>& grid) {
    Shape shape;
    for (int d = 0; d < Dim; ++d)
      shape[std::size_t(d)] = grid.size[Dim - 1 - d];
    return shape;
  }

  static void check(const Impl::Arguments& arguments, const Points& points, const Shape& shape,
                    const GriddingOptions& options) {
    if (points.polar)
      Impl::checked_rays(*points.polar, arguments);
    Impl::check_options<T, Dim>(arguments, shape, points.count(), options);
    arguments.require(
        points.polar || points.extents[1] == Dim, "points", [] { return std::to_string(Dim) + " columns"; },
        [&] { return std::to_string(points.extents[1]); });
  }

  /// The number of slices.
  std::int64_t check(const Impl::Arguments& arguments, const Array<const Complex, MemorySpace>& samples,
                     const Array<const Complex, MemorySpace>& grid) const {
    const std::int64_t count =
        Impl::check_samples(arguments, "samples", samples, order(), points(), slices());
    Impl::check_slices(arguments, "grid", grid, count, grid_shape());
    return count;
  }

  Plan plan_;
};

template <class ExecutionSpace, int Dim, class T>
void Gridding<ExecutionSpace, Dim, T>::spread(const ExecutionSpace& space,
                                              const Array<const Complex, MemorySpace>& samples,
                                              const Array<Complex, MemorySpace>& grid) const {
  const Impl::Arguments arguments{"Gridding::spread"};
  const std::int64_t count = check(arguments, samples, grid);
  arguments.disjoint({{"grid", grid}}, {{"samples", samples}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::spread");
  if (points() == 0 || count == 0)
    return Impl::fill(space, "Bracewell::Gridding::zero", grid.data, grid.size());
  Impl::spread_samples(space, plan_, count, plan_.samples(samples.data, count), grid.data);
}

template <class ExecutionSpace, int Dim, class T>
void Gridding<ExecutionSpace, Dim, T>::interpolate(const ExecutionSpace& space,
                                                   const Array<const Complex, MemorySpace>& grid,
                                                   const Array<Complex, MemorySpace>& samples) const {
  const Impl::Arguments arguments{"Gridding::interpolate"};
  const std::int64_t count = check(arguments, samples, grid);
  arguments.disjoint({{"samples", samples}}, {{"grid", grid}});
  Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::interpolate");
  if (points() > 0 && count > 0)
    Impl::interpolate_samples(space, plan_, count, grid.data, plan_.samples(samples.data, count));
}

template <class ExecutionSpace, int Dim, class T>
Gridding<ExecutionSpace, Dim, T>::Gridding(const Impl::Arguments& arguments, const ExecutionSpace& space,
                                           const Points& points, const Shape& shape,
                                           const GriddingOptions& options)
    : plan_(make(arguments, space, points, shape, options)) {}

template <class ExecutionSpace, int Dim, class T>
void Gridding<ExecutionSpace, Dim, T>::set_points(const Impl::Arguments& arguments,
                                                  const ExecutionSpace& space, const Points& points) {
  arguments.require(plan_.strategy != GriddingStrategy::PrunedGather, "strategy()",
                    "one that takes any points", "PrunedGather");
  arguments.require(
      !points.polar && points.extents[0] == this->points() && points.extents[1] == Dim, "points",
      [&] { return "a View [" + std::to_string(this->points()) + ", " + std::to_string(Dim) + "]"; },
      [&] {
        return points.polar
                   ? "PolarPoints"
                   : "[" + std::to_string(points.extents[0]) + ", " + std::to_string(points.extents[1]) + "]";
      });
  Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::set_points");
  plan_.set_points(space, points.array, arguments);
}

template <class ExecutionSpace, int Dim, class T>
auto Gridding<ExecutionSpace, Dim, T>::grid_shape(const Impl::Arguments& arguments,
                                                  const ExecutionSpace& space, const Points& points,
                                                  const Shape& shape, const GriddingOptions& options)
    -> Shape {
  check(arguments, points, shape, options);
  return shape_of(typename Plan::Choice(space, points.count(), points.polar, shape, options, arguments).grid);
}

template <class ExecutionSpace, int Dim, class T>
std::size_t Gridding<ExecutionSpace, Dim, T>::bytes_needed(const Impl::Arguments& arguments,
                                                           const ExecutionSpace& space, const Points& points,
                                                           const Shape& shape,
                                                           const GriddingOptions& options) {
  check(arguments, points, shape, options);
  if constexpr (Dim == 2)
    if (points.polar) {
      const Impl::Rays<ExecutionSpace> rays = points.rays(space, arguments);
      return Plan::bytes_needed(space, rays.points(), points.count(), shape, options, arguments,
                                points.polar->angles.size());
    }
  return Plan::bytes_needed(space, points.array, points.count(), shape, options, arguments);
}

#define BRACEWELL_INSTANCES_GRIDDING(Extern, Space, Real, Dim)                                               \
  Extern template class Gridding<Space, Dim, Real>;
BRACEWELL_DECLARE_DIMENSIONS(BRACEWELL_INSTANCES_GRIDDING)

} // namespace Bracewell
