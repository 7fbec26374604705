// PatternPath::Lines and, on GPUs, PatternPath::KnownLines against the general path, whose truth is elsewhere (loss.cpp, experiments.cpp, golden_ptychography):
// sizes with every kind of passes, modes, positions between pixels, masks, weights, losses, scales and subsets, and
// everything that a plan may ask for.

#include "../deep_copy.hpp"
#include "../tools/checks.hpp"
#include "support.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <tuple>

using namespace Test;

namespace {

const std::vector<std::array<double, 2>> whole = {{0, 0}, {3, 2}, {1, 3}, {3, 3}, {3, 3}};
const std::vector<std::array<double, 2>> fractional = {
    {0.4, 0}, {3.25, 1.9}, {1.5, 2.7}, {-0.3, 3.4}, {3, 3}};

/// Kernels over lines alone; those of PatternPath::KnownLines are for GPUs, in double for 128 alone.
template <class T>
struct LinesOnHosts : Impl::FusedDetectors<> {
  template <class>
  static constexpr bool lines = true;
  static constexpr bool knows_lines(int size) { return sizeof(T) == 4 || size == 128; }
};

/// PatternPath::Lines, and KnownLines where it can do the problem.
template <class T>
std::vector<PatternPath> paths_over_lines(const PtychographyShape& shape, PtychographyOptions options) {
  std::vector<PatternPath> paths = {PatternPath::Lines};
  options.path = PatternPath::KnownLines;
  if (choose_pattern_path<Space, T, TestStorage<T, LinesOnHosts<T>>>(shape, options) == options.path)
    paths.push_back(options.path);
  return paths;
}

template <class T>
void compare_paths(const Experiment<T>& e, PtychographyOptions options, const View<T**>& weights = {},
                   const View<int*>& subset = {}) {
  INFO("m " << e.m << " n " << e.n << " modes " << e.modes << " loss " << int(options.loss) << " scale "
            << int(options.scale) << " weights " << int(options.weights));
  options.path = PatternPath::General;
  const auto expected = e.evaluate(e.template plan<T, LinesOnHosts<T>>(options, weights), subset);
  for (const PatternPath path : paths_over_lines<T>({{e.rows, e.columns}, e.m, e.n, e.modes}, options)) {
    INFO("path " << int(path));
    options.path = path;
    const auto model = e.template plan<T, LinesOnHosts<T>>(options, weights);
    REQUIRE(model.path() == path);
    const auto found = e.evaluate(model, subset);
    const double tolerance = std::is_same_v<T, double> ? 1e-12 : 2e-5;
    CHECK(std::abs(found.loss / expected.loss - 1) < tolerance);
    CHECK(relative_difference(found.patterns, expected.patterns) < tolerance);
    CHECK(relative_difference(found.object, expected.object) < tolerance);
    CHECK(relative_difference(found.probe, expected.probe) < tolerance);
  }
}

void test_settings(const Experiment<double>& e) {
  const View<double**> mask("mask", e.n, e.n), weights("weights", e.n, e.n);
  const auto m = Kokkos::create_mirror_view(mask), w = Kokkos::create_mirror_view(weights);
  for (int k = 0; k < e.n * e.n; ++k) {
    m.data()[k] = k % 7 == 3 ? 0 : 1;
    w.data()[k] = k % 5 == 0 ? 0 : 0.25 * (k % 4 + 1);
  }
  Test::deep_copy(mask, m);
  Test::deep_copy(weights, w);
  for (const auto loss : {PatternLoss::LeastSquares, PatternLoss::Amplitude, PatternLoss::Poisson})
    for (const auto scale : {PatternScale::PerPattern, PatternScale::None}) {
      PtychographyOptions options{.loss = loss, .scale = scale, .counts = 10, .background = 0.1};
      compare_paths(e, options);
      options.weights = PixelWeights::Mask;
      compare_paths(e, options, mask);
      options.weights = PixelWeights::PerPixel;
      compare_paths(e, options, weights);
    }
}

/// Without light, for every loss and scale, with weights and without.
template <class T>
void test_without_light(const Experiment<T>& e) {
  const View<T**> weights("weights", e.n, e.n);
  const auto host = Kokkos::create_mirror_view(weights);
  for (int k = 0; k < e.n * e.n; ++k)
    host.data()[k] = k % 5 == 0 ? T(0) : T(0.25 * (k % 4 + 1));
  Test::deep_copy(weights, host);
  for (const auto loss : {PatternLoss::LeastSquares, PatternLoss::Amplitude, PatternLoss::Poisson})
    for (const auto scale : {PatternScale::PerPattern, PatternScale::None})
      for (const auto kind : {PixelWeights::None, PixelWeights::PerPixel}) {
        PtychographyOptions options{
            .loss = loss, .scale = scale, .counts = 10, .background = 0.1, .weights = kind};
        for (const PatternPath path :
             paths_over_lines<T>({{e.rows, e.columns}, e.m, e.n, e.modes}, options)) {
          options.path = path;
          check_without_light<T, LinesOnHosts<T>>(e, options,
                                                  kind == PixelWeights::None ? View<T**>() : weights);
        }
      }
}

void test_groups(const Experiment<double>& e) {
  Test::deep_copy(Kokkos::subview(e.patterns, 2, Kokkos::ALL, Kokkos::ALL), 0.0);
  const View<int*> subset("subset", 3);
  const auto list = Kokkos::create_mirror_view(subset);
  list(0) = 4, list(1) = 2, list(2) = 0;
  Test::deep_copy(subset, list);
  for (const std::size_t workspace : {std::size_t(1), std::size_t(160) << 20}) {
    PtychographyOptions options{.counts = 10, .workspace_bytes = workspace};
    compare_paths(e, options);
    compare_paths(e, options, {}, subset);
  }
  PtychographyOptions options{.counts = 10, .path = PatternPath::Lines};
  const double alone = e.loss(e.plan<double, LinesOnHosts<double>>(options));
  options.path = PatternPath::General;
  CHECK(std::abs(alone / e.loss(e.plan<double, LinesOnHosts<double>>(options)) - 1) < 1e-12);
}

/// Everything that a plan may ask for, over lines and by the general path: all that evaluate gives, one list each.
template <class T>
void compare_everything(const Experiment<T>& e, PtychographyOptions options, int relaxation = 0,
                        const View<T**>& weights = {}) {
  using Complex = Kokkos::complex<T>;
  using Plan = PtychographyLoss<Space, T, TestStorage<T, LinesOnHosts<T>>>;
  INFO("m " << e.m << " n " << e.n << " modes " << e.modes << " relaxation " << relaxation << " loss "
            << int(options.loss) << " scale " << int(options.scale) << " near "
            << bool(options.fresnel_number) << " slices " << options.slice_fresnel_numbers.size() + 1
            << " weights " << int(options.weights));
  std::mt19937 engine(5);
  std::uniform_real_distribution<double> uniform;
  const auto real = [&](const auto& view, const auto& make) {
    const auto host = Kokkos::create_mirror_view(view);
    for (std::size_t i = 0; i < host.size(); ++i)
      host.data()[i] = make(i);
    Test::deep_copy(view, host);
  };
  const View<double**> positions("positions", e.count, 2);
  real(positions, [&](std::size_t i) { return e.places[i / 2][i % 2] + 0.8 * (uniform(engine) - 0.5); });
  const View<T*> factors("factors", e.count), factor_gradient("factor gradient", e.count);
  const View<T**> background("background", e.n, e.n), background_gradient("gradient", e.n, e.n),
      position_gradient("gradient", e.count, 2);
  real(factors, [&](std::size_t) { return T(0.6 + uniform(engine)); });
  real(background, [&](std::size_t) { return T(2 * uniform(engine)); });
  const View<Complex**> coefficients("coefficients", e.count, relaxation),
      coefficient_gradient("gradient", e.count, relaxation), object_gradient("gradient", e.rows, e.columns);
  const View<Complex***> modes("relaxation", relaxation, e.m, e.m),
      relaxation_gradient("gradient", relaxation, e.m, e.m), probe_gradient("gradient", e.modes, e.m, e.m);
  const auto wave = [&](std::size_t) { return std::complex(uniform(engine) - 0.5, uniform(engine)); };
  e.fill(coefficients, wave);
  e.fill(modes, [&](std::size_t i) { return wave(i) / double(e.m); });
  const int slices = 1 + static_cast<int>(options.slice_fresnel_numbers.size());
  const View<Complex***> objects("object", slices, e.rows, e.columns),
      objects_gradient("gradient", slices, e.rows, e.columns);
  e.fill(objects, [&](std::size_t i) { return 1.0 + 0.2 * wave(i); });
  const PtychographyShape shape{{e.rows, e.columns}, e.m, e.n, e.modes, slices, relaxation};
  const auto evaluate = [&](PatternPath path, bool gradients) {
    options.path = path;
    Plan plan(e.space, shape, e.positions(), options);
    REQUIRE(plan.path() == path);
    plan.set_patterns(e.space, 0, e.patterns,
                      weights.size() > 0 ? Array<const T, Space::memory_space>(weights)
                                         : Array<const T, Space::memory_space>());
    const View<double> loss("loss");
    typename Plan::Inputs inputs{.object = e.object, .probe = e.probe};
    typename Plan::Outputs outputs{.loss = loss};
    std::vector<std::vector<std::complex<double>>> results;
    const auto ask = [&](bool asked, auto& output, const auto& view) {
      if (asked)
        output = view;
      Test::deep_copy(view, -7.0); // every element must be written
    };
    if (options.refine_positions)
      inputs.positions = positions;
    if (options.pattern_factors)
      inputs.factors = factors;
    if (options.detector_background)
      inputs.detector_background = background;
    if (relaxation > 0)
      inputs.coefficients = coefficients, inputs.relaxation = modes;
    if (slices > 1)
      inputs.object = objects;
    ask(gradients && slices == 1, outputs.object_gradient, object_gradient);
    ask(gradients && slices > 1, outputs.object_gradient, objects_gradient);
    ask(gradients, outputs.probe_gradient, probe_gradient);
    ask(options.refine_positions, outputs.position_gradient, position_gradient);
    ask(options.pattern_factors, outputs.factor_gradient, factor_gradient);
    ask(options.detector_background, outputs.background_gradient, background_gradient);
    ask(relaxation > 0, outputs.coefficient_gradient, coefficient_gradient);
    ask(gradients && relaxation > 0, outputs.relaxation_gradient, relaxation_gradient);
    plan.evaluate(e.space, inputs, outputs);
    e.space.fence();
    const auto take = [&](const auto& view) {
      const auto host = on_host(view);
      results.emplace_back(host.data(), host.data() + host.size());
    };
    take(loss), take(position_gradient), take(factor_gradient), take(background_gradient);
    for (const auto& numbers :
         {e.numbers(object_gradient), e.numbers(objects_gradient), e.numbers(probe_gradient),
          e.numbers(coefficient_gradient), e.numbers(relaxation_gradient)})
      results.push_back(numbers);
    return results;
  };
  for (const bool gradients : {true, false}) { // of object and probe, too
    const auto expected = evaluate(PatternPath::General, gradients);
    for (const PatternPath path : paths_over_lines<T>(shape, options)) {
      const auto found = evaluate(path, gradients);
      for (std::size_t k = 0; k < expected.size(); ++k) {
        INFO("path " << int(path) << " result " << k);
        if (!expected[k].empty())
          CHECK(relative_difference(found[k], expected[k]) < (sizeof(T) == 8 ? 1e-11 : 1e-4));
      }
    }
  }
}

} // namespace

