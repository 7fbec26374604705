// What experiments bring beside one probe at whole positions of a thin object: gradients of positions, windows that
// move, factors, a background, relaxation, slices. In double against differences and direct sums.

#include "../deep_copy.hpp"
#include "../tools/checks.hpp"
#include "solver_plan.hpp"
#include "support.hpp"

#include <bracewell/optimize/adam.hpp>

using namespace Test;
using Catch::Matchers::ContainsSubstring;

namespace {

using Complex = Kokkos::complex<double>;
using Plan = TestLoss<double>;

/// A model with a value of everything that a plan may ask for.
struct Model {
  Space space;
  PtychographyShape shape;
  PtychographyOptions options;
  View<double**> positions;
  View<Complex***> object, probe, relaxation;
  View<Complex**> coefficients;
  View<double*> factors;
  View<double**> background, moves;
  View<double***> patterns;
  Plan plan;

  static constexpr int count = 4;

  Model(const PtychographyShape& shape_, const PtychographyOptions& options_, bool whole = false)
      : shape(shape_), options(options_), positions("positions", count, 2),
        object("object", shape.slices, shape.object[0], shape.object[1]),
        probe("probe", shape.modes, shape.probe, shape.probe),
        relaxation("relaxation", shape.relaxation, shape.probe, shape.probe),
        coefficients("coefficients", count, shape.relaxation), factors("factors", count),
        background("background", shape.detector, shape.detector), moves("moves", shape.slices - 1, 2),
        patterns("patterns", count, shape.detector, shape.detector), plan(make(whole)) {}

  Plan make(bool whole) {
    std::mt19937 engine(29);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    const double size = 1.0 / shape.probe;
    fill(object, [&] { return Complex(1 + 0.2 * normal(engine), 0.2 * normal(engine)); });
    fill(probe, [&] { return size * Complex(normal(engine), normal(engine)); });
    fill(factors, [&] { return 0.6 + uniform(engine); });
    fill(background, [&] { return 2 * uniform(engine); });
    fill(patterns, [&] { return double(std::poisson_distribution<int>(6)(engine)); });
    const double room = double(shape.object[0] - shape.probe);
    fill(positions, [&] { return whole ? std::floor(room * uniform(engine)) : room * uniform(engine); });
    fill(relaxation, [&] { return size * Complex(normal(engine), normal(engine)); });
    fill(coefficients, [&] { return 0.5 * Complex(normal(engine), normal(engine)); });
    fill(moves, [&] { return 2 * normal(engine); });
    Plan result(space, shape, positions, options);
    result.set_patterns(space, 0, patterns);
    return result;
  }

  template <class Target, class Make>
  static void fill(const Target& view, const Make& next) {
    const auto host = Kokkos::create_mirror_view(view);
    for (std::size_t i = 0; i < host.size(); ++i)
      host.data()[i] = next();
    Test::deep_copy(view, host);
  }

  Plan::Inputs inputs() const {
    Plan::Inputs result{.object = object, .probe = probe};
    if (options.refine_positions)
      result.positions = positions;
    if (options.pattern_factors)
      result.factors = factors;
    if (options.detector_background)
      result.detector_background = background;
    if (shape.relaxation > 0)
      result.coefficients = coefficients, result.relaxation = relaxation;
    if (options.refine_slice_shifts)
      result.slice_shifts = moves;
    return result;
  }

  double loss() const {
    const View<double> value("loss");
    plan.evaluate(space, inputs(), {.loss = value});
    space.fence();
    return on_host(value)();
  }

  /// A gradient against a difference of fourth order of the loss, along itself and noise.
  template <class Parameter>
  void
  check_gradient(const char* name, const Parameter& parameter,
                 Array<typename Parameter::value_type, Space::memory_space> Plan::Outputs::*member) const {
    const Parameter gradient("gradient", parameter.layout());
    Test::deep_copy(gradient, -7.0); // every element must be written
    Plan::Outputs outputs;
    outputs.*member = gradient;
    plan.evaluate(space, inputs(), outputs);
    space.fence();
    const auto g = on_host(gradient);
    const auto start = Kokkos::create_mirror(Kokkos::HostSpace(), parameter); // never the View itself
    const auto moved = Kokkos::create_mirror(Kokkos::HostSpace(), parameter);
    const auto direction = Kokkos::create_mirror(Kokkos::HostSpace(), parameter);
    Test::deep_copy(start, parameter);
    double squares = 0, expected = 0, parameter_squares = 0;
    for (std::size_t i = 0; i < g.size(); ++i) {
      squares += product(g.data()[i], g.data()[i]);
      parameter_squares += product(start.data()[i], start.data()[i]);
    }
    const double size = std::sqrt(squares / double(g.size()));
    std::mt19937 engine(3);
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < g.size(); ++i) {
      direction.data()[i] = g.data()[i] / size + normal(engine);
      expected += product(g.data()[i], direction.data()[i]);
    }
    const double step = 1e-4 * std::min(1.0, std::sqrt(parameter_squares / double(g.size())));
    const auto at = [&](int steps) {
      for (std::size_t i = 0; i < g.size(); ++i)
        moved.data()[i] = start.data()[i] + steps * step * direction.data()[i];
      Test::deep_copy(parameter, moved);
      return loss();
    };
    const double difference = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
    Test::deep_copy(parameter, start);
    INFO(name << ": difference " << difference << ", gradient " << expected);
    CHECK(size > 0);
    CHECK(std::abs(difference / expected - 1) < 1e-7);
  }

