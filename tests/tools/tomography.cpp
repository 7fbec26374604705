// Kernels, labels and instances of tomography.

#include "checks.hpp"

#include <bracewell/gridding/nonuniform_fft.hpp>
#include <bracewell/optimize/adam.hpp>
#include <bracewell/tomography/detector.hpp>
#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/fourier.hpp>
#include <bracewell/tomography/half_acquisition.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/log_polar.hpp>
#include <bracewell/tomography/outliers.hpp>
#include <bracewell/tomography/phase.hpp>
#include <bracewell/tomography/preprocess.hpp>
#include <bracewell/tomography/stripes.hpp>

#include <numbers>
#include <type_traits>

using namespace Bracewell;

namespace {

using Test::check_memory;
using Test::check_outliving;
using Test::Function;
using Test::Space;
using Test::View;

struct Plans {
  static constexpr int n = 16, count = 24;

  explicit Plans(const Space& space)
      : filter(space, 2 * count, n), fine(space, 2 * count, n, {.upsampling = 2}),
        line(space, {.angles = half_turn(), .width = n}),
        log_polar(space, {.angles = half_turn(), .width = n}),
        offset(space, count, n, {.method = StripeMethod::Offset}), sorting(space, count, n),
        all(space, count, n, {.method = StripeMethod::All, .window = 11}), phase(space, count, 2, n, beam) {}

  static constexpr PhaseOptions beam{
      .wavelength = 6e-11, .distance = 0.1, .pixel_size = 2e-6, .delta_beta = 30};

  static std::vector<double> half_turn() {
    std::vector<double> angles;
    for (int p = 0; p < count; ++p)
      angles.push_back(p * std::numbers::pi / count);
    return angles;
  }

