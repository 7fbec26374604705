// SPDX-License-Identifier: MIT
#include "../deep_copy.hpp"
#include "../tools/checks.hpp"

#include <bracewell/optimize/adam.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <random>

using namespace Bracewell;
using Test::Space;
using Test::View;

namespace {

/// The formula, number by number, in double precision.
struct Reference {
  double mean = 0, square = 0, value;
  int steps = 0;

  void step(double gradient, double rate, const AdamOptions& options) {
    ++steps;
    mean = options.beta1 * mean + (1 - options.beta1) * gradient;
    square = options.beta2 * square + (1 - options.beta2) * gradient * gradient;
    const double unbiased_mean = mean / (1 - std::pow(options.beta1, steps));
    const double unbiased_square = square / (1 - std::pow(options.beta2, steps));
    value -= rate * unbiased_mean / (std::sqrt(unbiased_square) + options.epsilon);
  }
};

template <class View>
void upload(const View& view, const std::vector<double>& values) {
  const auto host = Kokkos::create_mirror_view(view);
  using Real = Impl::real_of<View>;
  auto* out = reinterpret_cast<Real*>(host.data());
  for (std::size_t i = 0; i < values.size(); ++i)
    out[i] = static_cast<Real>(values[i]);
  Test::deep_copy(view, host);
}

template <class View>
std::vector<double> download(const View& view) {
  const auto host = Test::on_host(view);
  using Real = Impl::real_of<View>;
  const auto* begin = reinterpret_cast<const Real*>(host.data());
  return {begin, begin + view.size() * sizeof(typename View::value_type) / sizeof(Real)};
}

} // namespace

TEMPLATE_TEST_CASE("Adam follows its formula in arrays of several kinds", "[optimize]", float, double) {
  using T = TestType;
  const Space space;
  const AdamOptions options{.beta1 = 0.8, .beta2 = 0.97, .epsilon = 1e-3};
  const View<T**> table("table", 3, 7), table_gradient("g", 3, 7);
  const View<Kokkos::complex<T>*> pairs("pairs", 5), pairs_gradient("g", 5);
  const View<T*> none("none", 0), none_gradient("g", 0), few("few", 2), few_gradient("g", 2);
  Adam<Space, T> adam(space, {table.size(), 2 * pairs.size(), none.size(), few.size()}, options);
  CHECK(adam.memory_bytes() >= 2 * 33 * sizeof(T));

  std::mt19937 generator(1);
  std::normal_distribution<double> normal;
  std::vector<Reference> reference(33);
  std::vector<double> start;
  for (auto& r : reference) {
    r.value = static_cast<T>(normal(generator));
    start.push_back(r.value);
  }
  const auto part = [](const std::vector<double>& all, std::size_t first, std::size_t last) {
    return std::vector(all.begin() + std::ptrdiff_t(first), all.begin() + std::ptrdiff_t(last));
  };
  for (const int round : {0, 1}) { // the second one after a reset
    for (std::size_t i = 0; i < 33; ++i)
      reference[i] = {.value = start[i]};
    upload(table, part(start, 0, 21));
    upload(pairs, part(start, 21, 31));
    upload(few, part(start, 31, 33));
    if (round == 1)
      adam.reset(space);
    for (int step = 0; step < 40; ++step) {
      std::vector<double> gradients;
      for (std::size_t i = 0; i < 33; ++i) {
        // Of all magnitudes, some always zero: 0 / (0 + epsilon).
        const double gradient = i % 8 == 3 ? 0 : std::pow(10.0, double(i % 6) - 4) * normal(generator);
        gradients.push_back(static_cast<T>(gradient));
        reference[i].step(gradients[i], i < 21 ? 0.01 : i < 31 ? 0.5 : 0.001, options);
      }
      upload(table_gradient, part(gradients, 0, 21));
      upload(pairs_gradient, part(gradients, 21, 31));
      upload(few_gradient, part(gradients, 31, 33));
      adam.step(space, {{table, table_gradient, 0.01},
                        {pairs, pairs_gradient, 0.5},
                        {none, none_gradient, 1},
                        {few, few_gradient, 0.001}});
    }
    std::vector<double> result = download(table);
    for (const auto& more : {download(pairs), download(few)})
      result.insert(result.end(), more.begin(), more.end());
    const double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-13;
    for (std::size_t i = 0; i < 33; ++i) {
      CAPTURE(i);
      CHECK(std::abs(result[i] - reference[i].value) <= tolerance * (1 + std::abs(reference[i].value)));
      CHECK((result[i] != start[i]) == (i % 8 != 3));
    }
  }
}

TEST_CASE("a first step of Adam has the length of the learning rate", "[optimize]") {
  const Space space;
  const View<float*> value("value", 3), gradient("gradient", 3);
  upload(gradient, {1e-3, -1e3, 2});
  Adam<Space, float> adam(space, {3});
  adam.step(space, {{value, gradient, 0.25}});
  const auto moved = download(value);
  CHECK(std::abs(moved[0] + 0.25) < 1e-5);
  CHECK(std::abs(moved[1] - 0.25) < 1e-6);
  CHECK(std::abs(moved[2] + 0.25) < 1e-6);
}

TEST_CASE("Adam runs asynchronously on its instance, in two launches", "[optimize]") {
  const View<float*> a("a", 3), b("b", 4), c("c", 3), d("d", 4);
  Adam<Space, float> adam(Space(), {3, 4});
  const Test::Function function{"Adam", [&](const Space& space) {
                                  adam.step(space, {{a, c, 0.01}, {b, d, 0.01}});
                                }};
  check_labels(function);
  check_instances(function);
  CHECK(Test::report([&] { function.call(Space()); }).kernels.size() == 2);
}

TEST_CASE("Adam names what is wrong", "[optimize]") {
  const Space space;
  const View<float*> a("a", 3), b("b", 3), c("c", 4), d("d", 4);
  Adam<Space, float> adam(space, {3});
  using Catch::Matchers::ContainsSubstring;
  const auto step = [&](const auto& values, const auto& gradients, double rate) {
    adam.step(space, {{values, gradients, rate}});
  };
  CHECK_THROWS_WITH(step(a, c, 0.1),
                    ContainsSubstring("gradients") && ContainsSubstring("[3]") && ContainsSubstring("[4]"));
  CHECK_THROWS_WITH(step(c, d, 0.1), ContainsSubstring("expected 3 real numbers, found 4"));
  CHECK_THROWS_WITH(step(a, b, -1.0), ContainsSubstring("learning_rate"));
  CHECK_THROWS_WITH(step(a, b, double(NAN)), ContainsSubstring("learning_rate"));
  CHECK_THROWS_WITH(step(a, a, 0.1), ContainsSubstring("memory"));
  CHECK_THROWS_WITH(adam.step(space, {{a, b, 0.1}, {c, d, 0.1}}), ContainsSubstring("1 arrays"));
  Adam<Space, float> two(space, {3, 3});
  const View<float*> e("e", 3);
  CHECK_THROWS_WITH(two.step(space, {{a, b, 0.1}, {a, e, 0.1}}), ContainsSubstring("memory"));
  CHECK_THROWS_WITH((Adam<Space, float>(space, {})), ContainsSubstring("sizes"));
  CHECK_THROWS_WITH((Adam<Space, float>(space, {3}, {.beta2 = 1})), ContainsSubstring("beta"));
  CHECK_THROWS_WITH((Adam<Space, float>(space, {3}, {.epsilon = 0})), ContainsSubstring("epsilon"));
}