  /// The gradients of all that the plan asks for.
  void check_gradients() const {
    check_gradient("object", object, &Plan::Outputs::object_gradient);
    check_gradient("probe", probe, &Plan::Outputs::probe_gradient);
    if (options.refine_positions)
      check_gradient("positions", positions, &Plan::Outputs::position_gradient);
    if (options.pattern_factors)
      check_gradient("factors", factors, &Plan::Outputs::factor_gradient);
    if (options.detector_background)
      check_gradient("background", background, &Plan::Outputs::background_gradient);
    if (shape.relaxation > 0) {
      check_gradient("coefficients", coefficients, &Plan::Outputs::coefficient_gradient);
      check_gradient("relaxation", relaxation, &Plan::Outputs::relaxation_gradient);
    }
    if (options.refine_slice_shifts)
      check_gradient("slice shifts", moves, &Plan::Outputs::slice_shift_gradient);
  }

  static double product(double a, double b) { return a * b; }
  static double product(const Complex& a, const Complex& b) {
    return a.real() * b.real() + a.imag() * b.imag();
  }
};

/// Two slices that are known, and their patterns by direct sums.
struct TwoSlices {
  static constexpr int size = 22, m = 14, step = 2, across = (size - m) / step + 1, count = across * across;
  static constexpr double fresnel_number = 6;
  using Wave = std::vector<std::complex<double>>; // m x m

  std::array<Wave, 2> object;
  Wave probe;

  TwoSlices() {
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x) {
        object[0].push_back(std::polar(1.0, 0.5 * ((x / 4 + y / 3) % 2)));
        object[1].push_back(std::polar(std::hypot(x - 12, y - 10) < 6 ? 0.8 : 1.0, 0.1 * (x % 5)));
      }
    for (int k = 0; k < m * m; ++k) {
      const double y = k / m - 0.5 * (m - 1), x = k % m - 0.5 * (m - 1);
      probe.push_back(
          std::polar(2 * std::exp(-(y * y + x * x) / (0.12 * m * m)), 0.15 * (y * y + 0.8 * x * x)));
    }
  }

  static double frequency(int k) { return 2 * k < m ? k : k - m; }
  static Wave transform(Wave wave, int sign) {
    for (const int apart : {1, m}) {
      const Wave given = wave;
      for (int line = 0; line < m; ++line)
        for (int k = 0; k < m; ++k) {
          std::complex<double> sum = 0;
          for (int j = 0; j < m; ++j)
            sum += given[line * (m + 1 - apart) + j * apart] * std::polar(1.0, sign * 2 * M_PI * k * j / m);
          wave[line * (m + 1 - apart) + k * apart] = sum;
        }
    }
    return wave;
  }

  /// @param moved  pixels (row, column) by which the beam moves to the second slice
  std::vector<double> pattern(int row, int column, std::array<double, 2> moved = {}) const {
    Wave wave = probe;
    for (int slice = 0; slice < 2; ++slice) {
      for (int k = 0; k < m * m; ++k)
        wave[k] *= object[slice][(row + k / m) * size + column + k % m];
      wave = transform(wave, -1);
      if (slice == 1)
        break;
      for (int k = 0; k < m * m; ++k) {
        const double y = frequency(k / m), x = frequency(k % m);
        wave[k] *= std::polar(1.0 / (m * m), -M_PI / fresnel_number * (y * y + x * x) -
                                                 2 * M_PI * (y * moved[0] + x * moved[1]) / m);
      }
      wave = transform(wave, 1);
    }
    std::vector<double> result;
    for (const auto& value : wave)
      result.push_back(std::norm(value));
    return result;
  }

  /// Share of a slice that is not as it should be, but for a factor, where the probe has been.
  double error(const Kokkos::complex<double>* found, int slice) const {
    std::vector<double> light(size * size);
    for (int row = 0; row + m <= size; row += step)
      for (int column = 0; column + m <= size; column += step)
        for (int k = 0; k < m * m; ++k)
          light[(row + k / m) * size + column + k % m] += std::norm(probe[k]);
    std::complex<double> product = 0;
    double energy = 0, known = 0;
    for (int k = 0; k < size * size; ++k) {
      const std::complex<double> value(found[k].real(), found[k].imag());
      product += light[k] * std::conj(value) * object[slice][k];
      energy += light[k] * std::norm(value);
      known += light[k] * std::norm(object[slice][k]);
    }
    return std::sqrt(std::max(0.0, 1 - std::norm(product) / (energy * known)));
  }
};

} // namespace

