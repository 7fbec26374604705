// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/gridding/cost.hpp>
#include <bracewell/gridding/detail/interpolate_bin_tiles.hpp>
#include <bracewell/gridding/detail/interpolate_bins.hpp>
#include <bracewell/gridding/detail/interpolate_bins_host.hpp>
#include <bracewell/gridding/detail/interpolate_dense_bins.hpp>
#include <bracewell/gridding/detail/interpolate_samples.hpp>
#include <bracewell/gridding/detail/interpolate_tiles.hpp>
#include <bracewell/gridding/detail/plan.hpp>
#include <bracewell/gridding/detail/rays.hpp>
#include <bracewell/gridding/detail/spread_atomic.hpp>
#include <bracewell/gridding/detail/spread_bins_gpu.hpp>
#include <bracewell/gridding/detail/spread_bins_host.hpp>
#include <bracewell/gridding/detail/spread_matrix_boxes.hpp>
#include <bracewell/gridding/detail/spread_owned_boxes.hpp>
#include <bracewell/gridding/detail/spread_pruned.hpp>
#include <bracewell/gridding/detail/spread_tiles_gpu.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>

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
  /// @param points     View [points, Dim] of double: frequencies in cycles per pixel, finite, any (periodic
  ///                   with period 1); axis 0 (x) is the last axis of images
  /// @param shape      image size {((depth,) height,) width}
  /// @param arguments  the name in errors, where another class of the library makes the plan
  /// @throws Error on sizes and options out of range and points that are not finite
  template <class Points>
  requires Kokkos::is_view_v<Points> Gridding(const ExecutionSpace& space, const Points& points,
                                              const Shape& shape, const GriddingOptions& options = {},
                                              const Impl::Arguments& arguments = {"Gridding"})
      : plan_(make(space, points, shape, options, arguments)) {}

  /// A plan for points on rays, for 2D grids; the only ones that PrunedGather knows.
  Gridding(const ExecutionSpace& space, const PolarPoints& points, const Shape& shape,
           const GriddingOptions& options = {}, const Impl::Arguments& arguments = {"Gridding"})
      : plan_(make(space, points, shape, options, arguments)) {}

  Gridding(Gridding&&) noexcept = default;            ///< The other can only be destroyed or assigned to.
  Gridding& operator=(Gridding&&) noexcept = default; ///< The same.

  /// Other points, as many, instead of the plan's: they are sorted, grid, kernel and strategy stay. Waits for
  /// the instance; calls that use the plan must have ended.
  /// @param points  View [points(), Dim] of double: see the constructor
  /// @throws Error on a View of another shape, points that are not finite (the plan has none then that can be
  ///         used) and where the strategy is PrunedGather
  template <class Points>
  void set_points(const ExecutionSpace& space, const Points& points,
                  const Impl::Arguments& arguments = {"Gridding::set_points"}) {
    arguments.require(plan_.strategy != GriddingStrategy::PrunedGather, "strategy()",
                      "one that takes any points", "PrunedGather");
    arguments.shape("points", Array<const double, MemorySpace>(points), {this->points(), Dim});
    Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::set_points");
    plan_.set_points(space, points, arguments);
  }

  /// Grid size, slowest axis first: at least oversampling times the image, only factors 2, 3, 5 and 7.
  Shape grid_shape() const { return shape_of(plan_.problem.grid); }

  /// What grid_shape() of a plan of these arguments would be; points: a View or PolarPoints.
  template <class Points>
  static Shape grid_shape(const ExecutionSpace& space, const Points& points, const Shape& shape,
                          const GriddingOptions& options = {},
                          const Impl::Arguments& arguments = {"Gridding::grid_shape"}) {
    constexpr bool polar = std::is_same_v<Points, PolarPoints>;
    std::int64_t count;
    if constexpr (polar)
      count = checked(points, shape, options, arguments).count();
    else
      count = checked(points, shape, options, arguments);
    return shape_of(typename Plan::Choice(space, count, polar, shape, options, arguments).grid);
  }

  std::int64_t points() const { return plan_.problem.points; } ///< Samples of a slice.
  std::int64_t slices() const { return plan_.problem.slices; } ///< Of one call, at most.
  int width() const { return plan_.problem.kernel.width; }     ///< Of the kernel, in grid points.
  GriddingStrategy strategy() const { return plan_.strategy; } ///< The one that was chosen, never Automatic.
  SampleOrder order() const { return plan_.order; }            ///< Of the axes of samples.

  /// How `interpolate` does it, for all slices.
  GriddingInterpolation interpolation() const { return interpolation(slices()); }

  /// The same for a call with so many.
  GriddingInterpolation interpolation(std::int64_t slices_of_call) const {
    return choose_interpolation({.strategy = plan_.strategy,
                                 .order = plan_.order,
                                 .slices = slices_of_call,
                                 .width = width(),
                                 .dimensions = Dim,
                                 .value_bytes = sizeof(T),
                                 .host = host});
  }

  /// Bytes of memory that the plan holds.
  std::size_t memory_bytes() const { return plan_.memory_bytes(); }

  /// What memory_bytes() of a plan of these arguments would be. It counts the samples of every tile of the
  /// grid, with a few bytes of memory per tile, and waits. (While a plan sorts its points, it takes up to 8
  /// bytes for every tile that a sample reaches beyond that.)
  /// @throws Error as the constructor, but for points that are not finite
  template <class Points>
  requires Kokkos::is_view_v<Points>
  static std::size_t bytes_needed(const ExecutionSpace& space, const Points& points, const Shape& shape,
                                  const GriddingOptions& options = {},
                                  const Impl::Arguments& arguments = {"Gridding::bytes_needed"}) {
    const std::int64_t count = checked(points, shape, options, arguments);
    return Plan::bytes_needed(space, points, count, shape, options, arguments);
  }
  /// The same for points on rays.
  static std::size_t bytes_needed(const ExecutionSpace& space, const PolarPoints& points, const Shape& shape,
                                  const GriddingOptions& options = {},
                                  const Impl::Arguments& arguments = {"Gridding::bytes_needed"}) {
    const PolarPoints polar = checked(points, shape, options, arguments);
    return Plan::bytes_needed(space, Impl::Rays<ExecutionSpace>(space, polar).points(), polar.count(), shape,
                              options, arguments, polar.angles.size());
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
    if constexpr (!host && Dim > 1)
      if (plan_.strategy == GriddingStrategy::Bins &&
          spread_boxes(space, count, plan_.samples(in.data, count), out.data))
        return;
    if (plan_.strategy == GriddingStrategy::Bins)
      return Impl::with_bin_width<host>(width(), [&]<int MaxWidth>() {
        using Spread = std::conditional_t<host, Impl::SpreadBinsHost<ExecutionSpace, MaxWidth, T, Dim>,
                                          Impl::SpreadBinsGpu<ExecutionSpace, MaxWidth, T, Dim>>;
        Spread::launch(space, plan_, count, plan_.samples(in.data, count), out.data);
      });
    Impl::with_max_width<T>(width(), [&]<int MaxWidth>() {
      launch_spreading<MaxWidth>(space, count, plan_.samples(in.data, count), out.data);
    });
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
      launch_interpolation(space, count, in.data, plan_.samples(out.data, count));
  }

