// Wrong arguments of every function of ptychography: a sentence that names the function that was called, before
// anything is written; and problems without patterns, which are no error.

#include "solver_plan.hpp"
#include "support.hpp"

#include <bracewell/ptychography/compare.hpp>
#include <bracewell/ptychography/exit_wave.hpp>
#include <bracewell/ptychography/propagator.hpp>

#include <cmath>
#include <limits>

using namespace Test;
using Catch::Matchers::ContainsSubstring;

namespace {

using Complex = Kokkos::complex<float>;
constexpr double not_finite = std::numeric_limits<double>::quiet_NaN();

/// A View in the memory of another.
template <class DataType, class Source, class... Extents>
View<DataType> within(const Source& source, Extents... extents) {
  return View<DataType>(reinterpret_cast<typename View<DataType>::value_type*>(source.data()), extents...);
}

struct Operators {
  Space space;
  Experiment<float> e{20, 23, 8, 12, {{0, 0}, {7, 5}}, 2};
  ScanPositions<Space> scan{space, e.positions(), {20, 23}, 8};
  View<Complex****> waves{"waves", 2, 2, 12, 12};
  View<Complex**> object{"object", 20, 23};
  View<Complex***> probe{"probe", 2, 8, 8};
  View<float***> targets{"targets", 2, 12, 12};
  View<double*> losses{"losses", 2};
};

} // namespace

TEST_CASE("exit waves refuse shapes that do not fit and shared memory") {
  const Operators o;
  const auto waves = [&](const auto& object, const auto& probe, const auto& to) {
    exit_waves(o.space, o.scan, object, probe, to);
  };
  CHECK_NOTHROW(waves(o.object, o.probe, o.waves));
  CHECK_THROWS_WITH(waves(View<Complex**>("o", 23, 20), o.probe, o.waves),
                    ContainsSubstring("exit_waves: object: expected [20, 23]"));
  CHECK_THROWS_WITH(waves(o.object, View<Complex***>("p", 2, 8, 9), o.waves),
                    ContainsSubstring("exit_waves: probe: expected [modes, 8, 8]"));
  CHECK_THROWS_WITH(waves(o.object, o.probe, View<Complex****>("w", 3, 2, 12, 12)),
                    ContainsSubstring("exit_waves: waves"));
  CHECK_THROWS_WITH(waves(within<Complex**>(o.waves, 20, 23), o.probe, o.waves),
                    ContainsSubstring("exit_waves: waves: expected memory of its own, found memory shared "
                                      "with object"));
  CHECK_THROWS_WITH(waves(o.object, within<Complex***>(o.waves, 2, 8, 8), o.waves),
                    ContainsSubstring("memory shared with probe"));

  const auto gradients = [&](const View<Complex**>& object, const View<Complex***>& probe) {
    exit_wave_gradients(o.space, o.scan, o.object, o.probe, o.waves, {.object = object, .probe = probe});
  };
  const View<Complex**> object("g", 20, 23);
  const View<Complex***> probe("g", 2, 8, 8);
  CHECK_NOTHROW(gradients(object, probe));
  CHECK_THROWS_WITH(gradients(View<Complex**>("g", 20, 22), probe),
                    ContainsSubstring("exit_wave_gradients: outputs.object: expected [20, 23]"));
  CHECK_THROWS_WITH(gradients(o.object, probe), ContainsSubstring("memory shared with object"));
  CHECK_THROWS_WITH(gradients(object, o.probe), ContainsSubstring("memory shared with probe"));
  CHECK_THROWS_WITH(gradients(within<Complex**>(o.waves, 20, 23), probe),
                    ContainsSubstring("memory shared with waves"));
  CHECK_THROWS_WITH(gradients(object, within<Complex***>(object, 2, 8, 8)),
                    ContainsSubstring("memory shared with outputs.object"));
}

