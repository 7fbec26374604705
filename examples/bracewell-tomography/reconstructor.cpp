// SPDX-License-Identifier: MIT
#include "bracewell-tomography/reconstructor.hpp"

#include "common/input_error.hpp"

#include <bracewell/tomography/angle_weights.hpp>
#include <bracewell/tomography/fourier.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/log_polar.hpp>

#include <cmath>
#include <memory>
#include <numbers>

namespace Bracewell::Examples {
namespace {

FourierTomographyOptions fourier_options(const RunOptions& options, int image, std::int64_t slices) {
  return {.image = image, .slices = slices, .tolerance = options.tolerance};
}

LogPolarTomographyOptions log_polar_options(int image, std::int64_t slices) {
  return {.image = image, .slices = slices, .row_upsampling = row_upsampling(Method::LogPolar)};
}

/// Throws InputError where angles are not those that log-polar reconstruction takes.
void check_even(const std::string& file, const std::vector<double>& angles) {
  const double step = 180.0 / double(angles.size());
  for (std::size_t p = 0; p < angles.size(); ++p)
    if (const double angle = (angles[p] - angles[0]) / degree;
        !(std::abs(angle - double(p) * step) < 1e-2 * step))
      throw InputError(file + ": angle " + std::to_string(p) + " is " +
                       shortest(std::round(1e3 * angle) / 1e3) +
                       " degrees from the first: --method log-polar takes even steps of " + shortest(step) +
                       " over 180; use --method fourier or line");
}

LineTomographyOptions line_options(int image) { return {.image = image, .projection = false}; }

template <class Plan>
Reconstructor backprojection(std::shared_ptr<const Plan> plan) {
  return [plan = std::move(plan)](const Space& space, const Sinograms& sinograms, const Slices& slices) {
    plan->backproject(space, sinograms, slices);
  };
}

} // namespace

ParallelBeamGeometry beam_geometry(const RunOptions& options, const std::vector<double>& angles, int width,
                                   double centre) {
  if (options.method == Method::LogPolar) {
    if (options.density_weights)
      throw InputError("--density-weights: log-polar reconstruction takes even angles only");
    check_even(options.scan.file.string(), angles);
  }
  if (options.half_acquisition && options.density_weights)
    throw InputError("--density-weights: --half-acquisition takes even angles over a whole turn only");
  return {.angles = angles,
          .width = width,
          .centre = centre,
          .weights = options.density_weights ? angular_density_weights(angles) : std::vector<double>()};
}

std::size_t reconstructor_bytes(const Space& space, const RunOptions& options,
                                const ParallelBeamGeometry& geometry, int image, std::int64_t slices) {
  switch (options.method) {
  case Method::Fourier:
    return FourierTomography<Space, float>::bytes_needed(space, geometry,
                                                         fourier_options(options, image, slices));
  case Method::LogPolar:
    return LogPolarTomography<Space, float>::bytes_needed(space, geometry, log_polar_options(image, slices));
  case Method::Line:
    break;
  }
  return LineTomography<Space, float>::bytes_needed(space, geometry, line_options(image));
}

Reconstructor make_reconstructor(const Space& space, const RunOptions& options,
                                 const ParallelBeamGeometry& geometry, int image, std::int64_t slices) {
  switch (options.method) {
  case Method::Fourier:
    return backprojection(std::make_shared<const FourierTomography<Space, float>>(
        space, geometry, fourier_options(options, image, slices)));
  case Method::LogPolar:
    return backprojection(std::make_shared<const LogPolarTomography<Space, float>>(
        space, geometry, log_polar_options(image, slices)));
  case Method::Line:
    break;
  }
  return backprojection(
      std::make_shared<const LineTomography<Space, float>>(space, geometry, line_options(image)));
}

} // namespace Bracewell::Examples
