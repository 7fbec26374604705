// PatternPath::Lines against the general path, whose truth is elsewhere (loss.cpp, golden_ptychography): sizes with every
// kind of passes, modes, positions between pixels, masks, weights, losses, scales and subsets.

#include "../tools/checks.hpp"
#include "support.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <tuple>

using namespace Test;

namespace {

const std::vector<std::array<double, 2>> whole = {{0, 0}, {3, 2}, {1, 3}, {3, 3}, {3, 3}};
const std::vector<std::array<double, 2>> fractional = {
    {0.4, 0}, {3.25, 1.9}, {1.5, 2.7}, {-0.3, 3.4}, {3, 3}};

/// Kernels over lines alone; those that know 128 and 256 are for GPUs.
struct LinesOnHosts : FusedDetectors<> {
  template <class>
  static constexpr bool lines = true;
  static constexpr bool knows_lines(int size) { return size == 128 || size == 256; }
};

template <class T>
void compare_paths(const Experiment<T>& e, PtychographyOptions options, const View<T**>& weights = {},
                   const View<int*>& subset = {}) {
  INFO("m " << e.m << " n " << e.n << " modes " << e.modes << " loss " << int(options.loss) << " scale "
            << int(options.scale) << " weights " << int(options.weights));
  options.path = PatternPath::General;
  const auto expected = e.evaluate(e.template plan<T, LinesOnHosts>(options, weights), subset);
  options.path = PatternPath::Lines;
  const auto model = e.template plan<T, LinesOnHosts>(options, weights);
  REQUIRE(model.path() == PatternPath::Lines);
  const auto found = e.evaluate(model, subset);
  const double tolerance = std::is_same_v<T, double> ? 1e-12 : 2e-5;
  CHECK(std::abs(found.loss / expected.loss - 1) < tolerance);
  CHECK(relative_difference(found.patterns, expected.patterns) < tolerance);
  CHECK(relative_difference(found.object, expected.object) < tolerance);
  CHECK(relative_difference(found.probe, expected.probe) < tolerance);
}

void test_settings(const Experiment<double>& e) {
  const View<double**> mask("mask", e.n, e.n), weights("weights", e.n, e.n);
  const auto m = Kokkos::create_mirror_view(mask), w = Kokkos::create_mirror_view(weights);
  for (int k = 0; k < e.n * e.n; ++k) {
    m.data()[k] = k % 7 == 3 ? 0 : 1;
    w.data()[k] = k % 5 == 0 ? 0 : 0.25 * (k % 4 + 1);
  }
  Kokkos::deep_copy(mask, m);
  Kokkos::deep_copy(weights, w);
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

void test_groups(Experiment<double> e) {
  Kokkos::deep_copy(Kokkos::subview(e.patterns, 2, Kokkos::ALL, Kokkos::ALL), 0.0);
  const View<int*> subset("subset", 3);
  const auto list = Kokkos::create_mirror_view(subset);
  list(0) = 4, list(1) = 2, list(2) = 0;
  Kokkos::deep_copy(subset, list);
  for (const std::size_t workspace : {std::size_t(1), std::size_t(160) << 20}) {
    PtychographyOptions options{.counts = 10, .workspace_bytes = workspace};
    compare_paths(e, options);
    compare_paths(e, options, {}, subset);
    options.object_gradient = ObjectGradient::Atomic;
    compare_paths(e, options);
  }
  PtychographyOptions options{.counts = 10, .path = PatternPath::Lines};
  const double alone = e.loss(e.plan<double, LinesOnHosts>(options));
  options.path = PatternPath::General;
  CHECK(std::abs(alone / e.loss(e.plan<double, LinesOnHosts>(options)) - 1) < 1e-12);
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

TEMPLATE_LIST_TEST_CASE("lines: probes as large as the detector, between pixels", "", Types) {
  for (const int n : Bracewell::Impl::is_host<Space> ? std::vector{35} : std::vector{128, 200, 256})
    for (const int modes : {1, 2, 7}) { // 7: some exchanges of modes are shared
      const Experiment<TestType> e(n + 4, n + 5, n, n, fractional, modes);
      compare_paths(e, {.loss = PatternLoss::Amplitude, .scale = PatternScale::None});
      compare_paths(e, {.loss = PatternLoss::Amplitude, .scale = PatternScale::PerPattern});
    }
}

/// Windows of the detector's size, which the compiler knows, and smaller ones.
TEST_CASE("lines: losses, scales, masks and weights, with modes between pixels") {
  const bool host = Bracewell::Impl::is_host<Space>;
  test_settings(Experiment<double>(34, 35, 30, 36, fractional, 3));
  if (host)
    return;
  test_settings(Experiment<double>(134, 133, 128, 128, fractional, 3));
  test_settings(Experiment<double>(104, 103, 99, 128, whole, 3));
}

TEST_CASE("lines: groups of a pattern, subsets, patterns without counts, no gradients, atomic sums") {
  test_groups(Experiment<double>(34, 35, 30, 32, whole, 2));
  if (Bracewell::Impl::is_host<Space>)
    return;
  test_groups(Experiment<double>(104, 105, 100, 128, whole, 2));
  test_groups(Experiment<double>(134, 135, 128, 128, fractional, 2));
}

TEST_CASE("lines: patterns that come from the host") {
  const std::vector<std::array<double, 2>> places = {{0, 0}, {3, 2}, {1, 3}, {3.2, 3}, {3, 1}, {2, 2}};
  PtychographyOptions options{.loss = PatternLoss::Amplitude, .scale = PatternScale::None};
  options.path = PatternPath::Lines;
  Test::check_streamed<double, LinesOnHosts>(Experiment<double>(44, 44, 40, 48, places, 2), options);
  if (!Impl::is_host<Space>)
    Test::check_streamed<double, LinesOnHosts>(Experiment<double>(132, 132, 128, 128, places, 2), options);
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
  using Plan = PtychographyLoss<Space, double, double, LinesOnHosts>;
  const View<double**> positions("positions", 30, 2);
  for (const double first : {0.0, 0.25}) {
    Kokkos::deep_copy(positions, first);
    check_memory<Plan>(1, PtychographyShape{{50, 60}, 20, 48, 2}, positions,
                       PtychographyOptions{.path = PatternPath::Lines});
    check_memory<Plan>(1, PtychographyShape{{50, 60}, 21, 36}, positions,
                       PtychographyOptions{.path = PatternPath::Lines, .workspace_bytes = 100000});
  }
}