TEST_CASE("gradients of positions: between pixels and at whole ones, far and near field, odd sizes, groups") {
  for (const bool whole : {false, true})
    for (const auto loss : {PatternLoss::Amplitude, PatternLoss::LeastSquares}) {
      INFO("whole " << whole << " loss " << int(loss));
      Model({{22, 23}, 11, 15, 2}, {.loss = loss, .counts = 8, .refine_positions = true}, whole)
          .check_gradients();
      Model({{20, 21}, 10, 10}, {.loss = loss, .fresnel_number = 7.5, .refine_positions = true}, whole)
          .check_gradients();
      Model({{19, 21}, 9, 9, 2},
            {.scale = PatternScale::None,
             .fresnel_number = -7.5,
             .refine_positions = true,
             .workspace_bytes = 20000},
            whole)
          .check_gradients();
    }
}

TEST_CASE(
    "positions are inputs: those of the plan where none are given, windows stay, gradients of a subset") {
  const Model model({{22, 23}, 11, 15, 2}, {.counts = 8, .refine_positions = true});
  const View<double> value("loss");
  model.plan.evaluate(model.space, model.object, View<const Complex***>(model.probe), {.loss = value});
  model.space.fence();
  CHECK(on_host(value)() == model.loss());
  const View<double**> all("gradient", Model::count, 2), some("gradient", Model::count, 2);
  const View<int*> subset("subset", 2);
  Test::deep_copy(Kokkos::subview(subset, 0), 3);
  Test::deep_copy(Kokkos::subview(subset, 1), 1);
  Test::deep_copy(some, -7.0);
  model.plan.evaluate(model.space, model.inputs(), {.position_gradient = all});
  model.plan.evaluate(model.space, model.inputs(), {.position_gradient = some}, subset);
  model.space.fence();
  const auto a = on_host(all), s = on_host(some);
  for (int j = 0; j < Model::count; ++j)
    for (int axis = 0; axis < 2; ++axis) // of 2 patterns in place of 4
      CHECK(std::abs(s(j, axis) - (j % 2 == 1 ? 2 : 0) * a(j, axis)) < 1e-14 * std::abs(a(j, axis)));
}

TEST_CASE("windows move when positions have gone too far, to those of a new plan") {
  Model model({{22, 23}, 11, 15, 2}, {.counts = 8, .refine_positions = true});
  const auto start = Kokkos::create_mirror(Kokkos::HostSpace(), model.positions);
  const auto moved = Kokkos::create_mirror(Kokkos::HostSpace(), model.positions);
  Test::deep_copy(start, model.positions);
  Test::deep_copy(moved, model.positions);
  const auto corner = [&](int j, int axis) { return std::floor(start(j, axis) + 0.5); };
  moved(0, 0) = corner(0, 0) + 0.74;  // stays
  moved(1, 1) = corner(1, 1) + 0.76;  // moves by one
  moved(2, 0) = 4.2, moved(2, 1) = 7; // far
  moved(3, 0) = -2, moved(3, 1) = 30; // beyond the object: to its border
  Test::deep_copy(model.positions, moved);
  model.plan.move_windows(model.space, model.positions);
  // The same by a plan that is made at the corners expected.
  const auto corners = Kokkos::create_mirror(Kokkos::HostSpace(), model.positions);
  for (int j = 0; j < Model::count; ++j)
    for (int axis = 0; axis < 2; ++axis)
      corners(j, axis) = corner(j, axis);
  corners(1, 1) += 1;
  corners(2, 0) = 4, corners(2, 1) = 7;
  corners(3, 0) = 0, corners(3, 1) = 12;
  Plan expected(model.space, model.shape, corners, model.options);
  expected.set_patterns(model.space, 0, model.patterns);
  const View<Complex**> gradient("gradient", 22, 23), expected_gradient("gradient", 22, 23);
  const View<double**> positions("gradient", Model::count, 2),
      expected_positions("gradient", Model::count, 2);
  const View<double> given("loss"), own("loss");
  model.plan.evaluate(model.space, model.inputs(),
                      {.object_gradient = gradient, .position_gradient = positions});
  expected.evaluate(
      model.space, model.inputs(),
      {.loss = given, .object_gradient = expected_gradient, .position_gradient = expected_positions});
  model.plan.evaluate(model.space, {.object = model.object, .probe = model.probe}, {.loss = own});
  model.space.fence();
  CHECK(on_host(own)() == on_host(given)()); // the plan's positions are the new ones
  const auto same = [](const auto& view, const auto& other) {
    const auto a = on_host(view);
    const auto b = on_host(other);
    return std::equal(a.data(), a.data() + a.size(), b.data());
  };
  CHECK(same(gradient, expected_gradient));
  CHECK(same(positions, expected_positions));
  Test::deep_copy(Kokkos::subview(model.positions, 2, 1), NAN);
  CHECK_THROWS_WITH(
      model.plan.move_windows(model.space, model.positions),
      "Bracewell::PtychographyLoss::move_windows: positions: expected finite numbers, found nan "
      "(position 2)");
}

