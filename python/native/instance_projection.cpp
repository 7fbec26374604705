// SPDX-License-Identifier: MIT
#include "kokkos_arrays.hpp"

#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/project.hpp>

namespace Bracewell::Python {
namespace {

using Real = BRACEWELL_PYTHON_REAL;
constexpr Backend backend = Backend::BRACEWELL_PYTHON_BACKEND;
using Space = SpaceOf<backend>;
using Complex = Kokkos::complex<Real>;

ProjectionOptions options_of(const ProjectionSettings& settings) {
  return {.oversampling = settings.oversampling,
          .radius = settings.radius,
          .ewald_radius = settings.ewald_radius,
          .kernel_weights = settings.absolute_weights ? KernelWeights::Absolute : KernelWeights::Signed,
          .skip_redundant = settings.skip_redundant};
}

Poses<Real, Space::memory_space> poses_of(const PoseTensors& poses) {
  return {array_of<const Real, Space>(poses.matrices), array_of<const Real, Space>(poses.shifts),
          array_of<const Real, Space>(poses.filters)};
}

/// action.operator()<Kernel, M, D>() for projections of rank M + 2 and volumes of rank D + 1.
template <class Action>
void with_types(const char* function, const ProjectionSettings& settings, int projections, int volumes,
                const Action& action) {
  const auto with_dimensions = [&]<class Kernel>() {
    const int m = projections - 2, d = volumes - 1;
    if (m == 2 && d == 2)
      action.template operator()<Kernel, 2, 2>();
    else if (m == 2 && d == 3)
      action.template operator()<Kernel, 2, 3>();
    else if (m == 3 && d == 3)
      action.template operator()<Kernel, 3, 3>();
    else
      Impl::fail(function, "arrays",
                 "volumes [B, H, W/2+1] with projections [B, P, h, w/2+1], or [B, D, H, W/2+1] with [B, P, "
                 "h, w/2+1] "
                 "or [B, P, d, h, w/2+1]",
                 "volumes of " + std::to_string(volumes) + " axes with projections of " +
                     std::to_string(projections));
  };
  if (settings.interpolation == "linear")
    with_dimensions.template operator()<Linear>();
  else if (settings.interpolation == "catmull_rom")
    with_dimensions.template operator()<CatmullRom>();
  else if (settings.interpolation == "cubic_bspline")
    with_dimensions.template operator()<CubicBSpline>();
  else
    Impl::fail(function, "interpolation", "linear, catmull_rom or cubic_bspline", settings.interpolation);
}

template <int D>
SpectraArray<Complex, Space::memory_space, D> spectra(const Tensor& tensor) {
  SpectraArray<Complex, Space::memory_space, D> array;
  static_cast<Array<Complex, Space::memory_space>&>(array) = array_of<Complex, Space>(tensor);
  return array;
}
template <int D>
SpectraArray<const Complex, Space::memory_space, D> const_spectra(const Tensor& tensor) {
  SpectraArray<const Complex, Space::memory_space, D> array;
  static_cast<Array<const Complex, Space::memory_space>&>(array) = array_of<const Complex, Space>(tensor);
  return array;
}

} // namespace

template <>
void Projection<backend, Real>::project(Queue queue, const Tensor& reconstruction, const PoseTensors& poses,
                                        const Tensor& projections, const Tensor& scratch,
                                        const ProjectionSettings& settings) {
  with_types("project", settings, projections.rank, reconstruction.rank, [&]<class Kernel, int M, int D>() {
    Impl::project<Kernel, M, D>(
        space_of<backend>(queue), spectrum_of<const Complex, D + 1, Space>(reconstruction), poses_of(poses),
        array_of<Complex, Space>(projections), array_of<Real, Space>(scratch), options_of(settings));
  });
}

template <>
std::int64_t Projection<backend, Real>::scratch_size(Queue queue, const Tensor& reconstruction,
                                                     const ProjectionSettings& settings) {
  std::int64_t size = 0;
  with_types("scratch_size", settings, 4, reconstruction.rank, [&]<class Kernel, int M, int D>() {
    size = Bracewell::scratch_size<Kernel>(space_of<backend>(queue),
                                           spectrum_of<const Complex, D + 1, Space>(reconstruction));
  });
  return size;
}

template <>
void Projection<backend, Real>::project_gradients(Queue queue, const Tensor& reconstruction,
                                                  const PoseTensors& poses, const Tensor& cotangent,
                                                  const Tensor& reconstruction_gradient,
                                                  const Tensor& matrices, const Tensor& shifts,
                                                  const ProjectionSettings& settings) {
  with_types("project_gradients", settings, cotangent.rank, reconstruction.rank,
             [&]<class Kernel, int M, int D>() {
               ProjectGradients<Real, Space::memory_space> gradients;
               gradients.reconstruction = array_of<Complex, Space>(reconstruction_gradient);
               gradients.matrices = array_of<Real, Space>(matrices);
               gradients.shifts = array_of<Real, Space>(shifts);
               Impl::project_gradients<Kernel, M, D>(
                   space_of<backend>(queue), spectrum_of<const Complex, D + 1, Space>(reconstruction),
                   poses_of(poses), spectrum_of<const Complex, M + 2, Space>(cotangent), gradients,
                   options_of(settings));
             });
}

template <>
void Projection<backend, Real>::backproject(Queue queue, const Tensor& projections, const PoseTensors& poses,
                                            const Tensor& weights, const Tensor& data, const Tensor& weight,
                                            const ProjectionSettings& settings) {
  with_types("backproject", settings, projections.rank, data.rank, [&]<class Kernel, int M, int D>() {
    Backprojection<Real, Space::memory_space, D> target;
    target.data = spectra<D>(data);
    target.weight = array_of<Real, Space>(weight);
    target.weights = array_of<const Real, Space>(weights);
    Impl::backproject<Kernel, M, D>(space_of<backend>(queue), array_of<const Complex, Space>(projections),
                                    poses_of(poses), target, options_of(settings));
  });
}

template <>
void Projection<backend, Real>::backproject_gradients(Queue queue, const Tensor& projections,
                                                      const PoseTensors& poses, const Tensor& weights,
                                                      const Tensor& data, const Tensor& weight,
                                                      const Tensor& projections_gradient,
                                                      const Tensor& weights_gradient, const Tensor& matrices,
                                                      const Tensor& shifts,
                                                      const ProjectionSettings& settings) {
  with_types("backproject_gradients", settings, projections.rank, data.rank,
             [&]<class Kernel, int M, int D>() {
               BackprojectGradients<Real, Space::memory_space, D> gradients;
               gradients.data = const_spectra<D>(data);
               gradients.weight = array_of<const Real, Space>(weight);
               gradients.weights = array_of<const Real, Space>(weights);
               gradients.projections = array_of<Complex, Space>(projections_gradient);
               gradients.projection_weights = array_of<Real, Space>(weights_gradient);
               gradients.matrices = array_of<Real, Space>(matrices);
               gradients.shifts = array_of<Real, Space>(shifts);
               Impl::backproject_gradients<Kernel, M, D>(space_of<backend>(queue),
                                                         array_of<const Complex, Space>(projections),
                                                         poses_of(poses), gradients, options_of(settings));
             });
}

} // namespace Bracewell::Python
