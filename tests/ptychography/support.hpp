// A small ptychographic experiment, and derivatives by differences.
#pragma once

#include "../deep_copy.hpp"
#include "plans.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

namespace Test {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;

template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Space>;

/// Object near 1, a smooth probe, intensities of the order of what they model.
template <class T>
struct Experiment {
  using Complex = Kokkos::complex<T>;

  Space space;
  int rows, columns, m, n, modes, count;
  View<Complex**> object;
  View<Complex***> probe;
  View<T***> patterns;
  std::vector<std::array<double, 2>> places;
  double counts = 10;

  Experiment(int rows_, int columns_, int m_, int n_, std::vector<std::array<double, 2>> places_,
             int modes_ = 1)
      : rows(rows_), columns(columns_), m(m_), n(n_), modes(modes_), count(static_cast<int>(places_.size())),
        object("object", rows, columns), probe("probe", modes, m, m), patterns("patterns", count, n, n),
        places(std::move(places_)) {
    std::mt19937 engine(11);
    std::normal_distribution<double> normal;
    fill(object, [&](std::size_t) { return std::complex(1 + 0.2 * normal(engine), 0.2 * normal(engine)); });
    fill(probe, [&](std::size_t i) {
      const double y = double(i / m % m) - m / 2.0, x = double(i % m) - m / 2.0;
      const double envelope = std::exp(-(y * y + x * x) / (0.15 * m * m)) / m;
      return std::complex(1 + 0.1 * normal(engine), 0.3 * normal(engine)) * envelope;
    });
    std::poisson_distribution<int> poisson(6);
    const auto host = Kokkos::create_mirror_view(patterns);
    for (std::size_t i = 0; i < host.size(); ++i)
      host.data()[i] = static_cast<T>(poisson(engine));
    Test::deep_copy(patterns, host);
  }

  template <class Target, class Make>
  static void fill(const Target& view, const Make& make) {
    const auto host = Kokkos::create_mirror_view(view);
    for (std::size_t i = 0; i < host.size(); ++i) {
      const std::complex<double> value = make(i);
      host.data()[i] = Complex(static_cast<T>(value.real()), static_cast<T>(value.imag()));
    }
    Test::deep_copy(view, host);
  }

  auto positions() const {
    Kokkos::View<double* [2], Kokkos::HostSpace> view("positions", count);
    for (int j = 0; j < count; ++j)
      for (int axis = 0; axis < 2; ++axis)
        view(j, axis) = places[j][axis];
    return view;
  }

  /// @tparam Detectors  void: what users get, which is compiled already
  template <class Storage = T, class Detectors = TestDetectors>
  auto plan(const PtychographyOptions& options, const View<T**>& weights = {}) const {
    using Chosen = std::conditional_t<std::is_void_v<Detectors>, Storage, TestStorage<Storage, Detectors>>;
    PtychographyLoss<Space, T, Chosen> model(space, {{rows, columns}, m, n, modes}, positions(), options);
    if (weights.size() > 0)
      model.set_patterns(space, 0, patterns, weights);
    else
      model.set_patterns(space, 0, patterns);
    return model;
  }

  struct Result {
    double loss;
    std::vector<std::complex<double>> object, probe;
    std::vector<double> patterns;
  };

  template <class Model>
  Result evaluate(const Model& model, const View<int*>& subset = {}) const {
    const View<double> loss("loss");
    const View<Complex**> object_gradient("object gradient", rows, columns);
    const View<Complex***> probe_gradient("probe gradient", modes, m, m);
    const View<double*> each("losses", subset.size() > 0 ? subset.size() : count);
    Test::deep_copy(object_gradient, Complex(-7)); // every element must be written
    Test::deep_copy(probe_gradient, Complex(-7));
    model.evaluate(space, object, probe,
                   {.loss = loss,
                    .pattern_losses = each,
                    .object_gradient = object_gradient,
                    .probe_gradient = probe_gradient},
                   subset.size() > 0 ? Array<const int, Space::memory_space>(subset)
                                     : Array<const int, Space::memory_space>());
    space.fence();
    const auto losses = on_host(each);
    return {on_host(loss)(),
            numbers(object_gradient),
            numbers(probe_gradient),
            {losses.data(), losses.data() + losses.size()}};
  }