TEST_CASE("factors of patterns and a background per detector pixel: gradients; by hand") {
  for (const auto loss : {PatternLoss::Amplitude, PatternLoss::LeastSquares, PatternLoss::Poisson})
    for (const auto scale : {PatternScale::PerPattern, PatternScale::None}) {
      INFO("loss " << int(loss) << " scale " << int(scale));
      Model({{22, 23}, 11, 15, 2}, {.loss = loss,
                                    .scale = scale,
                                    .counts = 8,
                                    .background = 0.1,
                                    .refine_positions = true,
                                    .pattern_factors = true,
                                    .detector_background = true,
                                    .workspace_bytes = 40000})
          .check_gradients();
    }
  // Factors are squares of factors of the probe; with none, the background is the pattern.
  const Model with({{22, 23}, 11, 15},
                   {.scale = PatternScale::None, .pattern_factors = true, .detector_background = true}),
      without({{22, 23}, 11, 15}, {.scale = PatternScale::None}); // otherwise the same
  Test::deep_copy(with.factors, 4.0);
  Test::deep_copy(with.background, 0.0);
  const auto probe = on_host(with.probe);
  const auto doubled = Kokkos::create_mirror(Kokkos::HostSpace(), probe);
  for (std::size_t i = 0; i < probe.size(); ++i)
    doubled.data()[i] = 2.0 * probe.data()[i];
  Test::deep_copy(without.probe, doubled);
  CHECK(std::abs(with.loss() / without.loss() - 1) < 1e-13);
  Test::deep_copy(with.factors, 0.0);
  Test::deep_copy(with.background, 3.0);
  double expected = 0;
  const auto patterns = on_host(with.patterns);
  for (std::size_t i = 0; i < patterns.size(); ++i)
    expected += std::pow(3 - patterns.data()[i], 2) / double(patterns.size());
  CHECK(std::abs(with.loss() / expected - 1) < 1e-13);
}

TEST_CASE("relaxation of the probe: gradients; equal coefficients are another probe") {
  for (const bool whole : {false, true})
    for (const bool refine : {false, true})
      Model({.object = {22, 23}, .probe = 11, .detector = 15, .modes = 2, .relaxation = 3},
            {.loss = PatternLoss::Amplitude, .counts = 8, .refine_positions = refine}, whole)
          .check_gradients();
  Model({.object = {20, 21}, .probe = 10, .detector = 10, .modes = 2, .relaxation = 1},
        {.scale = PatternScale::None, .fresnel_number = 9.0, .workspace_bytes = 20000})
      .check_gradients();
  Model relaxed({.object = {22, 23}, .probe = 11, .detector = 15, .modes = 2, .relaxation = 1},
                {.counts = 8});
  Model plain({.object = {22, 23}, .probe = 11, .detector = 15, .modes = 2}, {.counts = 8});
  const Complex a(0.3, -0.4);
  Test::deep_copy(relaxed.coefficients, a);
  const auto probe = Kokkos::create_mirror(Kokkos::HostSpace(), plain.probe);
  Test::deep_copy(probe, plain.probe);
  const auto v = on_host(relaxed.relaxation);
  for (std::size_t i = 0; i < v.size(); ++i) // the first mode alone
    probe.data()[i] += a * v.data()[i];
  Test::deep_copy(plain.probe, probe);
  CHECK(std::abs(relaxed.loss() / plain.loss() - 1) < 1e-13);
}

