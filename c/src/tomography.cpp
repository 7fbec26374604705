// SPDX-License-Identifier: MIT
#include "types.hpp"

#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/fourier.hpp>

#include <vector>

namespace Bracewell::C {
namespace {

constexpr const char* of_projections = "[slices, views, width]";

class BeamPlan : public bracewell_tomography {
public:
  BeamPlan(const Space& space, const ParallelBeamGeometry& geometry, const FourierTomographyOptions& options)
      : plan_(space, geometry, options) {}

  void backproject(const bracewell_queue& queue, const bracewell_array* projections,
                   const bracewell_array* images) const override {
    constexpr const char* name = "tomography_backproject";
    const Space space = space_of<backend>(queue);
    expect(name, projections, images);
    const Of<const Real> in(name, "projections", space, projections);
    const Of<Real> out(name, "images", space, images);
    plan_.backproject(space, in.view<3>(), out.view<3>());
    finish(in, out);
  }

  void project(const bracewell_queue& queue, const bracewell_array* images,
               const bracewell_array* projections) const override {
    constexpr const char* name = "tomography_project";
    const Space space = space_of<backend>(queue);
    expect(name, projections, images);
    const Of<const Real> in(name, "images", space, images);
    const Of<Real> out(name, "projections", space, projections);
    plan_.project(space, in.view<3>(), out.view<3>());
    finish(in, out);
  }

private:
  static void expect(const char* function, const bracewell_array* projections,
                     const bracewell_array* images) {
    expect_rank(function, "projections", projections, 3, of_projections);
    expect_rank(function, "images", images, 3, "[slices, n, n]");
  }

  FourierTomography<Space, Real> plan_;
};

} // namespace

template <>
bracewell_tomography* Tomography<backend, Real>::plan(const bracewell_queue& queue,
                                                      const bracewell_tomography_options& options) {
  constexpr const char* name = "tomography_create";
  const int count = options.angle_count;
  if (count < 0 || (count > 0 && !options.angles))
    Impl::fail(name, "options.angles", "angle_count numbers",
               options.angles ? std::to_string(count) : "NULL");
  const auto numbers = [&](const double* values) {
    return values ? std::vector<double>(values, values + count) : std::vector<double>();
  };
  ParallelBeamGeometry geometry{.angles = Angles(numbers(options.angles)),
                                .width = options.width,
                                .weights = numbers(options.weights),
                                .shifts = numbers(options.shifts)};
  if (options.centre)
    geometry.centre = *options.centre;
  const FourierTomographyOptions defaults;
  return new BeamPlan(
      space_of<backend>(queue), geometry,
      {.image = options.image,
       .slices = options.slices == 0 ? defaults.slices : options.slices,
       .units = options.line_integrals ? ProjectionUnits::LineIntegrals : ProjectionUnits::Transpose,
       .tolerance = options.tolerance == 0 ? defaults.tolerance : options.tolerance});
}

template <>
void Tomography<backend, Real>::filter(const bracewell_queue& queue, const bracewell_array* projections,
                                       const bracewell_array* filtered, bracewell_filter filter, bool edge) {
  constexpr const char* name = "filter_projections";
  const Space space = space_of<backend>(queue);
  expect_rank(name, "projections", projections, 3, of_projections);
  expect_rank(name, "filtered", filtered, 3, of_projections);
  if (filter < BRACEWELL_RAMP || filter > BRACEWELL_PARZEN)
    Impl::fail(name, "filter", "a bracewell_filter", std::to_string(filter));
  const Of<const Real> in(name, "projections", space, projections);
  const Of<Real> out(name, "filtered", space, filtered);
  const std::int64_t rows = projections->extents[0] * projections->extents[1];
  if (rows == 0)
    return;
  const auto width = projections->extents[2];
  if (width < 1 || width > 1 << 26)
    Impl::fail(name, "projections", "from 1 to 2^26 columns", std::to_string(width));
  const ProjectionFilter<Space, Real> plan(
      space, rows, static_cast<int>(width),
      {.filter = static_cast<TomographyFilter>(filter + int(TomographyFilter::Ramp)),
       .padding = edge ? ProjectionPadding::Edge : ProjectionPadding::Zero});
  plan.execute(space, in.view<3>(), out.view<3>());
  space.fence("Bracewell::C: the plan goes");
  finish(in, out);
}

} // namespace Bracewell::C