TEST_CASE("comparing patterns refuses shapes and options that do not fit and shared memory") {
  const Operators o;
  const auto compare = [&](const auto& targets, const auto& losses, const ComparisonOptions& options = {}) {
    compare_patterns(o.space, o.waves, targets, losses, options);
  };
  CHECK_NOTHROW(compare(o.targets, o.losses));
  CHECK_THROWS_WITH(compare(View<float***>("t", 2, 12, 11), o.losses),
                    ContainsSubstring("compare_patterns: targets: expected [2, 12, 12]"));
  CHECK_THROWS_WITH(compare(o.targets, View<double*>("l", 3)),
                    ContainsSubstring("compare_patterns: losses: expected [2]"));
  CHECK_THROWS_WITH(compare(o.targets, o.losses, {.counts = -1}), ContainsSubstring("options.counts"));
  CHECK_THROWS_WITH(compare(o.targets, o.losses, {.counts = not_finite}),
                    ContainsSubstring("options.counts"));
  CHECK_THROWS_WITH(compare(o.targets, o.losses, {.background = 0}), ContainsSubstring("options.background"));
  CHECK_THROWS_WITH(compare(within<float***>(o.waves, 2, 12, 12), o.losses),
                    ContainsSubstring("waves: expected memory of its own"));
  CHECK_THROWS_WITH(compare(o.targets, within<double*>(o.targets, 2)),
                    ContainsSubstring("losses: expected memory of its own"));
  CHECK_THROWS_WITH(compare(o.targets, within<double*>(o.waves, 2)),
                    ContainsSubstring("losses: expected memory of its own"));
}

TEST_CASE("objects from amplitude and phase, and their gradients, have memory of their own") {
  const Space space;
  const View<float**> amplitude("a", 4, 6), phase("p", 4, 6), other("g", 4, 6), wrong("w", 6, 4);
  const View<Complex**> object("o", 4, 6);
  CHECK_THROWS_WITH(complex_object(space, View<float**>(), phase, object),
                    ContainsSubstring("complex_object: amplitude: expected an allocated View"));
  CHECK_THROWS_WITH(complex_object(space, amplitude, phase, View<Complex**>("o", 4, 5)),
                    ContainsSubstring("complex_object: object: expected [4, 6], found [4, 5]"));
  CHECK_THROWS_WITH(complex_object(space, amplitude, within<float**>(object, 4, 6), object),
                    ContainsSubstring("memory shared with phase"));
  const auto gradients = [&](const View<float**>& a, const View<float**>& p) {
    complex_object_gradients(space, amplitude, phase, object, {.amplitude = a, .phase = p});
  };
  CHECK_NOTHROW(gradients(other, {}));
  CHECK_THROWS_WITH(gradients(wrong, {}), ContainsSubstring("complex_object_gradients: outputs.amplitude"));
  CHECK_THROWS_WITH(gradients(amplitude, {}), ContainsSubstring("memory shared with amplitude"));
  CHECK_THROWS_WITH(gradients({}, within<float**>(object, 4, 6)),
                    ContainsSubstring("memory shared with gradient"));
  CHECK_THROWS_WITH(gradients(other, other), ContainsSubstring("memory shared with outputs.amplitude"));
}

TEST_CASE("propagators and probes name the function that was called") {
  const Space space;
  CHECK_THROWS_WITH((Propagator<Space, float>(space, 0, 1)), ContainsSubstring("Propagator: side"));
  CHECK_THROWS_WITH((Propagator<Space, float>(space, 8, -1)), ContainsSubstring("Propagator: count"));
  CHECK_THROWS_WITH((Propagator<Space, float>(space, 8, 1, not_finite)),
                    ContainsSubstring("Propagator: fresnel_number"));
  const Propagator<Space, float> propagator(space, 8, 2);
  const View<Complex***> waves("w", 2, 8, 7);
  CHECK_THROWS_WITH(propagator.propagate(space, waves),
                    ContainsSubstring("Propagator::propagate: waves: expected 2 waves [..., 8, 8]"));
  CHECK_THROWS_WITH(propagator.adjoint(space, waves), ContainsSubstring("Propagator::adjoint: waves"));

  const AberratedProbe<Space, float> lens(space, 8, 12, {1, 1, 0.1});
  const View<float*> parameters("p", 5), few("f", 4), gradient("g", 5);
  const View<Complex**> probe("probe", 8, 8);
  CHECK_THROWS_WITH((AberratedProbe<Space, float>(space, 8, 12, {1, not_finite, 1})),
                    ContainsSubstring("AberratedProbe: optics.pixel_size"));
  CHECK_THROWS_WITH(lens.evaluate(space, few, probe),
                    ContainsSubstring("AberratedProbe::evaluate: parameters: expected [5], found [4]"));
  CHECK_THROWS_WITH(lens.evaluate(space, within<float*>(probe, 5), probe),
                    ContainsSubstring("memory shared with parameters"));
  CHECK_THROWS_WITH(lens.gradients(space, parameters, probe, few),
                    ContainsSubstring("AberratedProbe::gradients: parameter_gradient: expected [5]"));
  CHECK_THROWS_WITH(lens.gradients(space, parameters, probe, parameters),
                    ContainsSubstring("memory shared with parameters"));
  CHECK_THROWS_WITH(lens.gradients(space, parameters, probe, within<float*>(probe, 5)),
                    ContainsSubstring("memory shared with probe_gradient"));
}

