// SPDX-License-Identifier: MIT
#include "bracewell-tomography/reconstructor.hpp"

#include "common/input_error.hpp"

#include <bracewell/tomography/angle_weights.hpp>
#include <bracewell/tomography/fourier.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/log_polar.hpp>

#include <memory>

namespace Bracewell::Examples {
namespace {

FourierTomographyOptions fourier_options(const RunOptions& options, std::int64_t slices) {
  return {.slices = slices, .tolerance = options.tolerance};
}

LogPolarTomographyOptions log_polar_options(std::int64_t slices) {
  return {.slices = slices, .row_upsampling = row_upsampling(Method::LogPolar)};
}

constexpr LineTomographyOptions line_options{.projection = false};

template <class Plan>
Reconstructor backprojection(std::shared_ptr<const Plan> plan) {
  return [plan = std::move(plan)](const Space& space, const Sinograms& sinograms, const Slices& slices) {
    plan->backproject(space, sinograms, slices);
  };
}

} // namespace

ParallelBeamGeometry beam_geometry(const RunOptions& options, const std::vector<double>& angles, int width,
                                   double centre) {
  if (options.density_weights && options.method == Method::LogPolar)
    throw InputError("--density-weights: log-polar reconstruction takes even angles only");
  return {.angles = angles,
          .width = width,
          .centre = centre,
          .weights = options.density_weights ? angular_density_weights(angles) : std::vector<double>()};
}

std::size_t reconstructor_bytes(const Space& space, const RunOptions& options,
                                const ParallelBeamGeometry& geometry, std::int64_t slices) {
  switch (options.method) {
  case Method::Fourier:
    return FourierTomography<Space, float>::bytes_needed(space, geometry, fourier_options(options, slices));
  case Method::LogPolar:
    return LogPolarTomography<Space, float>::bytes_needed(space, geometry, log_polar_options(slices));
  case Method::Line:
    break;
  }
  return LineTomography<Space, float>::bytes_needed(space, geometry, line_options);
}

Reconstructor make_reconstructor(const Space& space, const RunOptions& options,
                                 const ParallelBeamGeometry& geometry, std::int64_t slices) {
  switch (options.method) {
  case Method::Fourier:
    return backprojection(std::make_shared<const FourierTomography<Space, float>>(
        space, geometry, fourier_options(options, slices)));
  case Method::LogPolar:
    return backprojection(
        std::make_shared<const LogPolarTomography<Space, float>>(space, geometry, log_polar_options(slices)));
  case Method::Line:
    break;
  }
  return backprojection(std::make_shared<const LineTomography<Space, float>>(space, geometry, line_options));
}

} // namespace Bracewell::Examples
