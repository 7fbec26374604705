// SPDX-License-Identifier: MIT
// Parallel-beam back-projection and projection without filter, `angles` over pi, detectors of n pixels,
// float, error
// <= 1e-4. GB_per_s counts projections and images once.

#include <bracewell/tomography/filter.hpp>
#include <bracewell/tomography/fourier.hpp>
#include <bracewell/tomography/line.hpp>
#include <bracewell/tomography/log_polar.hpp>

#include <Kokkos_Random.hpp>
#include <benchmark/benchmark.h>

#include <memory>
#include <numbers>
#include <string>

namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;
using Volume = View<float***>;

std::vector<double> half_turn(std::int64_t count) {
  std::vector<double> angles(count);
  for (std::int64_t p = 0; p < count; ++p)
    angles[p] = std::numbers::pi * double(p) / double(count);
  return angles;
}

void fourier(benchmark::State& state, bool backproject, FourierTomographyOptions options) {
  try {
    const Space space;
    const std::int64_t n = state.range(0), angles = state.range(1), slices = state.range(2);
    options.angles = half_turn(angles);
    options.width = static_cast<int>(n);
    options.slices = slices;
    const FourierTomography<Space, float> plan(space, options);
    const View<float***> projections("projections", slices, angles, n), images("images", slices, n, n);
    for (const auto& view : {projections, images})
      Kokkos::fill_random(space, View<float*>(view.data(), view.size()),
                          Kokkos::Random_XorShift64_Pool<Space>(1), -1.f, 1.f);
    const auto run = [&] {
      if (backproject)
        plan.backproject(space, projections, images);
      else
        plan.project(space, images, projections);
      space.fence();
    };
    run(); // warm-up
    for (auto _ : state)
      run();
    const auto rate = benchmark::Counter::kIsIterationInvariantRate;
    state.counters["GB_per_s"] =
        benchmark::Counter(double(projections.size() + images.size()) * sizeof(float) / 1e9, rate);
    state.counters["grid"] = plan.plan().grid_shape()[0];
    state.counters["memory_GB"] = double(plan.memory_bytes()) / 1e9;
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

struct Size {
  int n, angles, slices;
};

/// Times what make(space, size) returns: a function of (space, projections, images).
template <class Make>
void run_on_random(benchmark::State& state, const Make& make) {
  try {
    const Space space;
    const Size size{int(state.range(0)), int(state.range(1)), int(state.range(2))};
    const auto call = make(space, size);
    const Volume projections("projections", size.slices, size.angles, size.n),
        images("images", size.slices, size.n, size.n);
    for (const auto& view : {projections, images})
      Kokkos::fill_random(space, View<float*>(view.data(), view.size()),
                          Kokkos::Random_XorShift64_Pool<Space>(1), -1.f, 1.f);
    call(space, projections, images); // warm-up
    space.fence();
    for (auto _ : state) {
      call(space, projections, images);
      space.fence();
    }
    state.counters["GB_per_s"] =
        benchmark::Counter(double(projections.size() + images.size()) * sizeof(float) / 1e9,
                           benchmark::Counter::kIsIterationInvariantRate);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

auto line(const Space& space, const Size& size, bool projection) {
  return std::make_shared<LineTomography<Space, float>>(
      space,
      LineTomographyOptions{.angles = half_turn(size.angles), .width = size.n, .projection = projection});
}

auto line_backproject(const Space& space, const Size& size) {
  return [plan = line(space, size, false)](const Space& instance, const Volume& projections,
                                           const Volume& images) {
    plan->backproject(instance, projections, images);
  };
}

auto line_project(const Space& space, const Size& size) {
  return [plan = line(space, size, true)](const Space& instance, const Volume& projections,
                                          const Volume& images) {
    plan->project(instance, images, projections);
  };
}

auto log_polar_backproject(const Space& space, const Size& size) {
  const auto plan = std::make_shared<LogPolarTomography<Space, float>>(
      space,
      LogPolarTomographyOptions{.angles = half_turn(size.angles), .width = size.n, .slices = size.slices});
  return [plan](const Space& instance, const Volume& projections, const Volume& images) {
    plan->backproject(instance, projections, images);
  };
}

auto filter(const Space& space, const Size& size) {
  const auto plan = std::make_shared<ProjectionFilter<Space, float>>(
      space, std::int64_t(size.slices) * size.angles, size.n);
  return [plan](const Space& instance, const Volume& projections, const Volume&) {
    plan->execute(instance, projections, projections);
  };
}

template <class Make>
void register_method(const char* name, const Make& make) {
  benchmark::RegisterBenchmark((std::string("tomography/") + name).c_str(),
                               [=](benchmark::State& state) { run_on_random(state, make); })
      ->ArgNames({"n", "angles", "slices"})
      ->Args({724, 1447, 64})
      ->Args({1448, 2895, 64})
      ->Args({2896, 5790, 64})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

void register_fourier(const std::string& name, bool backproject,
                      const FourierTomographyOptions& options = {}) {
  benchmark::RegisterBenchmark(("tomography/fourier/" + name).c_str(),
                               [=](benchmark::State& state) { fourier(state, backproject, options); })
      ->ArgNames({"n", "angles", "slices"})
      ->Args({724, 1447, 64})
      ->Args({1448, 2895, 64})
      ->Args({2896, 5790, 64})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  register_fourier("backproject", true);
  register_fourier("backproject_sigma_2", true, {.oversampling = 2});
  register_fourier("project", false);
  register_method("log_polar/backproject", log_polar_backproject);
  register_method("line/backproject", line_backproject);
  register_method("line/project", line_project);
  register_method("filter", filter);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