TEST_CASE("a plan names itself in what its parts refuse, and evaluate every output that shares memory") {
  const Experiment<float> e(40, 42, 16, 48, {{0, 0}, {7, 5}, {24, 26}});
  const auto plan = [&](const PtychographyShape& shape, const PtychographyOptions& options) {
    return TestLoss<float>(e.space, shape, e.positions(), options);
  };
  CHECK_THROWS_WITH(plan({{39, 42}, 16, 48}, {}),
                    ContainsSubstring("Bracewell::PtychographyLoss: positions"));
  CHECK_THROWS_WITH(plan({{40, 42}, 16, 16}, {.fresnel_number = not_finite}),
                    ContainsSubstring("Bracewell::PtychographyLoss: options.fresnel_number"));
  CHECK_THROWS_WITH(plan({{40, 42}, 16, 48}, {.background = not_finite}),
                    ContainsSubstring("options.background"));
  auto model = plan({{40, 42}, 16, 48}, {.counts = 10});
  CHECK_THROWS_WITH(model.set_patterns(e.space, 2, e.patterns),
                    ContainsSubstring("PtychographyLoss::set_patterns: first"));
  model.set_patterns(e.space, 0, e.patterns);

  using Outputs = TestLoss<float>::Outputs;
  const auto shared = [&](const Outputs& outputs, const char* message, const View<int*>& subset = {}) {
    CHECK_THROWS_WITH(subset.size() > 0 ? model.evaluate(e.space, e.object, e.probe, outputs, subset)
                                        : model.evaluate(e.space, e.object, e.probe, outputs),
                      ContainsSubstring("PtychographyLoss::evaluate: outputs.") &&
                          ContainsSubstring(message));
  };
  const View<Complex**> gradient("g", 40, 42);
  const View<double*> losses("l", 3);
  shared({.object_gradient = View<Complex**>("g", 42, 40)}, "expected [40, 42]");
  shared({.probe_gradient = View<Complex***>("g", 2, 16, 16)}, "expected [1, 16, 16]");
  shared({.loss = View<double*>("l", 2)}, "one number");
  shared({.pattern_losses = View<double*>("l", 2)}, "expected [3]");
  shared({.object_gradient = e.object}, "memory shared with object");
  const View<Complex**> room("room", 80, 42), half(room.data() + 20 * 42, 40, 42),
      object(room.data(), 40, 42);
  CHECK_THROWS_WITH(model.evaluate(e.space, object, e.probe, {.object_gradient = half}), // in part
                    ContainsSubstring("memory shared with object"));
  shared({.probe_gradient = within<Complex***>(e.object, 1, 16, 16)}, "memory shared with object");
  shared({.object_gradient = gradient, .probe_gradient = within<Complex***>(gradient, 1, 16, 16)},
         "memory shared with outputs.object_gradient");
  shared({.loss = within<double*>(gradient, 1), .object_gradient = gradient},
         "memory shared with outputs.loss");
  shared({.loss = within<double*>(losses, 1), .pattern_losses = losses}, "memory shared with outputs.loss");
  const View<int*> subset("s", 3);
  Kokkos::parallel_for(
      "indices", Kokkos::RangePolicy<Space>(0, 3), KOKKOS_LAMBDA(int i) { subset(i) = i; });
  Kokkos::fence();
  shared({.loss = within<double*>(subset, 1)}, "memory shared with subset", subset);
}

