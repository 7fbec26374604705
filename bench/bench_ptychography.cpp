// Ptychography: bench_ptychography --benchmark_filter='ptychography/iteration/.*'
// One iteration of full-batch optimisation: probe from its five parameters, loss, gradients of object
// amplitude, object phase and probe parameters, a step of Adam. Object 512^2, probe 80^2, detector 256^2, a
// raster of 64 x 64 positions; smaller on hosts (the name says the sizes). And what experiments bring,
// ptychography/experiment/.*, in ptychography_experiments.cpp.

#include "ptychography_experiments.hpp"
#include "run.hpp"

#include <bracewell/optimize/adam.hpp>
#include <bracewell/ptychography/object.hpp>
#include <bracewell/ptychography/probe.hpp>
#include <bracewell/ptychography/ptychography_loss.hpp>

#include <cmath>
#include <random>
#include <string>

namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;

template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Space>;

constexpr int probe_size = 80, detector_size = 256;

template <class Storage>
struct Iteration {
  using Complex = Kokkos::complex<float>;

  Space space;
  int raster, size;
  AberratedProbe<Space, float> lens{
      space, probe_size, detector_size, {.wavelength = 0.0197, .pixel_size = 0.2, .convergence_angle = 0.02}};
  View<float**> amplitude, phase, amplitude_gradient, phase_gradient;
  View<float*> parameters{"parameters", 5}, parameter_gradient{"parameter gradient", 5};
  View<Complex**> object, object_gradient, probe{"probe", probe_size, probe_size},
      probe_gradient{"probe gradient", probe_size, probe_size};
  View<double> loss{"loss"};
  PtychographyLoss<Space, float, Storage> model;
  Adam<Space, float> adam;

  Iteration(int raster_, const PtychographyOptions& options)
      : raster(raster_), size(raster * 27 / 4 + probe_size), amplitude("amplitude", size, size),
        phase("phase", size, size), amplitude_gradient("amplitude gradient", size, size),
        phase_gradient("phase gradient", size, size), object("object", size, size),
        object_gradient("object gradient", size, size),
        model(space, {{size, size}, probe_size, detector_size}, positions(), options),
        adam(space, {amplitude.size(), phase.size(), 5}) {
    const auto a = Kokkos::create_mirror_view(amplitude), p = Kokkos::create_mirror_view(phase);
    std::mt19937 engine(3);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < a.size(); ++i) {
      a.data()[i] = 0.9f + 0.1f * normal(engine);
      p.data()[i] = 0.1f * normal(engine);
    }
    Kokkos::deep_copy(amplitude, a);
    Kokkos::deep_copy(phase, p);
    const auto start = Kokkos::create_mirror_view(parameters);
    for (int i = 0; i < 5; ++i)
      start(i) = std::array{45.0f, 0.06f, 8.0f, 0.2f, 0.12f}[i];
    Kokkos::deep_copy(parameters, start);
    const int group = 64;
    Kokkos::View<std::uint16_t***, Kokkos::LayoutRight, Kokkos::HostSpace> patterns(
        "patterns", group, detector_size, detector_size);
    std::poisson_distribution<int> counts(100);
    for (std::size_t i = 0; i < patterns.size(); ++i)
      patterns.data()[i] = static_cast<std::uint16_t>(counts(engine));
    for (int first = 0; first < raster * raster; first += group)
      model.set_patterns(space, first,
                         Kokkos::subview(patterns, std::pair(0, std::min(group, raster * raster - first)),
                                         Kokkos::ALL, Kokkos::ALL));
    form();
  }

  Kokkos::View<int* [2], Kokkos::HostSpace> positions() const {
    Kokkos::View<int* [2], Kokkos::HostSpace> corners("positions", raster * raster);
    for (int j = 0; j < raster * raster; ++j)
      for (int axis = 0; axis < 2; ++axis)
        corners(j, axis) = (axis == 0 ? j / raster : j % raster) * (size - probe_size) / raster;
    return corners;
  }

  void form() const {
    complex_object(space, amplitude, phase, object);
    lens.evaluate(space, parameters, probe);
  }

  void run() {
    form();
    model.evaluate(space, object, probe,
                   {.loss = loss, .object_gradient = object_gradient, .probe_gradient = probe_gradient});
    complex_object_gradients(space, amplitude, phase, object_gradient,
                             {.amplitude = amplitude_gradient, .phase = phase_gradient});
    lens.gradients(space, parameters, probe_gradient, parameter_gradient);
    adam.step(space, {{amplitude, amplitude_gradient, 0.01},
                      {phase, phase_gradient, 0.01},
                      {parameters, parameter_gradient, 0.001}});
  }
};

