// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/points.hpp>
#include <bracewell/project/project_lines.hpp>

namespace Bracewell::Python {
namespace {

using Real = BRACEWELL_PYTHON_REAL;
constexpr Backend backend = Backend::BRACEWELL_PYTHON_BACKEND;
using Space = SpaceOf<backend>;

/// action.operator()<Kernel, Value, D>() for grids of rank D + 1.
template <class Action>
void with_types(const char* function, const PointSettings& settings, const Tensor& grid,
                const Action& action) {
  const auto with_values = [&]<class Kernel, class Value>() {
    if (grid.rank == 3)
      action.template operator()<Kernel, Value, 2>();
    else if (grid.rank == 4)
      action.template operator()<Kernel, Value, 3>();
    else
      Impl::fail(function, "grid",
                 "[B, H, W/2+1] or [B, D, H, W/2+1] (half spectra), [B, H, W] or [B, D, H, W] (images)",
                 std::to_string(grid.rank) + " axes");
  };
  const auto with_kernel = [&]<class Kernel>() {
    if (settings.complex)
      with_values.template operator()<Kernel, Kokkos::complex<Real>>();
    else
      with_values.template operator()<Kernel, Real>();
  };
  if (settings.interpolation == "linear")
    with_kernel.template operator()<Linear>();
  else if (settings.interpolation == "catmull_rom")
    with_kernel.template operator()<CatmullRom>();
  else if (settings.interpolation == "cubic_bspline")
    with_kernel.template operator()<CubicBSpline>();
  else
    Impl::fail(function, "interpolation", "linear, catmull_rom or cubic_bspline", settings.interpolation);
}

PointOptions options_of(const char* function, const PointSettings& settings) {
  return {.mates = one_of<Mates>(function, "mates", settings.mates, {"single", "both"})};
}

/// A View of a half spectrum with its width, or of an image.
template <class Value, class Element, int D>
auto grid_of(const Tensor& tensor) {
  if constexpr (std::is_same_v<Value, Real>)
    return view_of<Element, D + 1, Space>(tensor);
  else
    return spectrum_of<Element, D + 1, Space>(tensor);
}

/// Points and values, whose ranks are checked here.
struct Lists {
  Lists(const char* function, const Tensor& points, const Tensor& values, const char* name) {
    expect_rank(function, "points", points, 3, "[B, N, d]");
    expect_rank(function, name, values, 2, "[B, N]");
  }
};

} // namespace

template <>
void Points<backend, Real>::sample(Queue queue, const Tensor& grid, const Tensor& points,
                                   const Tensor& values, const PointSettings& settings) {
  with_types("sample", settings, grid, [&]<class Kernel, class Value, int D>() {
    const Lists lists("sample", points, values, "values");
    Bracewell::sample<Kernel>(space_of<backend>(queue), grid_of<Value, const Value, D>(grid),
                              view_of<const Real, 3, Space>(points), view_of<Value, 2, Space>(values),
                              options_of("sample", settings));
  });
}

template <>
void Points<backend, Real>::insert(Queue queue, const Tensor& values, const Tensor& points,
                                   const Tensor& grid, const PointSettings& settings) {
  with_types("insert", settings, grid, [&]<class Kernel, class Value, int D>() {
    const Lists lists("insert", points, values, "values");
    Bracewell::insert<Kernel>(space_of<backend>(queue), view_of<const Value, 2, Space>(values),
                              view_of<const Real, 3, Space>(points), grid_of<Value, Value, D>(grid),
                              options_of("insert", settings));
  });
}

template <>
void Points<backend, Real>::sample_gradients(Queue queue, const Tensor& grid, const Tensor& points,
                                             const Tensor& cotangent, const Tensor& of_grid,
                                             const Tensor& of_points, const PointSettings& settings) {
  with_types("sample_gradients", settings, grid, [&]<class Kernel, class Value, int D>() {
    const Lists lists("sample_gradients", points, cotangent, "cotangent");
    PointGradients<Value, Space::memory_space> gradients;
    gradients.grid = array_of<Value, Space>(of_grid);
    gradients.points = array_of<Real, Space>(of_points);
    Bracewell::sample_gradients<Kernel>(
        space_of<backend>(queue), grid_of<Value, const Value, D>(grid), view_of<const Real, 3, Space>(points),
        view_of<const Value, 2, Space>(cotangent), gradients, options_of("sample_gradients", settings));
  });
}

template <>
void Points<backend, Real>::insert_gradients(Queue queue, const Tensor& values, const Tensor& points,
                                             const Tensor& cotangent, const Tensor& of_values,
                                             const Tensor& of_points, const PointSettings& settings) {
  with_types("insert_gradients", settings, cotangent, [&]<class Kernel, class Value, int D>() {
    const Lists lists("insert_gradients", points, values, "values");
    PointGradients<Value, Space::memory_space> gradients;
    gradients.values = array_of<Value, Space>(of_values);
    gradients.points = array_of<Real, Space>(of_points);
    Bracewell::insert_gradients<Kernel>(space_of<backend>(queue), view_of<const Value, 2, Space>(values),
                                        view_of<const Real, 3, Space>(points),
                                        grid_of<Value, const Value, D>(cotangent), gradients,
                                        options_of("insert_gradients", settings));
  });
}

namespace {

Poses<Real, Space::memory_space> poses_of(const PoseTensors& poses) {
  return {array_of<const Real, Space>(poses.matrices), array_of<const Real, Space>(poses.shifts)};
}

} // namespace

template <>
void Lines<backend, Real>::project(Queue queue, const Tensor& volume, const PoseTensors& poses,
                                   const Tensor& images) {
  Impl::project_lines<Space, Real>(space_of<backend>(queue), array_of<const Real, Space>(volume),
                                   poses_of(poses), array_of<Real, Space>(images));
}

template <>
void Lines<backend, Real>::backproject(Queue queue, const Tensor& images, const PoseTensors& poses,
                                       const Tensor& volume) {
  Impl::backproject_lines<Space, Real>(space_of<backend>(queue), array_of<const Real, Space>(images),
                                       poses_of(poses), array_of<Real, Space>(volume));
}

template <>
void Lines<backend, Real>::gradients(Queue queue, const Tensor& volume, const PoseTensors& poses,
                                     const Tensor& cotangent, const Tensor& of_volume,
                                     const Tensor& of_matrices, const Tensor& of_shifts) {
  Impl::project_lines_gradients<Space, Real>(space_of<backend>(queue), array_of<const Real, Space>(volume),
                                             poses_of(poses), array_of<const Real, Space>(cotangent),
                                             {.volume = array_of<Real, Space>(of_volume),
                                              .matrices = array_of<Real, Space>(of_matrices),
                                              .shifts = array_of<Real, Space>(of_shifts)});
}

} // namespace Bracewell::Python
