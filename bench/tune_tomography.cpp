// Prints the constants of the cost by which log-polar tomography divides half a turn into spans again
// (tomography/detail/log_polar/grid.hpp, cost): times of back-projection over numbers of spans, fitted to the three
// terms, in units that make the middle one what it is in use; and the spans that it chooses beside the fastest.

#include "tuning.hpp"

#include <bracewell/tomography/log_polar.hpp>

#include <numbers>

namespace {

using namespace Tuning;
using Bracewell::LogPolarTomographyOptions;
using Bracewell::ParallelBeamGeometry;
using Bracewell::Impl::LogPolarGrid;

/// Seconds of a pair of slices.
double time(const ParallelBeamGeometry& geometry, LogPolarTomographyOptions options) {
  const Space space;
  options.slices = host ? 2 : 32;
  const Bracewell::LogPolarTomography<Space, float> plan(space, geometry, options);
  const auto angles = static_cast<std::int64_t>(geometry.angles.size());
  const auto values = random_values<float>("projections", options.slices * angles * geometry.width);
  const Kokkos::View<float***, Kokkos::LayoutRight, Space> projections(values.data(), options.slices, angles,
                                                                       geometry.width),
      images("images", options.slices, geometry.width, geometry.width);
  return median_seconds(space, [&] { plan.backproject(space, projections, images); }) /
         double(options.slices) * 2;
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  print_device("tune_tomography", false);
  Fit fit(3);
  std::printf("\n%8s%8s%8s%8s%14s%14s\n", "width", "angles", "spans", "period", "us for a pair", "chosen");
  for (const int width : host ? std::vector{64, 128} : std::vector{512, 1024, 2048}) {
    ParallelBeamGeometry geometry{.width = width};
    LogPolarTomographyOptions options;
    const int angles = width * 3 / 2;
    for (int p = 0; p < angles; ++p)
      geometry.angles.push_back(std::numbers::pi * p / angles);
    const int chosen = LogPolarGrid::make({"tune_tomography"}, geometry, options).spans;
    double fastest = 0, of_chosen = 0;
    const int few =
        std::max(4, angles * 2 / LogPolarGrid::largest_period); // as LogPolarGrid::make tries them
    for (int spans = few; spans <= 4 * few; ++spans) {
      options.spans = spans;
      const LogPolarGrid grid = LogPolarGrid::make({"tune_tomography"}, geometry, options);
      const double seconds = time(geometry, options);
      const double rows = double(spans) * grid.result_rows();
      const double transformed = double(grid.columns) * spans * grid.period * grid.refinement;
      fit.add({grid.columns * (angles + rows), transformed, double(spans) * width * width}, seconds);
      std::printf("%8d%8d%8d%8d%14.1f%14s\n", width, angles, spans, grid.period, 1e6 * seconds,
                  spans == chosen ? "*" : "");
      fastest = fastest == 0 ? seconds : std::min(fastest, seconds);
      of_chosen = spans == chosen ? seconds : of_chosen;
    }
    if (of_chosen > 0)
      std::printf("  what is chosen takes %.0f %% longer than the fastest\n",
                  100 * (of_chosen / fastest - 1));
  }
  // Bytes: only their ratios matter, so that the transforms, which are bound by memory, set the scale.
  const auto found = fit.constants();
  const double scale = found[1] > 0 ? 30 / found[1] : 1;
  std::printf("\nBytes, with those of the transforms as they are; largest relative error of the fit %.2f\n",
              fit.error());
  print_constant("a value interpolated, to and from rows", scale * found[0], 40);
  print_constant("a value transformed and multiplied", scale * found[1], 30);
  print_constant("a pixel and span", scale * found[2], 50);
}