TEST_CASE("slices: gradients; slices that touch are their product") {
  for (const bool whole : {false, true})
    Model({.object = {22, 23}, .probe = 11, .detector = 15, .modes = 2, .slices = 3},
          {.loss = PatternLoss::Amplitude, .scale = PatternScale::None, .slice_fresnel_numbers = {9, 14.5}},
          whole)
        .check_gradients();
  Model({.object = {22, 23}, .probe = 11, .detector = 15, .slices = 3},
        {.scale = PatternScale::None,
         .slice_fresnel_numbers = {9, 14.5},
         .slice_shifts = {{1.3, -0.6}, {-2.1, 0.4}}})
      .check_gradients();
  for (const int m : {10, 11}) // groups of one pattern, too
    Model({.object = {22, 23}, .probe = m, .detector = 15, .modes = 2, .slices = 3},
          {.loss = PatternLoss::Amplitude,
           .scale = PatternScale::None,
           .slice_fresnel_numbers = {9, 14.5},
           .refine_slice_shifts = true,
           .workspace_bytes = m == 10 ? 1 : 1 << 20})
        .check_gradients();
  Model({.object = {20, 21}, .probe = 10, .detector = 10, .slices = 2}, {.counts = 8,
                                                                         .fresnel_number = 9.0,
                                                                         .slice_fresnel_numbers = {-12},
                                                                         .refine_positions = true,
                                                                         .workspace_bytes = 20000})
      .check_gradients();
  // Slices without way between them are one, their product.
  const Model touching({.object = {22, 23}, .probe = 11, .detector = 15, .slices = 2},
                       {.slice_fresnel_numbers = {1e18}}),
      one({.object = {22, 23}, .probe = 11, .detector = 15}, {});
  const auto slices = on_host(touching.object);
  const auto product = Kokkos::create_mirror(Kokkos::HostSpace(), one.object);
  for (std::size_t i = 0; i < product.size(); ++i)
    product.data()[i] = slices.data()[i] * slices.data()[i + product.size()];
  Test::deep_copy(one.object, product);
  Test::deep_copy(one.probe, touching.probe);
  const View<double> value("loss");
  Plan plan(one.space, one.shape, touching.positions, {});
  plan.set_patterns(one.space, 0, touching.patterns);
  plan.evaluate(one.space, one.inputs(), {.loss = value});
  one.space.fence();
  CHECK(std::abs(touching.loss() / on_host(value)() - 1) < 1e-13);
}

TEST_CASE("slices: a tilted specimen has the patterns of direct sums") {
  const TwoSlices known;
  const Space space;
  const int size = TwoSlices::size, m = TwoSlices::m;
  const View<Complex***> object("object", 2, size, size), probe("probe", 1, m, m);
  const View<double**> positions("positions", 1, 2);
  const View<double***> patterns("patterns", 1, m, m);
  Test::deep_copy(positions, 3.0);
  Experiment<double>::fill(probe, [&](std::size_t k) { return known.probe[k]; });
  Experiment<double>::fill(object,
                           [&](std::size_t k) { return known.object[k / (size * size)][k % (size * size)]; });
  for (const std::array<double, 2> moved : {std::array{2.0, -1.0}, {0.7, 1.4}}) {
    const auto host = Kokkos::create_mirror_view(patterns);
    const auto expected = known.pattern(3, 3, moved);
    std::copy(expected.begin(), expected.end(), host.data());
    Test::deep_copy(patterns, host);
    const auto loss_of = [&](const std::vector<std::array<double, 2>>& shifts, bool refined = false,
                             std::optional<std::array<double, 2>> given = {}) {
      Plan plan(space, {.object = {size, size}, .probe = m, .detector = m, .slices = 2}, positions,
                {.loss = PatternLoss::Amplitude,
                 .scale = PatternScale::None,
                 .slice_fresnel_numbers = {TwoSlices::fresnel_number},
                 .slice_shifts = shifts,
                 .refine_slice_shifts = refined});
      plan.set_patterns(space, 0, patterns);
      const View<double> loss("loss");
      Plan::Inputs inputs{.object = object, .probe = probe};
      const View<double**> moves("moves", 1, 2);
      if (given) {
        const auto numbers = Kokkos::create_mirror_view(moves);
        numbers(0, 0) = (*given)[0], numbers(0, 1) = (*given)[1];
        Test::deep_copy(moves, numbers);
        inputs.slice_shifts = moves;
      }
      plan.evaluate(space, inputs, {.loss = loss});
      space.fence();
      return on_host(loss)();
    };
    CHECK(loss_of({moved}) < 1e-20);
    CHECK(loss_of({moved}, true) < 1e-20); // of the plan, though others may be given
    CHECK(loss_of({{0.0, 0.0}}, true, moved) < 1e-20);
    CHECK(loss_of({}, true, moved) < 1e-20);
    CHECK(loss_of({}, true) > 1e-2);
    CHECK(loss_of({}) > 1e-2);
    CHECK(loss_of({{moved[1], moved[0]}}) > 1e-2); // rows are not columns
    CHECK(loss_of({{-moved[0], -moved[1]}}) > 1e-2);
  }
}

