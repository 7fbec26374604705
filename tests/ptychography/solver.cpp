// SPDX-License-Identifier: MIT
// The solver against Adam on finite differences of a loss that is computed by direct sums.

#include "../deep_copy.hpp"
#include "../golden/golden.hpp"
#include "../tools/checks.hpp"
#include "solver_plan.hpp"

#include <Eigen/Cholesky>
#include <Eigen/QR>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

using namespace Bracewell;
using Test::Space;
using Test::View;

namespace {

using Complex = std::complex<double>;
using Solver = Test::TestSolver;
constexpr double pi = 3.14159265358979323846;

/// A small experiment and all that is to be found, in one list: amplitude, phase, then (re, im) of the probe
/// or the five aberrations.
struct Model {
  static constexpr int rows = 9, columns = 11, m = 5, n = 8, patterns = 5;
  static constexpr int positions[patterns][2] = {{0, 0}, {4, 6}, {1, 3}, {1, 4}, {3, 0}};
  static constexpr double counts = 7;
  static constexpr ProbeOptics optics{
      .wavelength = 0.02, .pixel_size = 0.3, .convergence_angle = 0.02, .cs_to_length = 1e4};
  bool aberrations;
  std::vector<double> measured = {}; // [patterns, n, n]

  static PtychographyShape shape() { return {{rows, columns}, m, n}; }
  static constexpr int pixels = rows * columns;
  int size() const { return 2 * pixels + (aberrations ? 5 : 2 * m * m); }

  /// exp(2 pi i k / n)
  static Complex root(int k) {
    static const std::vector<Complex> roots = [] {
      std::vector<Complex> all;
      for (int i = 0; i < n; ++i)
        all.push_back(std::polar(1.0, 2 * pi * i / n));
      return all;
    }();
    return roots[std::size_t(((k % n) + n) % n)];
  }

  static double frequency(int k, double pixel) { return (2 * k < n ? k : k - n) / (n * pixel); }

  static std::vector<Complex> lens(const double* parameter) {
    const double k_max = optics.convergence_angle / optics.wavelength, l = optics.wavelength;
    std::vector<Complex> wave, probe;
    double energy = 0;
    for (int i = 0; i < n * n; ++i) {
      const double k1 = frequency(i / n, optics.pixel_size), k2 = frequency(i % n, optics.pixel_size);
      const double k = std::hypot(k1, k2), theta = std::atan2(k2, k1);
      const double chi = pi * l * parameter[0] * k * k +
                         0.5 * pi * l * l * l * parameter[1] * optics.cs_to_length * k * k * k * k +
                         pi * l * parameter[2] * k * k * std::cos(2 * (theta - parameter[3]));
      const double width = k_max * (std::abs(parameter[4]) + 0.01);
      wave.push_back(std::polar(1 / (1 + std::exp(-(k_max - k) / width)), chi));
      energy += std::norm(wave.back()) * n * n;
    }
    for (int y = 0; y < m; ++y)
      for (int x = 0; x < m; ++x) {
        Complex sum = 0;
        for (int i = 0; i < n * n; ++i)
          sum += wave[std::size_t(i)] * root(i / n * (y - m / 2) + i % n * (x - m / 2));
        probe.push_back(sum / std::sqrt(energy));
      }
    return probe;
  }

  std::vector<Complex> probe(const std::vector<double>& sought) const {
    if (aberrations)
      return lens(sought.data() + 2 * pixels);
    std::vector<Complex> result;
    for (int i = 0; i < m * m; ++i)
      result.emplace_back(sought[std::size_t(2 * pixels + 2 * i)],
                          sought[std::size_t(2 * pixels + 2 * i + 1)]);
    return result;
  }

  std::vector<double> pattern(const std::vector<double>& sought, int j) const {
    const auto p = probe(sought);
    std::vector<Complex> wave;
    for (int r = 0; r < m * m; ++r) {
      const int at = (positions[j][0] + r / m) * columns + positions[j][1] + r % m;
      wave.push_back(std::polar(1.0, sought[std::size_t(pixels + at)]) * sought[std::size_t(at)] *
                     p[std::size_t(r)]);
    }
    std::vector<double> intensity;
    for (int k = 0; k < n * n; ++k) {
      double re = 0, im = 0; // std::complex's product also looks for infinities
      for (int r = 0; r < m * m; ++r) {
        const Complex a = wave[std::size_t(r)], b = root(-(k / n * (r / m) + k % n * (r % m)));
        re += a.real() * b.real() - a.imag() * b.imag();
        im += a.real() * b.imag() + a.imag() * b.real();
      }
      intensity.push_back(re * re + im * im);
    }
    double mean = 0;
    for (const double value : intensity)
      mean += value / (n * n);
    for (double& value : intensity)
      value *= counts / mean;
    return intensity;
  }

