// The loss of a plan and its gradients, in double: against differences and a direct sum, for every loss, path
// and kind of data.

#include "../deep_copy.hpp"
#include "support.hpp"

#include <bracewell/ptychography/exit_wave.hpp>
#include <bracewell/ptychography/propagator.hpp>

using namespace Test;

namespace {

const std::vector<std::array<double, 2>> whole{{0, 0}, {5, 3}, {11, 12}, {5, 3}, {14, 16}, {7, 9}};
const std::vector<std::array<double, 2>> fractional{{0.3, 0.1}, {5.5, 3.25}, {10.7, 12}, {13.6, 15.9}};

Experiment<double> fused_size(int count = 6) {
  return {30, 32, 16, 40, {whole.begin(), whole.begin() + count}};
}

/// The loss by its definition: direct sums on the host.
double direct_loss(const Experiment<double>& e, PatternLoss kind, PatternScale scale, double background) {
  const auto object = on_host(e.object);
  const auto probe = on_host(e.probe);
  const auto patterns = on_host(e.patterns);
  const int m = e.m, n = e.n;
  double total = 0;
  for (int j = 0; j < e.count; ++j) {
    std::vector<double> intensity(n * n, 0.0);
    for (int mode = 0; mode < e.modes; ++mode) {
      std::vector<std::complex<double>> rows(m * n); // transform along the second axis, then along the first
      for (int y = 0; y < m; ++y)
        for (int k = 0; k < n; ++k)
          for (int x = 0; x < m; ++x) {
            const auto o = object(int(e.places[j][0]) + y, int(e.places[j][1]) + x), p = probe(mode, y, x);
            rows[y * n + k] += std::complex(o.real(), o.imag()) * std::complex(p.real(), p.imag()) *
                               std::polar(1.0, -2 * M_PI * k * x / n);
          }
      for (int l = 0; l < n; ++l)
        for (int k = 0; k < n; ++k) {
          std::complex<double> sum = 0;
          for (int y = 0; y < m; ++y)
            sum += rows[y * n + k] * std::polar(1.0, -2 * M_PI * l * y / n);
          intensity[l * n + k] += std::norm(sum);
        }
    }
    double mean = 0, measured_mean = 0;
    for (int k = 0; k < n * n; ++k) {
      mean += intensity[k] / (n * n);
      measured_mean += patterns.data()[j * n * n + k] / (n * n);
    }
    for (int k = 0; measured_mean > 0 && k < n * n; ++k) { // patterns without counts have weight 0
      const bool scaled = scale == PatternScale::PerPattern;
      const double counts = e.counts > 0 ? e.counts : measured_mean; // C_j
      const double J = scaled ? intensity[k] * counts / mean : intensity[k];
      const double t = patterns.data()[j * n * n + k] * (scaled ? counts / measured_mean : 1);
      if (kind == PatternLoss::LeastSquares)
        total += (J - t) * (J - t);
      else if (kind == PatternLoss::Amplitude)
        total += std::pow(std::sqrt(J) - std::sqrt(t), 2);
      else
        total += J + background - t + (t > 0 ? t * std::log(t / (J + background)) : 0);
    }
  }
  return total / (e.count * double(n) * n);
}

} // namespace

TEST_CASE("losses are those of the definition, their gradients those of differences, in both paths") {
  auto e = fused_size();
  for (const auto loss : {PatternLoss::LeastSquares, PatternLoss::Amplitude, PatternLoss::Poisson})
    for (const auto scale : {PatternScale::PerPattern, PatternScale::None}) {
      const double expected = direct_loss(e, loss, scale, 0.1);
      for (const auto path : {PatternPath::General, PatternPath::Fused}) {
        const auto model =
            e.plan({.loss = loss, .scale = scale, .counts = e.counts, .background = 0.1, .path = path});
        INFO("loss " << int(loss) << " scale " << int(scale) << " path " << int(path));
        CHECK(model.is_fused() == (path == PatternPath::Fused));
        CHECK(std::abs(e.loss(model) / expected - 1) < 1e-12);
        check_derivatives(e, model);
      }
    }
}

