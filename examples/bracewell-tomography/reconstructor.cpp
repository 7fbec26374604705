// SPDX-License-Identifier: MIT
#include "bracewell-tomography/reconstructor.hpp"

#include "bracewell-tomography/iterations.hpp"
#include "common/input_error.hpp"

#include <bracewell/tomography/angle_weights.hpp>
#include <bracewell/tomography/fourier.hpp>
#include <bracewell/tomography/fourier_laminography.hpp>
#include <bracewell/tomography/fourier_normal.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/line_laminography.hpp>
#include <bracewell/tomography/log_polar.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <type_traits>

namespace Bracewell::Examples {
namespace {

/// Values per pixel that a method takes: log-polar reconstruction interpolates in filtered rows.
int row_upsampling(const RunOptions& options) {
  return options.method == Method::LogPolar && !options.solver ? 2 : 1;
}

FilterOptions filter_options(const RunOptions& options) {
  return {.filter = options.filter, .padding = options.padding, .upsampling = row_upsampling(options)};
}

/// Whether views have shares of half a turn that differ.
bool are_uneven(const std::vector<double>& weights) {
  return std::ranges::any_of(weights, [](double weight) { return std::abs(weight - 1) > 0.05; });
}

/// Whether a method takes the mirror image's angles: y goes up, down in geometries. Log-polar slices are turned over, as
/// their angles have to rise.
bool mirrors_angles(const RunOptions& options) { return options.y_up && options.method != Method::LogPolar; }

ParallelBeamGeometry beam_geometry(const RunOptions& options, const Views& views, const Place& place) {
  ParallelBeamGeometry beam{.angles = views.angles,
                            .width = place.width,
                            .centre = place.centre,
                            .weights = angle_weights(options, views.angles),
                            .shifts = views.shifts};
  if (mirrors_angles(options))
    for (double& angle : beam.angles)
      angle = -angle;
  return beam;
}

/// Exchanges y and -y of slices.
struct TurnOver {
  Slices slices;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto n = std::int64_t(slices.extent(1)), column = i % n, place = i / n, lines = (n - 1) / 2;
    const std::int64_t slice = place / lines, line = 1 + place % lines;
    Kokkos::kokkos_swap(slices(slice, n / 2 - line, column), slices(slice, n / 2 + line, column));
  }
};

/// visit(the plan's type, its geometry and its options) for the method.
template <class Visit>
auto with_plan(const RunOptions& options, const Views& views, const Place& place, std::int64_t slices,
               const Visit& visit) {
  const auto units = options.solver ? ProjectionUnits::LineIntegrals : ProjectionUnits::Transpose;
  const ParallelBeamGeometry beam = beam_geometry(options, views, place);
  if (options.laminography) {
    const TiltedBeamGeometry tilted{.beam = beam,
                                    .rows = int(slices),
                                    .tilt =
                                        (mirrors_angles(options) ? -1 : 1) * *options.laminography * degree};
    if (options.method == Method::Line)
      return visit(std::type_identity<LineLaminography<Space, float>>(), tilted,
                   LineLaminographyOptions{.image = place.image, .depth = place.depth, .units = units});
    return visit(
        std::type_identity<FourierLaminography<Space, float>>(), tilted,
        FourierLaminographyOptions{
            .image = place.image, .depth = place.depth, .units = units, .tolerance = options.tolerance});
  }
  const FourierTomographyOptions of_fourier{
      .image = place.image, .slices = slices, .units = units, .tolerance = options.tolerance};
  switch (options.method) {
  case Method::Fourier:
    return options.solver && goes_by_normal(options, place, std::int64_t(views.angles.size()))
               ? visit(std::type_identity<FourierNormal<Space, float>>(), beam, of_fourier)
               : visit(std::type_identity<FourierTomography<Space, float>>(), beam, of_fourier);
  case Method::LogPolar:
    return visit(std::type_identity<LogPolarTomography<Space, float>>(), beam,
                 LogPolarTomographyOptions{.image = place.image,
                                           .slices = slices,
                                           .units = units,
                                           .row_upsampling = row_upsampling(options)});
  case Method::Line:
    break;
  }
  return visit(
      std::type_identity<LineTomography<Space, float>>(), beam,
      LineTomographyOptions{.image = place.image, .units = units, .projection = options.solver.has_value()});
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

/// Filtered back-projection.
template <class Plan>
Reconstructor filtered(const Space& space, const RunOptions& options, std::int64_t angles, const Place& place,
                       std::int64_t slices, std::shared_ptr<const Plan> plan) {
  const auto filter = std::make_shared<const ProjectionFilter<Space, float>>(
      space, slices * angles, place.width, filter_options(options));
  const int upsampling = row_upsampling(options);
  const Sinograms finer = upsampling > 1
                              ? allocate<Sinograms>("filtered", slices, angles, upsampling * place.width)
                              : Sinograms();
  const bool over = options.y_up && !mirrors_angles(options);
  return [=](const Space& on, const Sinograms& sinograms, const Slices& result, const Sinograms&) {
    const Sinograms rows = upsampling > 1 ? first_slices(finer, sinograms.extent(0)) : sinograms;
    filter->execute(on, sinograms, rows);
    plan->backproject(on, rows, result);
    if (over && result.extent(1) > 2)
      Kokkos::parallel_for(
          "Bracewell::examples::turn_over",
          Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
              on, 0, std::int64_t(result.extent(0) * ((result.extent(1) - 1) / 2) * result.extent(2))),
          TurnOver{result});
    return Iterations{};
  };
}

} // namespace