  double loss(const std::vector<double>& sought, const std::vector<int>& subset) const {
    double sum = 0;
    for (const int j : subset) {
      const auto modelled = pattern(sought, j);
      double mean = 0;
      for (int k = 0; k < n * n; ++k)
        mean += measured[std::size_t(j * n * n + k)] / (n * n);
      for (int k = 0; k < n * n; ++k)
        sum += std::pow(modelled[std::size_t(k)] - measured[std::size_t(j * n * n + k)] * counts / mean, 2);
    }
    return sum / double(subset.size()) / (n * n);
  }
};

std::vector<double> random_start(const Model& model, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> sought;
  for (int i = 0; i < model.size(); ++i)
    sought.push_back(i < Model::pixels       ? 0.9 + 0.1 * normal(generator)
                     : i < 2 * Model::pixels ? 0.3 * normal(generator)
                                             : normal(generator));
  if (model.aberrations) {
    const double lens[] = {30 + normal(generator), 0.5, 8, 0.3, 0.15};
    std::copy_n(lens, 5, sought.end() - 5);
  }
  return sought;
}

/// Adam in double precision on central differences.
std::vector<double> reference(const Model& model, std::vector<double> sought,
                              const std::vector<std::vector<int>>& subsets,
                              const std::function<double(int)>& rate, std::vector<double>& losses) {
  std::vector<double> mean(sought.size()), square(sought.size());
  double power1 = 1, power2 = 1;
  for (const auto& subset : subsets) {
    losses.push_back(model.loss(sought, subset));
    std::vector<double> gradient;
    for (std::size_t i = 0; i < sought.size(); ++i) {
      auto moved = sought;
      const double step = 1e-5 * std::max(1.0, std::abs(sought[i]));
      moved[i] = sought[i] + step;
      const double above = model.loss(moved, subset);
      moved[i] = sought[i] - step;
      gradient.push_back((above - model.loss(moved, subset)) / (2 * step));
    }
    power1 *= 0.9, power2 *= 0.999;
    for (std::size_t i = 0; i < sought.size(); ++i) {
      mean[i] = 0.9 * mean[i] + 0.1 * gradient[i];
      square[i] = 0.999 * square[i] + 0.001 * gradient[i] * gradient[i];
      sought[i] -= rate(int(i)) * mean[i] / (1 - power1) / (std::sqrt(square[i] / (1 - power2)) + 1e-8);
    }
  }
  return sought;
}

template <class View>
void upload(const View& view, const double* values) {
  using Real = Impl::real_of<View>;
  const auto host = Kokkos::create_mirror_view(view);
  auto* const out = reinterpret_cast<Real*>(host.data());
  for (std::size_t i = 0; i < view.size() * sizeof(typename View::value_type) / sizeof(Real); ++i)
    out[i] = static_cast<Real>(values[i]);
  Test::deep_copy(view, host);
}

template <class View>
void append(std::vector<double>& values, const View& view) {
  using Real = Impl::real_of<View>;
  const auto host = Test::on_host(view);
  const auto* const begin = reinterpret_cast<const Real*>(host.data());
  values.insert(values.end(), begin, begin + view.size() * sizeof(typename View::value_type) / sizeof(Real));
}

Solver::Loss make_loss(const Model& model, std::size_t first = 0, std::size_t count = Model::patterns,
                       PatternLoss kind = PatternLoss::LeastSquares) {
  const Space space;
  const Kokkos::View<const int* [2], Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>
      positions(&Model::positions[0][0] + 2 * first, count);
  Solver::Loss loss(space, Model::shape(), positions,
                    {.loss = kind,
                     .scale = kind == PatternLoss::Amplitude ? PatternScale::None : PatternScale::PerPattern,
                     .counts = Model::counts});
  const Kokkos::View<const double***, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>
      measured(model.measured.data() + first * Model::n * Model::n, count, Model::n, Model::n);
  loss.set_patterns(space, 0, measured);
  return loss;
}

Solver make_solver(const Model& model, const PtychographySolverOptions& options) {
  const bool adam = options.steps == PtychographySteps::Adam;
  return Solver(
      Space(), Model::shape(),
      make_loss(model, 0, Model::patterns, adam ? PatternLoss::LeastSquares : PatternLoss::Amplitude),
      options);
}

void set(const Solver& solver, const Model& model, const std::vector<double>& sought) {
  upload(solver.amplitude(), sought.data());
  upload(solver.phase(), sought.data() + Model::pixels);
  if (model.aberrations)
    upload(solver.aberrations(), sought.data() + 2 * Model::pixels);
  else
    upload(solver.probe(), sought.data() + 2 * Model::pixels);
}

std::vector<double> get(const Solver& solver, const Model& model) {
  std::vector<double> sought;
  append(sought, solver.amplitude());
  append(sought, solver.phase());
  if (model.aberrations)
    append(sought, solver.aberrations());
  else
    append(sought, solver.probe());
  return sought;
}

Model make_model(bool aberrations) {
  Model model{aberrations};
  const auto truth = random_start(model, 11);
  for (int j = 0; j < Model::patterns; ++j)
    for (const double value : model.pattern(truth, j))
      model.measured.push_back(3 * value); // the scale of measured patterns is free
  return model;
}

const std::vector<int> every{0, 1, 2, 3, 4};

} // namespace

TEST_CASE("steps of the solver are Adam on the gradients of the model", "[ptychography]") {
  const auto [aberrations, minibatches, probe_rate] = GENERATE(table<bool, bool, double>(
      {{false, false, 0.02}, {false, true, 0}, {true, true, 0.02}, {true, false, 0}}));
  CAPTURE(aberrations, minibatches, probe_rate);
  const Model model = make_model(aberrations);
  const auto start = random_start(model, 12);
  PtychographySolverOptions options{.object_rate = 0.01, .probe_rate = probe_rate};
  if (aberrations) {
    options.optics = Model::optics;
    for (int c = 0; c < 5; ++c) // each a rate of its own
      options.aberration_rates[std::size_t(c)] = probe_rate * (c + 1) / 5;
  }
  auto solver = make_solver(model, options);
  set(solver, model, start);

  const Space space;
  const PatternBatches<Space> batches(space, Model::patterns, 2, 5);
  std::vector<std::vector<int>> subsets;
  for (int step = 0; step < 4; ++step) {
    if (!minibatches) {
      subsets.push_back(every);
      solver.step(space);
      continue;
    }
    const auto batch = batches[step % 2];
    const Kokkos::View<const int*, Space::memory_space> list(batch.data, std::size_t(batch.size()));
    const auto host = Test::on_host(list);
    subsets.emplace_back(host.data(), host.data() + host.size());
    solver.step(space, batch);
  }
  std::vector<double> expected_losses;
  const auto rate = [&, is_lens = aberrations, of_probe = probe_rate](int i) {
    return i < 2 * Model::pixels ? 0.01 : is_lens ? of_probe * (i - 2 * Model::pixels + 1) / 5 : of_probe;
  };
  const auto expected = reference(model, start, subsets, rate, expected_losses);

  const double tolerance = 1e-6; // that of the differences; a step changes 0.01
  const auto losses = solver.losses(space);
  REQUIRE(losses.size() == 4);
  for (std::size_t step = 0; step < 4; ++step)
    CHECK(std::abs(losses[step] - expected_losses[step]) <= tolerance * expected_losses[step]);
  const auto found = get(solver, model);
  double change = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    const double scale = int(i) < 2 * Model::pixels ? 1 : std::max(1.0, std::abs(expected[i]));
    CHECK(std::abs(found[i] - expected[i]) <= tolerance * scale);
    change = std::max(change, std::abs(expected[i] - start[i]));
  }
  CHECK(change > 0.02);
}

TEST_CASE("a solver with part of the patterns takes the steps of all when sums are exchanged",
          "[ptychography]") {
  const bool aberrations = GENERATE(false, true);
  const std::size_t own = GENERATE(2, 0); // patterns here; the others stand for another process
  const Model model = make_model(aberrations);
  const auto start = random_start(model, 12);
  PtychographySolverOptions options{.object_rate = 0.01, .probe_rate = 0.02};
  if (aberrations)
    options.optics = Model::optics;
  const Space space;
  auto all = make_solver(model, options);
  Solver part(space, Model::shape(), make_loss(model, 0, own), options);
  const auto others = make_loss(model, own, Model::patterns - own);
  set(all, model, start);
  set(part, model, start);

  const View<Kokkos::complex<double>**> object("object", Model::rows, Model::columns);
  const View<Kokkos::complex<double>**> object_gradient("object_gradient", Model::rows, Model::columns);
  const View<Kokkos::complex<double>***> probe_gradient("probe_gradient", 1, Model::m, Model::m);
  const View<double*> loss("loss", 1);
  const auto add = [&](const auto& to, const auto& what) {
    const auto sum = Test::on_host(to);
    const auto summand = Test::on_host(what);
    for (std::size_t i = 0; i < to.size(); ++i)
      sum.data()[i] += summand.data()[i];
    Test::deep_copy(to, sum);
  };
  part.set_reduction(
      space, {.patterns = Model::patterns,
              .sum = [&](const Space& s, const auto& sum, const auto& of_object, const auto& of_probe) {
                complex_object(s, part.amplitude(), part.phase(), object);
                others.evaluate(
                    s, Solver::Loss::Inputs{.object = object, .probe = part.probe(), .mean_of = 5},
                    {.loss = loss, .object_gradient = object_gradient, .probe_gradient = probe_gradient});
                s.fence();
                add(sum, loss);
                add(of_object, object_gradient);
                add(of_probe, probe_gradient);
              }});
  for (int step = 0; step < 5; ++step) {
    all.step(space);
    part.step(space);
  }
  const auto expected = get(all, model), found = get(part, model);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(std::abs(found[i] - expected[i]) <= 1e-9 * std::max(1.0, std::abs(expected[i])));
  const auto losses = all.losses(space), of_part = part.losses(space);
  for (std::size_t step = 0; step < losses.size(); ++step)
    CHECK(std::abs(of_part[step] / losses[step] - 1) < 1e-10);
  const View<double*> last("last", 1), of_all("of_all", 1);
  all.evaluate(space, of_all);
  part.evaluate(space, last);
  const double last_of_part = Test::on_host(last)(0), last_of_all = Test::on_host(of_all)(0);
  CHECK(std::abs(last_of_part / last_of_all - 1) < 1e-10);
}