/// Hosts, where this path is not taken, do with one of them.
using Types =
    std::conditional_t<Bracewell::Impl::is_host<Space>, std::tuple<double>, std::tuple<double, float>>;

TEMPLATE_LIST_TEST_CASE("lines: sizes of every kind, probes as large as the detector and smaller", "",
                        Types) {
  for (const auto& [m, n] : {std::array{40, 40},
                             {21, 42},
                             {48, 48},
                             {33, 49},
                             {60, 96},
                             {100, 100},
                             {77, 128},
                             {125, 125},
                             {50, 160},
                             {31, 243},
                             {80, 256},
                             {200, 200},
                             {90, 384}}) {
    const Experiment<TestType> e(m + 4, m + 5, m, n, {whole.begin(), whole.begin() + 3}, 2);
    compare_paths(e, {.loss = PatternLoss::Amplitude, .scale = PatternScale::None});
  }
}

TEMPLATE_LIST_TEST_CASE("lines: probes as large as the detector, at whole positions and between pixels", "",
                        Types) {
  for (const int n :
       Bracewell::Impl::is_host<Space> ? std::vector{35} : std::vector{64, 128, 192, 200, 256, 512})
    for (const auto& places : {whole, fractional})
      for (const int modes :
           {1, 2, 7}) { // 7: some exchanges of modes are shared, and there are two sets of them
        const Experiment<TestType> e(n + 4, n + 5, n, n, places, modes);
        compare_paths(e, {.loss = PatternLoss::Amplitude, .scale = PatternScale::None});
        compare_paths(e, {.loss = PatternLoss::Amplitude, .scale = PatternScale::PerPattern});
      }
}

