// SPDX-License-Identifier: MIT
#include "types.hpp"

#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

namespace Bracewell::C {
namespace {

ProjectionOptions options_of(const char* function, const bracewell_projection_options& options) {
  ProjectionOptions result{.oversampling = unless_zero(options.oversampling),
                           .radius = unless_zero(options.radius),
                           .ewald_radius = unless_zero(options.ewald_radius),
                           .kernel_weights =
                               options.absolute_weights ? KernelWeights::Absolute : KernelWeights::Signed,
                           .skip_redundant = options.skip_redundant != 0};
  switch (options.strategy) {
  case BRACEWELL_AUTOMATIC:
    break;
  case BRACEWELL_ATOMIC:
    result.strategy = Strategy::Atomic;
    break;
  case BRACEWELL_OWNED:
    result.strategy = Strategy::Owned;
    break;
  default:
    Impl::fail(function, "options.strategy", "a bracewell_strategy", std::to_string(options.strategy));
  }
  return result;
}

/// Poses of a call.
struct PoseArguments {
  Of<const Real> matrices, shifts, filters;

  PoseArguments(const char* function, const Space& space, const bracewell_poses& poses)
      : matrices(function, "poses.matrices", space, poses.matrices),
        shifts(function, "poses.shifts", space, poses.shifts),
        filters(function, "poses.filters", space, poses.filters) {}
  operator Poses<Real, Memory>() const { return {matrices.array(), shifts.array(), filters.array()}; }
  void finish() const { C::finish(matrices, shifts, filters); }
};

/// action.operator()<Kernel, M, D>() for projections of rank M + 2 and volumes of rank D + 1.
template <class Action>
void with_types(const char* function, const bracewell_projection_options& options, int projections,
                int volumes, const Action& action) {
  const auto with_dimensions = [&]<class Kernel>() {
    const int m = projections - 2, d = volumes - 1;
    if (m == 2 && d == 2)
      action.template operator()<Kernel, 2, 2>();
    else if (m == 2 && d == 3)
      action.template operator()<Kernel, 2, 3>();
    else if (m == 3 && d == 3)
      action.template operator()<Kernel, 3, 3>();
    else
      Impl::fail(function, "projections",
                 "[B, P, h, w/2+1] beside [B, H, W/2+1] or [B, D, H, W/2+1], or [B, P, d, h, w/2+1] "
                 "beside the latter",
                 std::to_string(projections) + " axes beside " + std::to_string(volumes));
  };
  switch (options.kernel) {
  case BRACEWELL_CATMULL_ROM:
    return with_dimensions.template operator()<CatmullRom>();
  case BRACEWELL_LINEAR:
    return with_dimensions.template operator()<Linear>();
  case BRACEWELL_CUBIC_BSPLINE:
    return with_dimensions.template operator()<CubicBSpline>();
  }
  Impl::fail(function, "options.kernel", "a bracewell_kernel", std::to_string(options.kernel));
}

} // namespace

template <>
void Projection<backend, Real>::project(const bracewell_queue& queue, const bracewell_array* reconstruction,
                                        const bracewell_poses& poses, const bracewell_array* projections,
                                        const bracewell_projection_options& options) {
  constexpr const char* name = "project";
  const Space space = space_of<backend>(queue);
  const int m = rank_of(name, "projections", projections),
            d = rank_of(name, "reconstruction", reconstruction);
  const Of<const Complex> volume(name, "reconstruction", space, reconstruction);
  const Of<Complex> images(name, "projections", space, projections);
  const PoseArguments where(name, space, poses);
  with_types(name, options, m, d, [&]<class Kernel, int M, int D>() {
    Bracewell::project<Kernel>(space, volume.template spectrum<D + 1>(), where,
                               images.template spectrum<M + 2>(), options_of(name, options));
  });
  finish(volume, images, where);
}

template <>
void Projection<backend, Real>::project_gradients(const bracewell_queue& queue,
                                                  const bracewell_array* reconstruction,
                                                  const bracewell_poses& poses,
                                                  const bracewell_array* cotangent,
                                                  const bracewell_project_gradient& gradients,
                                                  const bracewell_projection_options& options) {
  constexpr const char* name = "project_gradients";
  const Space space = space_of<backend>(queue);
  const int m = rank_of(name, "cotangent", cotangent), d = rank_of(name, "reconstruction", reconstruction);
  const Of<const Complex> volume(name, "reconstruction", space, reconstruction),
      slopes(name, "cotangent", space, cotangent);
  const PoseArguments where(name, space, poses);
  const Of<Complex> images(name, "gradients.projections", space, gradients.projections),
      of_volume(name, "gradients.reconstruction", space, gradients.reconstruction);
  const Of<Real> of_matrices(name, "gradients.matrices", space, gradients.matrices),
      of_shifts(name, "gradients.shifts", space, gradients.shifts);
  with_types(name, options, m, d, [&]<class Kernel, int M, int D>() {
    ProjectGradients<Real, Memory> outputs;
    outputs.projections = images.array();
    outputs.reconstruction = of_volume.array();
    outputs.matrices = of_matrices.array();
    outputs.shifts = of_shifts.array();
    Bracewell::project_gradients<Kernel>(space, volume.template spectrum<D + 1>(), where,
                                         slopes.template spectrum<M + 2>(), outputs,
                                         options_of(name, options));
  });
  finish(volume, slopes, where, images, of_volume, of_matrices, of_shifts);
}

template <>
void Projection<backend, Real>::backproject(const bracewell_queue& queue, const bracewell_array* projections,
                                            const bracewell_poses& poses, const bracewell_array* weights,
                                            const bracewell_array* data, const bracewell_array* weight,
                                            const bracewell_projection_options& options) {
  constexpr const char* name = "backproject";
  const Space space = space_of<backend>(queue);
  const int m = rank_of(name, "projections", projections), d = rank_of(name, "data", data);
  const Of<const Complex> images(name, "projections", space, projections);
  const PoseArguments where(name, space, poses);
  const Of<const Real> worth(name, "weights", space, weights);
  const Of<Complex> volume(name, "data", space, data, Access::Update);
  const Of<Real> sums(name, "weight", space, weight, Access::Update);
  with_types(name, options, m, d, [&]<class Kernel, int M, int D>() {
    Backprojection<Real, Memory, D> target;
    target.data = volume.template spectrum<D + 1>();
    target.weight = sums.array();
    target.weights = worth.array();
    Bracewell::backproject<Kernel>(space, images.template spectrum<M + 2>(), where, target,
                                   options_of(name, options));
  });
  finish(images, where, worth, volume, sums);
}

template <>
void Projection<backend, Real>::backproject_gradients(
    const bracewell_queue& queue, const bracewell_array* projections, const bracewell_poses& poses,
    const bracewell_array* weights, const bracewell_array* data, const bracewell_array* weight,
    const bracewell_backproject_gradient& gradients, const bracewell_projection_options& options) {
  constexpr const char* name = "backproject_gradients";
  const Space space = space_of<backend>(queue);
  const int m = rank_of(name, "projections", projections), d = rank_of(name, "data", data);
  const Of<const Complex> images(name, "projections", space, projections), volume(name, "data", space, data);
  const PoseArguments where(name, space, poses);
  const Of<const Real> worth(name, "weights", space, weights), sums(name, "weight", space, weight);
  const Of<Complex> of_images(name, "gradients.projections", space, gradients.projections);
  const Of<Real> of_weights(name, "gradients.weights", space, gradients.weights),
      of_matrices(name, "gradients.matrices", space, gradients.matrices),
      of_shifts(name, "gradients.shifts", space, gradients.shifts);
  with_types(name, options, m, d, [&]<class Kernel, int M, int D>() {
    BackprojectGradients<Real, Memory, D> outputs;
    outputs.data = volume.template spectrum<D + 1>();
    outputs.weight = sums.array();
    outputs.weights = worth.array();
    outputs.projections = of_images.array();
    outputs.projection_weights = of_weights.array();
    outputs.matrices = of_matrices.array();
    outputs.shifts = of_shifts.array();
    Bracewell::backproject_gradients<Kernel>(space, images.template spectrum<M + 2>(), where, outputs,
                                             options_of(name, options));
  });
  finish(images, volume, where, worth, sums, of_images, of_weights, of_matrices, of_shifts);
}

} // namespace Bracewell::C
