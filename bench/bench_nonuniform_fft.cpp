// SPDX-License-Identifier: MIT
// Non-uniform FFTs at random points, anywhere or crowded into 16 pixels' worth of frequencies: whole transforms of
// `transforms` arrays, and the sorting of points; sums from random points to random targets. Counters: millions of points x transforms per second.

#include "run.hpp"

#include <bracewell/gridding/nonuniform_fft.hpp>
#include <bracewell/gridding/nonuniform_sums.hpp>

#include <Kokkos_Random.hpp>

#include <cmath>
#include <string>

namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;

template <int Dim, class T>
void measure(benchmark::State& state, bool crowded, const std::string& what) {
  using Complex = Kokkos::complex<T>;
  const Space space;
  const std::int64_t count = state.range(0), slices = state.range(2);
  const int n = static_cast<int>(state.range(1));
  try {
    Kokkos::Random_XorShift64_Pool<Space> pool(1);
    const auto random = [&](const auto& complex) {
      const View<T*> parts(reinterpret_cast<T*>(complex.data()), 2 * complex.size());
      Kokkos::fill_random(space, parts, pool, T(-1), T(1));
    };
    const View<double**> points("points", count, Dim);
    const double reach = crowded ? 8. / n : 0.5;
    Kokkos::fill_random(space, points, pool, -reach, reach);
    std::array<int, Dim> shape;
    shape.fill(n);
    NonuniformFFT<Space, Dim, T> plan(
        space, points, shape, {.slices = slices, .tolerance = std::pow(10., -double(state.range(3)))});
    const View<Complex**> samples("samples", slices, count);
    std::conditional_t<Dim == 1, View<Complex**>,
                       std::conditional_t<Dim == 2, View<Complex***>, View<Complex****>>>
        images;
    if constexpr (Dim == 1)
      images = decltype(images)("images", slices, n);
    else if constexpr (Dim == 2)
      images = decltype(images)("images", slices, n, n);
    else
      images = decltype(images)("images", slices, n, n, n);
    random(samples);
    random(images);
    const auto run = [&] {
      if (what == "adjoint")
        plan.adjoint(space, samples, images);
      else if (what == "forward")
        plan.forward(space, images, samples);
      else
        plan.set_points(space, points);
    };
    run(); // warm-up
    space.fence();
    for (auto _ : state) {
      run();
      space.fence();
    }
    state.counters["Mpoints_per_s"] =
        benchmark::Counter(double(count * slices) / 1e6, benchmark::Counter::kIsIterationInvariantRate);
    state.counters["grid"] = plan.plan().grid_shape()[0];
    state.counters["width"] = plan.plan().width();
    state.counters["strategy"] = int(plan.plan().strategy());
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

/// Sums from points within +-pi to as many targets, `cycles` over the points along every axis.
template <int Dim, class T>
void measure_sums(benchmark::State& state, const std::string& what) {
  using Complex = Kokkos::complex<T>;
  const Space space;
  const std::int64_t count = state.range(0);
  try {
    Kokkos::Random_XorShift64_Pool<Space> pool(1);
    const View<double**> points("points", count, Dim), targets("targets", count, Dim);
    const double pi = std::acos(-1.), reach = double(state.range(1)) / (4 * pi);
    Kokkos::fill_random(space, points, pool, -pi, pi);
    Kokkos::fill_random(space, targets, pool, -reach, reach);
    NonuniformSums<Space, Dim, T> plan(space, points, targets,
                                       {.tolerance = std::pow(10., -double(state.range(2)))});
    const View<Complex**> values("values", 1, count), sums("sums", 1, count);
    Kokkos::fill_random(space, View<T*>(reinterpret_cast<T*>(values.data()), 2 * values.size()), pool, T(-1),
                        T(1));
    const auto run = [&] {
      if (what == "adjoint")
        plan.adjoint(space, values, sums);
      else if (what == "forward")
        plan.forward(space, values, sums);
      else
        plan.set_points(space, points, targets);
    };
    run(); // warm-up
    space.fence();
    for (auto _ : state) {
      run();
      space.fence();
    }
    state.counters["grid"] = plan.grid_shape()[0];
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

/// Rows {points, cycles, digits}.
template <int Dim, class T>
void register_sums(const std::string& type, const std::vector<std::vector<std::int64_t>>& rows) {
  for (const std::string what : {"adjoint", "forward", "set_points"}) {
    auto* const bench = benchmark::RegisterBenchmark(
        ("nonuniform_sums/" + what + "/" + std::to_string(Dim) + "d/" + type).c_str(),
        [=](benchmark::State& state) { measure_sums<Dim, T>(state, what); });
    bench->ArgNames({"points", "cycles", "digits"})->Unit(benchmark::kMillisecond)->UseRealTime();
    for (const auto& row : rows)
      bench->Args(row);
  }
}

/// Rows {points, n, transforms, digits}.
template <int Dim, class T>
void register_rows(const std::string& type, bool crowded,
                   const std::vector<std::vector<std::int64_t>>& rows) {
  for (const std::string what : {"adjoint", "forward", "set_points"}) {
    auto* const bench =
        benchmark::RegisterBenchmark(("nonuniform_fft/" + what + "/" + std::to_string(Dim) + "d/" + type +
                                      (crowded ? "/crowded" : "/random"))
                                         .c_str(),
                                     [=](benchmark::State& state) { measure<Dim, T>(state, crowded, what); });
    bench->ArgNames({"points", "n", "transforms", "digits"})->Unit(benchmark::kMillisecond)->UseRealTime();
    for (const auto& row : rows)
      bench->Args(row);
  }
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const std::int64_t many = 10000000;
  for (const bool crowded : {false, true}) {
    register_rows<2, float>("float", crowded, {{many, 1024, 1, 3}, {many, 1024, 1, 6}});
    register_rows<2, double>("double", crowded, {{many, 1024, 1, 9}});
    register_rows<3, float>("float", crowded, {{many, 200, 1, 3}, {many, 200, 1, 6}});
    register_rows<3, double>("double", crowded, {{many / 2, 200, 1, 9}});
  }
  register_rows<1, float>("float", false, {{many, 1000000, 1, 6}});
  register_rows<1, double>("double", false, {{many, 1000000, 1, 9}});
  register_rows<2, float>("float", false, {{1000000, 512, 8, 4}});
  register_rows<3, float>("float", false, {{1000000, 128, 8, 4}});
  register_rows<2, double>("double", false, {{2000000, 1024, 1, 6}, {2000000, 1024, 8, 6}});
  register_rows<3, float>("float", false, {{1000000, 64, 1, 5}, {many, 64, 1, 5}});
  register_rows<3, double>("double", false, {{200000, 64, 1, 6}, {1000000, 64, 1, 9}});
  register_sums<1, double>("double", {{1000000, 2000000, 6}});
  register_sums<2, double>("double", {{1000000, 2000, 6}});
  register_sums<3, double>("double", {{200000, 80, 6}});
  return Bench::run(argc, argv, {"Mpoints_per_s", "grid", "strategy", "width"});
}