TEST_CASE("patterns that keep their counts: their models are scaled to them, by every path and storage") {
  auto e = fused_size();
  const auto patterns = Kokkos::create_mirror_view(e.patterns);
  Test::deep_copy(patterns, e.patterns);
  for (std::size_t i = 0; i < patterns.size(); ++i) // some are bright, and one is dark
    patterns.data()[i] *= double(i / (40 * 40) % 3 * 4 + (i / (40 * 40) == 3 ? 0 : 1));
  Test::deep_copy(e.patterns, patterns);
  e.counts = 0;
  const View<double**> ones("ones", e.n, e.n);
  Test::deep_copy(ones, 1.0);
  for (const auto loss : {PatternLoss::LeastSquares, PatternLoss::Amplitude, PatternLoss::Poisson}) {
    const double expected = direct_loss(e, loss, PatternScale::PerPattern, 0.1);
    for (const auto path : {PatternPath::General, PatternPath::Fused})
      for (const bool weighted : {false, true}) {
        const PtychographyOptions options{.loss = loss,
                                          .counts = 0,
                                          .background = 0.1,
                                          .weights = weighted ? PixelWeights::PerPixel : PixelWeights::None,
                                          .path = weighted ? PatternPath::General : path};
        const auto model = e.plan(options, weighted ? ones : View<double**>());
        INFO("loss " << int(loss) << " path " << int(path) << " weighted " << weighted);
        CHECK(model.empty_patterns() == 1);
        CHECK(std::abs(e.loss(model) / expected - 1) < 1e-12);
        check_derivatives(e, model);
      }
  }
  const double full = direct_loss(e, PatternLoss::LeastSquares, PatternScale::PerPattern, 0);
  CHECK(std::abs(e.loss(e.plan({.counts = 0, .reduced_grid = true})) / full - 1) < 1e-12);
  // Poisson's loss is that of the best factor of each pattern: no other gives less.
  const auto best = [&](double factor) {
    const View<double*> factors("factors", e.count);
    const auto intensity = Kokkos::create_mirror_view(factors);
    const auto object = on_host(e.object);
    const auto waves = on_host(e.probe);
    for (int j = 0; j < e.count; ++j) {
      double energy = 0, counts = 0; // mean(I) by Parseval, and the mean of what was counted
      for (int k = 0; k < e.m * e.m; ++k) {
        const auto wave =
            object(int(e.places[j][0]) + k / e.m, int(e.places[j][1]) + k % e.m) * waves(0, k / e.m, k % e.m);
        energy += wave.real() * wave.real() + wave.imag() * wave.imag();
      }
      for (int k = 0; k < e.n * e.n; ++k)
        counts += patterns.data()[j * e.n * e.n + k] / (e.n * e.n);
      intensity(j) = factor * counts / energy;
    }
    Test::deep_copy(factors, intensity);
    const auto model = e.plan({.loss = PatternLoss::Poisson,
                               .scale = PatternScale::None,
                               .background = 1e-9,
                               .pattern_factors = true});
    const View<double> loss("loss");
    model.evaluate(e.space, {.object = e.object, .probe = e.probe, .factors = factors}, {.loss = loss});
    e.space.fence();
    return on_host(loss)();
  };
  const double own = e.loss(e.plan({.loss = PatternLoss::Poisson, .counts = 0, .background = 1e-9}));
  CHECK(std::abs(best(1) / own - 1) < 1e-6);
  CHECK(best(1.05) > own);
  CHECK(best(0.95) > own);
}

