// What experiments bring: ptychography/experiment/n:N/m:M/modes:L/fraction:F/mask:K/batch:B[/find|/near|/detector|/relaxed]
// [/general]. Loss and both gradients, amplitude loss, patterns as counted. fraction: positions between pixels; mask: one
// pixel of seven does not count; batch: patterns of a call, 0 for all; find: gradients of positions; near: field; detector:
// factors of patterns and a background; relaxed: two modes of relaxation, and all gradients of these. The label says the
// path. And ptychography/streamed/n:N/m:M/modes:L/patterns:P/room_MB:R, of which R megabytes of patterns may be on the
// device (0: all of them are), the others come from the host.

#include "ptychography_experiments.hpp"

#include <bracewell/ptychography/ptychography_loss.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;
using Complex = Kokkos::complex<float>;
template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Space>;

enum class Extra { None, Find, Near, Detector, Relaxed };
constexpr const char* extra_names[] = {"", "/find", "/near", "/detector", "/relaxed"};

struct Settings {
  int raster, n, m, modes;
  bool fraction, mask;
  int batch;
  Extra extra = Extra::None;
  bool general = false;
  int room = 0; ///< megabytes of the device that patterns may take; 0: as many as there are
};

struct Detectors : Impl::FusedDetectors<128, 256, 512> {
  static constexpr bool knows_lines(int size) {
    return size == 64 || size == 128 || size == 192 || size == 256 || size == 512;
  }
};

template <class Made, class Make>
void fill(const Made& view, const Make& make) {
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < host.size(); ++i)
    host.data()[i] = make(i);
  Kokkos::deep_copy(view, host);
}

using Model = PtychographyLoss<Space, float, Impl::CompiledWith<float, Detectors>>;
using Inputs = PtychographyInputs<float, Space::memory_space>;
using Outputs = PtychographyOutputs<float, Space::memory_space>;

/// Positions and model of an experiment.
struct Experiment {
  int size, count, relaxation;
  bool detector;
  Kokkos::View<double* [2], Kokkos::HostSpace> positions;

  explicit Experiment(const Settings& s)
      : size(s.raster * 4 + 256 + (s.n > 128 ? s.n : 0)), count(s.raster * s.raster),
        relaxation(s.extra == Extra::Relaxed ? 2 : 0), detector(s.extra == Extra::Detector),
        positions("positions", count) {
    for (int j = 0; j < count; ++j)
      for (int axis = 0; axis < 2; ++axis)
        positions(j, axis) = (axis == 0 ? j / s.raster : j % s.raster) * (size - s.m - 2) / s.raster +
                             (s.fraction ? 0.1 + 0.3 * (j % 2) : 0.0);
  }

  Model model(const Space& space, const Settings& s) const {
    return Model(space, {{size, size}, s.m, s.n, s.modes, 1, relaxation}, positions,
                 {.loss = PatternLoss::Amplitude,
                  .scale = PatternScale::None,
                  .weights = s.mask ? PixelWeights::Mask : PixelWeights::None,
                  .fresnel_number = s.extra == Extra::Near ? std::optional(100.0) : std::nullopt,
                  .refine_positions = s.extra == Extra::Find,
                  .pattern_factors = detector,
                  .detector_background = detector,
                  .path = s.general ? PatternPath::General : PatternPath::Automatic,
                  .target_bytes = s.room > 0 ? std::optional(std::size_t(s.room) * 1000000) : std::nullopt});
  }
};

/// What an evaluation takes and gives beside object and probe.
struct Extras {
  View<float**> position_gradient, background, background_gradient;
  View<float*> factors, factor_gradient;
  View<Complex**> coefficients, coefficient_gradient;
  View<Complex***> modes, modes_gradient;

  template <class Make>
  Extras(const Settings& s, const Experiment& e, const Make& random, Inputs& inputs, Outputs& outputs)
      : position_gradient("position gradient", e.count, 2), background("background", s.n, s.n),
        background_gradient("background gradient", s.n, s.n), factors("factors", e.count),
        factor_gradient("factor gradient", e.count), coefficients("coefficients", e.count, e.relaxation),
        coefficient_gradient("coefficient gradient", e.count, e.relaxation),
        modes("relaxation", e.relaxation, s.m, s.m),
        modes_gradient("relaxation gradient", e.relaxation, s.m, s.m) {
    if (s.extra == Extra::Find)
      outputs.position_gradient = position_gradient;
    if (e.detector) {
      Kokkos::deep_copy(factors, 1.1f);
      Kokkos::deep_copy(background, 2.0f);
      inputs.factors = factors, inputs.detector_background = background;
      outputs.factor_gradient = factor_gradient, outputs.background_gradient = background_gradient;
    }
    if (e.relaxation > 0) {
      fill(coefficients, random);
      fill(modes, random);
      inputs.coefficients = coefficients, inputs.relaxation = modes;
      outputs.coefficient_gradient = coefficient_gradient, outputs.relaxation_gradient = modes_gradient;
    }
  }
};