TEST_CASE("the solver refuses other sizes, options and losses in memory that it owns") {
  const Experiment<double> e(40, 42, 16, 48, {{0, 0}, {7, 5}, {24, 26}});
  const PtychographyShape shape{{40, 42}, 16, 48};
  using Solver = TestSolver;
  const auto solver = [&](const PtychographyShape& sizes, const PtychographySolverOptions& options) {
    return Solver(e.space, sizes, e.plan({.counts = 10}), options);
  };
  CHECK_THROWS_WITH(solver({{40, 41}, 16, 48}, {}), ContainsSubstring("PtychographySolver: shape"));
  for (const double wrong : {not_finite, 1.0, -0.1})
    CHECK_THROWS_WITH(solver(shape, {.adam = {.beta1 = wrong}}),
                      ContainsSubstring("PtychographySolver: options.adam.beta1"));
  CHECK_THROWS_WITH(solver(shape, {.adam = {.beta2 = not_finite}}), ContainsSubstring("options.adam.beta2"));
  CHECK_THROWS_WITH(solver(shape, {.adam = {.epsilon = 0}}), ContainsSubstring("options.adam.epsilon"));
  CHECK_THROWS_WITH(solver(shape, {.optics = ProbeOptics{0, 1, 1}}),
                    ContainsSubstring("PtychographySolver: optics.wavelength"));
  Solver works = solver(shape, {});
  CHECK_THROWS_WITH(works.step(e.space, View<int*>("list", 4)),
                    ContainsSubstring("PtychographySolver::step: subset"));
  CHECK_THROWS_WITH(works.evaluate(e.space, View<double*>("l", 2)),
                    ContainsSubstring("PtychographySolver::evaluate: loss: expected one number"));
  CHECK_THROWS_WITH(works.evaluate(e.space, View<double*>(works.phase().data(), 1)),
                    ContainsSubstring("memory shared with phase()"));
}

TEST_CASE("no patterns are no work and no error") {
  const Space space;
  const Kokkos::View<double**, Kokkos::HostSpace> nowhere("positions", 0, 2);
  const View<int*> none("none", 0);
  const auto zeros = [](const auto& view) {
    const auto host = on_host(view);
    for (std::size_t i = 0; i < host.size(); ++i)
      if (host.data()[i] != Complex(0))
        return false;
    return true;
  };
  SECTION("of an operator") {
    const ScanPositions<Space> scan(space, nowhere, {20, 23}, 8);
    CHECK(scan.count() == 0);
    const View<Complex**> object("o", 20, 23), gradient("g", 20, 23);
    const View<Complex***> probe("p", 1, 8, 8), probe_gradient("g", 1, 8, 8);
    const View<Complex****> waves("w", 0, 1, 12, 12);
    Test::deep_copy(gradient, Complex(-7));
    Test::deep_copy(probe_gradient, Complex(-7));
    exit_waves(space, scan, object, probe, waves);
    Propagator<Space, float>(space, 12, 0).propagate(space, waves);
    compare_patterns(space, waves, View<float***>("t", 0, 12, 12), View<double*>("l", 0));
    exit_wave_gradients(space, scan, object, probe, waves, {.object = gradient, .probe = probe_gradient});
    space.fence();
    CHECK(zeros(gradient));
    CHECK(zeros(probe_gradient));
  }
  SECTION("of a plan or a subset") {
    const Experiment<float> e(40, 42, 16, 48, {{0, 0}, {7, 5}, {24, 26}});
    for (const auto path : {PatternPath::Fused, PatternPath::General})
      for (const bool subset : {false, true}) {
        INFO("path " << int(path) << " subset " << subset);
        TestLoss<float> model =
            subset ? e.plan({.counts = 10, .path = path})
                   : TestLoss<float>(space, {{40, 42}, 16, 48}, nowhere, {.counts = 10, .path = path});
        model.set_patterns(space, 0, View<float***>("p", 0, 48, 48));
        const View<double> loss("loss");
        const View<Complex**> gradient("g", 40, 42);
        const View<Complex***> probe_gradient("g", 1, 16, 16);
        Test::deep_copy(loss, -7);
        Test::deep_copy(gradient, Complex(-7));
        Test::deep_copy(probe_gradient, Complex(-7));
        model.evaluate(space, e.object, e.probe,
                       {.loss = loss, .object_gradient = gradient, .probe_gradient = probe_gradient}, none);
        space.fence();
        CHECK(on_host(loss)() == 0);
        CHECK(zeros(gradient));
        CHECK(zeros(probe_gradient));
      }
  }
  SECTION("of a solver") {
    const Experiment<double> e(40, 42, 16, 48, {{0, 0}, {7, 5}, {24, 26}});
    TestSolver solver(space, {{40, 42}, 16, 48}, e.plan({.counts = 10}));
    solver.step(space, none);
    CHECK(solver.steps() == 0);
    CHECK(solver.losses(space).empty());
    const PatternBatches<Space> batches(space, 0, 1);
    CHECK(batches[0].size() == 0);
  }
}