TEST_CASE("several modes and sizes of any kind: odd, prime, probe as large as the detector") {
  for (const auto& [m, n, modes] : {std::array{7, 15, 1}, {9, 13, 2}, {12, 12, 3}}) {
    Experiment<double> e(26, 29, m, n, whole, modes);
    e.places = {{0, 0}, {3, 8}, {14, 17}, {14, 17}, {5, 1}, {7, 11}};
    const auto model = e.plan({.counts = e.counts});
    CHECK_FALSE(model.is_fused());
    CHECK(std::abs(e.loss(model) / direct_loss(e, PatternLoss::LeastSquares, PatternScale::PerPattern, 0) -
                   1) < 1e-12);
    check_derivatives(e, model);
  }
}

TEST_CASE("positions between pixels: gradients, and a shift by whole pixels that is none") {
  Experiment<double> e(30, 32, 16, 20, fractional, 2);
  check_derivatives(e, e.plan({.counts = e.counts}));
  // A plane wave as probe, shifted by fractions, stays what it is up to a phase: so do the patterns.
  Experiment<double> plane(30, 32, 16, 20, fractional),
      corner(30, 32, 16, 20, {{0, 0}, {6, 3}, {11, 12}, {14, 16}});
  Experiment<double>::fill(plane.probe,
                           [](std::size_t i) { return std::polar(0.1, 2 * M_PI * 3 * double(i / 16) / 16); });
  Test::deep_copy(corner.probe, plane.probe);
  CHECK(std::abs(plane.loss(plane.plan({.counts = 10})) / corner.loss(corner.plan({.counts = 10})) - 1) <
        1e-12);
}

TEST_CASE("near field: gradients, and a loss of zero for patterns that the model itself makes") {
  Experiment<double> e(30, 32, 16, 16, whole);
  const PtychographyOptions options{.scale = PatternScale::None, .fresnel_number = 12.5};
  check_derivatives(e, e.plan(options));
  const ScanPositions<Space> scan(e.space, e.positions(), {30, 32}, 16);
  const View<Kokkos::complex<double>****> waves("waves", e.count, 1, 16, 16);
  exit_waves(e.space, scan, e.object, e.probe, waves);
  Propagator<Space, double>(e.space, 16, e.count, 12.5).propagate(e.space, waves);
  const auto field = on_host(waves);
  const auto patterns = Kokkos::create_mirror_view(e.patterns);
  for (std::size_t i = 0; i < field.size(); ++i)
    patterns.data()[i] = std::norm(std::complex(field.data()[i].real(), field.data()[i].imag()));
  Test::deep_copy(e.patterns, patterns);
  CHECK(e.loss(e.plan(options)) < 1e-25);
}

TEST_CASE("near field between pixels: gradients, and nothing moves where there is no object") {
  const PtychographyOptions options{.scale = PatternScale::None, .fresnel_number = 12.5};
  Experiment<double> e(30, 32, 16, 16, fractional, 2);
  check_derivatives(e, e.plan(options));
  // Beam and detector stand still while the object moves: in vacuum the position does not matter.
  Experiment<double> between(30, 32, 16, 16, fractional, 2),
      corner(30, 32, 16, 16, {{0, 0}, {6, 3}, {11, 12}, {14, 16}}, 2);
  Test::deep_copy(between.object, 1.0);
  Test::deep_copy(corner.object, 1.0);
  CHECK(std::abs(between.loss(between.plan(options)) / corner.loss(corner.plan(options)) - 1) < 1e-12);
}

