// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/project/detail/point_grids.hpp>
#include <bracewell/project/detail/problem.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <array>

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
            const PointOptions& options = {}) {
  if constexpr (Impl::check_point_types<Kernel, Grid>()) {
    const Kokkos::Profiling::ScopedRegion region("Bracewell::sample");
    Impl::sample_points<Kernel>(space, {"sample"}, "Bracewell::sample::points", "grid", grid, points,
                                "values", static_cast<const Values*>(nullptr),
                                PointGradientsFor<ExecutionSpace, Grid>{.values = values}, options.mates);
  }
}

/// The transpose of `sample`: adds values to grids, grid(t) += w(q - t) v for every tap t of every point. What has no value in
/// `sample` adds nothing. On GPUs by atomic additions, whose order varies; on hosts many points are added to a copy of the
/// grid per thread.
/// @param values  [B, N]
/// @param points  real [B|1, N, d]
/// @param grid    as for `sample`, added to
/// @throws Error as `sample`
template <class Kernel = CatmullRom, class ExecutionSpace, class Values, class Points, class Grid>
void insert(const ExecutionSpace& space, const Values& values, const Points& points, const Grid& grid,
            const PointOptions& options = {}) {
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

/// Exact derivatives of a loss L with respect to what `sample` reads, from its cotangent g = dL/dRe + i dL/dIm of every
/// value. `gradients.values` is the values themselves, from the same pass.
/// @param cotangent  [B, N]
/// @throws Error as `sample`, and where nothing is asked for
template <class Kernel = CatmullRom, class ExecutionSpace, class Grid, class Points, class Cotangent>
void sample_gradients(const ExecutionSpace& space, const Grid& grid, const Points& points,
                      const Cotangent& cotangent, const PointGradientsFor<ExecutionSpace, Grid>& gradients,
                      const PointOptions& options = {}) {
  if constexpr (Impl::check_point_types<Kernel, Grid>()) {
    const Kokkos::Profiling::ScopedRegion region("Bracewell::sample_gradients");
    const Impl::Arguments arguments{"sample_gradients"};
    using Value = typename Impl::view_of<Grid>::non_const_value_type;
    using Memory = typename ExecutionSpace::memory_space;
    const Array<const Value, Memory> shape(grid);
    if (gradients.grid)
      arguments.same_spectrum("gradients.grid", gradients.grid, shape);
    Impl::sample_points<Kernel>(space, arguments, "Bracewell::sample_gradients::points", "grid", grid, points,
                                "cotangent", &cotangent, gradients, options.mates);
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

/// Exact derivatives of a loss with respect to the values and points that `insert` reads, from the cotangent of its grid.
/// `gradients.values` is the gradient of the values. The gradient of the grid is its cotangent, so no output has it.
/// @param values     [B, N]
/// @param cotangent  like the grid
/// @throws Error as `sample`, and where nothing is asked for
template <class Kernel = CatmullRom, class ExecutionSpace, class Values, class Points, class Grid>
void insert_gradients(const ExecutionSpace& space, const Values& values, const Points& points,
                      const Grid& cotangent, const PointGradientsFor<ExecutionSpace, Grid>& gradients,
                      const PointOptions& options = {}) {
  if constexpr (Impl::check_point_types<Kernel, Grid>()) {
    const Kokkos::Profiling::ScopedRegion region("Bracewell::insert_gradients");
    const Impl::Arguments arguments{"insert_gradients"};
    if (gradients.grid)
      Impl::fail(arguments.function, "gradients.grid", "none: the gradient of a grid is its cotangent",
                 "one");
    Impl::sample_points<Kernel>(space, arguments, "Bracewell::insert_gradients::points", "cotangent",
                                cotangent, points, "values", &values, gradients, options.mates);
  }
}

} // namespace Bracewell