/// Windows of the detector's size, which the compiler knows, and smaller ones.
TEST_CASE("lines: losses, scales, masks and weights, with modes between pixels") {
  const bool host = Bracewell::Impl::is_host<Space>;
  test_settings(Experiment<double>(34, 35, 30, 36, fractional, 3));
  test_without_light(Experiment<double>(34, 35, 30, 36, fractional, 2));
  test_without_light(Experiment<double>(40, 41, 36, 36, whole));
  if (host)
    return;
  test_without_light(Experiment<float>(134, 133, 128, 128, fractional, 2));
  test_without_light(Experiment<float>(104, 103, 99, 128, whole));
  test_settings(Experiment<double>(134, 133, 128, 128, fractional, 3));
  test_settings(Experiment<double>(104, 103, 99, 128, whole, 3));
}

TEST_CASE("lines: groups of a pattern, subsets, patterns without counts, no gradients") {
  test_groups(Experiment<double>(34, 35, 30, 32, whole, 2));
  if (Bracewell::Impl::is_host<Space>)
    return;
  test_groups(Experiment<double>(104, 105, 100, 128, whole, 2));
  test_groups(Experiment<double>(134, 135, 128, 128, fractional, 2));
}

/// Positions for windows of n pixels that teams on GPUs go through in runs, holding what windows share: to the right, down,
/// up and left, at the same place, by more than a window, across corners that are multiples of its size, and at random.
std::vector<std::array<double, 2>> walk(int room, int steps, double fraction) {
  std::mt19937 engine(3);
  std::uniform_real_distribution<double> uniform(0, room - 1);
  std::vector<std::array<double, 2>> places;
  for (const auto& [row, column] :
       {std::array{0, 1}, {1, 0}, {0, -1}, {-1, 0}, {0, 0}, {1, 1}, {-1, -2}, {0, 16}})
    for (int k = 0; k < 3 * steps; ++k) {
      const auto at = [&](int step) {
        const double place = (5 * step + fraction) * k;
        return place - std::floor(place / (room - 1)) * (room - 1);
      };
      places.push_back({at(row), at(column)});
    }
  for (int k = 0; k < 12 * steps; ++k)
    places.push_back({uniform(engine), uniform(engine)});
  return places;
}

