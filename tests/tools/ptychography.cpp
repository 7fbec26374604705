// Kernels, labels, regions and instances of ptychography.

#include "../ptychography/plans.hpp"
#include "checks.hpp"

#include <bracewell/ptychography/compare.hpp>
#include <bracewell/ptychography/exit_wave.hpp>
#include <bracewell/ptychography/propagator.hpp>
#include <bracewell/ptychography/solver.hpp>

#include <algorithm>

using namespace Bracewell;

namespace {

using Test::check_outliving;
using Test::Function;
using Test::Space;
using Test::View;
using Complex = Kokkos::complex<float>;

struct Problem {
  static constexpr int m = 8, n = 40;
  using Loss = Test::TestLoss<float>;

  explicit Problem(const Space& space)
      : scan(space, positions(), {20, 23}, m), propagator(space, n, 2, 2.0),
        lens(space, m, n, {.wavelength = 1, .pixel_size = 1, .convergence_angle = 0.1}),
        fused(loss(space, PatternPath::Fused)), general(loss(space, PatternPath::General)),
        solver(space, shape, loss(space, PatternPath::Fused)) {}

  Loss loss(const Space& space, PatternPath path) const {
    Loss result(space, shape, positions(), {.counts = 10, .path = path});
    result.set_patterns(space, 0, targets);
    return result;
  }

  static Kokkos::View<int**, Kokkos::HostSpace> positions() { return {"positions", 2, 2}; }

  PtychographyShape shape{{20, 23}, m, n};
  ScanPositions<Space> scan;
  Propagator<Space, float> propagator;
  AberratedProbe<Space, float> lens;
  View<float***> targets{"t", 2, n, n};
  Loss fused, general;
  mutable PtychographySolver<Space, float, Test::TestStorage<float>> solver;
  View<float**> amplitude{"a", 20, 23}, phase{"p", 20, 23}, amplitude_gradient{"g", 20, 23};
  View<float*> parameters{"p", 5}, parameter_gradient{"g", 5};
  View<Complex**> object{"o", 20, 23}, object_gradient{"g", 20, 23};
  View<Complex***> probe{"p", 1, m, m}, probe_gradient{"g", 1, m, m};
  View<Complex****> waves{"w", 2, 1, n, n};
  View<double*> losses{"l", 2};
};

std::vector<Function> functions(const Problem& p) {
  const auto evaluate = [&](const auto& model) {
    return [&](const Space& space) {
      model.evaluate(space, p.object, p.probe,
                     {.pattern_losses = p.losses,
                      .object_gradient = p.object_gradient,
                      .probe_gradient = p.probe_gradient});
    };
  };
  return {
      {"complex_object", [&](const Space& space) { complex_object(space, p.amplitude, p.phase, p.object); }},
      {"complex_object_gradients",
       [&](const Space& space) {
         complex_object_gradients(space, p.amplitude, p.phase, p.object, {.amplitude = p.amplitude_gradient});
       }},
      {"exit_waves", [&](const Space& space) { exit_waves(space, p.scan, p.object, p.probe, p.waves); }},
      {"exit_wave_gradients",
       [&](const Space& space) {
         exit_wave_gradients(space, p.scan, p.object, p.probe, p.waves,
                             {.object = p.object_gradient, .probe = p.probe_gradient});
       }},
      {"compare_patterns",
       [&](const Space& space) { compare_patterns(space, p.waves, p.targets, p.losses); }},
      {"PtychographyLoss", evaluate(p.fused)},
      // and the FFT's:
      {"", evaluate(p.general)},
      {"", [&](const Space& space) { p.propagator.propagate(space, p.waves); }},
      {"", [&](const Space& space) { p.lens.evaluate(space, p.parameters, p.probe); }},
      {"", [&](const Space& space) { p.lens.gradients(space, p.parameters, p.probe, p.parameter_gradient); }},
      {"", [&](const Space& space) { p.solver.step(space); }},
  };
}

std::vector<std::string> regions;

} // namespace

TEST_CASE("labels of ptychography; no fences, copies or allocations") {
  const Problem problem{Space()};
  for (const Function& function : functions(problem))
    check_labels(function);
}

TEST_CASE("ptychography runs on the instance it is given") {
  const Problem problem{Space()};
  for (const Function& function : functions(problem))
    check_instances(function);
}

TEST_CASE("every operator of ptychography is a region") {
  const Problem problem{Space()};
  regions.clear();
  Kokkos::Tools::Experimental::set_push_region_callback([](const char* name) { regions.push_back(name); });
  for (const Function& function : functions(problem))
    function.call(Space());
  Kokkos::Tools::Experimental::set_push_region_callback(nullptr);
  Kokkos::fence();
  for (const char* const name :
       {"complex_object", "complex_object_gradients", "exit_waves", "exit_wave_gradients", "compare_patterns",
        "PtychographyLoss::evaluate", "Propagator::propagate", "AberratedProbe::evaluate",
        "AberratedProbe::gradients", "PtychographySolver::step"}) {
    INFO(name);
    CHECK(std::ranges::find(regions, std::string("Bracewell::") + name) != regions.end());
  }
}

TEST_CASE("plans of ptychography that outlive Kokkos say so") {
  check_outliving(
      "plans of ptychography that outlive Kokkos say so",
      {{"PtychographyLoss",
        [](const Space& space) -> std::shared_ptr<void> {
          return std::make_shared<Problem::Loss>(space, PtychographyShape{{20, 23}, Problem::m, Problem::n},
                                                 Problem::positions(), PtychographyOptions{.counts = 10});
        }},
       {"PtychographySolver", [](const Space& space) -> std::shared_ptr<void> {
          const Problem problem(space);
          return std::make_shared<decltype(problem.solver)>(space, problem.shape,
                                                            problem.loss(space, PatternPath::Fused));
        }}});
}