/// Patterns, and the mask that goes with them.
template <class Engine>
void set_patterns(const Space& space, Model& model, const Settings& s, int count, Engine& engine) {
  const int group = std::min(count, 64);
  const View<std::uint16_t***> patterns("patterns", group, s.n, s.n);
  std::poisson_distribution<int> counts(20);
  fill(patterns, [&](std::size_t) { return static_cast<std::uint16_t>(counts(engine)); });
  const View<float**> weights("mask", s.n, s.n);
  fill(weights, [](std::size_t i) { return i % 7 == 3 ? 0.0f : 1.0f; });
  Array<const float, Space::memory_space> mask;
  if (s.mask)
    mask = weights;
  for (int first = 0; first < count; first += group)
    model.set_patterns(space, first, patterns, mask);
}

void experiment(benchmark::State& state, const Settings& settings) {
  const Experiment made(settings);
  const int size = made.size, modes = settings.modes, m = settings.m, batch = settings.batch;
  const Space space;
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  const auto random = [&](std::size_t) { return Complex(normal(engine), normal(engine)); };
  const View<Complex**> object("object", size, size), object_gradient("object gradient", size, size);
  const View<Complex***> probe("probe", modes, m, m), probe_gradient("probe gradient", modes, m, m);
  fill(object, [&](std::size_t) { return Complex(1 + 0.1f * normal(engine), 0.1f * normal(engine)); });
  fill(probe, random);
  Model model = made.model(space, settings);
  set_patterns(space, model, settings, made.count, engine);
  const View<int*> subset("subset", batch);
  fill(subset, [&](std::size_t i) { return static_cast<int>(i * 61 % made.count); });
  const View<double> loss("loss");
  Inputs inputs{.object = object, .probe = probe};
  Outputs outputs{.loss = loss, .object_gradient = object_gradient, .probe_gradient = probe_gradient};
  const Extras extras(settings, made, random, inputs, outputs);
  Array<const int, Space::memory_space> some;
  if (batch > 0)
    some = subset;
  const auto run = [&] { model.evaluate(space, inputs, outputs, some); };
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
  state.counters["host_MB"] = static_cast<double>(model.host_bytes()) / 1e6;
  const char* const paths[] = {"automatic", "fused", "known lines", "lines", "general"};
  state.SetLabel(paths[static_cast<int>(model.path())]);
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
  std::vector<Settings> settings(std::begin(all), std::end(all));
  for (const int n : {64, 192, 512}) { // known lengths beside nearly the same that are arguments
    const int some = n < 512 ? raster : host ? 2 : 32;
    settings.push_back({some, n, n / 64 * 63, 1, false, false, 0});
    settings.push_back({some, n, n, 3, true, true, 0});
    if (n < 512)
      settings.push_back({some, n, n, 1, false, false, 0});
  }
  for (const int n : {242, 254}) // through the FFT library: 2 * 11^2, 2 * 127
    for (const int batch : {0, 64})
      settings.push_back({raster, n, n, 3, false, false, batch});
  for (const bool general : {false, true})
    for (const Extra extra : {Extra::Find, Extra::Near, Extra::Detector, Extra::Relaxed}) {
      settings.push_back({raster, 128, 128, 1, true, false, 0, extra, general});
      settings.push_back({raster, 256, 256, 3, true, false, 0, extra, general});
    }
  const std::size_t plain = settings.size();
  for (const int modes : {1, 3})
    for (const bool streams : {false, true}) {
      settings.push_back({host ? raster : 256, 256, 256, modes, false, false, 0});
      settings.back().room = !streams ? 0 : host ? 1 : 8000;
    }
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const Settings& s = settings[i];
    if (host && s.general) // the others are, too
      continue;
    Settings used = s;
    used.batch = host && s.batch ? 4 : s.batch;
    const auto text = [](const char* name, int value) {
      return std::string("/") + name + ":" + std::to_string(value);
    };
    const std::string name =
        i < plain ? "ptychography/experiment" + text("n", s.n) + text("m", s.m) + text("modes", s.modes) +
                        text("fraction", s.fraction) + text("mask", s.mask) + text("batch", used.batch) +
                        extra_names[static_cast<int>(s.extra)] + (s.general ? "/general" : "")
                  : "ptychography/streamed" + text("n", s.n) + text("m", s.m) + text("modes", s.modes) +
                        text("patterns", s.raster * s.raster) + text("room_MB", s.room);
    benchmark::RegisterBenchmark(name.c_str(), [used](benchmark::State& state) { experiment(state, used); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
}