std::vector<double> angle_weights(const RunOptions& options, const std::vector<double>& angles) {
  const bool takes_any = !options.solver && !options.half_acquisition && !options.laminography &&
                         options.method != Method::LogPolar;
  if (!options.density_weights.value_or(takes_any))
    return {};
  std::vector<double> weights = angular_density_weights(angles);
  return options.density_weights || are_uneven(weights) ? weights : std::vector<double>();
}

void check_method(const RunOptions& options, const std::vector<double>& angles) {
  if (options.laminography) {
    if (options.half_acquisition || options.align != AlignedViews::None || options.try_centres ||
        options.try_tilts)
      throw InputError(
          "--laminography: --half-acquisition, --align, --try-centres and --try-tilts do not go with it");
    if (options.method == Method::LogPolar)
      throw InputError(
          "--laminography: --method log-polar knows no tilt; use fourier, or line with --solver");
    if (options.method == Method::Line && !options.solver)
      throw InputError("--laminography: --method line takes a --solver; its back-projection alone has "
                       "artefacts about the axis");
  }
  if (options.method == Method::LogPolar) {
    if (options.solver)
      throw InputError(
          "--method log-polar: iterations by it take about 100 times as long as by --method fourier, and "
          "give the same; use --solver with fourier or line");
    if (options.density_weights.value_or(false))
      throw InputError("--density-weights: log-polar reconstruction takes even angles only");
    if (options.align != AlignedViews::None)
      throw InputError("--align: --method log-polar takes even angles only");
    check_even(options.scan.file.string(), angles);
  }
  if (options.align != AlignedViews::None && options.half_acquisition)
    throw InputError("--align: --half-acquisition does not go with it");
  if (options.half_acquisition && options.density_weights.value_or(false))
    throw InputError("--density-weights: --half-acquisition takes even angles over a whole turn only");
}

std::size_t reconstructor_bytes(const Space& space, const RunOptions& options, const Views& views,
                                const Place& place, std::int64_t slices) {
  const auto count = std::int64_t(views.angles.size());
  const std::size_t plan =
      with_plan(options, views, place, slices,
                [&]<class Plan>(std::type_identity<Plan>, const auto& geometry, const auto& of_plan) {
                  return Plan::bytes_needed(space, geometry, of_plan);
                });
  if (options.solver)
    return plan + iterations_bytes(space, options, count, place, slices);
  const int upsampling = row_upsampling(options);
  return plan +
         ProjectionFilter<Space, float>::bytes_needed(space, slices * count, place.width,
                                                      filter_options(options)) +
         (upsampling > 1 ? sizeof(float) * std::size_t(slices * count * upsampling * place.width) : 0);
}

Reconstructor make_reconstructor(const Space& space, const RunOptions& options, const Views& views,
                                 const Place& place, std::int64_t slices, double attenuation,
                                 const Watch& watch) {
  const auto count = std::int64_t(views.angles.size());
  return with_plan(options, views, place, slices,
                   [&]<class Plan>(std::type_identity<Plan>, const auto& geometry, const auto& of_plan) {
                     const auto plan = std::make_shared<const Plan>(space, geometry, of_plan);
                     return options.solver
                                ? iterated(space, options, count, place, slices, plan, attenuation, watch)
                                : filtered(space, options, count, place, slices, plan);
                   });
}

} // namespace Bracewell::Examples