namespace {

/// Two modes at five places, by direct sums: what a step with projections does, and its parts.
struct Projected {
  static constexpr int rows = 12, columns = 13, n = 8, modes = 2, count = 5;
  static constexpr int positions[count][2] = {{0, 0}, {4, 5}, {1, 3}, {1, 4}, {3, 0}};
  int m;
  double fresnel_number; ///< 0: the far field
  std::vector<Complex> object = {}, probe = {};
  std::vector<double> measured = {};

  Projected(int m_, double fresnel_number_) : m(m_), fresnel_number(fresnel_number_) {
    std::mt19937 generator(3);
    std::normal_distribution<double> normal;
    for (int i = 0; i < rows * columns; ++i)
      object.emplace_back(1 + 0.2 * normal(generator), 0.3 * normal(generator));
    for (int i = 0; i < modes * m * m; ++i)
      probe.emplace_back(normal(generator), normal(generator));
    std::poisson_distribution<int> poisson(fresnel_number == 0 ? 60 : 2);
    for (int i = 0; i < count * n * n; ++i)
      measured.push_back(poisson(generator));
  }

  PtychographyShape shape() const { return {{rows, columns}, m, n, modes}; }

  /// Sum over the window or the detector, signs as of the transform forth (-1) or back (1).
  std::vector<Complex> transform(const std::vector<Complex>& wave, int from, int to, int sign) const {
    std::vector<Complex> result(std::size_t(to * to));
    for (int k = 0; k < to * to; ++k)
      for (int r = 0; r < from * from; ++r)
        result[std::size_t(k)] +=
            wave[std::size_t(r)] * Model::root(sign * (k / to * (r / from) + k % to * (r % from)));
    return result;
  }
  /// From the window to the detector, or the adjoint over the norm of a plane wave: the inverse.
  std::vector<Complex> propagate(const std::vector<Complex>& wave, bool back) const {
    if (fresnel_number == 0) {
      auto result = back ? transform(wave, n, m, 1) : transform(wave, m, n, -1);
      for (auto& value : result)
        value /= back ? n * n : 1;
      return result;
    }
    auto spectrum = transform(wave, n, n, -1);
    for (int k = 0; k < n * n; ++k) {
      const double row = Model::frequency(k / n, 1. / n), column = Model::frequency(k % n, 1. / n);
      spectrum[std::size_t(k)] *=
          std::polar(1. / (n * n), (back ? pi : -pi) * (row * row + column * column) / fresnel_number);
    }
    return transform(spectrum, n, n, 1);
  }

  Complex window(int j, int r) const {
    return object[std::size_t((positions[j][0] + r / m) * columns + positions[j][1] + r % m)];
  }

  /// psi' - psi of all modes of a pattern.
  std::vector<std::vector<Complex>> difference(int j) const {
    std::vector<std::vector<Complex>> waves, result;
    std::vector<double> intensity(std::size_t(n * n));
    for (int l = 0; l < modes; ++l) {
      std::vector<Complex> wave;
      for (int r = 0; r < m * m; ++r)
        wave.push_back(window(j, r) * probe[std::size_t(l * m * m + r)]);
      waves.push_back(propagate(wave, false));
      for (int k = 0; k < n * n; ++k)
        intensity[std::size_t(k)] += std::norm(waves.back()[std::size_t(k)]);
    }
    for (auto& wave : waves) {
      for (int k = 0; k < n * n; ++k)
        wave[std::size_t(k)] *=
            std::sqrt(measured[std::size_t(j * n * n + k)] / intensity[std::size_t(k)]) - 1;
      result.push_back(propagate(wave, true));
    }
    return result;
  }

  /// Takes the step for the patterns of a subset; the lengths of object and probe.
  std::array<double, 2> step(const std::vector<int>& subset, double alpha, double object_rate,
                             double probe_rate, bool least_squares) {
    std::vector<Complex> dO(object.size()), dp(probe.size());
    std::vector<double> S(object.size()), T(std::size_t(m * m));
    std::vector<std::vector<std::vector<Complex>>> chi;
    const auto place = [&](int j, int r) {
      return std::size_t((positions[j][0] + r / m) * columns + positions[j][1] + r % m);
    };
    for (const int j : subset) {
      chi.push_back(difference(j));
      for (int r = 0; r < m * m; ++r)
        for (int l = 0; l < modes; ++l) {
          const Complex p = probe[std::size_t(l * m * m + r)], o = window(j, r),
                        x = chi.back()[std::size_t(l)][std::size_t(r)];
          dO[place(j, r)] += std::conj(p) * x;
          S[place(j, r)] += std::norm(p);
          dp[std::size_t(l * m * m + r)] += std::conj(o) * x;
          T[std::size_t(r)] += l == 0 ? std::norm(o) : 0;
        }
    }
    const auto precondition = [&](std::vector<Complex>& direction, const std::vector<double>& weights) {
      const double greatest = *std::ranges::max_element(weights);
      for (std::size_t i = 0; i < direction.size(); ++i)
        direction[i] /= (1 - alpha) * weights[i % weights.size()] + alpha * greatest;
    };
    precondition(dO, S), precondition(dp, T);
    std::array<double, 2> lengths{1, 1};
    if (least_squares) { // of sum ||chi - a dO p - b O dp||^2, both real
      Eigen::Matrix2d normal = Eigen::Matrix2d::Zero();
      Eigen::Vector2d right = Eigen::Vector2d::Zero();
      for (std::size_t s = 0; s < subset.size(); ++s)
        for (int l = 0; l < modes; ++l)
          for (int r = 0; r < m * m; ++r) {
            const std::size_t at = std::size_t(l * m * m + r);
            const Complex x = chi[s][std::size_t(l)][std::size_t(r)],
                          ways[2] = {object_rate > 0 ? dO[place(subset[s], r)] * probe[at] : 0,
                                     probe_rate > 0 ? window(subset[s], r) * dp[at] : 0};
            for (int a = 0; a < 2; ++a) {
              right[a] += (std::conj(ways[a]) * x).real();
              for (int b = 0; b < 2; ++b)
                normal(a, b) += (std::conj(ways[a]) * ways[b]).real();
            }
          }
      const Eigen::Vector2d solved = normal.completeOrthogonalDecomposition().solve(right);
      lengths = {solved[0], solved[1]};
    }
    for (std::size_t i = 0; i < object.size(); ++i)
      object[i] += object_rate * lengths[0] * dO[i];
    for (std::size_t i = 0; i < probe.size(); ++i)
      probe[i] += probe_rate * lengths[1] * dp[i];
    return lengths;
  }
};

} // namespace