  ProjectionFilter<Space, float> filter, fine;
  LineTomography<Space, float> line;
  LogPolarTomography<Space, float> log_polar;
  StripeRemoval<Space, float> offset, sorting, all;
  PhaseRetrieval<Space, float> phase;
  View<float***> raw{"raw", count, 2, n}, projections{"projections", 2, count, n},
      finer{"finer", 2, count, 2 * n}, images{"images", 2, n, n}, others{"others", 2, count, n},
      binned{"binned", 2, count / 2, n / 2}, flats{"flats", 3, 2, n}, wider{"wider", 2, count, 2 * n - 3};
  View<float*> places{"places", count};
  View<float**> frame{"frame", 2, n};
};

std::vector<Function> functions(const Plans& p) {
  return {
      {"normalise_projections::",
       [&](const Space& space) { normalise_projections(space, p.raw, p.frame, p.frame, p.projections); }},
      {"StripeRemoval::", [&](const Space& space) { p.offset.execute(space, p.projections); }},
      {"StripeRemoval::", [&](const Space& space) { p.sorting.execute(space, p.projections); }},
      {"StripeRemoval::", [&](const Space& space) { p.all.execute(space, p.projections); }},
      {"normalise_projections::",
       [&](const Space& space) {
         normalise_projections(space, p.raw, p.frame, p.flats, p.places, p.projections);
       }},
      {"correct_beam_hardening::",
       [&](const Space& space) {
         correct_beam_hardening(space, p.projections, {1, 0.1});
       }},
      {"remove_outliers::", [&](const Space& space) { remove_outliers(space, p.projections, p.others); }},
      {"PhaseRetrieval::", [&](const Space& space) { p.phase.execute(space, p.projections, p.others); },
       true},
      {"PhaseRetrieval::",
       [&](const Space& space) { p.phase.filter_transpose(space, p.projections, p.others); }, true},
      {"bin_frames::", [&](const Space& space) { bin_frames(space, p.projections, p.binned, 2); }},
      {"bin_frames_transpose::",
       [&](const Space& space) { bin_frames_transpose(space, p.binned, p.projections, 2); }},
      {"turn_detector::",
       [&](const Space& space) { turn_detector(space, p.projections, p.others, {.angle = 0.1}); }},
      {"turn_detector_transpose::",
       [&](const Space& space) { turn_detector_transpose(space, p.projections, p.others, {.angle = 0.1}); }},
      {"extend_detector::", [&](const Space& space) { extend_detector(space, p.projections, p.finer, 3); }},
      {"extend_detector_transpose::",
       [&](const Space& space) { extend_detector_transpose(space, p.finer, p.projections, 3); }},
      // The axis in the middle of the last pixel but one: rows of 2 n - 3.
      {"weigh_half_acquisition::",
       [&](const Space& space) { weigh_half_acquisition(space, p.projections, p.wider, p.n - 2); }},
      {"weigh_half_acquisition_transpose::",
       [&](const Space& space) { weigh_half_acquisition_transpose(space, p.wider, p.projections, p.n - 2); }},
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
    for (const auto strategy :
         {GriddingStrategy::Automatic, GriddingStrategy::Atomic, GriddingStrategy::PrunedGather,
          Impl::is_host<Space> ? GriddingStrategy::Bins : GriddingStrategy::Tiles})
      for (const std::int64_t slices : {1, 6}) {
        CAPTURE(int(strategy), slices);
        const FourierTomographyOptions options{.image = image, .slices = slices, .strategy = strategy};
        // Tiles lists samples three times while it sorts them, more than one small slice takes afterwards.
        const bool tiles = FourierTomography<Space, float>(Space(), geometry, options).plan().strategy() ==
                           GriddingStrategy::Tiles;
        check_memory<FourierTomography<Space, float>>(tiles && slices == 1 ? 1.1 : 1, geometry, options);
      }
    check_memory<ProjectionFilter<Space, float>>(1, std::int64_t(3 * angles), n, FilterOptions{});
    check_memory<ProjectionFilter<Space, double>>(1, std::int64_t(3 * angles), n,
                                                  FilterOptions{.upsampling = 2, .shift = 2.5});
    check_memory<StripeRemoval<Space, float>>(1, angles, n, StripeOptions{});
    check_memory<StripeRemoval<Space, double>>(1, angles, n, StripeOptions{.method = StripeMethod::Offset});
    check_memory<StripeRemoval<Space, float>>(1, angles, n, StripeOptions{.method = StripeMethod::All});
    check_memory<PhaseRetrieval<Space, float>>(1, std::int64_t(angles), 5, n, Plans::beam);
    check_memory<Adam<Space, float>>(1, std::vector<std::size_t>{std::size_t(n), 7}, AdamOptions{});
  }
}

TEST_CASE("plans of tomography that outlive Kokkos say so") {
  const ParallelBeamGeometry geometry{.angles = std::vector<double>{0, 0.5, 1}, .width = 16};
  const auto made_with = []<class Plan>(std::type_identity<Plan>, const auto&... arguments) {
    return [=](const Space& space) -> std::shared_ptr<void> {
      return std::make_shared<Plan>(space, arguments...);
    };
  };
  const auto views = [](const Space& space) -> std::shared_ptr<void> {
    return std::make_shared<LogPolarTomography<Space, float>>(
        space, ParallelBeamGeometry{.angles = Plans::half_turn(), .width = Plans::n});
  };
  const auto points = [](const Space& space) -> std::shared_ptr<void> {
    return std::make_shared<NonuniformFFT<Space, 2, float>>(space, View<double**>("points", 3, 2),
                                                            std::array{8, 8});
  };
  check_outliving(
      "plans of tomography that outlive Kokkos say so",
      {{"FourierTomography", made_with(std::type_identity<FourierTomography<Space, float>>(), geometry)},
       {"LineTomography", made_with(std::type_identity<LineTomography<Space, float>>(), geometry)},
       {"LogPolarTomography", views},
       {"NonuniformFFT", points},
       {"ProjectionFilter",
        made_with(std::type_identity<ProjectionFilter<Space, float>>(), std::int64_t(3), 16)},
       {"StripeRemoval", made_with(std::type_identity<StripeRemoval<Space, float>>(), 8, 16)},
       {"PhaseRetrieval",
        made_with(std::type_identity<PhaseRetrieval<Space, float>>(), std::int64_t(3), 5, 16, Plans::beam)},
       {"Adam", made_with(std::type_identity<Adam<Space, float>>(), std::vector<std::size_t>{7})}});
}
