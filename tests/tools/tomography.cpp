// Kernels, labels and instances of tomography.

#include "checks.hpp"

#include <bracewell/optimize/adam.hpp>
#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/fourier.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/log_polar.hpp>
#include <bracewell/tomography/preprocess.hpp>
#include <bracewell/tomography/stripes.hpp>

#include <numbers>

using namespace Bracewell;

namespace {

using Test::check_memory;
using Test::Function;
using Test::Space;
using Test::View;

struct Plans {
  static constexpr int n = 16, count = 24;

  explicit Plans(const Space& space)
      : filter(space, 2 * count, n), fine(space, 2 * count, n, {.upsampling = 2}),
        line(space, {.angles = half_turn(), .width = n}),
        log_polar(space, {.angles = half_turn(), .width = n}),
        offset(space, count, n, {.method = StripeMethod::Offset}), sorting(space, count, n) {}

  static std::vector<double> half_turn() {
    std::vector<double> angles;
    for (int p = 0; p < count; ++p)
      angles.push_back(p * std::numbers::pi / count);
    return angles;
  }

  ProjectionFilter<Space, float> filter, fine;
  LineTomography<Space, float> line;
  LogPolarTomography<Space, float> log_polar;
  StripeRemoval<Space, float> offset, sorting;
  View<float***> raw{"raw", count, 2, n}, projections{"projections", 2, count, n},
      finer{"finer", 2, count, 2 * n}, images{"images", 2, n, n};
  View<float**> frame{"frame", 2, n};
};

std::vector<Function> functions(const Plans& p) {
  return {
      {"normalise_projections::",
       [&](const Space& space) { normalise_projections(space, p.raw, p.frame, p.frame, p.projections); }},
      {"StripeRemoval::", [&](const Space& space) { p.offset.execute(space, p.projections); }},
      {"StripeRemoval::", [&](const Space& space) { p.sorting.execute(space, p.projections); }},
      {"ProjectionFilter::",
       [&](const Space& space) { p.filter.execute(space, p.projections, p.projections); }, true},
      {"ProjectionFilter::", [&](const Space& space) { p.fine.execute(space, p.projections, p.finer); },
       true},
      {"LineTomography::", [&](const Space& space) { p.line.backproject(space, p.projections, p.images); }},
      {"LineTomography::", [&](const Space& space) { p.line.project(space, p.images, p.projections); }},
      {"LogPolarTomography::",
       [&](const Space& space) { p.log_polar.backproject(space, p.projections, p.images); }, true},
      {"LogPolarTomography::",
       [&](const Space& space) { p.log_polar.project(space, p.images, p.projections); }, true},
  };
}

} // namespace

TEST_CASE("labels of tomography; no fences, copies or allocations") {
  const Plans plans{Space()};
  for (const Function& function : functions(plans))
    check_labels(function);
}

TEST_CASE("tomography runs on the instance it is given") {
  const Plans plans{Space()};
  for (const Function& function : functions(plans))
    check_instances(function);
}

TEST_CASE("plans of tomography take the memory that they say") {
  for (const auto& [n, angles, image] : {std::tuple{64, 96, 0}, {97, 131, 60}}) {
    CAPTURE(n, angles, image);
    ParallelBeamGeometry geometry{.width = n};
    for (int p = 0; p < angles; ++p)
      geometry.angles.push_back(p * std::numbers::pi / angles);
    const auto integrals = ProjectionUnits::LineIntegrals;
    check_memory<LineTomography<Space, float>>(1, geometry, LineTomographyOptions{.image = image});
    check_memory<LineTomography<Space, double>>(
        1, geometry, LineTomographyOptions{.units = integrals, .projection = false});
    check_memory<LogPolarTomography<Space, float>>(
        1, geometry, LogPolarTomographyOptions{.image = image, .slices = 5, .row_upsampling = 2});
    check_memory<LogPolarTomography<Space, double>>(1, geometry, LogPolarTomographyOptions{.slices = 2});
    for (const auto strategy : {GriddingStrategy::Automatic, GriddingStrategy::Atomic,
                                GriddingStrategy::PrunedGather, GriddingStrategy::Tiles})
      for (const std::int64_t slices : {1, 6}) {
        CAPTURE(int(strategy), slices);
        // Tiles lists samples three times while it sorts them, more than one small slice takes afterwards.
        check_memory<FourierTomography<Space, float>>(
            strategy == GriddingStrategy::Tiles && slices == 1 ? 1.1 : 1, geometry,
            FourierTomographyOptions{.image = image, .slices = slices, .strategy = strategy});
      }
    check_memory<ProjectionFilter<Space, float>>(1, std::int64_t(3 * angles), n, FilterOptions{});
    check_memory<ProjectionFilter<Space, double>>(1, std::int64_t(3 * angles), n,
                                                  FilterOptions{.upsampling = 2, .shift = 2.5});
    check_memory<StripeRemoval<Space, float>>(1, angles, n, StripeOptions{});
    check_memory<StripeRemoval<Space, double>>(1, angles, n, StripeOptions{.method = StripeMethod::Offset});
    check_memory<Adam<Space, float>>(1, std::vector<std::size_t>{std::size_t(n), 7}, AdamOptions{});
  }
}