  template <class Source>
  static std::vector<std::complex<double>> numbers(const Source& view) {
    const auto host = on_host(view);
    std::vector<std::complex<double>> result;
    for (std::size_t i = 0; i < host.size(); ++i)
      result.emplace_back(host.data()[i].real(), host.data()[i].imag());
    return result;
  }

  template <class Model>
  double loss(const Model& model) const {
    const View<double> value("loss");
    model.evaluate(space, object, probe, {.loss = value});
    space.fence();
    return on_host(value)();
  }
};

template <class Number>
double relative_difference(const std::vector<Number>& a, const std::vector<Number>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::norm(a[i] - b[i]);
    norm += std::norm(b[i]);
  }
  return std::sqrt(difference / norm);
}

/// The same results where the device has room for few patterns only, some of which are on their way, with what was
/// prefetched and without: of all patterns, and of a list.
template <class Storage, class Detectors = TestDetectors, class T>
void check_streamed(const Experiment<T>& e, PtychographyOptions options, const View<T**>& weights = {}) {
  const int n = Bracewell::compared_detector(
      Bracewell::PtychographyShape{{e.rows, e.columns}, e.m, e.n, e.modes}, options);
  INFO("m " << e.m << " n " << e.n << " loss " << int(options.loss) << " weights " << int(options.weights));
  REQUIRE(e.count > 4);
  const auto whole = e.template plan<Storage, Detectors>(options, weights);
  const std::size_t row = (sizeof(Storage) + (options.weights == PixelWeights::PerPixel ? sizeof(T) : 0)) *
                          static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  // None on the device but those that are worked on; one; groups of one; groups of one, between which others stay.
  for (const auto& [room, workspace, stay] :
       {std::tuple(4, 0, 0), std::tuple(5, 0, 1), std::tuple(0, 0, 0), std::tuple(5, 1, 3)}) {
    options.target_bytes = room * row;
    if (workspace > 0)
      options.workspace_bytes = workspace;
    const auto streamed = e.template plan<Storage, Detectors>(options, weights);
    CHECK(streamed.path() == whole.path());
    CHECK(streamed.host_bytes() == static_cast<std::size_t>(e.count - stay) * row);
    CHECK(whole.host_bytes() == 0);
    CHECK(streamed.empty_patterns() == whole.empty_patterns());
    const View<int*> list("list", 4), other("other", 3);
    const auto host = Kokkos::create_mirror_view(list);
    for (int i = 0; i < 4; ++i)
      host(i) = (1 - i + e.count) % e.count; // in no order
    Test::deep_copy(list, host);
    const auto first = Kokkos::create_mirror_view(other);
    for (int i = 0; i < 3; ++i)
      first(i) = i;
    Test::deep_copy(other, first);
    const Array<const int, Space::memory_space> listed(list), others(other);
    const auto check = [&](const View<int*>& subset) {
      const auto expected = e.evaluate(whole, subset), found = e.evaluate(streamed, subset);
      const double tolerance = sizeof(T) == 8 ? 1e-12 : 1e-5;
      CHECK(std::abs(found.loss / expected.loss - 1) < tolerance);
      CHECK(relative_difference(found.patterns, expected.patterns) < tolerance);
      CHECK(relative_difference(found.object, expected.object) < tolerance);
      CHECK(relative_difference(found.probe, expected.probe) < tolerance);
    };
    check({});
    check(list);
    streamed.prefetch(listed);
    check(list);
    streamed.prefetch(others); // but another call comes
    streamed.prefetch(listed);
    check(list);
    streamed.prefetch();
    check({});
  }
}