template <class Storage>
void iteration(benchmark::State& state, int raster, const PtychographyOptions& options) {
  Iteration<Storage> problem(raster, options);
  problem.run();
  problem.space.fence();
  // Several iterations between fences: the host runs ahead, as a solver lets it.
  const int repeats = Impl::is_host<Space> ? 1 : 5;
  for (auto _ : state) {
    for (int i = 0; i < repeats; ++i)
      problem.run();
    problem.space.fence();
  }
  using benchmark::Counter;
  state.counters["ms_per_iteration"] =
      Counter(1e-3 * repeats, Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["patterns_per_s"] =
      Counter(double(raster) * raster * repeats, Counter::kIsIterationInvariantRate, Counter::kIs1000);
  state.counters["plan_MB"] = static_cast<double>(problem.model.memory_bytes()) / 1e6;
}

template <class Storage>
void loss_alone(benchmark::State& state, int raster, const PtychographyOptions& options, bool object,
                bool probe) {
  Iteration<Storage> problem(raster, options);
  PtychographyOutputs<float, typename Space::memory_space> outputs{.loss = problem.loss};
  if (object)
    outputs.object_gradient = problem.object_gradient;
  if (probe)
    outputs.probe_gradient = problem.probe_gradient;
  for (auto _ : state) {
    problem.model.evaluate(problem.space, problem.object, problem.probe, outputs);
    problem.space.fence();
  }
}

/// |a - b| / |b| in L2.
double difference(const View<Kokkos::complex<float>**>& a, const View<Kokkos::complex<float>**>& b) {
  const auto x = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), a),
             y = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), b);
  double apart = 0, whole = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Kokkos::complex<double> u(x.data()[i]), v(y.data()[i]), d = u - v;
    apart += d.real() * d.real() + d.imag() * d.imag();
    whole += v.real() * v.real() + v.imag() * v.imag();
  }
  return std::sqrt(apart / whole);
}

/// How far gradients with storage in half precision are from those with float, at the first iteration.
void accuracy(benchmark::State& state, int raster, const PtychographyOptions& options) {
  Iteration<Half> half(raster, options);
  Iteration<float> single(raster, options);
  half.run();
  single.run();
  half.space.fence();
  single.space.fence();
  state.counters["object_error"] = difference(half.object_gradient, single.object_gradient);
  state.counters["probe_error"] = difference(half.probe_gradient, single.probe_gradient);
  for (auto _ : state) {
    half.run();
    half.space.fence();
  }
}

template <class... Arguments>
void add(const std::string& name, void (*function)(benchmark::State&, Arguments...), Arguments... arguments) {
  benchmark::RegisterBenchmark(("ptychography/" + name).c_str(),
                               [=](benchmark::State& state) { function(state, arguments...); })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

void add_all() {
  const int raster = Impl::is_host<Space> ? 8 : 64;
  const std::string sizes = "/probe:80/detector:256/positions:" + std::to_string(raster * raster);
  const PtychographyOptions plain{.counts = 100};
  PtychographyOptions reduced = plain, general = plain;
  reduced.reduced_grid = true;
  general.path = PatternPath::General;
  using Options = const PtychographyOptions&;
  add<int, Options>("iteration/float" + sizes, iteration<float>, raster, plain);
  add<int, Options>("iteration/half" + sizes, iteration<Half>, raster, plain);
  add<int, Options>("iteration/float/reduced" + sizes, iteration<float>, raster, reduced);
  add<int, Options>("iteration/half/reduced" + sizes, iteration<Half>, raster, reduced);
  add<int, Options>("iteration/float/general" + sizes, iteration<float>, raster, general);
  add<int, Options>("accuracy/half" + sizes, accuracy, raster, plain);
  add<int, Options, bool, bool>("loss/float" + sizes, loss_alone<float>, raster, plain, false, false);
  add<int, Options, bool, bool>("object_gradient/float" + sizes, loss_alone<float>, raster, plain, true,
                                false);
  add<int, Options, bool, bool>("probe_gradient/float" + sizes, loss_alone<float>, raster, plain, false,
                                true);
  add<int, Options, bool, bool>("gradients/half" + sizes, loss_alone<Half>, raster, plain, true, true);
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  add_all();
  add_experiments();
  return Bench::run(
      argc, argv,
      {"host_MB", "ms", "ms_per_iteration", "object_error", "patterns_per_s", "plan_MB", "probe_error"});
}
