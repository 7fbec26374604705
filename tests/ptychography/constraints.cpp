// SPDX-License-Identifier: MIT
// What a user knows of object, probe and positions: limits, supports, smoothness, affine maps; and which loss counts suit.

#include "../deep_copy.hpp"
#include "solver_plan.hpp"
#include "support.hpp"

#include <bracewell/optimize/total_variation.hpp>
#include <bracewell/ptychography/compare.hpp>

using namespace Test;
using Catch::Matchers::ContainsSubstring;

namespace {

using Complex = Kokkos::complex<double>;
using Solver = TestSolver;

/// A solver of the patterns of an experiment, with its probe on an empty object.
Solver make(const Experiment<double>& e, const PtychographySolverOptions& options, int relaxation = 0) {
  const PtychographyShape shape{{e.rows, e.columns}, e.m, e.n, e.modes, 1, relaxation};
  Solver::Loss loss(e.space, shape, e.positions(),
                    {.loss = PatternLoss::Amplitude, .scale = PatternScale::None});
  loss.set_patterns(e.space, 0, e.patterns);
  Solver solver(e.space, shape, std::move(loss), options);
  Test::deep_copy(e.space, solver.amplitude(), 1.0);
  Test::deep_copy(e.space, solver.probe(), e.probe);
  if (relaxation > 0)
    Test::deep_copy(e.space, solver.relaxation(), Complex(0.1, 0.2));
  return solver;
}

Experiment<double> experiment() { return {21, 24, 9, 12, {{0, 0}, {4, 6}, {7, 12}, {12, 15}, {3, 9}}, 2}; }

/// Patterns of a smooth object behind a probe at any positions, by direct sums; nothing of the library.
struct Scan {
  static constexpr int size = 52, m = 16, across = 5, count = across * across;
  using Wave = std::vector<std::complex<double>>;
  Wave object, probe;
  std::vector<std::array<double, 2>> nominal, truth;

  /// @param map  by which positions are moved about their middle: rows, then columns
  explicit Scan(const std::array<std::array<double, 2>, 2>& map) {
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x)
        object.push_back(std::polar(0.8 + 0.15 * std::sin(0.61 * x + 0.2 * y),
                                    0.7 * std::cos(0.5 * y) * std::sin(0.43 * x)));
    for (int k = 0; k < m * m; ++k) {
      const double y = k / m - m / 2.0, x = k % m - m / 2.0;
      probe.push_back(std::polar(3 * std::exp(-(y * y + x * x) / 18), 0.06 * (y * y + 0.7 * x * x)));
    }
    for (int j = 0; j < count; ++j)
      nominal.push_back({4.0 + 7 * (j / across) + 0.3 * (j % 3), 4.0 + 7 * (j % across) - 0.4 * (j % 2)});
    std::array<double, 2> middle{};
    for (const auto& place : nominal)
      for (const int axis : {0, 1})
        middle[axis] += place[axis] / count;
    for (const auto& place : nominal) {
      auto moved = place;
      for (const int axis : {0, 1})
        for (const int other : {0, 1})
          moved[axis] += map[axis][other] * (place[other] - middle[other]);
      truth.push_back(moved);
    }
  }

  static double frequency(int k) { return 2 * k < m ? k : k - m; }
  static Wave transform(const Wave& given, int sign) {
    Wave rows(m * m), all(m * m);
    for (int y = 0; y < m; ++y)
      for (int k = 0; k < m; ++k)
        for (int x = 0; x < m; ++x)
          rows[y * m + k] += given[y * m + x] * std::polar(1.0, sign * 2 * M_PI * k * x / m);
    for (int x = 0; x < m; ++x)
      for (int k = 0; k < m; ++k)
        for (int y = 0; y < m; ++y)
          all[k * m + x] += rows[y * m + x] * std::polar(1.0, sign * 2 * M_PI * k * y / m);
    return all;
  }

  std::vector<double> pattern(const std::array<double, 2>& at) const {
    const int row = int(std::floor(at[0] + 0.5)), column = int(std::floor(at[1] + 0.5));
    Wave wave = transform(probe, -1);
    for (int k = 0; k < m * m; ++k)
      wave[k] *= std::polar(1.0 / (m * m),
                            -2 * M_PI / m *
                                (frequency(k / m) * (at[0] - row) + frequency(k % m) * (at[1] - column)));
    wave = transform(wave, 1);
    for (int k = 0; k < m * m; ++k)
      wave[k] *= object[(row + k / m) * size + column + k % m];
    wave = transform(wave, -1);
    std::vector<double> result;
    for (const auto& value : wave)
      result.push_back(std::norm(value));
    return result;
  }