TEST_CASE("masks and weights: gradients; a masked pixel has no influence, a weight of 1 none either") {
  auto e = fused_size();
  const View<double**> mask("mask", e.n, e.n), weights("weights", e.n, e.n), ones("ones", e.n, e.n);
  const auto m = Kokkos::create_mirror_view(mask), w = Kokkos::create_mirror_view(weights);
  for (int k = 0; k < e.n * e.n; ++k) {
    m.data()[k] = k % 7 == 3 ? 0 : 1;
    w.data()[k] = k % 5 == 0 ? 0 : 0.25 * (k % 4 + 1);
  }
  Test::deep_copy(mask, m);
  Test::deep_copy(weights, w);
  Test::deep_copy(ones, 1.0);
  for (const auto scale : {PatternScale::PerPattern, PatternScale::None}) {
    PtychographyOptions options{.scale = scale, .counts = e.counts, .weights = PixelWeights::Mask};
    const auto masked = e.plan(options, mask);
    CHECK(masked.is_fused() == (scale == PatternScale::None));
    check_derivatives(e, masked);
    const double before = e.loss(masked);
    const View<double***> kept("kept", e.count, e.n, e.n);
    Test::deep_copy(kept, e.patterns);
    const auto patterns = Test::on_host(e.patterns);
    patterns(2, 0, 3) = NAN; // 3 % 7 == 3
    patterns(1, 0, 10) = 1e6;
    Test::deep_copy(e.patterns, patterns);
    CHECK(e.loss(e.plan(options, mask)) == before);
    Test::deep_copy(e.patterns, kept);
    CHECK_THROWS_WITH(e.plan(options, weights), Catch::Matchers::ContainsSubstring("weights 0 or 1"));
    options.weights = PixelWeights::PerPixel;
    check_derivatives(e, e.plan(options, weights));
    const double plain = e.loss(e.plan({.scale = scale, .counts = e.counts}));
    CHECK(std::abs(e.loss(e.plan(options, ones)) / plain - 1) < 1e-13);
    CHECK(std::abs(e.loss(e.plan(options, mask)) / before - 1) < 1e-13);
  }
}

TEST_CASE("the scale of the wave has no influence on patterns that are scaled one by one") {
  for (const auto path : {PatternPath::General, PatternPath::Fused}) {
    auto e = fused_size();
    const auto model = e.plan({.counts = e.counts, .path = path});
    const auto result = e.evaluate(model);
    // d/ds L(s p) = Re<p, G_p> = 0 at every s; the same for the object.
    const auto probe = Experiment<double>::numbers(e.probe), object = Experiment<double>::numbers(e.object);
    double along = 0, size = 0;
    for (std::size_t i = 0; i < probe.size(); ++i) {
      along += (std::conj(probe[i]) * result.probe[i]).real();
      size += std::abs(probe[i]) * std::abs(result.probe[i]);
    }
    CHECK(std::abs(along) < 1e-13 * size);
    Experiment<double>::fill(e.probe, [&](std::size_t i) { return 2.0 * probe[i]; });
    CHECK(std::abs(e.loss(model) / result.loss - 1) < 1e-13);
  }
}

TEST_CASE("the reduced grid: the same loss and gradients as the full one") {
  auto e = fused_size();                           // m = 16 on 40 x 40, reduced to 32 x 32
  Experiment<double> large(30, 32, 12, 49, whole); // m = 12 on 49 x 49, reduced to 24 x 24
  Experiment<double> fused(40, 40, 20, 64, whole); // m = 20 on 64 x 64, reduced to 40 x 40: fused
  for (auto* const experiment : {&e, &large, &fused}) {
    const auto full = experiment->evaluate(experiment->plan({.counts = 10, .path = PatternPath::General}));
    const auto plan = experiment->plan({.counts = 10, .reduced_grid = true});
    CHECK(plan.compared_detector() < experiment->n);
    const auto reduced = experiment->evaluate(plan);
    CHECK(std::abs(reduced.loss / full.loss - 1) < 1e-12);
    CHECK(relative_difference(reduced.patterns, full.patterns) < 1e-12);
    CHECK(relative_difference(reduced.object, full.object) < 1e-12);
    CHECK(relative_difference(reduced.probe, full.probe) < 1e-12);
  }
}

