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

template <class Plan>
auto backprojection(std::shared_ptr<const Plan> plan) {
  return [plan = std::move(plan)](const Space& space, const Sinograms& sinograms, const Slices& slices) {
    plan->backproject(space, sinograms, slices);
  };
}

} // namespace

Reconstructor make_reconstructor(const Space& space, const RunOptions& options,
                                 const std::vector<double>& angles, int width, double centre,
                                 std::int64_t slices) {
  const std::vector<double> weights =
      options.density_weights ? angular_density_weights(angles) : std::vector<double>();
  switch (options.method) {
  case Method::Fourier: {
    using Plan = FourierTomography<Space, float>;
    const auto plan =
        std::make_shared<const Plan>(space, FourierTomographyOptions{.angles = angles,
                                                                     .width = width,
                                                                     .slices = slices,
                                                                     .centre = centre,
                                                                     .tolerance = options.tolerance,
                                                                     .weights = weights});
    const std::size_t fixed = plan->plan().memory_bytes(), rest = plan->memory_bytes() - fixed;
    return {backprojection(plan), fixed,
            (rest + static_cast<std::size_t>(slices) - 1) / static_cast<std::size_t>(slices)};
  }
  case Method::LogPolar: {
    if (options.density_weights)
      throw InputError("--density-weights: log-polar reconstruction takes even angles only");
    using Plan = LogPolarTomography<Space, float>;
    const auto plan = std::make_shared<const Plan>(
        space, LogPolarTomographyOptions{.angles = angles,
                                         .width = width,
                                         .slices = slices,
                                         .centre = centre,
                                         .row_upsampling = row_upsampling(Method::LogPolar)});
    return {backprojection(plan), plan->memory_bytes(), 0}; // more slices share its memory
  }
  case Method::Line:
    break;
  }
  using Plan = LineTomography<Space, float>;
  const auto plan = std::make_shared<const Plan>(
      space,
      LineTomographyOptions{
          .angles = angles, .width = width, .centre = centre, .weights = weights, .projection = false});
  return {backprojection(plan), 24 * angles.size(), 0};
}

} // namespace Bracewell::Examples
