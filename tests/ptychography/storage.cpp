// Single and half precision against double, and what a call does as tools see it.

#include "../deep_copy.hpp"
#include "../tools/recorder.hpp"
#include "support.hpp"

#include <bracewell/ptychography/probe.hpp>

using namespace Test;

namespace {

/// Patterns with counting noise and a probe that is larger by `scale`.
template <class T>
Experiment<T> measured(int m, int n, double scale) {
  Experiment<T> e(80, 82, m, n, {{0, 0}, {7, 5}, {80. - m, 82. - m}, {3, 11}, {9, 2}, {5, 5}});
  const auto patterns = Kokkos::create_mirror_view(e.patterns);
  std::mt19937 engine(9);
  for (int j = 0; j < e.count; ++j)
    for (int k = 0; k < n * n; ++k) {
      const double y = std::min(k / n, n - k / n), x = std::min(k % n, n - k % n);
      const double expected = 400 * std::exp(-(y * y + x * x) / (0.02 * n * n)) + 0.5;
      patterns.data()[j * n * n + k] = static_cast<T>(std::poisson_distribution<int>(expected)(engine));
    }
  Test::deep_copy(e.patterns, patterns);
  const auto probe = Experiment<T>::numbers(e.probe);
  Experiment<T>::fill(e.probe, [&](std::size_t i) { return scale * probe[i]; });
  return e;
}

/// Detectors that have a fused kernel: on hosts few.
const std::vector<int> fused_sizes =
    Impl::is_host<Space> ? std::vector{192, 256} : std::vector{64, 160, 192, 256};

} // namespace

TEST_CASE(
    "gradients in single and half precision are close to those in double, whatever the scale of the probe") {
  for (const int n : fused_sizes)
    for (const double scale : {1.0, 300.0}) {
      const auto exact = measured<double>(n / 4 + 1, n, scale);
      const auto single = measured<float>(n / 4 + 1, n, scale);
      // The same object and probe, to the last bit, in both precisions.
      const auto object = single.numbers(single.object), probe = single.numbers(single.probe);
      Experiment<double>::fill(exact.object, [&](std::size_t i) { return object[i]; });
      Experiment<double>::fill(exact.probe, [&](std::size_t i) { return probe[i]; });
      for (const auto loss : {PatternLoss::LeastSquares, PatternLoss::Amplitude}) {
        INFO("n " << n << " scale " << scale << " loss " << int(loss));
        PtychographyOptions options{.loss = loss, .counts = 20};
        const auto expected =
            exact.evaluate(exact.plan({.loss = loss, .counts = 20, .path = PatternPath::General}));
        const auto check = [&](const auto& result, double tolerance) {
          CHECK(std::abs(result.loss / expected.loss - 1) < tolerance);
          CHECK(relative_difference(result.object, expected.object) < tolerance);
          CHECK(relative_difference(result.probe, expected.probe) < tolerance);
        };
        for (const auto path : {PatternPath::Fused, PatternPath::General}) {
          options.path = path;
          check(single.evaluate(single.template plan<float, void>(options)), 1e-5);
          check(single.evaluate(single.template plan<Half, void>(options)), 1e-3);
        }
        if (loss == PatternLoss::LeastSquares) {
          options.path = PatternPath::Automatic;
          options.reduced_grid = true;
          check(single.evaluate(single.template plan<float, void>(options)), 1e-5);
          check(single.evaluate(single.template plan<Half, void>(options)), 1e-3);
        }
      }
    }
}

TEST_CASE("without light the loss is that of J = 0 in half precision, too") {
  for (const auto path : {PatternPath::Fused, PatternPath::General})
    for (const auto loss : {PatternLoss::LeastSquares, PatternLoss::Amplitude})
      check_without_light<Half, void>(measured<float>(49, 192, 1),
                                      {.loss = loss, .counts = 20, .path = path});
}

TEST_CASE("patterns in half precision that come from the host") {
  check_streamed<Half, void>(measured<float>(49, 192, 1), {});
  check_streamed<Half, void>(measured<float>(49, 192, 300),
                             {.loss = PatternLoss::Amplitude, .scale = PatternScale::None});
}

TEST_CASE("ptychography as tools see it: labels, instances; no fences, copies or allocations") {
  const Experiment<float> whole(40, 42, 16, 48, {{0, 0}, {7, 5}, {24, 26}});
  const Experiment<float> fractional(40, 42, 16, 48, {{0, 0.5}, {7, 5}, {24, 26}});
  const View<Kokkos::complex<float>**> object_gradient("gradient", 40, 42);
  const View<Kokkos::complex<float>***> probe_gradient("gradient", 1, 16, 16);
  const View<double> loss("loss");
  const View<int*> subset("subset", 1);
  const AberratedProbe<Space, float> lens(Space(), 16, 48,
                                          {.wavelength = 1, .pixel_size = 1, .convergence_angle = 0.1});
  const View<float*> parameters("parameters", 5), gradient("gradient", 5);
  for (const Space& space : Kokkos::Experimental::partition_space(Space(), 1, 1))
    for (const auto* const e : {&whole, &fractional}) {
      const auto model = e->plan({.counts = 10});
      const auto call = [&] {
        model.evaluate(space, e->object, e->probe,
                       {.loss = loss, .object_gradient = object_gradient, .probe_gradient = probe_gradient},
                       subset);
        lens.evaluate(space, parameters, probe_gradient);
        lens.gradients(space, parameters, probe_gradient, gradient);
      };
      call();
      space.fence();
      const Report seen = report(call);
      CHECK_FALSE(seen.kernels.empty());
      for (const auto& kernel : seen.kernels) {
        INFO(kernel.label);
        CHECK(kernel.label.starts_with("Bracewell::"));
        CHECK(kernel.instance == space.impl_instance_id());
      }
      CHECK(seen.allocations == std::vector<std::string>{});
      CHECK(seen.fences == std::vector<std::string>{});
      CHECK(seen.copies == std::vector<std::string>{});
    }
}
