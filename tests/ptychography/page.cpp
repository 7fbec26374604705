// The examples of docs/ptychography*.md: what stands between "// [name" and "// name]" is shown
// there, word for word.

#include "../page_examples.hpp"
#include "support.hpp"

#include <bracewell/ptychography/object.hpp>
#include <bracewell/ptychography/probe.hpp>
#include <bracewell/ptychography/solver.hpp>

#include <Eigen/Core>

#include <deque>
#include <filesystem>
#include <functional>

using namespace Test;

TEST_CASE("the example of the page on ptychography") {
  const Experiment<float> e(40, 42, 16, 48, {{0, 0}, {7, 5}, {24, 26}, {3, 11}, {9, 2}});
  const auto positions = e.positions();
  const auto patterns = e.patterns;
  const Space space;
  const View<float**> amplitude("amplitude", 40, 42), phase("phase", 40, 42);
  const View<float*> parameters("parameters", 5);
  Kokkos::deep_copy(amplitude, 1.0f);
  Kokkos::deep_copy(parameters, 0.1f);
  // [example
  using Complex = Kokkos::complex<float>;
  const AberratedProbe<Space, float> lens(
      space, 16, 48, {.wavelength = 0.0197, .pixel_size = 0.2, .convergence_angle = 0.02});
  PtychographyLoss<Space, float> model(space, {.object = {40, 42}, .probe = 16, .detector = 48}, positions,
                                       {.counts = 100});
  model.set_patterns(space, 0, patterns);

  const View<Complex**> object("object", 40, 42), object_gradient("object gradient", 40, 42);
  const View<Complex**> probe("probe", 16, 16), probe_gradient("probe gradient", 16, 16);
  const View<float**> amplitude_gradient("amplitude gradient", 40, 42),
      phase_gradient("phase gradient", 40, 42);
  const View<float*> parameter_gradient("parameter gradient", 5);
  const View<double> loss("loss");

  lens.evaluate(space, parameters, probe);
  complex_object(space, amplitude, phase, object);
  model.evaluate(space, object, probe,
                 {.loss = loss, .object_gradient = object_gradient, .probe_gradient = probe_gradient});
  complex_object_gradients(space, amplitude, phase, object_gradient,
                           {.amplitude = amplitude_gradient, .phase = phase_gradient});
  lens.gradients(space, parameters, probe_gradient, parameter_gradient);
  // example]
  space.fence();
  const double before = on_host(loss)();
  const auto gradient = on_host(phase_gradient);
  const auto moved = Kokkos::create_mirror_view(phase);
  double squares = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i)
    squares += gradient.data()[i] * gradient.data()[i];
  const double step = 1e-4 * before / squares; // a step that lowers the loss by 1e-4 of it, to first order
  for (std::size_t i = 0; i < gradient.size(); ++i)
    moved.data()[i] = static_cast<float>(-step * gradient.data()[i]);
  Kokkos::deep_copy(phase, moved);
  complex_object(space, amplitude, phase, object);
  model.evaluate(space, object, probe, {.loss = loss});
  space.fence();
  CHECK(std::abs((1 - on_host(loss)() / before) - 1e-4) < 5e-6);
}

namespace {

/// A scan of an object near 1 and what its detector counts, by sums that are written out.
struct Scan {
  static constexpr int m = 16, n = 40, N = 36;
  View<double**> positions{"positions", N, 2};
  View<float***> patterns{"patterns", N, n, n};
  View<Kokkos::complex<float>***> probe{"probe", 1, m, m};