/// The path with the machines of a list.
template <class List>
PatternPath path_with(const PtychographyShape& shape, const PtychographyOptions& options) {
  return choose_pattern_path<Space, float, Impl::CompiledWith<float, List>>(shape, options);
}

TEST_CASE("the path that a plan will take can be asked") {
  const Experiment<float> e(40, 42, 16, 48, {{0, 0}, {7, 5}});
  const PtychographyShape shape{{40, 42}, 16, 48};
  const PtychographyOptions plain{.counts = 10};
  constexpr bool host = Bracewell::Impl::is_host<Space>;
  const auto several = host ? PatternPath::General : PatternPath::Lines;
  CHECK(path_with<Impl::EveryFusedDetector>(shape, plain) == PatternPath::Fused);
  CHECK(choose_pattern_path(shape, plain) == (host ? PatternPath::General : PatternPath::Fused));
  CHECK(choose_pattern_path({{400, 420}, 80, 256}, plain) == PatternPath::Fused);
  CHECK(choose_pattern_path({{400, 420}, 64, 256}, {.patterns_at_once = 9}) ==
        PatternPath::Fused); // on the chip
  const PtychographyShape large{{600, 620}, 256, 512};
  CHECK(path_with<Impl::EveryFusedDetector>(large, {.patterns_at_once = 144}) == PatternPath::Fused);
  CHECK(path_with<Impl::EveryFusedDetector>(large, {.patterns_at_once = 9}) ==
        (host ? PatternPath::Fused : PatternPath::Lines));
  if (host) {
    CHECK(choose_pattern_path({{400, 420}, 130, 256}, plain) == PatternPath::General);
    CHECK(choose_pattern_path({{400, 420}, 130, 256}, {.path = PatternPath::Fused}) == PatternPath::General);
    CHECK(choose_pattern_path({{400, 420}, 128, 256}, {.path = PatternPath::Fused}) == PatternPath::Fused);
  }
  CHECK(choose_pattern_path(shape, plain, false) == PatternPath::General); // 16 is no product of radices
  CHECK(choose_pattern_path({{40, 42}, 20, 48}, plain, false) == several);
  CHECK(path_with<Impl::FusedDetectors<>>(shape, plain) == several);
  CHECK(path_with<Impl::FusedDetectors<40, 48>>(shape, plain) == PatternPath::Fused);
  const TestLoss<float> of_another_size(Space(), {{40, 42}, 16, 44}, View<int**>("x", 1, 2));
  CHECK_FALSE(of_another_size.is_fused());
  CHECK(choose_pattern_path({{40, 42}, 16, 47}, plain) == PatternPath::General);
  const PtychographyShape known{{300, 300}, 128, 128, 2};
  const auto over_lines = host ? PatternPath::General : PatternPath::KnownLines;
  CHECK(choose_pattern_path(known, plain) == over_lines);
  CHECK(choose_pattern_path(known, {.refine_positions = true}) == over_lines);
  CHECK(choose_pattern_path(known, {.path = PatternPath::KnownLines}) == over_lines);
  CHECK(choose_pattern_path(known, {.path = PatternPath::Lines}) == several);
  CHECK(choose_pattern_path(known, {.pattern_factors = true}) == several);
  CHECK(choose_pattern_path({{300, 300}, 128, 128, 2, 1, 3}, plain) == several);
  CHECK(choose_pattern_path({{300, 300}, 96, 128, 2}, {.path = PatternPath::KnownLines}) ==
        PatternPath::General);
  CHECK(choose_pattern_path({{40, 42}, 16, 48, 2}, plain) == several);
  CHECK(choose_pattern_path(shape, {.path = PatternPath::General}) == PatternPath::General);
  CHECK(choose_pattern_path(shape, {.weights = PixelWeights::Mask}) == several);
  CHECK(choose_pattern_path(shape, {.refine_positions = true}) == PatternPath::General);
  CHECK(path_with<Impl::EveryFusedDetector>(
            shape, {.scale = PatternScale::None, .weights = PixelWeights::Mask}) == PatternPath::Fused);
  CHECK(choose_pattern_path(shape, {.fresnel_number = 1.0}) == several);
  CHECK(choose_pattern_path({{40, 42}, 20, 48}, {.refine_positions = true}) == several);
  CHECK(choose_pattern_path({{40, 42}, 20, 48}, {.fresnel_number = 1.0, .refine_positions = true}) ==
        PatternPath::General);
  CHECK(choose_pattern_path({{40, 42}, 20, 48, 1, 2}, {.slice_fresnel_numbers = {9}}) == several);
  CHECK(choose_pattern_path({{40, 42}, 20, 48, 1, 2}, {.slice_fresnel_numbers = {9},
                                                       .refine_slice_shifts = true}) == PatternPath::General);
  for (const auto& options : {plain, PtychographyOptions{.counts = 10, .path = PatternPath::General},
                              PtychographyOptions{.counts = 10, .reduced_grid = true}}) {
    const TestLoss<float> model(e.space, shape, e.positions(), options);
    const auto path = choose_pattern_path<Space, float, TestStorage<float>>(shape, options);
    CHECK(model.is_fused() == (path == PatternPath::Fused));
    CHECK(model.compared_detector() == compared_detector(shape, options));
  }
}