TEST_CASE("slices: both of a known object are found from its patterns") {
  const TwoSlices known;
  const Space space;
  const int size = TwoSlices::size, m = TwoSlices::m, count = TwoSlices::count;
  const View<Complex***> object("object", 2, size, size), gradient("gradient", 2, size, size),
      probe("probe", 1, m, m);
  const View<double**> positions("positions", count, 2);
  const View<double***> patterns("patterns", count, m, m);
  const auto host = Kokkos::create_mirror_view(patterns);
  const auto places = Kokkos::create_mirror_view(positions);
  for (int j = 0; j < count; ++j) {
    places(j, 0) = j / TwoSlices::across * TwoSlices::step;
    places(j, 1) = j % TwoSlices::across * TwoSlices::step;
    const auto pattern = known.pattern(int(places(j, 0)), int(places(j, 1)));
    std::copy(pattern.begin(), pattern.end(), &host(j, 0, 0));
  }
  Test::deep_copy(patterns, host);
  Test::deep_copy(positions, places);
  Experiment<double>::fill(probe, [&](std::size_t k) { return known.probe[k]; });
  Test::deep_copy(object, 1.0);
  Plan plan(space, {.object = {size, size}, .probe = m, .detector = m, .slices = 2}, positions,
            {.loss = PatternLoss::Amplitude,
             .scale = PatternScale::None,
             .slice_fresnel_numbers = {TwoSlices::fresnel_number}});
  plan.set_patterns(space, 0, patterns);
  const View<double> loss("loss");
  Adam<Space, double> adam(space, {2 * object.size()});
  double first = 0;
  for (int step = 0, steps = 1200; step < steps; ++step) {
    plan.evaluate(space, {.object = object, .probe = probe}, {.loss = loss, .object_gradient = gradient});
    if (step == 0)
      first = on_host(loss)();
    adam.step(space, {{object, gradient, 0.03 * (1 + std::cos(M_PI * step / steps)) / 2}});
  }
  space.fence();
  const auto found = on_host(object);
  const std::vector<Complex> nothing(size * size, 1.0);
  for (int slice = 0; slice < 2; ++slice) {
    INFO("slice " << slice);
    CHECK(known.error(found.data() + slice * size * size, slice) <
          0.001); // 600 steps: 0.002 to 0.02, by rounding
    CHECK(known.error(nothing.data(), slice) > 0.15);
    CHECK(known.error(found.data() + (1 - slice) * size * size, slice) > 0.15); // they are told apart
  }
  CHECK(on_host(loss)() < 1e-3 * first);
}