TEST_CASE("steps with projections are those of ePIE, rPIE and LSQ-ML", "[ptychography]") {
  const auto steps = GENERATE(PtychographySteps::Projections, PtychographySteps::LeastSquares);
  const auto [alpha, object_rate, probe_rate] =
      GENERATE(table<double, double, double>({{1, 1, 0.7}, {0.2, 0.8, 0}, {0.1, 0, 1}, {0.3, 0.9, 1}}));
  const double fresnel_number = GENERATE(0.0, 3.0);
  CAPTURE(int(steps), alpha, object_rate, probe_rate, fresnel_number);
  Projected expected(fresnel_number > 0 ? 8 : 5, fresnel_number);
  const Space space;
  const Kokkos::View<const int* [2], Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>
      positions(&Projected::positions[0][0], std::size_t(Projected::count));
  PtychographyOptions options{.loss = PatternLoss::Amplitude, .scale = PatternScale::None};
  if (fresnel_number > 0)
    options.fresnel_number = fresnel_number;
  Solver::Loss loss(space, expected.shape(), positions, options);
  loss.set_patterns(
      space, 0,
      Kokkos::View<const double***, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
          expected.measured.data(), std::size_t(Projected::count), std::size_t(Projected::n),
          std::size_t(Projected::n)));
  Solver solver(
      space, expected.shape(), std::move(loss),
      {.steps = steps, .object_rate = object_rate, .probe_rate = probe_rate, .regularisation = alpha});
  std::vector<double> amplitude, phase;
  for (const Complex& value : expected.object) {
    amplitude.push_back(std::abs(value));
    phase.push_back(std::arg(value) + 4 * pi); // turns stay
  }
  amplitude[7] *= -1, phase[7] += pi; // the same object
  upload(solver.amplitude(), amplitude.data());
  upload(solver.phase(), phase.data());
  upload(solver.probe(), reinterpret_cast<const double*>(expected.probe.data()));
  for (const std::vector<int>& subset : {std::vector{3}, {0}, {1, 2, 4}, {0, 1, 2, 3, 4}}) {
    const View<int*> list("list", subset.size());
    Test::deep_copy(list, Kokkos::View<const int*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
                              subset.data(), subset.size()));
    const auto lengths =
        expected.step(subset, alpha, object_rate, probe_rate, steps == PtychographySteps::LeastSquares);
    solver.step(space, list);
    if (steps == PtychographySteps::LeastSquares) {
      const auto found = Test::on_host(solver.step_lengths());
      for (const int which : {0, 1})
        CHECK(std::abs(found(which) - lengths[std::size_t(which)]) < 1e-7 * (1 + std::abs(lengths[0])));
    }
  }
  CHECK(solver.steps() == 4);
  std::vector<double> found_amplitude, found_phase, found_probe;
  append(found_amplitude, solver.amplitude());
  append(found_phase, solver.phase());
  append(found_probe, solver.probe());
  for (std::size_t i = 0; i < expected.object.size(); ++i) {
    CHECK(std::abs(std::polar(1.0, found_phase[i]) * found_amplitude[i] - expected.object[i]) < 1e-7);
    CHECK((i == 7 || std::abs(found_phase[i] - phase[i]) < pi));
  }
  for (std::size_t i = 0; i < expected.probe.size(); ++i)
    CHECK(std::abs(Complex(found_probe[2 * i], found_probe[2 * i + 1]) - expected.probe[i]) < 1e-7);
}

TEST_CASE("projections that come before Adam are whole steps of rPIE, and Adam begins after them",
          "[ptychography]") {
  const Projected model(5, 0);
  const Space space;
  const Kokkos::View<const int* [2], Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>
      positions(&Projected::positions[0][0], std::size_t(Projected::count));
  const auto make = [&](const PtychographySolverOptions& options) {
    Solver::Loss loss(space, model.shape(), positions,
                      {.loss = PatternLoss::Amplitude, .scale = PatternScale::None});
    loss.set_patterns(
        space, 0,
        Kokkos::View<const double***, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
            model.measured.data(), std::size_t(Projected::count), std::size_t(Projected::n),
            std::size_t(Projected::n)));
    return Solver(space, model.shape(), std::move(loss), options);
  };
  const PtychographySolverOptions both{
      .object_rate = 0.03, .probe_rate = 0.002, .regularisation = 0.2, .projections_first = 2};
  auto whole = make(both),
       projected = make({.steps = PtychographySteps::Projections,
                         .object_rate = 1,
                         .probe_rate = 1,
                         .regularisation = 0.2}),
       adam = make({.object_rate = 0.03, .probe_rate = 0.002}), resumed = make(both);
  const auto copy = [](const Solver& from, const Solver& to) {
    Test::deep_copy(to.amplitude(), from.amplitude());
    Test::deep_copy(to.phase(), from.phase());
    Test::deep_copy(to.probe(), from.probe());
  };
  std::vector<double> amplitude, phase;
  for (const Complex& value : model.object)
    amplitude.push_back(std::abs(value)), phase.push_back(std::arg(value));
  upload(projected.amplitude(), amplitude.data());
  upload(projected.phase(), phase.data());
  upload(projected.probe(), reinterpret_cast<const double*>(model.probe.data()));
  copy(projected, whole);
  const auto same = [](const Solver& a, const Solver& b) {
    const auto one = Test::on_host(a.phase()), other = Test::on_host(b.phase());
    for (std::size_t i = 0; i < one.size(); ++i)
      CHECK(std::abs(one.data()[i] - other.data()[i]) < 1e-12);
  };
  for (int step = 0; step < 2; ++step) {
    whole.step(space);
    projected.step(space);
    same(whole, projected);
    if (step == 0) // amid the projections
      resumed.restore(space, whole.state(space));
  }
  copy(projected, adam);
  for (int step = 0; step < 2; ++step) {
    whole.step(space);
    adam.step(space);
    same(whole, adam);
  }
  for (int step = 0; step < 2; ++step)
    resumed.step(space);
  resumed.restore(space, resumed.state(space)); // amid Adam's
  resumed.step(space);
  same(resumed, whole);
  CHECK_THROWS_WITH(make({.steps = PtychographySteps::Projections, .projections_first = 1}),
                    Catch::Matchers::ContainsSubstring("options.projections_first"));
  auto reduced = make(both);
  CHECK_THROWS_WITH(reduced.set_reduction(space, {.patterns = 5, .sum = [](const Space&, const auto&...) {}}),
                    Catch::Matchers::ContainsSubstring("options.steps"));
}