  Scan() {
    using C = std::complex<double>;
    const auto places = Kokkos::create_mirror_view(positions);
    const auto counts = Kokkos::create_mirror_view(patterns);
    const auto waves = Kokkos::create_mirror_view(probe);
    for (int r = 0; r < m * m; ++r) {
      const double y = r / m - m / 2., x = r % m - m / 2.;
      waves.data()[r] = Kokkos::complex<float>(float(std::exp(-(y * y + x * x) / 20)),
                                               float(0.3 * std::exp(-(y * y + x * x) / 30) * x / m));
    }
    for (int j = 0; j < N; ++j) {
      places(j, 0) = j / 6 * 9 + j % 2;
      places(j, 1) = j % 6 * 9 + j % 3;
      std::vector<C> rows(m * n); // [y, k]
      for (int y = 0; y < m; ++y)
        for (int k = 0; k < n; ++k)
          for (int x = 0; x < m; ++x) {
            const double row = places(j, 0) + y, column = places(j, 1) + x;
            const C object =
                std::polar(1 + 0.1 * std::sin(0.3 * row), 0.4 * std::cos(0.2 * column + 0.1 * row));
            const auto p = waves(0, y, x);
            rows[std::size_t(y * n + k)] +=
                object * C(p.real(), p.imag()) * std::polar(1.0, -2 * Kokkos::numbers::pi * k * x / n);
          }
      for (int l = 0; l < n; ++l)
        for (int k = 0; k < n; ++k) {
          C sum = 0;
          for (int y = 0; y < m; ++y)
            sum += rows[std::size_t(y * n + k)] * std::polar(1.0, -2 * Kokkos::numbers::pi * l * y / n);
          counts(j, l, k) = float(std::norm(sum));
        }
    }
    Kokkos::deep_copy(positions, places);
    Kokkos::deep_copy(patterns, counts);
    Kokkos::deep_copy(probe, waves);
  }
};

} // namespace

// clang-format off
TEST_CASE("the tutorial of ptychography") {
  const Scan scan;
  const auto positions = scan.positions;
  const auto probe = scan.probe;
  constexpr int N = Scan::N;
  const auto read = [&](int first, int count) {
    return Kokkos::subview(scan.patterns, std::pair(first, std::min(first + count, N)), Kokkos::ALL, Kokkos::ALL);
  };
  // [model
  const Kokkos::DefaultExecutionSpace space;
  const PtychographyShape shape{.object = {64, 64}, .probe = 16, .detector = 40};
  PtychographyLoss<Space, float> loss(space, shape, positions, {.loss = PatternLoss::Amplitude, .scale = PatternScale::None});
  for (int first = 0; first < N; first += 10) // from the file, some at a time
    loss.set_patterns(space, first, read(first, 10));
  // model]
  CHECK(loss.empty_patterns() == 0);
  // [steps
  PtychographySolver<Space, float> solver(space, shape, std::move(loss), {.object_rate = 0.02, .probe_rate = 1e-3});
  Kokkos::deep_copy(space, solver.amplitude(), 1.0f);
  Kokkos::deep_copy(space, solver.probe(), probe); // [modes, m, m]
  for (int i = 0; i < 100; ++i)
    solver.step(space); // queues kernels, waits for nothing
  const std::vector<double> losses = solver.losses(space); // this waits
  // steps]
  CHECK(losses.back() < 0.01 * losses.front());
  // [batches
  const PatternBatches<Space> batches(space, N, 4);
  for (int pass = 0; pass < 20; ++pass)
    for (int b = 0; b < batches.size(); ++b)
      solver.step(space, batches[b]);
  // batches]
  CHECK(solver.steps() == 180);
}