/// Three quarters of the patterns, each once, in another order.
View<int*> without_order(int count) {
  const View<int*> subset("subset", 3 * count / 4);
  const auto list = Kokkos::create_mirror_view(subset);
  for (std::size_t i = 0; i < list.size(); ++i)
    list(i) = static_cast<int>(i * 11 % count);
  Test::deep_copy(subset, list);
  return subset;
}

TEMPLATE_LIST_TEST_CASE("lines: runs of patterns between pixels", "", Types) {
  const int n = sizeof(TestType) == 4 ? 64 : 128, room = Bracewell::Impl::is_host<Space> ? 8 : n + 9,
            steps = Bracewell::Impl::is_host<Space> ? 1 : 30;
  const Experiment<TestType> e(n + room, n + room + 1, n, n, walk(room, steps, 0.3));
  PtychographyOptions options{.loss = PatternLoss::Amplitude, .counts = 10};
  compare_paths(e, options);
  compare_paths(e, options, {}, without_order(e.count));
  options.refine_positions = true;
  compare_everything(e, options);
}

TEST_CASE("lines: positions to find, relaxation, factors and a background, the near field") {
  const PatternScale each = PatternScale::PerPattern, none = PatternScale::None;
  const auto test = [&](const Experiment<double>& e) {
    const bool near = e.m == e.n;
    Test::deep_copy(Kokkos::subview(e.patterns, 1, Kokkos::ALL, Kokkos::ALL), 0.0); // does not count
    for (const auto scale : {each, none}) {
      PtychographyOptions options{
          .loss = PatternLoss::Amplitude, .scale = scale, .counts = 10, .refine_positions = true};
      compare_everything(e, options);
      compare_everything(e, options, 2);
      options.pattern_factors = options.detector_background = true;
      options.loss = PatternLoss::Poisson;
      options.workspace_bytes = 3 * e.modes * e.n * e.n * 24; // several groups
      compare_everything(e, options, 1);
      const View<double**> weights("weights", e.n, e.n);
      Test::deep_copy(weights, 0.5);
      Test::deep_copy(Kokkos::subview(weights, 3, Kokkos::ALL), 0.0);
      options.weights = PixelWeights::PerPixel;
      options.refine_positions = false;
      compare_everything(e, options, 0, weights);
      if (!near)
        continue;
      compare_everything(
          e, {.loss = PatternLoss::Amplitude, .scale = scale, .counts = 10, .fresnel_number = 7.5});
      options.fresnel_number = -4;
      compare_everything(e, options, 2, weights);
    }
  };
  test(Experiment<double>(34, 35, 30, 36, fractional, 2));
  test(Experiment<double>(40, 39, 35, 35, fractional, 3));
  compare_everything(Experiment<double>(40, 39, 35, 35, whole, 1), {.counts = 10, .fresnel_number = 7.5});
  if (Bracewell::Impl::is_host<Space>)
    return;
  test(Experiment<double>(134, 133, 128, 128, fractional, 2));
  for (const int n : {128, 256}) // the compiler knows them
    for (const auto& places : {whole, fractional})
      compare_everything(Experiment<float>(n + 4, n + 5, n, n, places, 3),
                         {.loss = PatternLoss::Amplitude, .scale = none, .refine_positions = true});
}