TEST_CASE("a schedule's rates fall to nothing, and its options are those of a solver", "[ptychography]") {
  const auto schedule = PtychographySchedule::of(516);
  CHECK(schedule.batches == 32);
  CHECK(schedule.projection_passes < schedule.passes);
  CHECK(schedule.rate_factor(0) == 1);
  CHECK(schedule.rate_factor(schedule.projection_passes) == 1);
  for (int pass = 1; pass < schedule.passes; ++pass)
    CHECK(schedule.rate_factor(pass) <= schedule.rate_factor(pass - 1));
  CHECK(schedule.rate_factor(schedule.passes) == 0);
  const auto options = schedule.options(3);
  CHECK(options.projections_first == std::int64_t(schedule.projection_passes) * 32);
  CHECK(options.probe_rate == 3 * schedule.probe_rate);
  for (const int patterns : {0, 1, 12, 1000000}) {
    const auto other = PtychographySchedule::of(patterns, 1);
    CHECK(other.passes == 1);
    CHECK(other.projection_passes == 0);
    CHECK(other.batches >= 1);
    CHECK(other.batches <= std::max(1, patterns));
  }
}

TEST_CASE("twenty steps of the solver are those of torch.optim.Adam on golden data", "[ptychography]") {
  const char* named = std::getenv("BRACEWELL_TEST_DATA");
  const std::filesystem::path data(named != nullptr ? named : "");
  const std::string prefix = (data / "golden/ptychography" / GENERATE("ptycho_A", "ptycho_C_rect")).string();
  if (!std::filesystem::exists(prefix + ".json"))
    SKIP("the golden data are not there: " << prefix << " (BRACEWELL_TEST_DATA names their folder)");
  const Golden::File file(prefix);
  const auto& meta = file.index.at("meta");
  const PtychographyShape shape{
      {meta.at("object_shape")[0], meta.at("object_shape")[1]}, meta.at("probe"), meta.at("detector")};
  const Space space;
  Solver::Loss loss(space, shape, Golden::load<int**>(file["positions"]), {.counts = meta.at("counts")});
  loss.set_patterns(space, 0, Golden::load<double***>(file["I_meas"]));
  Solver solver(space, shape, std::move(loss),
                {.optics = ProbeOptics{.wavelength = meta.at("wavelength"),
                                       .pixel_size = meta.at("pixel_size"),
                                       .convergence_angle = meta.at("convergence_angle"),
                                       .cs_to_length = meta.at("cs_to_length")}});
  upload(solver.amplitude(), file["init_amp"].values.data());
  upload(solver.phase(), file["init_phase"].values.data());
  upload(solver.aberrations(), file["init_probe_params"].values.data());
  const auto& curve = file["loss_curve_f64"].values;
  for (std::size_t step = 0; step + 1 < curve.size(); ++step)
    solver.step(space);
  CHECK(Golden::relative_error(solver.amplitude(), file["final_amp_f64"]) < 1e-10);
  CHECK(Golden::relative_error(solver.phase(), file["final_phase_f64"]) < 1e-10);
  CHECK(Golden::relative_error(solver.aberrations(), file["final_probe_params_f64"]) < 1e-10);
  const View<double> last("last");
  solver.evaluate(space, last);
  auto losses = solver.losses(space);
  losses.push_back(0);
  losses.back() = Test::on_host(last)();
  REQUIRE(losses.size() == curve.size());
  for (std::size_t step = 0; step < curve.size(); ++step)
    CHECK(std::abs(losses[step] / curve[step] - 1) < 1e-10);
}

TEST_CASE("full steps of the solver lower the loss to nothing", "[ptychography]") {
  const Model model = make_model(false);
  const auto truth = random_start(model, 11);
  auto start = truth; // the probe is known
  const auto guess = random_start(model, 13);
  std::copy_n(guess.begin(), 2 * Model::pixels, start.begin());
  auto solver = make_solver(model, {.probe_rate = 0, .history = 200});
  set(solver, model, start);
  const Space space;
  for (int step = 0; step < 500; ++step)
    solver.step(space);
  CHECK(solver.steps() == 500);
  const auto losses = solver.losses(space);
  REQUIRE(losses.size() == 200); // the latest ones
  CHECK(losses.back() < 1e-3 * model.loss(start, every));
  const auto found = get(solver, model);
  CHECK(std::vector(found.begin() + 2 * Model::pixels, found.end()) ==
        std::vector(truth.begin() + 2 * Model::pixels, truth.end()));
  const View<double> now("now");
  solver.evaluate(space, now);
  const double value = Test::on_host(now)();
  CHECK(std::abs(value - model.loss(found, every)) < 1e-9 * (1 + value));
  CHECK(solver.steps() == 500);
}

TEST_CASE("a rate factor is as good as smaller rates", "[ptychography]") {
  const Model model = make_model(false);
  const auto start = random_start(model, 13);
  auto scaled = make_solver(model, {.object_rate = 0.02, .probe_rate = 0.004}),
       small = make_solver(model, {.object_rate = 0.005, .probe_rate = 0.001});
  set(scaled, model, start);
  set(small, model, start);
  scaled.set_rate_factor(0.25);
  for (int step = 0; step < 5; ++step) {
    scaled.step(Space());
    small.step(Space());
  }
  const auto found = get(scaled, model), expected = get(small, model);
  CHECK(found != start);
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(std::abs(found[i] - expected[i]) <= 1e-12 * (1 + std::abs(expected[i])));
  scaled.set_rate_factor(0);
  scaled.step(Space());
  CHECK(get(scaled, model) == found);
}

TEST_CASE("a restored solver makes the steps that follow its state", "[ptychography]") {
  const bool aberrations = GENERATE(false, true);
  const auto steps = aberrations ? PtychographySteps::Adam
                                 : GENERATE(PtychographySteps::Adam, PtychographySteps::LeastSquares);
  const Model model = make_model(aberrations);
  PtychographySolverOptions options{.steps = steps, .probe_rate = 0.02, .history = 4};
  if (aberrations)
    options.optics = Model::optics;
  const Space space;
  auto whole = make_solver(model, options), begun = make_solver(model, options);
  set(whole, model, random_start(model, 12));
  set(begun, model, random_start(model, 12));
  for (int step = 0; step < 7; ++step)
    whole.step(space);
  for (int step = 0; step < 5; ++step)
    begun.step(space);
  auto state = begun.state(space);
  CHECK(state.adam.steps == 5);
  auto resumed = make_solver(model, options);
  resumed.step(space); // what a solver has done before is forgotten
  resumed.restore(space, state);
  for (int step = 0; step < 2; ++step)
    resumed.step(space);
  CHECK(resumed.steps() == 7);
  const auto expected = get(whole, model), found = get(resumed, model);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(std::abs(found[i] - expected[i]) <= 1e-10 * std::max(1.0, std::abs(expected[i])));
  const auto losses = resumed.losses(space), expected_losses = whole.losses(space);
  REQUIRE(losses.size() == 4);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(std::abs(losses[i] / expected_losses[i] - 1) <= 1e-10);

  using Catch::Matchers::ContainsSubstring;
  auto wrong = state;
  wrong.phase.pop_back();
  CHECK_THROWS_WITH(resumed.restore(space, wrong), ContainsSubstring("restore: state: expected 99 values"));
  wrong = state;
  wrong.losses.pop_back();
  CHECK_THROWS_WITH(resumed.restore(space, wrong), ContainsSubstring("expected 4 losses, found 3"));
  if (steps == PtychographySteps::Adam) {
    wrong = state;
    wrong.adam.squares.pop_back();
    CHECK_THROWS_WITH(resumed.restore(space, wrong), ContainsSubstring("Adam::restore: state"));
  }
  wrong = state;
  wrong.adam.steps = -1;
  CHECK_THROWS_WITH(resumed.restore(space, wrong), ContainsSubstring("state"));
}