TEST_CASE("a solver takes Adam's steps on the gradients of slices, relaxation, factors and a background") {
  const PtychographyShape shape{
      .object = {22, 23}, .probe = 11, .detector = 15, .modes = 2, .slices = 2, .relaxation = 2};
  const PtychographyOptions options{.loss = PatternLoss::Amplitude,
                                    .scale = PatternScale::None,
                                    .slice_fresnel_numbers = {10},
                                    .pattern_factors = true,
                                    .detector_background = true};
  Model model(shape, options);
  const PtychographySolverOptions rates{.object_rate = 0.02,
                                        .probe_rate = 0.003,
                                        .coefficient_rate = 0.01,
                                        .relaxation_rate = 0.004,
                                        .factor_rate = 0.03,
                                        .background_rate = 0.05};
  const Space space;
  const auto make = [&] {
    Plan plan(space, shape, model.positions, options);
    plan.set_patterns(space, 0, model.patterns);
    return TestSolver(space, shape, std::move(plan), rates);
  };
  TestSolver solver = make();
  const View<double***> amplitude("amplitude", 2, 22, 23), phase("phase", 2, 22, 23),
      amplitude_gradient("amplitude gradient", 2, 22, 23), phase_gradient("phase gradient", 2, 22, 23);
  const View<double**> roots("roots", 15, 15), background_gradient("background gradient", 15, 15);
  std::mt19937 engine(5);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  Model::fill(amplitude, [&] { return uniform(engine); });
  Model::fill(phase, [&] { return uniform(engine) - 1; });
  Model::fill(roots, [&] { return uniform(engine); });
  CHECK(on_host(solver.factors())(3) == 1);
  const auto give = [](const auto& to, const auto& from) {
    REQUIRE(to.size() == from.size());
    using Value = std::remove_const_t<std::remove_reference_t<decltype(*from.data())>>;
    const Kokkos::View<Value*, Space::memory_space, Kokkos::MemoryUnmanaged> a(to.data(), to.size());
    Test::deep_copy(a, Kokkos::View<const Value*, Space::memory_space, Kokkos::MemoryUnmanaged>(from.data(),
                                                                                                from.size()));
  };
  give(solver.amplitude(), amplitude), give(solver.phase(), phase), give(solver.probe(), model.probe);
  give(solver.coefficients(), model.coefficients), give(solver.relaxation(), model.relaxation);
  give(solver.factors(), model.factors), give(solver.background_roots(), roots);
  const View<Complex***> object_gradient("object gradient", 2, 22, 23), probe_gradient("probe", 2, 11, 11),
      relaxation_gradient("relaxation", 2, 11, 11);
  const View<Complex**> coefficient_gradient("coefficients", Model::count, 2);
  const View<double*> factor_gradient("factors", Model::count);
  const View<double> loss("loss");
  Adam<Space, double> adam(space, {amplitude.size(), phase.size(), 2 * model.probe.size(),
                                   2 * model.coefficients.size(), 2 * model.relaxation.size(),
                                   model.factors.size(), roots.size()});
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) {
    const auto host = on_host(roots);
    std::size_t next = 0;
    Model::fill(model.background, [&] { return std::pow(host.data()[next++], 2); });
    complex_object(space, amplitude, phase, model.object);
    model.plan.evaluate(space, model.inputs(),
                        {.loss = loss,
                         .object_gradient = object_gradient,
                         .probe_gradient = probe_gradient,
                         .factor_gradient = factor_gradient,
                         .background_gradient = background_gradient,
                         .coefficient_gradient = coefficient_gradient,
                         .relaxation_gradient = relaxation_gradient});
    losses.push_back(on_host(loss)());
    complex_object_gradients(space, amplitude, phase, object_gradient,
                             {.amplitude = amplitude_gradient, .phase = phase_gradient});
    const auto by_square = on_host(background_gradient);
    const auto by_root = Kokkos::create_mirror(Kokkos::HostSpace(), background_gradient);
    for (std::size_t i = 0; i < host.size(); ++i)
      by_root.data()[i] = 2 * host.data()[i] * by_square.data()[i];
    Test::deep_copy(background_gradient, by_root);
    adam.step(space, {{amplitude, amplitude_gradient, 0.02},
                      {phase, phase_gradient, 0.02},
                      {model.probe, probe_gradient, 0.003},
                      {model.coefficients, coefficient_gradient, 0.01},
                      {model.relaxation, relaxation_gradient, 0.004},
                      {model.factors, factor_gradient, 0.03},
                      {roots, background_gradient, 0.05}});
    solver.step(space);
  }
  const auto taken = solver.losses(space);
  for (std::size_t step = 0; step < losses.size(); ++step)
    CHECK(std::abs(taken[step] / losses[step] - 1) < 1e-12);
  const auto same = [](const auto& view, const auto& other) {
    const auto a = on_host(view);
    const auto b = on_host(other);
    double worst = 0;
    for (std::size_t i = 0; i < b.size(); ++i)
      worst = std::max(worst, Kokkos::abs(a.data()[i] - b.data()[i]));
    return worst < 1e-12;
  };
  CHECK(same(solver.amplitude(), amplitude));
  CHECK(same(solver.phase(), phase));
  CHECK(same(solver.probe(), model.probe));
  CHECK(same(solver.coefficients(), model.coefficients));
  CHECK(same(solver.relaxation(), model.relaxation));
  CHECK(same(solver.factors(), model.factors));
  CHECK(same(solver.background_roots(), roots));
  // A step more from its state is the step of a solver that goes on, of a part of the patterns, too.
  const View<int*> subset("subset", 2);
  Test::deep_copy(Kokkos::subview(subset, 0), 2);
  const auto state = solver.state(space);
  TestSolver other = make();
  other.restore(space, state);
  solver.step(space, subset), other.step(space, subset);
  space.fence();
  CHECK(same(solver.coefficients(), other.coefficients()));
  CHECK(same(solver.amplitude(), other.amplitude()));
  CHECK(same(solver.background_roots(), other.background_roots()));
  // Memory is foretold, and calls wait for nothing.
  CHECK(std::abs(double(TestSolver::bytes_needed(space, shape, model.positions, options, rates)) /
                     double(solver.memory_bytes()) -
                 1) < 0.02);
  const Test::Report seen = Test::report([&] { solver.step(space); });
  CHECK(seen.fences == std::vector<std::string>{});
  CHECK(seen.allocations == std::vector<std::string>{});
  for (const auto& kernel : seen.kernels)
    CHECK(kernel.label.starts_with("Bracewell::"));
  // What does not go together.
  const auto refuse = [&](const PtychographySolverOptions& wrong, const char* text) {
    Plan plan(space, shape, model.positions, options);
    CHECK_THROWS_WITH(TestSolver(space, shape, std::move(plan), wrong), ContainsSubstring(text));
  };
  refuse({.coefficient_rate = -1}, "options.coefficient_rate");
  refuse({.relaxation_rate = NAN}, "options.relaxation_rate");
  refuse({.factor_rate = INFINITY}, "options.factor_rate");
  refuse({.background_rate = -1}, "options.background_rate");
  refuse({.projections_first = 1}, "one slice");
  CHECK_THROWS_WITH(solver.set_reduction(space, {.patterns = Model::count, .sum = [](const auto&...) {}}),
                    ContainsSubstring("one slice, no relaxation and no background"));
}