  /// Displacements that are found behind the known probe on the known object.
  std::vector<std::array<double, 2>> found(PositionMoves moves) const {
    const Space space;
    const View<double**> positions("positions", count, 2);
    const View<double***> patterns("patterns", count, m, m);
    const auto places = Kokkos::create_mirror_view(positions);
    const auto host = Kokkos::create_mirror_view(patterns);
    for (int j = 0; j < count; ++j) {
      const auto values = pattern(truth[j]);
      std::copy(values.begin(), values.end(), &host(j, 0, 0));
      places(j, 0) = nominal[j][0], places(j, 1) = nominal[j][1];
    }
    Test::deep_copy(patterns, host);
    Test::deep_copy(positions, places);
    const PtychographyShape shape{{size, size}, m, m};
    Solver::Loss loss(
        space, shape, positions,
        {.loss = PatternLoss::Amplitude, .scale = PatternScale::None, .refine_positions = true});
    loss.set_patterns(space, 0, patterns);
    Solver solver(space, shape, std::move(loss),
                  {.object_rate = 0, .probe_rate = 0, .position_rate = 0.05, .position_moves = moves});
    const auto amplitude = Kokkos::create_mirror_view(solver.amplitude()),
               phase = Kokkos::create_mirror_view(solver.phase());
    for (int i = 0; i < size * size; ++i)
      amplitude.data()[i] = std::abs(object[i]), phase.data()[i] = std::arg(object[i]);
    Test::deep_copy(solver.amplitude(), amplitude);
    Test::deep_copy(solver.phase(), phase);
    Experiment<double>::fill(solver.probe(), [&](std::size_t k) { return probe[k]; });
    for (int step = 0, steps = 150; step < steps; ++step) {
      solver.set_rate_factor(std::min(1.0, 2 - 2.0 * step / steps));
      if (step % 10 == 0)
        solver.move_windows(space);
      solver.step(space);
    }
    space.fence();
    const auto displacements = on_host(solver.displacements());
    std::vector<std::array<double, 2>> result;
    for (int j = 0; j < count; ++j)
      result.push_back({displacements(j, 0), displacements(j, 1)});
    return result;
  }

  double error(const std::vector<std::array<double, 2>>& displacements) const {
    double most = 0;
    for (int j = 0; j < count; ++j)
      for (const int axis : {0, 1})
        most = std::max(most, std::abs(nominal[j][axis] + displacements[j][axis] - truth[j][axis]));
    return most;
  }
};

} // namespace

TEST_CASE("amplitudes stay within limits, and the phase is free") {
  const auto e = experiment();
  for (const bool limited : {false, true}) {
    PtychographySolverOptions options{.object_rate = 0.2};
    if (limited)
      options.amplitude_limits = {0.9, 1.1};
    Solver solver = make(e, options);
    for (int step = 0; step < 5; ++step)
      solver.step(e.space);
    e.space.fence();
    const auto amplitude = on_host(solver.amplitude()), phase = on_host(solver.phase());
    const auto [least, greatest] = std::minmax_element(amplitude.data(), amplitude.data() + amplitude.size());
    CHECK((*least >= 0.9 && *greatest <= 1.1) == limited);
    CHECK(*std::max_element(phase.data(), phase.data() + phase.size()) > 0.15);
  }
}

TEST_CASE("the probe is zero beyond its support, in all modes and those of relaxation") {
  const auto e = experiment();
  const double radius = 3.2;
  Solver solver = make(e, {.probe_rate = 0.01, .probe_support = radius}, 2);
  solver.step(e.space);
  e.space.fence();
  const auto count = [&](const auto& view) {
    const auto modes = on_host(view);
    int inside = 0, wrong = 0;
    for (std::size_t i = 0; i < modes.size(); ++i) {
      const int row = int(i) / e.m % e.m - e.m / 2, column = int(i) % e.m - e.m / 2;
      const bool in = row * row + column * column <= radius * radius, zero = modes.data()[i] == Complex(0);
      inside += in && !zero;
      wrong += in == zero;
    }
    return std::array{inside, wrong};
  };
  CHECK(count(solver.probe()) == std::array{2 * 37, 0}); // of 9 x 9 pixels 37 lie within 3.2
  CHECK(count(solver.relaxation()) == std::array{2 * 37, 0});
}