TEST_CASE("the tutorial's lens and the pieces of a step") {
  const Scan scan;
  const Space space;
  const PtychographyShape shape{.object = {64, 64}, .probe = 16, .detector = 40};
  const auto make = [&] {
    PtychographyLoss<Space, float> loss(space, shape, scan.positions, {.loss = PatternLoss::Amplitude, .scale = PatternScale::None});
    loss.set_patterns(space, 0, scan.patterns);
    return loss;
  };
  // [lens
  const PtychographySolverOptions options{
      .optics = ProbeOptics{.wavelength = 1.97e-3, .pixel_size = 0.02, .convergence_angle = 0.02},
      .aberration_rates = {0.05, 1e-4, 0.05, 0.01, 1e-3}};
  // lens]
  PtychographySolver<Space, float> with_lens(space, shape, make(), options);
  with_lens.step(space);
  CHECK(with_lens.losses(space).size() == 1);

  const auto loss = make();
  PtychographySolver<Space, float> solver(space, shape, make(), {.object_rate = 0.04, .probe_rate = 1e-4});
  Kokkos::deep_copy(solver.amplitude(), 1.0f);
  Kokkos::deep_copy(solver.probe(), scan.probe);
  using Complex = Kokkos::complex<float>;
  const View<float**> amplitude("amplitude", 64, 64), phase("phase", 64, 64), amplitude_gradient("gradient", 64, 64),
      phase_gradient("gradient", 64, 64);
  const View<Complex**> object("object", 64, 64), object_gradient("gradient", 64, 64);
  const View<Complex***> probe("probe", 1, 16, 16), probe_gradient("gradient", 1, 16, 16);
  const View<double> value("loss");
  Kokkos::deep_copy(amplitude, 1.0f);
  Kokkos::deep_copy(probe, scan.probe);
  Adam<Space, float> adam(space, {64 * 64, 64 * 64, 2 * 16 * 16});
  for (int i = 0; i < 3; ++i) {
  // [pieces
  complex_object(space, amplitude, phase, object);
  loss.evaluate(space, object, probe, {.loss = value, .object_gradient = object_gradient, .probe_gradient = probe_gradient});
  complex_object_gradients(space, amplitude, phase, object_gradient, {.amplitude = amplitude_gradient, .phase = phase_gradient});
  adam.step(space, {{amplitude, amplitude_gradient, 0.04}, {phase, phase_gradient, 0.04}, {probe, probe_gradient, 1e-4}});
  // pieces]
    solver.step(space);
  }
  CHECK(on_host(value)() == solver.losses(space).back());
}

TEST_CASE("the tutorial's positions, and the page's slices and factors") {
  const Scan scan;
  const Space space;
  const auto probe = scan.probe;
  const auto patterns = scan.patterns;
  const auto truth = on_host(scan.positions);
  View<double**> positions("positions", Scan::N, 2);
  const auto wrong = Kokkos::create_mirror_view(positions);
  for (int j = 0; j < Scan::N; ++j)
    for (int axis = 0; axis < 2; ++axis)
      wrong(j, axis) = std::clamp(truth(j, axis) + 0.4 * std::sin(j + 2.0 * axis), 0.0, 48.0);
  Kokkos::deep_copy(positions, wrong);
  {
  const PtychographyShape shape{.object = {64, 64}, .probe = 16, .detector = 40};
  // [positions
  PtychographyLoss<Space, float> movable(
      space, shape, positions, {.loss = PatternLoss::Amplitude, .scale = PatternScale::None, .refine_positions = true});
  movable.set_patterns(space, 0, patterns);
  PtychographySolver<Space, float> refinement(
      space, shape, std::move(movable), {.object_rate = 0.02, .probe_rate = 1e-3, .position_rate = 0.02, .position_limit = 2});
  Kokkos::deep_copy(space, refinement.amplitude(), 1.0f);
  Kokkos::deep_copy(space, refinement.probe(), probe);
  for (int pass = 0; pass < 10; ++pass) {
    refinement.move_windows(space);
    for (int i = 0; i < 10; ++i)
      refinement.step(space);
  }
  const auto moves = refinement.displacements(); // [N, 2], to be added to the positions
  // positions]
  CHECK(moves.extent(0) == std::size_t(Scan::N));
  const auto losses = refinement.losses(space); // of an object so smooth, little is known of positions
  INFO("from " << losses.front() << " to " << losses.back());
  CHECK(losses.back() < 0.1 * losses.front());
  }
  using Complex = Kokkos::complex<float>;
  const View<Complex***> slices("slices", 2, 64, 64), slices_gradient("gradient", 2, 64, 64);
  const View<float*> factors("factors", Scan::N), factor_gradient("gradient", Scan::N);
  const View<double> loss("loss");
  Kokkos::deep_copy(slices, 1.0f);
  Kokkos::deep_copy(factors, 1.0f);
  // clang-format on
  // [inputs
  const PtychographyShape shape{.object = {64, 64}, .probe = 16, .detector = 40, .slices = 2};
  PtychographyLoss<Space, float> model(space, shape, positions,
                                       {.scale = PatternScale::None,
                                        .slice_fresnel_numbers = {20}, // window^2 / (wavelength distance)
                                        .pattern_factors = true});
  model.set_patterns(space, 0, patterns);
  model.evaluate(space, {.object = slices, .probe = probe, .factors = factors},
                 {.loss = loss, .object_gradient = slices_gradient, .factor_gradient = factor_gradient});
  // inputs]
  // clang-format off
  // Object and factors of one scale: sum h dL/dh = Re sum conj(O_s) dL/dO_s / 2 of either slice.
  space.fence();
  const auto g = on_host(slices_gradient);
  const auto h = on_host(factor_gradient);
  double by_factors = 0;
  std::array<double, 2> by_slice{};
  for (int j = 0; j < Scan::N; ++j)
    by_factors += h(j);
  for (int i = 0; i < 2 * 64 * 64; ++i)
    by_slice[i / (64 * 64)] += g.data()[i].real();
  for (const double sum : by_slice)
    CHECK(std::abs(sum / (2 * by_factors) - 1) < 1e-4);
}