/// An object or a probe of zeros has the loss of J = 0, by its definition, and no gradient; where they are no numbers, neither
/// is the loss.
template <class Storage, class Detectors = TestDetectors, class T>
void check_without_light(Experiment<T> e, const PtychographyOptions& options, const View<T**>& weights = {}) {
  const auto patterns = on_host(e.patterns);
  const auto given = on_host(weights);
  const std::size_t pixels = static_cast<std::size_t>(e.n) * static_cast<std::size_t>(e.n);
  const auto weight = [&](std::size_t k) { return given.size() > 0 ? double(given.data()[k]) : 1.0; };
  double expected = 0;
  for (std::size_t j = 0; j < static_cast<std::size_t>(e.count); ++j) {
    double sum = 0, of_weights = 0;
    for (std::size_t k = 0; k < pixels; ++k)
      sum += weight(k) * double(patterns.data()[j * pixels + k]), of_weights += weight(k);
    const double scale =
        options.scale == PatternScale::None || options.counts == 0 ? 1 : options.counts * of_weights / sum;
    for (std::size_t k = 0; sum > 0 && k < pixels; ++k) {
      const double t = scale * double(patterns.data()[j * pixels + k]), b = options.background;
      expected +=
          weight(k) * (options.loss == PatternLoss::LeastSquares ? t * t
                       : options.loss == PatternLoss::Amplitude  ? t
                                                                 : b - t + (t > 0 ? t * std::log(t / b) : 0));
    }
  }
  expected /= double(e.count) * double(pixels);
  const auto model = e.template plan<Storage, Detectors>(options, weights);
  INFO("m " << e.m << " n " << e.n << " modes " << e.modes << " loss " << int(options.loss) << " scale "
            << int(options.scale) << " weights " << int(options.weights) << " path " << int(model.path()));
  const double tolerance = sizeof(Storage) == 2 ? 1e-3 : sizeof(T) == 8 ? 1e-12 : 1e-5;
  const View<Kokkos::complex<T>**> object("object", e.rows, e.columns);
  const View<Kokkos::complex<T>***> probe("probe", e.modes, e.m, e.m);
  Test::deep_copy(object, e.object);
  Test::deep_copy(probe, e.probe);
  for (const bool of_object : {true, false}) {
    bool zeros = true; // no ranges in CHECK: nvcc takes them apart wrongly
    if (of_object)
      Test::deep_copy(e.object, Kokkos::complex<T>(0));
    else
      Test::deep_copy(e.object, object), Test::deep_copy(e.probe, Kokkos::complex<T>(0));
    const auto dark = e.evaluate(model);
    CHECK(std::abs(dark.loss / expected - 1) < tolerance);
    for (const auto* gradient : {&dark.object, &dark.probe})
      for (const auto& value : *gradient)
        zeros = zeros && value == 0.0;
    CHECK(zeros);
  }
  Test::deep_copy(e.probe, Kokkos::complex<T>(std::numeric_limits<T>::quiet_NaN()));
  CHECK(std::isnan(e.evaluate(model).loss));
  Test::deep_copy(e.probe, probe);
}

/// Central differences of the loss along random directions of object and probe against their gradients.
template <class Model>
void check_derivatives(Experiment<double>& e, const Model& model, double step = 1e-6) {
  const auto result = e.evaluate(model);
  std::mt19937 engine(5);
  std::normal_distribution<double> normal;
  const auto check = [&](const auto& view, const std::vector<std::complex<double>>& gradient, double size) {
    const auto start = Kokkos::create_mirror(Kokkos::HostSpace(), view); // never the View itself
    Test::deep_copy(start, view);
    const auto moved = Kokkos::create_mirror(Kokkos::HostSpace(), view);
    for (int direction = 0; direction < 2; ++direction) {
      std::vector<std::complex<double>> d;
      double expected = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        d.emplace_back(size * normal(engine), size * normal(engine));
        expected += d[i].real() * gradient[i].real() + d[i].imag() * gradient[i].imag();
      }
      double difference = 0;
      for (const double sign : std::array{1.0, -1.0}) {
        for (std::size_t i = 0; i < gradient.size(); ++i)
          moved.data()[i] = start.data()[i] + sign * step * Kokkos::complex<double>(d[i].real(), d[i].imag());
        Test::deep_copy(view, moved);
        difference += sign * e.loss(model) / (2 * step);
      }
      Test::deep_copy(view, start);
      INFO("difference " << difference << ", gradient " << expected);
      CHECK(std::abs(difference - expected) < 2e-6 * std::abs(expected) + 1e-7 * std::abs(result.loss));
    }
  };
  check(e.object, result.object, 1);
  check(e.probe, result.probe, 1.0 / e.m);
}

} // namespace Test