TEST_CASE("batches divide the patterns", "[ptychography]") {
  const Space space;
  for (const auto& [patterns, count] : {std::pair{10, 3}, {7, 7}, {5, 1}, {101, 8}}) {
    const PatternBatches<Space> batches(space, patterns, count, 3);
    REQUIRE(batches.size() == count);
    std::multiset<int> seen;
    for (int b = 0; b < count; ++b) {
      const auto batch = batches[b];
      CHECK(batch.size() >= patterns / count);
      CHECK(batch.size() <= patterns / count + 1);
      const Kokkos::View<const int*, Space::memory_space> list(batch.data, std::size_t(batch.size()));
      const auto host = Test::on_host(list);
      CHECK(std::is_sorted(host.data(), host.data() + host.size()));
      seen.insert(host.data(), host.data() + host.size());
    }
    std::multiset<int> expected;
    for (int j = 0; j < patterns; ++j)
      expected.insert(j);
    CHECK(seen == expected);
  }
  CHECK_THROWS_AS((PatternBatches<Space>(space, 5, 6)), Error);
  CHECK_THROWS_AS((PatternBatches<Space>(space, 5, 0)), Error);
}

TEST_CASE("a step waits for nothing, copies nothing to the host and stays on its instance",
          "[ptychography]") {
  const bool aberrations = GENERATE(false, true);
  const auto steps = aberrations ? PtychographySteps::Adam
                                 : GENERATE(PtychographySteps::Adam, PtychographySteps::LeastSquares);
  const Model model = make_model(aberrations);
  PtychographySolverOptions options{.steps = steps};
  if (aberrations)
    options.optics = Model::optics;
  auto solver = make_solver(model, options);
  set(solver, model, random_start(model, 12));
  const PatternBatches<Space> batches(Space(), Model::patterns, 2);
  for (const bool subset : {false, true}) {
    const auto step = [&](const Space& space) {
      subset ? solver.step(space, batches[0]) : solver.step(space);
    };
    for (const Space& space : Kokkos::Experimental::partition_space(Space(), 1, 1)) {
      step(space); // backends allocate their own scratch at first
      const auto seen = Test::report([&] { step(space); });
      space.fence();
      CHECK(seen.fences == std::vector<std::string>{});
      for (const auto& label : seen.allocations)
        CHECK(label.find("Kokkos") !=
              std::string::npos); // CUDA's pool of team scratch grows for some launches
      CHECK_FALSE(seen.kernels.empty());
      for (const auto& kernel : seen.kernels) {
        INFO(kernel.label);
        CHECK(kernel.instance == space.impl_instance_id());
        if (kernel.label.find("Kokkos") == std::string::npos)
          CHECK(kernel.label.starts_with("Bracewell::"));
      }
    }
  }
}

TEST_CASE("the memory of a solver is foretold to 5 %, and every View of it has a name", "[ptychography]") {
  const Space space;
  PtychographyShape shape{{60, 50}, 24, 40};
  const View<double**> positions("positions", 30, 2);
  const auto check = [&](const PtychographyOptions& of_loss, const PtychographySolverOptions& options) {
    const auto needed = double(Solver::bytes_needed(space, shape, positions, of_loss, options));
    std::optional<Solver> solver;
    const Test::Memory memory = Test::memory_of(
        [&] { solver.emplace(space, shape, Solver::Loss(space, shape, positions, of_loss), options); });
    const auto held = double(memory.held);
    CAPTURE(needed, held, solver->memory_bytes(), solver->loss().is_fused());
    CHECK(std::abs(needed - held) <= 0.05 * held);
    CHECK(std::abs(double(solver->memory_bytes()) - held) <= 0.05 * held);
  };
  check({}, {}); // fused
  check({}, {.object_rate = 0, .probe_rate = 0, .history = 1});
  check({}, {.optics = Model::optics, .history = 100});
  check({.refine_positions = true, .workspace_bytes = 100000}, {.position_rate = 0.1, .history = 100});
  const PtychographyOptions amplitude{.loss = PatternLoss::Amplitude, .scale = PatternScale::None};
  check(amplitude, {.steps = PtychographySteps::Projections, .history = 100});
  check(amplitude, {.steps = PtychographySteps::LeastSquares, .history = 100});
  shape.modes = 3;
  check({.workspace_bytes = 100000}, {.history = 100});

  const Model model = make_model(false);
  const auto seen = Test::report([&] { make_solver(model, {}); });
  for (const auto& label : seen.allocations)
    if (!label.empty() && label.find("Kokkos") == std::string::npos &&
        label.find("mirror") == std::string::npos)
      CHECK(label.find("Bracewell::") != std::string::npos);
}

TEST_CASE("a loss that is no number ends a step before anything moves", "[ptychography]") {
  const Space space;
  const Model model = make_model(false);
  auto solver = make_solver(model, {});
  Test::deep_copy(solver.amplitude(), 1.0);
  const auto start = solver.state(space);
  // The probe is zero: without light the loss is that of J = 0.
  double expected = 0;
  constexpr int pixels = Model::n * Model::n;
  for (int j = 0; j < Model::patterns; ++j) {
    double sum = 0, squares = 0;
    for (int k = 0; k < pixels; ++k) {
      const double value = model.measured[std::size_t(j * pixels + k)];
      sum += value, squares += value * value;
    }
    expected += squares * std::pow(Model::counts * pixels / sum, 2) / (pixels * Model::patterns);
  }
  solver.step(space);
  CHECK(std::abs(solver.losses(space).back() / expected - 1) < 1e-12);
  CHECK(solver.state(space).amplitude == start.amplitude);
  Test::deep_copy(solver.probe(), std::numeric_limits<double>::quiet_NaN());
  if (Impl::is_host<Space>) {
    CHECK_THROWS_WITH(solver.step(space), Catch::Matchers::ContainsSubstring(
                                              "PtychographySolver::step: loss: expected a finite number"));
    CHECK(solver.steps() == 1);
    CHECK(solver.state(space).amplitude == start.amplitude);
  } else {
    solver.step(space);
    CHECK(std::isnan(solver.losses(space).back()));
  }
}