private:
  static constexpr bool host = Impl::is_host<ExecutionSpace>;

  static Shape shape_of(const Impl::GridShape<Dim>& grid) {
    Shape shape;
    for (int d = 0; d < Dim; ++d)
      shape[d] = grid.size[Dim - 1 - d];
    return shape;
  }

  /// The number of points.
  template <class Points>
  static std::int64_t checked(const Points& points, const Shape& shape, const GriddingOptions& options,
                              const Impl::Arguments& arguments) {
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
  static PolarPoints checked(const PolarPoints& points, const Shape& shape, const GriddingOptions& options,
                             const Impl::Arguments& arguments) {
    static_assert(Dim == 2, "Bracewell::Gridding: polar points lie in two dimensions.");
    PolarPoints polar = Impl::checked_rays(points, arguments);
    Impl::check_options<T, Dim>(arguments, shape, polar.count(), options);
    return polar;
  }

  template <class Points>
  static Plan make(const ExecutionSpace& space, const Points& points, const Shape& shape,
                   const GriddingOptions& options, const Impl::Arguments& arguments) {
    const std::int64_t count = checked(points, shape, options, arguments);
    Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::plan");
    return {space, points, count, shape, options, arguments};
  }

  static Plan make(const ExecutionSpace& space, const PolarPoints& points, const Shape& shape,
                   const GriddingOptions& options, const Impl::Arguments& arguments) {
    const PolarPoints polar = checked(points, shape, options, arguments);
    Kokkos::Profiling::ScopedRegion region("Bracewell::Gridding::plan");
    const Impl::Rays<ExecutionSpace> rays(space, polar);
    return {space, rays.points(), polar.count(), shape, options, arguments, rays};
  }

  /// The number of slices.
  std::int64_t check(const Impl::Arguments& arguments, const Array<const Complex, MemorySpace>& samples,
                     const Array<const Complex, MemorySpace>& grid) const {
    const std::int64_t count =
        Impl::check_samples(arguments, "samples", samples, order(), points(), slices());
    Impl::check_slices(arguments, "grid", grid, count, grid_shape());
    return count;
  }

  /// The kernel of every strategy.
  template <int MaxWidth>
  void launch_spreading(const ExecutionSpace& space, std::int64_t count,
                        const Impl::SampleArray<const Complex>& samples, Complex* grid) const {
    switch (plan_.strategy) {
    case GriddingStrategy::Atomic:
      return Impl::SpreadAtomic<ExecutionSpace, MaxWidth, T, Dim>::launch(space, plan_, count, samples, grid);
    case GriddingStrategy::PrunedGather:
      if constexpr (Dim == 2)
        Impl::SpreadPruned<ExecutionSpace, T>::launch(space, plan_, count, samples, grid);
      return;
    default: // Tiles
      if constexpr (Plan::has_tiles)
        Impl::SpreadTilesGpu<ExecutionSpace, MaxWidth, T, Dim>::launch(space, plan_, count, samples, grid);
    }
  }

  /// Spreads samples in bins by teams that own boxes of the grid, if these suit.
  bool spread_boxes(const ExecutionSpace& space, std::int64_t count,
                    const Impl::SampleArray<const Complex>& samples, Complex* grid) const {
    const BinsSpreading choice = choose_bins_spreading({.points = double(points()),
                                                        .slices = double(count),
                                                        .largest_bin = double(plan_.bins.largest),
                                                        .dimensions = Dim,
                                                        .order = order(),
                                                        .value_bytes = sizeof(T),
                                                        .host = host,
                                                        .lanes = double(space.concurrency()),
                                                        .cells = double(plan_.problem.grid.elements()),
                                                        .matrices = Impl::matrix_units});
    const auto spread = [&]<template <class, int, class, int> class Spread>() {
      if (!Spread<ExecutionSpace, 4, T, Dim>::fits(space, plan_.bins.grid, count))
        return false;
      Impl::with_bin_width<true>(width(), [&]<int MaxWidth>() {
        Spread<ExecutionSpace, MaxWidth, T, Dim>::launch(space, plan_, count, samples, grid);
      });
      return true;
    };
    if constexpr (Dim == 3 && Impl::matrix_units)
      if (choice == BinsSpreading::MatrixBoxes)
        return spread.template operator()<Impl::SpreadMatrixBoxes>();
    return choice == BinsSpreading::OwnedBoxes && spread.template operator()<Impl::SpreadOwnedBoxes>();
  }

  void launch_interpolation(const ExecutionSpace& space, std::int64_t count, const Complex* grid,
                            const Impl::SampleArray<Complex>& samples) const {
    if (plan_.strategy == GriddingStrategy::Bins)
      return Impl::with_bin_width<host>(width(), [&]<int MaxWidth>() {
        if constexpr (host) {
          Impl::InterpolateBinsHost<ExecutionSpace, MaxWidth, T, Dim>::launch(space, plan_, count, grid,
                                                                              samples);
        } else {
          using Dense = Impl::InterpolateDenseBins<ExecutionSpace, MaxWidth, T, Dim>;
          if (Dense::suits(plan_))
            return Dense::launch(space, plan_, count, grid, samples);
          if constexpr (Dim == 3 && sizeof(T) == 8) {
            using Tiles = Impl::InterpolateBinTiles<ExecutionSpace, MaxWidth>;
            if (Tiles::suits(plan_))
              return Tiles::launch(space, plan_, count, grid, samples);
          }
          if constexpr (Dim > 1)
            Impl::InterpolateBinsGpu<ExecutionSpace, MaxWidth, T, Dim>::launch(space, plan_, count, grid,
                                                                               samples);
        }
      });
    if constexpr (Dim == 2 && !host) {
      const GriddingInterpolation choice = interpolation(count);
      if (choice == GriddingInterpolation::Tiles)
        return interpolate_tiles<true>(space, count, grid, samples);
      if (choice == GriddingInterpolation::NarrowTiles)
        return interpolate_tiles<false>(space, count, grid, samples);
    }
    Impl::with_max_width<T>(width(), [&]<int MaxWidth>() {
      Impl::InterpolateSamples<ExecutionSpace, MaxWidth, T, Dim>::launch(space, plan_, count, grid, samples);
    });
  }

  template <bool two_lines>
  void interpolate_tiles(const ExecutionSpace& space, std::int64_t count, const Complex* grid,
                         const Impl::SampleArray<Complex>& samples) const {
    constexpr int lanes = Impl::interpolation_lanes(two_lines, sizeof(T));
    Impl::InterpolateTiles<ExecutionSpace, lanes, T>::launch(space, plan_, count, grid, samples);
  }

  Plan plan_;
};

} // namespace Bracewell
