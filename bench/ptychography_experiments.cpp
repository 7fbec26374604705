// What experiments bring: ptychography/experiment/n:N/m:M/modes:L/fraction:F/mask:K/batch:B. Loss and both gradients,
// amplitude loss, patterns as counted. fraction: positions between pixels; mask: one pixel of seven does not count;
// batch: patterns of a call, 0 for all.

#include "ptychography_experiments.hpp"

#include <bracewell/ptychography/ptychography_loss.hpp>

#include <benchmark/benchmark.h>

#include <random>
#include <string>

namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;
using Complex = Kokkos::complex<float>;
template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Space>;

struct Settings {
  int raster, n, m, modes;
  bool fraction, mask;
  int batch;
};

template <class Made, class Make>
void fill(const Made& view, const Make& make) {
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < host.size(); ++i)
    host.data()[i] = make(i);
  Kokkos::deep_copy(view, host);
}

void experiment(benchmark::State& state, const Settings& settings) {
  const auto [raster, n, m, modes, fraction, mask, batch] = settings;
  const int size = raster * 4 + 256 + (n > 128 ? n : 0), count = raster * raster;
  const Space space;
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  const View<Complex**> object("object", size, size), object_gradient("object gradient", size, size);
  const View<Complex***> probe("probe", modes, m, m), probe_gradient("probe gradient", modes, m, m);
  fill(object, [&](std::size_t) { return Complex(1 + 0.1f * normal(engine), 0.1f * normal(engine)); });
  fill(probe, [&](std::size_t) { return Complex(normal(engine), normal(engine)); });
  const Kokkos::View<double* [2], Kokkos::HostSpace> positions("positions", count);
  for (int j = 0; j < count; ++j)
    for (int axis = 0; axis < 2; ++axis)
      positions(j, axis) = (axis == 0 ? j / raster : j % raster) * (size - m - 2) / raster +
                           (fraction ? 0.1 + 0.3 * (j % 2) : 0.0);
  PtychographyLoss<Space, float, float, FusedDetectors<128, 256, 512>> model(
      space, {{size, size}, m, n, modes}, positions,
      {.loss = PatternLoss::Amplitude,
       .scale = PatternScale::None,
       .weights = mask ? PixelWeights::Mask : PixelWeights::None});
  const int group = std::min(count, 64);
  const View<std::uint16_t***> patterns("patterns", group, n, n);
  std::poisson_distribution<int> counts(20);
  fill(patterns, [&](std::size_t) { return static_cast<std::uint16_t>(counts(engine)); });
  const View<float**> weights("mask", n, n);
  fill(weights, [](std::size_t i) { return i % 7 == 3 ? 0.0f : 1.0f; });
  for (int first = 0; first < count; first += group)
    model.set_patterns(space, first, patterns,
                       mask ? Array<const float, Space::memory_space>(weights)
                            : Array<const float, Space::memory_space>());
  const View<int*> subset("subset", batch);
  fill(subset, [&](std::size_t i) { return static_cast<int>(i * 61 % count); });
  const View<double> loss("loss");
  const auto run = [&] {
    model.evaluate(space, object, probe,
                   {.loss = loss, .object_gradient = object_gradient, .probe_gradient = probe_gradient},
                   batch > 0 ? Array<const int, Space::memory_space>(subset)
                             : Array<const int, Space::memory_space>());
  };
  run();
  space.fence();
  // Several evaluations between fences: the host runs ahead, as a solver lets it.
  const int repeats = batch > 0 ? 20 : Impl::is_host<Space> ? 1 : 3;
  for (auto _ : state) {
    for (int i = 0; i < repeats; ++i)
      run();
    space.fence();
  }
  state.counters["ms"] = benchmark::Counter(1e-3 * repeats, benchmark::Counter::kIsIterationInvariantRate |
                                                                benchmark::Counter::kInvert);
  state.counters["plan_MB"] = static_cast<double>(model.memory_bytes()) / 1e6;
  state.SetLabel(model.path() == PatternPath::Fused   ? "fused"
                 : model.path() == PatternPath::Lines ? "lines"
                                                      : "general");
}

} // namespace

void add_experiments() {
  const bool host = Bracewell::Impl::is_host<Space>;
  const int raster = host ? 4 : 64;
  const Settings all[] = {
      {raster, 128, 128, 1, false, false, 0},  {raster, 128, 128, 1, true, true, 0},
      {raster, 128, 128, 3, false, false, 0},  {raster, 128, 128, 3, true, true, 0},
      {raster, 256, 256, 1, false, false, 0},  {raster, 256, 256, 3, false, false, 0},
      {raster, 256, 256, 3, true, true, 0},    {raster, 256, 256, 3, true, true, 64},
      {raster, 128, 128, 1, false, false, 64}, {raster, 256, 80, 1, false, false, 0},
      {raster, 200, 200, 2, true, true, 0},    {host ? 2 : 32, 512, 512, 1, false, false, 0}};
  for (const Settings& s : all) {
    const auto text = [](const char* name, int value) {
      return std::string("/") + name + ":" + std::to_string(value);
    };
    benchmark::RegisterBenchmark(("ptychography/experiment" + text("n", s.n) + text("m", s.m) +
                                  text("modes", s.modes) + text("fraction", s.fraction) +
                                  text("mask", s.mask) + text("batch", host && s.batch ? 4 : s.batch))
                                     .c_str(),
                                 [s, host](benchmark::State& state) {
                                   Settings used = s;
                                   used.batch = host && s.batch ? 4 : s.batch;
                                   experiment(state, used);
                                 })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
}