TEST_CASE("the solver names what is wrong", "[ptychography]") {
  using Catch::Matchers::ContainsSubstring;
  const Model model = make_model(false);
  CHECK_THROWS_WITH(make_solver(model, {.object_rate = -1}), ContainsSubstring("learning rates"));
  CHECK_THROWS_WITH(make_solver(model, {.probe_rate = NAN}), ContainsSubstring("learning rates"));
  CHECK_THROWS_WITH(make_solver(model, {.history = 0}), ContainsSubstring("history"));
  CHECK_THROWS_WITH(make_solver(model, {.regularisation = 0}), ContainsSubstring("regularisation"));
  CHECK_THROWS_WITH(
      Solver(Space(), Model::shape(), make_loss(model), {.steps = PtychographySteps::Projections}),
      ContainsSubstring("options.steps"));
  auto solver = make_solver(model, {});
  const auto sum = [](const Space&, const auto&...) {};
  CHECK_THROWS_WITH(solver.set_reduction(Space(), {.patterns = 4, .sum = sum}),
                    ContainsSubstring("reduction.patterns"));
  CHECK_THROWS_WITH(solver.set_reduction(Space(), {.patterns = 5, .sum = {}}),
                    ContainsSubstring("reduction.sum"));
  const View<int**> list("list", 2, 2);
  CHECK_THROWS_WITH(solver.step(Space(), list), ContainsSubstring("subset"));
  for (const double factor : {-1.0, double(NAN), double(INFINITY)})
    CHECK_THROWS_WITH(solver.set_rate_factor(factor), ContainsSubstring("set_rate_factor: factor"));
}

namespace {

/// Patterns of a smooth object at whole positions, by direct sums.
struct WholeScan {
  static constexpr int size = 44, m = 14, n = 20, side = 8, count = side * side;
  std::vector<std::array<double, 2>> truth;
  View<double***> patterns{"patterns", count, n, n};
  View<Kokkos::complex<double>***> probe{"probe", 1, m, m};

  static Complex object(double row, double column) {
    return std::polar(1 + 0.3 * std::sin(0.5 * row) * std::cos(0.4 * column),
                      0.8 * std::sin(0.35 * column + 0.2 * row) + 0.6 * std::cos(0.6 * row - 0.3 * column));
  }

  WholeScan() {
    const auto p = Kokkos::create_mirror_view(probe);
    const auto measured = Kokkos::create_mirror_view(patterns);
    for (int i = 0; i < m * m; ++i) {
      const double y = i / m - m / 2., x = i % m - m / 2., r = y * y + x * x;
      p.data()[i] = Kokkos::complex<double>(std::exp(-r / 12) * std::cos(0.1 * r),
                                            std::exp(-r / 12) * std::sin(0.1 * r));
    }
    for (int j = 0; j < count; ++j) {
      truth.push_back(
          {double(2 + (j / side * 26 + j % 3) / 7), double(2 + (j % side * 26 + j / side % 2 * 3) / 7)});
      for (int k = 0; k < n * n; ++k) {
        Complex sum = 0;
        for (int i = 0; i < m * m; ++i)
          sum += object(truth.back()[0] + i / m, truth.back()[1] + i % m) *
                 Complex(p.data()[i].real(), p.data()[i].imag()) *
                 std::polar(1.0, -2 * pi * (k / n * (i / m) + k % n * (i % m)) / n);
        measured.data()[j * n * n + k] = std::norm(sum);
      }
    }
    Test::deep_copy(probe, p);
    Test::deep_copy(patterns, measured);
  }

  /// How far positions are from the truth, without the mean of all; the largest but for one in ten.
  double error(const std::vector<std::array<double, 2>>& positions) const {
    std::array<double, 2> mean{};
    for (int j = 0; j < count; ++j)
      for (int axis = 0; axis < 2; ++axis)
        mean[axis] += (positions[j][axis] - truth[j][axis]) / count;
    std::vector<double> distances;
    for (int j = 0; j < count; ++j)
      distances.push_back(
          std::hypot(positions[j][0] - truth[j][0] - mean[0], positions[j][1] - truth[j][1] - mean[1]));
    std::sort(distances.begin(), distances.end());
    return distances[count * 9 / 10];
  }
};

} // namespace

TEST_CASE("every kind of steps finds a simulated object, alone and with the probe", "[ptychography]") {
  // PIE goes slowly where little light falls: ePIE's loss falls as one over the passes.
  const auto [steps, alpha, object_rate, probe_rate, least] =
      GENERATE(table<PtychographySteps, double, double, double, double>(
          {{PtychographySteps::Adam, 1, 0.02, 0, 1e-4},
           {PtychographySteps::Projections, 1, 1, 0, 1e-3},
           {PtychographySteps::Projections, 0.1, 1, 1, 1e-3},
           {PtychographySteps::LeastSquares, 0.1, 1, 0, 1e-4},
           {PtychographySteps::LeastSquares, 0.1, 1, 1, 1e-4}}));
  CAPTURE(int(steps), alpha, probe_rate);
  const WholeScan scan;
  const Space space;
  const View<double**> positions("positions", WholeScan::count, 2);
  const auto host = Kokkos::create_mirror_view(positions);
  for (int i = 0; i < 2 * WholeScan::count; ++i)
    host(i / 2, i % 2) = scan.truth[std::size_t(i / 2)][std::size_t(i % 2)];
  Test::deep_copy(positions, host);
  const PtychographyShape shape{{WholeScan::size, WholeScan::size}, WholeScan::m, WholeScan::n};
  Solver::Loss plan(space, shape, positions, {.loss = PatternLoss::Amplitude, .scale = PatternScale::None});
  plan.set_patterns(space, 0, scan.patterns);
  Solver solver(
      space, shape, std::move(plan),
      {.steps = steps, .object_rate = object_rate, .probe_rate = probe_rate, .regularisation = alpha});
  Test::deep_copy(solver.amplitude(), 1.0);
  Test::deep_copy(solver.probe(), scan.probe);
  if (probe_rate > 0) { // broader than it is
    const auto probe = Test::on_host(scan.probe);
    for (int i = 0; i < WholeScan::m * WholeScan::m; ++i)
      probe.data()[i] *=
          std::exp((std::pow(i / WholeScan::m - 7., 2) + std::pow(i % WholeScan::m - 7., 2)) / 100);
    Test::deep_copy(solver.probe(), probe);
  }
  const PatternBatches<Space> batches(space, WholeScan::count, 16, 1);
  const int passes = 300;
  for (int pass = 0; pass < passes; ++pass) {
    if (steps == PtychographySteps::Adam)
      solver.set_rate_factor(std::min(1.0, 2 - 2.0 * pass / passes));
    for (int batch = 0; batch < batches.size(); ++batch)
      solver.step(space, batches[(batch * 5 + pass) % batches.size()]);
  }
  const auto losses = solver.losses(space);
  double first = 0, last = 0;
  for (std::size_t b = 0; b < 16; ++b)
    first += losses[b], last += losses[losses.size() - 16 + b];
  INFO("loss from " << first << " to " << last);
  CHECK(last < least * first);
  if (probe_rate > 0)
    return; // what the probe takes, the object need not
  std::vector<double> amplitude, phase;
  append(amplitude, solver.amplitude());
  append(phase, solver.phase());
  Complex product = 0;
  double norm = 0;
  const auto inside = [&](const auto& visit) { // where there was light
    for (int row = 8; row < WholeScan::size - 8; ++row)
      for (int column = 8; column < WholeScan::size - 8; ++column) {
        const auto i = std::size_t(row * WholeScan::size + column);
        visit(std::polar(1.0, phase[i]) * amplitude[i], WholeScan::object(row, column));
      }
  };
  inside(
      [&](Complex found, Complex truth) { product += std::conj(found) * truth, norm += std::norm(truth); });
  double error = 0;
  inside(
      [&](Complex found, Complex truth) { error += std::norm(found * product / std::abs(product) - truth); });
  CHECK(std::sqrt(error / norm) < 0.02);
}