TEST_CASE("the tutorial's L-BFGS") {
  const Scan scan;
  const Space space;
  const auto probe = scan.probe;
  PtychographyLoss<Space, float> loss(space, {.object = {64, 64}, .probe = 16, .detector = 40}, scan.positions,
                                      {.loss = PatternLoss::Amplitude, .scale = PatternScale::None});
  loss.set_patterns(space, 0, scan.patterns);
  // [lbfgs
  using Complex = Kokkos::complex<float>;
  using Vector = Eigen::VectorXf; // real and imaginary parts
  using Host = Kokkos::View<Complex**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  const View<Complex**> object("object", 64, 64), object_gradient("object gradient", 64, 64);
  const View<double> device_value("loss");
  const auto on_pixels = [](Vector& vector) { return Host(reinterpret_cast<Complex*>(vector.data()), 64, 64); };
  const auto evaluate = [&](Vector& x, Vector& gradient) {
    Kokkos::deep_copy(object, on_pixels(x));
    loss.evaluate(space, object, probe, {.loss = device_value, .object_gradient = object_gradient});
    space.fence();
    Kokkos::deep_copy(on_pixels(gradient), object_gradient);
    return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), device_value)();
  };
  Vector x(2 * 64 * 64), gradient(x.size()), next(x.size()), next_gradient(x.size());
  Kokkos::deep_copy(on_pixels(x), Complex(1));
  double value = evaluate(x, gradient);
  std::deque<std::pair<Vector, Vector>> memory; // steps, and how the gradient changed by each
  for (int iteration = 0; iteration < 50; ++iteration) {
    Vector direction = -gradient;
    std::vector<float> parts;
    for (auto pair = memory.rbegin(); pair != memory.rend(); ++pair) {
      parts.push_back(pair->first.dot(direction) / pair->first.dot(pair->second));
      direction -= parts.back() * pair->second;
    }
    direction *= memory.empty() ? 0.1f / gradient.cwiseAbs().maxCoeff()
                                : memory.back().first.dot(memory.back().second) / memory.back().second.squaredNorm();
    for (const auto& [step, change] : memory) {
      direction += (parts.back() - change.dot(direction) / step.dot(change)) * step;
      parts.pop_back();
    }
    float length = 1; // halved until the loss falls enough
    double next_value;
    while (next = x + length * direction, next_value = evaluate(next, next_gradient),
           next_value > value + 1e-4 * length * gradient.dot(direction) && length > 1e-6)
      length /= 2;
    if ((next - x).dot(next_gradient - gradient) > 0)
      memory.emplace_back(next - x, next_gradient - gradient); // of all steps; for long runs, of the latest ten
    x = next, gradient = next_gradient, value = next_value;
  }
  // lbfgs]
  Vector flat(x.size()), unused(x.size());
  Kokkos::deep_copy(on_pixels(flat), Complex(1));
  const double first = evaluate(flat, unused);
  INFO("from " << first << " to " << value);
  CHECK(value < 1e-3 * first);
}

// clang-format on
TEST_CASE("the pages on ptychography show this code") {
  const std::filesystem::path root(BRACEWELL_SOURCE_DIR);
  check_page_examples(root / "tests/ptychography/page.cpp",
                      {root / "docs/ptychography.md", root / "docs/ptychography-models.md",
                       root / "docs/ptychography-tutorial.md"});
}
