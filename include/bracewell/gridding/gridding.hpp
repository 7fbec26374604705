// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/gridding/cost.hpp>
#include <bracewell/gridding/detail/plans/interpolating.hpp>
#include <bracewell/gridding/detail/plans/plan.hpp>
#include <bracewell/gridding/detail/plans/spreading.hpp>
#include <bracewell/gridding/detail/rays.hpp>
#include <bracewell/gridding/options.hpp>
#include <bracewell/gridding/polar.hpp>
#include <bracewell/impl/checks.hpp>

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

public:
  /// A plan for points anywhere.
  /// @param points  View [points, Dim] of double: frequencies in cycles per pixel, finite, any (periodic
  ///                with period 1); axis 0 (x) is the last axis of images
  /// @param shape   image size {((depth,) height,) width}
  /// @throws Error on sizes and options out of range and points that are not finite
  template <class Points>
  requires Kokkos::is_view_v<Points> Gridding(const ExecutionSpace& space, const Points& points,
                                              const Shape& shape, const GriddingOptions& options = {})
      : Gridding(Impl::Arguments{"Gridding"}, space, points, shape, options) {}

  /// A plan for points on rays, for 2D grids; the only ones that PrunedGather knows.
  Gridding(const ExecutionSpace& space, const PolarPoints& points, const Shape& shape,
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
  template <class Points>
  void set_points(const ExecutionSpace& space, const Points& points) {
    set_points(Impl::Arguments{"Gridding::set_points"}, space, points);
  }

  /// Grid size, slowest axis first: at least oversampling times the image, only factors 2, 3, 5 and 7.
  Shape grid_shape() const { return shape_of(plan_.problem.grid); }

  /// What grid_shape() of a plan of these arguments would be; points: a View or PolarPoints.
  template <class Points>
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
  template <class Points>
  static std::size_t bytes_needed(const ExecutionSpace& space, const Points& points, const Shape& shape,
                                  const GriddingOptions& options = {}) {
    return bytes_needed(Impl::Arguments{"Gridding::bytes_needed"}, space, points, shape, options);
  }

  /// Reciprocal transform of the kernel along an axis of the View (0 slowest): View [size] for pixels X =
  /// index - size / 2. The product over the axes undoes the kernel.
  Kokkos::View<const T*, ExecutionSpace> rolloff(int axis) const {
    Impl::Arguments{"Gridding::rolloff"}.within("axis", axis, 0, Dim - 1);
    return plan_.rolloff[axis];
  }

  /// Samples to the grid.
  /// @param samples  View of complex, [slices, points] or [points, slices] as options.order says; at most
  ///                 slices() slices
  /// @param grid     View of complex [slices, grid_shape()], overwritten
  /// @throws Error on shapes that do not fit or memory that both use
  template <class Samples, class Grid>
  void spread(const ExecutionSpace& space, const Samples& samples, const Grid& grid) const {
    const Array<const Complex, MemorySpace> in(samples);
    const Array<Complex, MemorySpace> out(grid);
    const Impl::Arguments arguments{"Gridding::spread"};
    const std::int64_t count = check(arguments, in, out);
    arguments.disjoint({{"grid", out}}, {{"samples", in}});
    Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::spread");
    if (points() == 0 || count == 0)
      return Impl::fill(space, "Bracewell::Gridding::zero", out.data, out.size());
    Impl::spread_samples(space, plan_, count, plan_.samples(in.data, count), out.data);
  }

  /// The grid at the points.
  /// @param grid     View of complex [slices, grid_shape()]
  /// @param samples  View of complex, [slices, points] or [points, slices] as options.order says, overwritten
  /// @throws Error on shapes that do not fit or memory that both use
  template <class Grid, class Samples>
  void interpolate(const ExecutionSpace& space, const Grid& grid, const Samples& samples) const {
    const Array<const Complex, MemorySpace> in(grid);
    const Array<Complex, MemorySpace> out(samples);
    const Impl::Arguments arguments{"Gridding::interpolate"};
    const std::int64_t count = check(arguments, out, in);
    arguments.disjoint({{"samples", out}}, {{"grid", in}});
    Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::interpolate");
    if (points() > 0 && count > 0)
      Impl::interpolate_samples(space, plan_, count, in.data, plan_.samples(out.data, count));
  }

private:
  friend struct Impl::NamedPlans;

  template <class Points>
  static constexpr bool polar = std::is_same_v<Points, PolarPoints>;

  template <class Points>
  Gridding(const Impl::Arguments& arguments, const ExecutionSpace& space, const Points& points,
           const Shape& shape, const GriddingOptions& options)
      : plan_(make(arguments, space, points, shape, options)) {}

  template <class Points>
  static Plan make(const Impl::Arguments& arguments, const ExecutionSpace& space, const Points& points,
                   const Shape& shape, const GriddingOptions& options) {
    const auto checked_points = checked(arguments, points, shape, options);
    Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::plan");
    if constexpr (polar<Points>) {
      const Impl::Rays<ExecutionSpace> rays(space, checked_points);
      return {space, rays.points(), checked_points.count(), shape, options, arguments, rays};
    } else {
      return {space, points, checked_points, shape, options, arguments};
    }
  }

  template <class Points>
  void set_points(const Impl::Arguments& arguments, const ExecutionSpace& space, const Points& points) {
    arguments.require(plan_.strategy != GriddingStrategy::PrunedGather, "strategy()",
                      "one that takes any points", "PrunedGather");
    arguments.shape("points", Array<const double, MemorySpace>(points), {this->points(), Dim});
    Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::set_points");
    plan_.set_points(space, points, arguments);
  }

  template <class Points>
  static Shape grid_shape(const Impl::Arguments& arguments, const ExecutionSpace& space, const Points& points,
                          const Shape& shape, const GriddingOptions& options) {
    const auto checked_points = checked(arguments, points, shape, options);
    std::int64_t count;
    if constexpr (polar<Points>)
      count = checked_points.count();
    else
      count = checked_points;
    return shape_of(typename Plan::Choice(space, count, polar<Points>, shape, options, arguments).grid);
  }

  template <class Points>
  static std::size_t bytes_needed(const Impl::Arguments& arguments, const ExecutionSpace& space,
                                  const Points& points, const Shape& shape, const GriddingOptions& options) {
    const auto checked_points = checked(arguments, points, shape, options);
    if constexpr (polar<Points>)
      return Plan::bytes_needed(space, Impl::Rays<ExecutionSpace>(space, checked_points).points(),
                                checked_points.count(), shape, options, arguments,
                                checked_points.angles.size());
    else
      return Plan::bytes_needed(space, points, checked_points, shape, options, arguments);
  }

  static Shape shape_of(const Impl::GridShape<Dim>& grid) {
    Shape shape;
    for (int d = 0; d < Dim; ++d)
      shape[d] = grid.size[Dim - 1 - d];
    return shape;
  }

  /// The number of points.
  template <class Points>
  static std::int64_t checked(const Impl::Arguments& arguments, const Points& points, const Shape& shape,
                              const GriddingOptions& options) {
    static_assert(Points::rank() == 2 && std::is_same_v<typename Points::non_const_value_type, double>,
                  "Bracewell::Gridding: points: expected a View [points, axes] of double, found another.");
    const auto count = static_cast<std::int64_t>(points.extent(0));
    Impl::check_options<T, Dim>(arguments, shape, count, options);
    arguments.require(
        points.extent(1) == Dim, "points", [] { return std::to_string(Dim) + " columns"; },
        [&] { return std::to_string(points.extent(1)); });
    return count;
  }

  /// The points, with their step.
  static PolarPoints checked(const Impl::Arguments& arguments, const PolarPoints& points, const Shape& shape,
                             const GriddingOptions& options) {
    static_assert(Dim == 2, "Bracewell::Gridding: polar points lie in two dimensions.");
    PolarPoints with_step = Impl::checked_rays(points, arguments);
    Impl::check_options<T, Dim>(arguments, shape, with_step.count(), options);
    return with_step;
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

} // namespace Bracewell