TEST_CASE("the solver finds positions behind a known probe on a known object, and keeps to the limit") {
  const WholeScan scan;
  const Space space;
  std::mt19937 engine(6);
  std::uniform_real_distribution<double> uniform(-1.5, 1.5);
  auto errors = scan.truth;
  for (auto& error : errors)
    error = {uniform(engine), uniform(engine)};
  // What is missing is no affine map of the true positions, which the solver would keep.
  const auto term = [](const auto& position) { return Eigen::Vector3d(1, position[0], position[1]); };
  Eigen::Matrix3d normal = Eigen::Matrix3d::Zero();
  for (int j = 0; j < WholeScan::count; ++j)
    normal += term(scan.truth[j]) * term(scan.truth[j]).transpose();
  for (int axis = 0; axis < 2; ++axis) {
    Eigen::Vector3d right = Eigen::Vector3d::Zero();
    for (int j = 0; j < WholeScan::count; ++j)
      right += errors[j][axis] * term(scan.truth[j]);
    const Eigen::Vector3d affine = normal.ldlt().solve(right);
    for (int j = 0; j < WholeScan::count; ++j)
      errors[j][axis] -= affine.dot(term(scan.truth[j]));
  }
  auto given = scan.truth;
  View<double**> positions("positions", WholeScan::count, 2);
  const auto host = Kokkos::create_mirror_view(positions);
  for (int j = 0; j < WholeScan::count; ++j)
    for (int axis = 0; axis < 2; ++axis)
      host(j, axis) = given[j][axis] += errors[j][axis];
  Test::deep_copy(positions, host);
  const PtychographyShape shape{{WholeScan::size, WholeScan::size}, WholeScan::m, WholeScan::n};
  auto latest = given; // positions at the latest move_windows
  const auto moves = [&](double limit, int passes) {
    Solver::Loss plan(
        space, shape, positions,
        {.loss = PatternLoss::Amplitude, .scale = PatternScale::None, .refine_positions = true});
    plan.set_patterns(space, 0, scan.patterns);
    Solver solver(space, shape, std::move(plan),
                  {.object_rate = 0, .probe_rate = 0, .position_rate = 0.1, .position_limit = limit});
    const auto amplitude = Kokkos::create_mirror_view(solver.amplitude());
    const auto phase = Kokkos::create_mirror_view(solver.phase());
    for (int row = 0; row < WholeScan::size; ++row)
      for (int column = 0; column < WholeScan::size; ++column) {
        amplitude(row, column) = std::abs(WholeScan::object(row, column));
        phase(row, column) = std::arg(WholeScan::object(row, column));
      }
    Test::deep_copy(solver.amplitude(), amplitude);
    Test::deep_copy(solver.phase(), phase);
    Test::deep_copy(solver.probe(), scan.probe);
    for (int pass = 0; pass < passes; ++pass) {
      solver.move_windows(space);
      const auto now = Test::on_host(solver.displacements());
      for (int i = 0; i < 2 * WholeScan::count; ++i)
        latest[i / 2][i % 2] = given[i / 2][i % 2] + now(i / 2, i % 2);
      solver.set_rate_factor(std::pow(0.8, pass));
      for (int step = 0; step < 10; ++step)
        solver.step(space);
    }
    space.fence();
    return Test::on_host(solver.displacements());
  };
  const auto found = moves(4, 20);
  auto refined = given;
  Eigen::Matrix<double, 3, 2> together = Eigen::Matrix<double, 3, 2>::Zero();
  for (int j = 0; j < WholeScan::count; ++j)
    for (int axis = 0; axis < 2; ++axis) {
      refined[j][axis] += found(j, axis);
      together.col(axis) += term(latest[j]) * found(j, axis);
    }
  INFO("from " << scan.error(given) << " to " << scan.error(refined));
  CHECK(scan.error(given) > 1);
  CHECK(scan.error(refined) < 0.02);
  CHECK(together.cwiseAbs().maxCoeff() < 1e-8);
  const auto limited = moves(0.3, 2);
  for (std::size_t i = 0; i < limited.size(); ++i)
    CHECK(std::abs(limited.data()[i]) <= 0.3);
  Solver::Loss still(space, shape, positions, {});
  CHECK_THROWS_WITH(Solver(space, shape, std::move(still), {.position_rate = 0.1}),
                    Catch::Matchers::ContainsSubstring("options.position_rate: expected 0"));
}

TEST_CASE("a restored solver has the windows of its state, which depend on where positions have been") {
  const WholeScan scan;
  const Space space;
  const View<double**> positions("positions", WholeScan::count, 2);
  const auto host = Kokkos::create_mirror_view(positions);
  for (int i = 0; i < 2 * WholeScan::count; ++i)
    host(i / 2, i % 2) = scan.truth[i / 2][i % 2];
  Test::deep_copy(positions, host);
  const PtychographyShape shape{{WholeScan::size, WholeScan::size}, WholeScan::m, WholeScan::n};
  const auto make = [&] {
    Solver::Loss plan(space, shape, positions, {.refine_positions = true});
    plan.set_patterns(space, 0, scan.patterns);
    return Solver(space, shape, std::move(plan), {.position_rate = 0.1});
  };
  auto solver = make(), other = make();
  const auto first = solver.loss().windows(space);
  for (const double moved : {0.9, 0.5}) { // beyond 3/4 of a pixel, and back, but not far enough
    Test::deep_copy(solver.displacements(), moved);
    solver.move_windows(space);
  }
  CHECK(solver.loss().windows(space) != first);
  auto state = solver.state(space);
  other.restore(space, state);
  CHECK(other.loss().windows(space) == solver.loss().windows(space));
  using Catch::Matchers::ContainsSubstring;
  state.windows[5] = WholeScan::size;
  CHECK_THROWS_WITH(other.restore(space, state), ContainsSubstring("found 44 (window 2)"));
  state.windows.pop_back();
  CHECK_THROWS_WITH(other.restore(space, state),
                    ContainsSubstring("windows: expected 128 numbers, found 127"));
}