TEST_CASE("the object outside of its support is what is known, by Adam and by projections") {
  const auto e = experiment();
  const View<double**> support("support", e.rows, e.columns);
  const auto host = Kokkos::create_mirror_view(support);
  for (int y = 0; y < e.rows; ++y)
    for (int x = 0; x < e.columns; ++x)
      host(y, x) = (y - 10) * (y - 10) + (x - 12) * (x - 12) < 40;
  Test::deep_copy(support, host);
  for (const auto steps : {PtychographySteps::Adam, PtychographySteps::Projections})
    for (const double beyond : {1.0, 0.0}) {
      Solver solver = make(e, {.steps = steps, .object_rate = 0.1});
      solver.set_object_support(e.space, support, beyond);
      for (int step = 0; step < 3; ++step)
        solver.step(e.space);
      e.space.fence();
      const auto amplitude = on_host(solver.amplitude()), phase = on_host(solver.phase());
      int outside = 0, moved = 0;
      for (std::size_t i = 0; i < amplitude.size(); ++i)
        if (host.data()[i] > 0)
          moved += amplitude.data()[i] != 1 && phase.data()[i] != 0;
        else
          outside += amplitude.data()[i] != beyond || phase.data()[i] != 0;
      CHECK(outside == 0);
      CHECK(moved > 100);
    }
  Solver solver = make(e, {});
  const View<double**> other("support", e.columns, e.rows);
  CHECK_THROWS_WITH(solver.set_object_support(e.space, other),
                    ContainsSubstring("support: expected [21, 24]"));
  CHECK_THROWS_WITH(solver.set_object_support(e.space, support, -1), ContainsSubstring("beyond: expected"));
}

TEST_CASE("a step is smoothed by total variation with its weight times the rate") {
  const auto e = experiment();
  const double rate = 0.1, weight = 0.3, factor = 0.5;
  Solver plain = make(e, {.object_rate = rate}),
         smooth = make(e, {.object_rate = rate, .total_variation = weight});
  for (auto* const solver : {&plain, &smooth}) {
    solver->set_rate_factor(factor);
    solver->step(e.space);
  }
  for (const auto& [own, other] :
       {std::pair(plain.amplitude(), smooth.amplitude()), std::pair(plain.phase(), smooth.phase())}) {
    const auto before = on_host(own);
    const std::vector<double> rough(before.data(), before.data() + before.size());
    TotalVariation<Space, double>(e.space, {1, e.rows, e.columns})
        .smooth(e.space, own, weight * factor * rate, 5);
    e.space.fence();
    const auto expected = on_host(own), found = on_host(other);
    double most = 0, change = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      most = std::max(most, std::abs(found.data()[i] - expected.data()[i]));
      change = std::max(change, std::abs(found.data()[i] - rough[i]));
    }
    CHECK(most < 1e-14);
    CHECK(change > 0.01);
  }
  CHECK(smooth.memory_bytes() > plain.memory_bytes());
}

TEST_CASE("positions by an affine map: scale, rotation and shear of a scan are found") {
  const Scan scan({{{0.03, -0.02}, {0.035, -0.025}}}); // up to 0.8 pixels at the corners
  const std::vector<std::array<double, 2>> none(Scan::count);
  CHECK(scan.error(none) > 0.7);
  CHECK(scan.error(scan.found(PositionMoves::Affine)) < 0.02);
  CHECK(scan.error(scan.found(PositionMoves::Both)) < 0.02);
  CHECK(scan.error(scan.found(PositionMoves::Single)) > 0.5); // that part is kept at zero
  // Errors of single positions are no affine map: what is left is the common part of them.
  Scan single({{{0, 0}, {0, 0}}});
  std::mt19937 engine(8);
  std::uniform_real_distribution<double> error(-0.6, 0.6);
  for (auto& place : single.truth)
    for (double& value : place)
      value += error(engine);
  const auto affine = single.found(PositionMoves::Affine);
  // Second differences along rows and columns of the scan vanish but for those of the nominal positions themselves.
  std::array<double, 2> mean{};
  for (const auto& displacement : affine)
    for (const int axis : {0, 1})
      mean[axis] += displacement[axis] / Scan::count;
  CHECK(std::hypot(mean[0], mean[1]) < 1e-10);
  CHECK(single.error(affine) > 0.4);
  const auto& nominal = single.nominal;
  for (const int axis : {0, 1}) { // a map from three corners gives the fourth
    const int last = Scan::count - 1, right = Scan::across - 1, below = last - right;
    const auto at = [&](int j, int k) { return nominal[j][k] - nominal[0][k]; };
    const double determinant = at(below, 0) * at(right, 1) - at(below, 1) * at(right, 0);
    const double of_below = (at(last, 0) * at(right, 1) - at(last, 1) * at(right, 0)) / determinant,
                 of_right = (at(below, 0) * at(last, 1) - at(below, 1) * at(last, 0)) / determinant;
    const auto moved = [&](int j) { return affine[j][axis] - affine[0][axis]; };
    CHECK(std::abs(moved(last) - of_below * moved(below) - of_right * moved(right)) < 1e-10);
  }
}

