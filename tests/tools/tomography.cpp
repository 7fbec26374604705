// Kernels, labels and instances of tomography.

#include "checks.hpp"

#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/log_polar.hpp>
#include <bracewell/tomography/preprocess.hpp>
#include <bracewell/tomography/stripes.hpp>

#include <numbers>

using namespace Bracewell;

namespace {

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