TEST_CASE("gradients have the same bits each time") {
  auto e = fused_size();
  for (const auto path : {PatternPath::General, PatternPath::Fused}) {
    const auto model = e.plan({.counts = e.counts, .path = path});
    const auto first = e.evaluate(model);
    CHECK(e.evaluate(model).object == first.object);
    CHECK(e.evaluate(model).probe == first.probe);
  }
}

TEST_CASE("groups: a small workspace changes nothing but the order of a sum") {
  auto e = fused_size();
  for (const auto path : {PatternPath::General, PatternPath::Fused}) {
    const auto all = e.evaluate(e.plan({.counts = e.counts, .path = path}));
    const auto pieces = e.evaluate(e.plan({.counts = e.counts, .path = path, .workspace_bytes = 20000}));
    CHECK(relative_difference(pieces.object, all.object) < 1e-14);
    CHECK(relative_difference(pieces.probe, all.probe) < 1e-14);
    CHECK(pieces.patterns == all.patterns);
  }
}

TEST_CASE("patterns that come from the host, in groups, give what those on the device give") {
  const std::vector<std::array<double, 2>> places = {{0, 0}, {3, 2}, {1, 5}, {6, 3}, {3, 3}, {7, 7}, {2, 6}};
  Experiment<double> fused(30, 32, 20, 40, places), two(30, 32, 20, 21, places, 2);
  const auto patterns = Kokkos::create_mirror_view(fused.patterns);
  Test::deep_copy(patterns, fused.patterns);
  for (int k = 0; k < 40 * 40; ++k)
    patterns(2, k / 40, k % 40) = 0; // one without counts
  Test::deep_copy(fused.patterns, patterns);
  const PtychographyOptions amplitude{.loss = PatternLoss::Amplitude, .scale = PatternScale::None};
  Test::check_streamed<double>(fused, {});
  Test::check_streamed<double>(fused, amplitude);
  Test::check_streamed<double>(fused, {.path = PatternPath::General});
  const View<double**> weights("weights", 21, 21);
  Test::deep_copy(weights, 0.5);
  Test::check_streamed<double>(two, amplitude);
  Test::check_streamed<double>(two, {.weights = PixelWeights::PerPixel}, weights);
  Test::check_streamed<double>(Experiment<double>(30, 32, 7, 24, places), {.reduced_grid = true});
}

TEST_CASE("subsets: as a plan of these patterns alone") {
  auto e = fused_size();
  const std::vector<int> chosen{4, 0, 3};
  Experiment<double> part(30, 32, 16, 40, {whole[4], whole[0], whole[3]});
  Test::deep_copy(part.object, e.object);
  Test::deep_copy(part.probe, e.probe);
  const View<int*> subset("subset", 3);
  const auto host = Kokkos::create_mirror_view(subset);
  for (int i = 0; i < 3; ++i) {
    host(i) = chosen[i];
    Test::deep_copy(Kokkos::subview(part.patterns, i, Kokkos::ALL, Kokkos::ALL),
                    Kokkos::subview(e.patterns, chosen[i], Kokkos::ALL, Kokkos::ALL));
  }
  Test::deep_copy(subset, host);
  for (const auto path : {PatternPath::General, PatternPath::Fused})
    for (const std::size_t workspace : {std::size_t(1) << 28, std::size_t(20000)}) {
      const PtychographyOptions options{.counts = e.counts, .path = path, .workspace_bytes = workspace};
      const auto expected = part.evaluate(part.plan(options)), found = e.evaluate(e.plan(options), subset);
      CHECK(std::abs(found.loss / expected.loss - 1) < 1e-14);
      CHECK(found.patterns == expected.patterns);
      CHECK(relative_difference(found.object, expected.object) < 1e-14);
      CHECK(relative_difference(found.probe, expected.probe) < 1e-14);
    }
}

