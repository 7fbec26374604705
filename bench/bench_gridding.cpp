// SPDX-License-Identifier: MIT
// Gridding of polar samples: `slices` real slices in pairs, `angles` rays over pi of n samples, float, error at
// most 1e-4. Samples [points, slices] or [slices, points], grids [slices, rows, columns].
// Counters: taps (samples x slices x kernel points) and the least bytes (samples and grids once) per second.

#include "run.hpp"

#include <bracewell/gridding/nonuniform_fft.hpp>

#include <Kokkos_Random.hpp>

#include <cmath>
#include <numbers>
#include <string>

namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;
using Complex = Kokkos::complex<float>;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;

struct Problem {
  Space space;
  Gridding<Space, 2, float> plan;
  View<Complex**> samples;
  View<Complex***> grids;

  Problem(const benchmark::State& state, GriddingOptions options)
      : plan(space, polar(state), {int(state.range(0)), int(state.range(0))}, complete(state, options)),
        samples(options.order == SampleOrder::SlicesLast
                    ? View<Complex**>("samples", plan.points(), plan.slices())
                    : View<Complex**>("samples", plan.slices(), plan.points())),
        grids("grids", plan.slices(), plan.grid_shape()[0], plan.grid_shape()[1]) {
    const View<float*> parts(reinterpret_cast<float*>(samples.data()), 2 * samples.size());
    Kokkos::fill_random(space, parts, Kokkos::Random_XorShift64_Pool<Space>(1), -1.f, 1.f);
    space.fence();
  }

  static PolarPoints polar(const benchmark::State& state) {
    PolarPoints points{.angles = std::vector<double>(state.range(1)), .samples = int(state.range(0))};
    for (std::size_t p = 0; p < points.angles.size(); ++p)
      points.angles[p] = std::numbers::pi * double(p) / double(points.angles.size());
    return points;
  }
  static GriddingOptions complete(const benchmark::State& state, GriddingOptions options) {
    options.slices = state.range(2) / 2;
    return options;
  }

  void count(benchmark::State& state) const {
    const double all_samples = double(samples.size());
    const auto rate = benchmark::Counter::kIsIterationInvariantRate;
    state.counters["Gtaps_per_s"] = benchmark::Counter(all_samples * plan.width() * plan.width() / 1e9, rate);
    state.counters["GB_per_s"] =
        benchmark::Counter((all_samples + double(grids.size())) * sizeof(Complex) / 1e9, rate);
    state.counters["grid"] = plan.grid_shape()[0];
    state.counters["width"] = plan.width();
  }
};

template <class Run>
void measure(benchmark::State& state, const GriddingOptions& options, const Run& run) {
  try {
    const Problem problem(state, options);
    run(problem); // warm-up
    problem.space.fence();
    for (auto _ : state) {
      run(problem);
      problem.space.fence();
    }
    problem.count(state);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

void register_benchmark(const std::string& name, const GriddingOptions& options, bool forward) {
  benchmark::RegisterBenchmark(("gridding/" + name).c_str(),
                               [=](benchmark::State& state) {
                                 measure(state, options, [=](const Problem& problem) {
                                   if (forward)
                                     problem.plan.spread(problem.space, problem.samples, problem.grids);
                                   else
                                     problem.plan.interpolate(problem.space, problem.grids, problem.samples);
                                 });
                               })
      ->ArgNames({"n", "angles", "slices"})
      ->Args({362, 724, 64})
      ->Args({724, 1447, 64})
      ->Args({1448, 2895, 64})
      ->Args({1840, 3619, 64})
      ->Args({2896, 5790, 64})
      ->Args({1448, 2895, 2})
      ->Args({1448, 2895, 8})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const auto last = SampleOrder::SlicesLast, first = SampleOrder::SlicesFirst;
  register_benchmark("spread", {.order = last}, true);
  register_benchmark("spread_sigma_2", {.oversampling = 2, .order = last}, true);
  if (!Impl::is_host<Space>) {
    register_benchmark("spread_tiles", {.strategy = GriddingStrategy::Tiles, .order = last}, true);
    register_benchmark("spread_tiles_sigma_2",
                       {.oversampling = 2, .strategy = GriddingStrategy::Tiles, .order = last}, true);
    register_benchmark("spread_tiles_slices_first", {.strategy = GriddingStrategy::Tiles, .order = first},
                       true);
  }
  register_benchmark("spread_pruned", {.strategy = GriddingStrategy::PrunedGather, .order = first}, true);
  register_benchmark("spread_pruned_slices_last", {.strategy = GriddingStrategy::PrunedGather, .order = last},
                     true);
  register_benchmark("spread_atomic", {.strategy = GriddingStrategy::Atomic, .order = first}, true);
  register_benchmark("spread_atomic_slices_last", {.strategy = GriddingStrategy::Atomic, .order = last},
                     true);
  register_benchmark("interpolate", {.order = first}, false);
  register_benchmark("interpolate_slices_last", {.order = last}, false);
  return Bench::run(argc, argv, {"GB_per_s", "Gtaps_per_s", "grid", "width"});
}