TEST_CASE("constraints that make no sense are refused") {
  const auto e = experiment();
  const auto refuse = [&](const PtychographySolverOptions& options, const char* words) {
    CHECK_THROWS_WITH(make(e, options), ContainsSubstring(words));
  };
  refuse({.amplitude_limits = {1, 0.5}}, "options.amplitude_limits: expected two numbers");
  refuse({.amplitude_limits = {NAN, 1}}, "options.amplitude_limits: expected two numbers");
  refuse({.probe_support = -1.0}, "options.probe_support");
  refuse({.total_variation = -0.1}, "options.total_variation: expected");
  Solver solver = make(e, {.total_variation = 0.1});
  CHECK_THROWS_WITH(solver.set_reduction(e.space, {.patterns = 5, .sum = [](auto&&...) {}}),
                    ContainsSubstring("options.total_variation: expected 0"));
}

TEST_CASE("few counts are compared by Poisson's loss, others by amplitudes") {
  const Space space;
  const int count = 40, n = 7;
  const View<double***> patterns("patterns", count, n, n);
  const auto host = Kokkos::create_mirror_view(patterns);
  const auto choose = [&](const Array<const double, Space::memory_space>& weights = {}) {
    Test::deep_copy(patterns, host);
    return choose_pattern_loss(space, patterns, weights);
  };
  // Every pixel has the mean 2.5, which is the counts of a bright pixel then.
  for (std::size_t i = 0; i < host.size(); ++i)
    host.data()[i] = i / (n * n) % 2 ? 2 : 3;
  CHECK(choose() == PatternLoss::Poisson);
  for (int j = 0; j < count; ++j)
    host(j, 3, 4) = 1000; // sum m^2 / sum m is above 800
  CHECK(choose() == PatternLoss::Amplitude);
  const View<double**> mask("mask", n, n);
  Test::deep_copy(mask, 1.0);
  Test::deep_copy(Kokkos::subview(mask, 3, 4), 0.0);
  CHECK(choose(mask) == PatternLoss::Poisson);
  const View<double***> masks("masks", count, n, n);
  Test::deep_copy(masks, 1.0);
  Test::deep_copy(Kokkos::subview(masks, Kokkos::ALL, 3, 4), 0.0);
  CHECK(choose(masks) == PatternLoss::Poisson);
  host(5, 0, 0) = 2.5; // no number of counts
  CHECK(choose(masks) == PatternLoss::Amplitude);
  CHECK_THROWS_WITH(choose(View<double**>("mask", n, n + 1)), ContainsSubstring("weights: expected [7, 7]"));
  CHECK(choose_pattern_loss(space, View<double***>("none", 0, n, n)) == PatternLoss::Amplitude);

  // A solver takes what was chosen, and its schedule the steps that go with it.
  host(5, 0, 0) = 2;
  Test::deep_copy(patterns, host);
  const View<double**> positions("positions", count, 2);
  const PtychographyShape shape{{9, 9}, 5, n};
  auto loss = Solver::loss_of_counts(space, shape, positions, patterns, mask);
  CHECK(loss.options().loss == PatternLoss::Poisson);
  CHECK(loss.options().scale == PatternScale::None);
  const auto schedule = PtychographySchedule::of(count);
  const auto options = schedule.options(2, loss.options().loss), others = schedule.options(2);
  CHECK(options.projections_first == 0);
  CHECK(others.projections_first > 0);
  CHECK(options.object_rate == others.object_rate / 2);
  Solver solver(space, shape, std::move(loss), options);
  Test::deep_copy(space, solver.amplitude(), 1.0);
  Test::deep_copy(space, solver.probe(), Complex(0.2, 0.1));
  solver.step(space);
  CHECK(std::isfinite(solver.losses(space).back()));
}