TEST_CASE("lines: several slices") {
  const PtychographyOptions two{.loss = PatternLoss::Amplitude, .counts = 10, .slice_fresnel_numbers = {9}};
  PtychographyOptions three{.scale = PatternScale::None,
                            .slice_fresnel_numbers = {9, -14.5},
                            .slice_shifts = {{0.8, -1.7}, {2, 0.3}},
                            .refine_positions = true,
                            .workspace_bytes = 3 * 36 * 36 * 2 * 64}; // several groups
  compare_everything(Experiment<double>(34, 35, 30, 36, whole, 2), two);
  compare_everything(Experiment<double>(40, 39, 35, 35, fractional, 2), three, 1);
  three.refine_positions = false;
  three.fresnel_number = 7.5;
  compare_everything(Experiment<double>(40, 39, 35, 35, fractional, 1), three);
  if (Bracewell::Impl::is_host<Space>)
    return;
  compare_everything(Experiment<double>(134, 133, 128, 128, fractional, 2), two, 1);
  std::vector<std::array<double, 2>> many; // of which the FFT library transforms a part at a time
  for (int j = 0; j < 30; ++j)
    many.push_back({j % 4 + 0.3, j / 4 * 0.5});
  compare_everything(Experiment<float>(260, 261, 256, 256, many, 3), two);
}

TEST_CASE("lines: patterns that come from the host") {
  const std::vector<std::array<double, 2>> places = {{0, 0}, {3, 2}, {1, 3}, {3.2, 3}, {3, 1}, {2, 2}};
  PtychographyOptions options{.loss = PatternLoss::Amplitude, .scale = PatternScale::None};
  options.path = PatternPath::Lines;
  Test::check_streamed<double, LinesOnHosts<double>>(Experiment<double>(44, 44, 40, 48, places, 2), options);
  if (Impl::is_host<Space>)
    return;
  for (const auto path : {PatternPath::Lines, PatternPath::KnownLines}) {
    options.path = path;
    Test::check_streamed<double, LinesOnHosts<double>>(Experiment<double>(132, 132, 128, 128, places, 2),
                                                       options);
  }
}

TEST_CASE("lines: which sizes") {
  using Bracewell::Impl::choose_radices;
  CHECK(choose_radices(256, 5) == std::vector{16, 16});
  CHECK(choose_radices(200, 5) == std::vector{8, 5, 5});
  CHECK(choose_radices(384, 5) == std::vector{8, 6, 8});
  CHECK(choose_radices(34, 5).empty());
  for (int n = 32; n <= 512; ++n) {
    int rest = n;
    for (const int prime : {2, 3, 5, 7})
      while (rest % prime == 0)
        rest /= prime;
    INFO(n);
    CHECK(transforms_lines(n) == (rest == 1));
  }
}

TEST_CASE("lines: the memory of a plan is foretold to 5 %") {
  using Plan = PtychographyLoss<Space, double, TestStorage<double, LinesOnHosts<double>>>;
  const View<double**> positions("positions", 30, 2);
  for (const double first : {0.0, 0.25}) {
    Test::deep_copy(positions, first);
    check_memory<Plan>(1, PtychographyShape{{50, 60}, 20, 48, 2}, positions,
                       PtychographyOptions{.path = PatternPath::Lines});
    check_memory<Plan>(1, PtychographyShape{{50, 60}, 21, 36}, positions,
                       PtychographyOptions{.path = PatternPath::Lines, .workspace_bytes = 100000});
    check_memory<Plan>(1, PtychographyShape{{50, 60}, 36, 36, 2, 1, 2}, positions,
                       PtychographyOptions{.fresnel_number = 5,
                                           .detector_background = true,
                                           .path = PatternPath::Lines,
                                           .workspace_bytes = 400000});
    check_memory<Plan>(1, PtychographyShape{{50, 60}, 20, 32, 2, 3}, positions,
                       PtychographyOptions{.slice_fresnel_numbers = {5, 6}, .path = PatternPath::Lines});
    check_memory<Plan>(1, PtychographyShape{{50, 60}, 20, 32, 2}, positions,
                       PtychographyOptions{.refine_positions = true, .path = PatternPath::Lines});
  }
}