TEST_CASE("everything at once, and messages of what is not announced, missing or of another shape") {
  const PtychographyShape shape{
      .object = {22, 23}, .probe = 11, .detector = 11, .modes = 2, .slices = 2, .relaxation = 2};
  PtychographyOptions options{.loss = PatternLoss::Poisson,
                              .background = 0.1,
                              .fresnel_number = 8.0,
                              .slice_fresnel_numbers = {10},
                              .refine_positions = true,
                              .refine_slice_shifts = true,
                              .pattern_factors = true,
                              .detector_background = true,
                              .workspace_bytes = 30000};
  const Model model(shape, options);
  model.check_gradients();
  const View<Complex***> gradient("gradient", 2, 22, 23);
  const auto inputs_of_all = model.inputs();
  const auto call = [&] { model.plan.evaluate(model.space, inputs_of_all, {.object_gradient = gradient}); };
  call();
  model.space.fence();
  const Test::Report seen = Test::report(call);
  CHECK_FALSE(seen.kernels.empty());
  for (const auto& kernel : seen.kernels)
    CHECK(kernel.label.starts_with("Bracewell::"));
  CHECK(seen.allocations == std::vector<std::string>{});
  CHECK(seen.fences == std::vector<std::string>{});
  CHECK(seen.copies == std::vector<std::string>{});
  const auto message = [&](const char* text, auto... change) {
    auto inputs = model.inputs();
    (change(inputs), ...);
    CHECK_THROWS_WITH(model.plan.evaluate(model.space, inputs, {}),
                      "Bracewell::PtychographyLoss::evaluate: " + std::string(text));
  };
  message("object: expected [2, 22, 23], found [2, 11, 11]", [&](auto& i) { i.object = model.probe; });
  message("positions: expected [4, 2], found [2, 11]",
          [&](auto& i) { i.positions = View<double**>("positions", 2, 11); });
  message("factors: expected [4], found []", [](auto& i) { i.factors = {}; });
  message("detector_background: expected [11, 11], found []", [](auto& i) { i.detector_background = {}; });
  message("coefficients: expected [4, 2], found []", [](auto& i) { i.coefficients = {}; });
  message("relaxation: expected [2, 11, 11], found []", [](auto& i) { i.relaxation = {}; });
  message("slice_shifts: expected [1, 2], found [4, 2]", [&](auto& i) { i.slice_shifts = model.positions; });
  CHECK_THROWS_WITH(
      model.plan.evaluate(model.space, model.inputs(), {.background_gradient = model.background}),
      ContainsSubstring("outputs.background_gradient: expected memory of its own"));
  Model plain({{22, 23}, 11, 15}, {});
  auto inputs = plain.inputs();
  inputs.factors = model.factors;
  CHECK_THROWS_WITH(
      plain.plan.evaluate(plain.space, inputs, {}),
      "Bracewell::PtychographyLoss::evaluate: factors: expected none, as the plan was made without "
      "options.pattern_factors, found [4]");
  CHECK_THROWS_WITH(plain.plan.evaluate(plain.space, plain.inputs(), {.position_gradient = plain.positions}),
                    ContainsSubstring("outputs.position_gradient: expected none"));
  CHECK_THROWS_WITH(plain.plan.move_windows(plain.space, plain.positions),
                    ContainsSubstring("options.refine_positions: expected true"));
  options.slice_fresnel_numbers = {};
  CHECK_THROWS_WITH(Model(shape, options),
                    ContainsSubstring("options.slice_fresnel_numbers: expected 1 numbers"));
  options.slice_shifts = {{1, 1}, {1, 1}};
  options.slice_fresnel_numbers = {1};
  CHECK_THROWS_WITH(Model(shape, options),
                    ContainsSubstring("options.slice_shifts: expected none or 1 pairs"));
  options.slice_shifts = {};
  options.slice_fresnel_numbers = {0};
  CHECK_THROWS_WITH(Model(shape, options), ContainsSubstring("finite numbers other than zero, found 0"));
}

TEST_CASE("the memory of a plan is foretold to 5 %, of every kind of experiment") {
  const View<double**> whole("whole", 30, 2), fractional("fractional", 30, 2);
  Test::deep_copy(fractional, 2.25);
  const std::size_t workspace = 200000; // a few groups
  const auto check = [](const PtychographyShape& shape, const View<double**>& positions,
                        const PtychographyOptions& options) {
    check_memory<Plan>(1, shape, positions, options);
  };
  check({{50, 60}, 20, 32}, whole, {});
  check({{50, 60}, 20, 32, 3}, fractional, {.workspace_bytes = workspace});
  check({{50, 60}, 20, 64}, whole, {.weights = PixelWeights::PerPixel});
  check({{50, 60}, 20, 64}, whole, {.reduced_grid = true});
  check({{50, 60}, 20, 32, 2}, whole, {.refine_positions = true, .workspace_bytes = workspace});
  check({{50, 60}, 32, 32, 2}, fractional,
        {.fresnel_number = 7.5, .refine_positions = true, .workspace_bytes = workspace});
  check({{50, 60}, 20, 32, 2, 3}, whole,
        {.slice_fresnel_numbers = {9, 9}, .detector_background = true, .workspace_bytes = workspace});
  check({{50, 60}, 20, 32, 2, 3}, whole,
        {.slice_fresnel_numbers = {9, 9}, .refine_slice_shifts = true, .workspace_bytes = workspace});
  check({{50, 60}, 20, 32, 1, 1, 2}, whole, {.pattern_factors = true});
}