TEST_CASE(
    "patterns without counts have weight 0 and are counted once; patterns that were not set are missed") {
  auto e = fused_size();
  Test::deep_copy(Kokkos::subview(e.patterns, 1, Kokkos::ALL, Kokkos::ALL), 0.0);
  for (const auto path : {PatternPath::General, PatternPath::Fused})
    for (const auto loss : {PatternLoss::LeastSquares, PatternLoss::Poisson}) {
      const auto model = e.plan({.loss = loss, .counts = e.counts, .path = path});
      CHECK(model.empty_patterns() == 1);
      const auto result = e.evaluate(model);
      CHECK(result.patterns[1] == 0);
      CHECK(std::isfinite(result.loss));
      check_derivatives(e, model);
    }
  TestLoss<double> unset(e.space, {{30, 32}, 16, 40}, e.positions(), {.counts = e.counts});
  CHECK_THROWS_WITH(e.loss(unset), "Bracewell::PtychographyLoss::evaluate: patterns: expected " +
                                       std::to_string(unset.count()) +
                                       " that were set by set_patterns, found 0");
  // A pattern counts by what was set last.
  const auto one = Kokkos::subview(e.patterns, Kokkos::pair(1, 2), Kokkos::ALL, Kokkos::ALL);
  for (int call = 0; call < 2; ++call) {
    unset.set_patterns(e.space, 1, one);
    CHECK(unset.empty_patterns() == 1);
  }
  Test::deep_copy(one, 1.0);
  unset.set_patterns(e.space, 1, one);
  CHECK(unset.empty_patterns() == 0);
  const View<int*> first("first", 1), both("both", 2);
  CHECK(std::isfinite(e.evaluate(unset, first).loss));
  CHECK_THROWS_AS(e.evaluate(unset, both), Error);
}

TEST_CASE("without light the loss is that of J = 0, and of what is no number none, in both paths") {
  for (const auto loss : {PatternLoss::LeastSquares, PatternLoss::Amplitude, PatternLoss::Poisson})
    for (const auto scale : {PatternScale::PerPattern, PatternScale::None}) {
      PtychographyOptions options{.loss = loss, .scale = scale, .counts = 10, .background = 0.1};
      for (const auto path : {PatternPath::General, PatternPath::Fused}) {
        options.path = path;
        Test::check_without_light<double>(fused_size(), options);
      }
      const View<double**> weights("weights", 21, 21);
      const auto host = Kokkos::create_mirror_view(weights);
      for (int k = 0; k < 21 * 21; ++k)
        host.data()[k] = k % 5 == 0 ? 0 : 0.25 * (k % 4 + 1);
      Test::deep_copy(weights, host);
      options.path = PatternPath::Automatic;
      options.weights = PixelWeights::PerPixel;
      Test::check_without_light<double>(Experiment<double>(30, 32, 16, 21, whole, 2), options, weights);
    }
  Test::check_without_light<double>(Experiment<double>(30, 32, 7, 24, whole), {.reduced_grid = true});
  Test::check_without_light<float>(Experiment<float>(30, 32, 16, 40, whole), {.counts = 3});
}

TEST_CASE("an object of zeros under one window: its loss is that of J = 0, and no gradient is not a number") {
  for (const auto path : {PatternPath::General, PatternPath::Fused}) {
    auto e = fused_size();
    const auto model = e.plan({.counts = e.counts, .path = path});
    const auto corner = Kokkos::subview(e.object, Kokkos::pair(0, 16), Kokkos::pair(0, 16));
    Test::deep_copy(corner, Kokkos::complex<double>(0));
    const auto result = e.evaluate(model);
    const auto patterns = on_host(e.patterns);
    double sum = 0, squares = 0;
    for (int k = 0; k < 40 * 40; ++k)
      sum += patterns.data()[k], squares += patterns.data()[k] * patterns.data()[k];
    const double scale = e.counts * 1600 / sum;
    CHECK(std::abs(result.patterns[0] / (scale * scale * squares / (1600. * e.count)) - 1) < 1e-12);
    for (const auto& value : result.object)
      CHECK(std::isfinite(std::abs(value)));
  }
}
