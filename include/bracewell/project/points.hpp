// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/memory.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/project/building_blocks.hpp>
#include <bracewell/project/detail/point_grids.hpp>
#include <bracewell/project/detail/problem.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>
#include <cstdint>

namespace Bracewell {

/// Options of sample, insert and their gradients.
struct PointOptions {
  Mates mates = Mates::Single; ///< of half spectra; Both inserts a value at +q and its conjugate at -q
};

/// Outputs of sample_gradients and insert_gradients, overwritten; what is left out is not computed.
template <class Value, class MemorySpace>
struct PointGradients {
  Array<Value, MemorySpace> values = {};                  ///< [B, N], see the functions
  Array<Value, MemorySpace> grid = {};                    ///< like the grid; of sample_gradients
  Array<Impl::real_part<Value>, MemorySpace> points = {}; ///< like the points; where they are shared, the sum
};

/// The PointGradients that fit a grid of a type, for functions that run on ExecutionSpace.
template <class ExecutionSpace, class Grid>
using PointGradientsFor =
    PointGradients<typename Impl::view_of<Grid>::non_const_value_type, typename ExecutionSpace::memory_space>;

/// Samples grids at lists of points: values[b, i] = F_b(points[b, i]), interpolated by Kernel. A complex grid is a half
/// spectrum, continued by Hermitian symmetry and periodicity; a real one is an image or a volume, zero outside.
///
/// @param grid    complex [B|1, (D,) H, W/2+1], or real [B|1, (D,) H, W]
/// @param points  real [B|1, N, d], positions (x, y[, z]) in elements: frequencies of a half spectrum, indices of an image
/// @param values  of the grid's type [B, N], overwritten; NaN where a point is not finite or, in a half spectrum, beyond 2^21
/// (float) or 2^50 (double) elements
/// @throws Error on shapes that do not fit and shared memory; nothing is written then
template <class Kernel = CatmullRom, class ExecutionSpace, class Grid, class Points, class Values>
void sample(const ExecutionSpace& space, const Grid& grid, const Points& points, const Values& values,
            const PointOptions& options = {});

/// The transpose of `sample`: adds values to grids, grid(t) += w(q - t) v for every tap t of every point. What has no value in
/// `sample` adds nothing. On GPUs by atomic additions, whose order varies; on hosts many points are added to a copy of the
/// grid per thread.
/// @param values  [B, N]
/// @param points  real [B|1, N, d]
/// @param grid    as for `sample`, added to
/// @throws Error as `sample`
template <class Kernel = CatmullRom, class ExecutionSpace, class Values, class Points, class Grid>
void insert(const ExecutionSpace& space, const Values& values, const Points& points, const Grid& grid,
            const PointOptions& options = {});

/// Exact derivatives of a loss L with respect to what `sample` reads, from its cotangent g = dL/dRe + i dL/dIm of every
/// value. `gradients.values` is the values themselves, from the same pass.
/// @param cotangent  [B, N]
/// @throws Error as `sample`, and where nothing is asked for
template <class Kernel = CatmullRom, class ExecutionSpace, class Grid, class Points, class Cotangent>
void sample_gradients(const ExecutionSpace& space, const Grid& grid, const Points& points,
                      const Cotangent& cotangent, const PointGradientsFor<ExecutionSpace, Grid>& gradients,
                      const PointOptions& options = {});

/// Exact derivatives of a loss with respect to the values and points that `insert` reads, from the cotangent of its grid.
/// `gradients.values` is the gradient of the values. The gradient of the grid is its cotangent, so no output has it.
/// @param values     [B, N]
/// @param cotangent  like the grid
/// @throws Error as `sample`, and where nothing is asked for
template <class Kernel = CatmullRom, class ExecutionSpace, class Values, class Points, class Grid>
void insert_gradients(const ExecutionSpace& space, const Values& values, const Points& points,
                      const Grid& cotangent, const PointGradientsFor<ExecutionSpace, Grid>& gradients,
                      const PointOptions& options = {});

namespace Impl {

/// Which points a call is about.
struct PointShapes {
  std::int64_t batches, points;
  bool shared_points, shared_grid;
};

template <class Kernel, int D, class Value, class Memory>
[[gnu::cold]] PointShapes check_points(const Arguments& arguments, const char* grid_name,
                                       const Array<Value, Memory>& grid, const ArrayShape& points,
                                       const char* values_name, const ArrayShape& values) {
  using Real = real_part<std::remove_const_t<Value>>;
  check_kernel<Kernel, Real>(arguments.function);
  constexpr bool half = !std::is_same_v<Real, std::remove_const_t<Value>>;
  box<D>(arguments, grid_name, grid, half);
  for (int axis = 1; axis <= D; ++axis) {
    const std::int64_t size = axis == D && half ? grid.width : grid.extents[axis];
    const std::int64_t least = half ? std::max(4, Kernel::width) : 1;
    if (size < least || size > 32768)
      arguments.refuse(grid_name, "axes of %lld to 32768 elements, found %s", static_cast<long long>(least),
                       grid.shape_text().characters);
  }
  arguments.given(values_name, values);
  if (values.rank != 2)
    arguments.refuse(values_name, "[B, N], found %s", values.shape_text().characters);
  const std::int64_t batches = values.extents[0], count = values.extents[1];
  arguments.given("points", points);
  if (points.rank != 3 || (points.extents[0] != 1 && points.extents[0] != batches) ||
      points.extents[1] != count || points.extents[2] != D)
    arguments.refuse("points", "[1|%lld, %lld, %d], found %s", static_cast<long long>(batches),
                     static_cast<long long>(count), D, points.shape_text().characters);
  if (grid.extents[0] != 1 && grid.extents[0] != batches)
    arguments.refuse(grid_name, "batch axis of 1 or %lld, found %s", static_cast<long long>(batches),
                     grid.shape_text().characters);
  return {batches, count, points.extents[0] == 1, grid.extents[0] == 1};
}

/// The kernels of a grid with one kind of mates.
template <class Kernel, int D, class ExecutionSpace, class Value, class Run>
void with_grid(const Array<Value, typename ExecutionSpace::memory_space>& array, Mates mates,
               const Run& run) {
  using Element = std::remove_const_t<Value>;
  using T = real_part<Element>;
  if constexpr (std::is_same_v<T, Element>)
    run(ImageGrid<Kernel, T, D>(array));
  else if (mates == Mates::Single)
    run(SpectrumGrid<Kernel, T, D, Mates::Single>(array));
  else
    run(SpectrumGrid<Kernel, T, D, Mates::Both>(array));
}

template <class Kernel, class ExecutionSpace, class Grid, class Points, class Factors, class Outputs>
void sample_points(const ExecutionSpace& space, const Arguments& arguments, const char* label,
                   const char* grid_name, const Grid& grid_view, const Points& points_view,
                   const char* factors_name, const Factors* factors_view, const Outputs& outputs,
                   const PointOptions& options) {
  using Memory = typename ExecutionSpace::memory_space;
  using Value = typename view_of<Grid>::non_const_value_type;
  using T = real_part<Value>;
  constexpr int D = int(view_of<Grid>::rank()) - 1;
  const Array<const Value, Memory> grid(grid_view);
  const Array<const T, Memory> points(points_view);
  Array<const Value, Memory> factors;
  if (factors_view)
    factors = Array<const Value, Memory>(*factors_view);
  const auto shapes = check_points<Kernel, D>(arguments, grid_name, grid, points, factors_name,
                                              factors ? ArrayShape(factors) : ArrayShape(outputs.values));
  if (factors_view) {
    arguments.require(outputs.values || outputs.points || outputs.grid, "gradients", "at least one output",
                      "none");
    if (outputs.values)
      arguments.same_shape("gradients.values", outputs.values, factors);
    if (outputs.points)
      arguments.same_shape("gradients.points", outputs.points, points);
  }
  arguments.disjoint({{factors_view ? "gradients.values" : "values", outputs.values},
                      {"gradients.grid", outputs.grid},
                      {"gradients.points", outputs.points}},
                     {{grid_name, grid}, {"points", points}, {factors_name, factors}});
  if (!outputs.values && !outputs.points)
    return;
  if (shapes.batches == 0 || shapes.points == 0)
    return;
  with_grid<Kernel, D, ExecutionSpace>(grid, options.mates, [&](const auto& of_grid) {
    SamplePoints<ExecutionSpace, std::remove_cvref_t<decltype(of_grid)>>{
        of_grid,        points.data,   factors.data,         outputs.values.data, outputs.points.data,
        shapes.batches, shapes.points, shapes.shared_points, shapes.shared_grid}
        .launch(space, label);
  });
}

/// Adds values at points that have been checked.
template <class Kernel, int D, class ExecutionSpace, class Value, class T>
void insert_points(const ExecutionSpace& space, const char* label,
                   const Array<const Value, typename ExecutionSpace::memory_space>& values,
                   const Array<const T, typename ExecutionSpace::memory_space>& points,
                   const Array<Value, typename ExecutionSpace::memory_space>& grid, Mates mates) {
  if (values.size() == 0)
    return;
  with_grid<Kernel, D, ExecutionSpace>(grid, mates, [&](const auto& of_grid) {
    InsertPoints<ExecutionSpace, std::remove_cvref_t<decltype(of_grid)>>{of_grid,
                                                                         points.data,
                                                                         values.data,
                                                                         grid.data,
                                                                         values.extents[0],
                                                                         values.extents[1],
                                                                         points.extents[0] == 1,
                                                                         grid.extents[0] == 1}
        .launch(space, label);
  });
}

} // namespace Impl

template <class Kernel, class ExecutionSpace, class Grid, class Points, class Values>
void sample(const ExecutionSpace& space, const Grid& grid, const Points& points, const Values& values,
            const PointOptions& options) {
  if constexpr (Impl::check_point_types<Kernel, Grid>()) {
    const Kokkos::Profiling::ScopedRegion region("Bracewell::sample");
    Impl::sample_points<Kernel>(space, {"sample"}, "Bracewell::sample::points", "grid", grid, points,
                                "values", static_cast<const Values*>(nullptr),
                                PointGradientsFor<ExecutionSpace, Grid>{.values = values}, options);
  }
}

template <class Kernel, class ExecutionSpace, class Values, class Points, class Grid>
void insert(const ExecutionSpace& space, const Values& values, const Points& points, const Grid& grid,
            const PointOptions& options) {
  if constexpr (Impl::check_point_types<Kernel, Grid>()) {
    using Memory = typename ExecutionSpace::memory_space;
    using Value = typename Impl::view_of<Grid>::non_const_value_type;
    constexpr int D = int(Impl::view_of<Grid>::rank()) - 1;
    const Impl::Arguments arguments{"insert"};
    const Array<Value, Memory> target(grid);
    const Array<const Value, Memory> amplitudes(values);
    const Array<const Impl::real_part<Value>, Memory> positions(points);
    Impl::check_points<Kernel, D>(arguments, "grid", target, positions, "values", amplitudes);
    arguments.disjoint({{"grid", target}}, {{"values", amplitudes}, {"points", positions}});
    const Kokkos::Profiling::ScopedRegion region("Bracewell::insert");
    Impl::insert_points<Kernel, D>(space, "Bracewell::insert", amplitudes, positions, target, options.mates);
  }
}

template <class Kernel, class ExecutionSpace, class Grid, class Points, class Cotangent>
void sample_gradients(const ExecutionSpace& space, const Grid& grid, const Points& points,
                      const Cotangent& cotangent, const PointGradientsFor<ExecutionSpace, Grid>& gradients,
                      const PointOptions& options) {
  if constexpr (Impl::check_point_types<Kernel, Grid>()) {
    const Kokkos::Profiling::ScopedRegion region("Bracewell::sample_gradients");
    const Impl::Arguments arguments{"sample_gradients"};
    using Value = typename Impl::view_of<Grid>::non_const_value_type;
    using Memory = typename ExecutionSpace::memory_space;
    const Array<const Value, Memory> shape(grid);
    if (gradients.grid)
      arguments.same_spectrum("gradients.grid", gradients.grid, shape);
    Impl::sample_points<Kernel>(space, arguments, "Bracewell::sample_gradients::points", "grid", grid, points,
                                "cotangent", &cotangent, gradients, options);
    if (gradients.grid) {
      constexpr int D = int(Impl::view_of<Grid>::rank()) - 1;
      const Array<const Value, Memory> amplitudes(cotangent);
      const Array<const Impl::real_part<Value>, Memory> positions(points);
      Impl::set_zero(space, "Bracewell::sample_gradients::zero", std::array{Impl::reals(gradients.grid)});
      Impl::insert_points<Kernel, D>(space, "Bracewell::sample_gradients::grid", amplitudes, positions,
                                     gradients.grid, options.mates);
    }
  }
}

template <class Kernel, class ExecutionSpace, class Values, class Points, class Grid>
void insert_gradients(const ExecutionSpace& space, const Values& values, const Points& points,
                      const Grid& cotangent, const PointGradientsFor<ExecutionSpace, Grid>& gradients,
                      const PointOptions& options) {
  if constexpr (Impl::check_point_types<Kernel, Grid>()) {
    const Kokkos::Profiling::ScopedRegion region("Bracewell::insert_gradients");
    const Impl::Arguments arguments{"insert_gradients"};
    if (gradients.grid)
      Impl::fail(arguments.function, "gradients.grid", "none: the gradient of a grid is its cotangent",
                 "one");
    Impl::sample_points<Kernel>(space, arguments, "Bracewell::insert_gradients::points", "cotangent",
                                cotangent, points, "values", &values, gradients, options);
  }
}

} // namespace Bracewell