TEST_CASE("PtychographyLoss refuses what it cannot compute, in one sentence") {
  const Experiment<float> e(40, 42, 16, 48, {{0, 0}, {7, 5}, {24, 26}});
  const auto plan = [&](const PtychographyShape& shape, const PtychographyOptions& options) {
    return TestLoss<float>(e.space, shape, e.positions(), options);
  };
  const PtychographyShape shape{{40, 42}, 16, 48};
  CHECK_THROWS_WITH(plan({{40, 41}, 16, 48}, {}), ContainsSubstring("columns from -0.5 to below 25.5"));
  CHECK_THROWS_WITH(plan({{40, 42}, 49, 48}, {}), ContainsSubstring("shape.probe"));
  CHECK_THROWS_WITH(plan(shape, {.counts = -1}), ContainsSubstring("options.counts"));
  CHECK_THROWS_WITH(
      plan(shape, {.refine_slice_shifts = true}),
      ContainsSubstring("options.refine_slice_shifts: expected false where the object has one slice"));
  CHECK_THROWS_WITH(plan(shape, {.loss = PatternLoss::Poisson, .reduced_grid = true}),
                    ContainsSubstring("options.reduced_grid"));
  CHECK_THROWS_WITH(plan(shape, {.fresnel_number = 1.0}), ContainsSubstring("near field"));
  CHECK_THROWS_WITH(plan({{40, 42}, 16, 47}, {.path = PatternPath::Fused}),
                    ContainsSubstring("options.path"));
  CHECK_THROWS_WITH(plan({{40, 42}, 16, 48}, {.path = PatternPath::KnownLines}),
                    ContainsSubstring("found PatternPath::KnownLines"));
  auto model = plan(shape, {.counts = 10});
  CHECK_THROWS_WITH(model.set_patterns(e.space, 1, e.patterns), ContainsSubstring("first: expected"));
  CHECK_THROWS_WITH(model.set_patterns(e.space, 0, View<float***>("p", 3, 47, 48)),
                    ContainsSubstring("patterns: expected [3, 48, 48], found [3, 47, 48]"));
  CHECK_THROWS_WITH(model.set_patterns(e.space, 0, e.patterns, View<float**>("w", 48, 48)),
                    ContainsSubstring("weights: expected none"));
  for (const float wrong : {-1.0f, NAN, INFINITY}) {
    const auto patterns = Kokkos::create_mirror(Kokkos::HostSpace(), e.patterns);
    Test::deep_copy(patterns, 1.0f);
    patterns(2, 3, 4) = wrong;
    CHECK_THROWS_WITH(model.set_patterns(e.space, 0, patterns), ContainsSubstring("pattern 2"));
  }
  const View<Kokkos::complex<float>**> small("small", 40, 40);
  CHECK_THROWS_WITH(model.evaluate(e.space, small, e.probe, {}),
                    ContainsSubstring("object: expected [40, 42]"));
  CHECK_THROWS_WITH(model.evaluate(e.space, e.object, e.probe, {.object_gradient = small}),
                    ContainsSubstring("outputs.object_gradient"));
  CHECK_THROWS_WITH(model.evaluate(e.space, e.object, e.probe, {.object_gradient = e.object}),
                    ContainsSubstring("memory of its own"));
}
