// The operators one by one: transforms in registers against direct sums, probe and object against
// differences, exit waves and propagation against their adjoints, messages of wrong input.

#include "support.hpp"

#include <bracewell/ptychography/compare.hpp>
#include <bracewell/ptychography/detail/general/compare_blocks.hpp>
#include <bracewell/ptychography/exit_wave.hpp>
#include <bracewell/ptychography/object.hpp>
#include <bracewell/ptychography/probe.hpp>
#include <bracewell/ptychography/propagator.hpp>

using namespace Test;
using Complex = Kokkos::complex<double>;
using Catch::Matchers::ContainsSubstring;

namespace {

template <class Source>
void randomise(const Source& view, int seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  Experiment<double>::fill(view, [&](std::size_t) { return std::complex(normal(engine), normal(engine)); });
}

std::complex<double> product(const std::vector<std::complex<double>>& a,
                             const std::vector<std::complex<double>>& b) {
  std::complex<double> sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::conj(a[i]) * b[i];
  return sum;
}

template <class Source>
auto numbers(const Source& view) {
  return Experiment<double>::numbers(view);
}

/// Largest difference between a transform in registers and the direct sum.
template <int N, bool inverse, int given = N>
double register_error() {
  Bracewell::Impl::PlainComplex<double> x[N];
  std::complex<double> in[N] = {};
  for (int i = 0; i < N; ++i) {
    x[i] = {std::sin(3 * i + 1), std::cos(i * i)};
    if (i < given)
      in[i] = {x[i].re, x[i].im};
  }
  if constexpr (given < N)
    Bracewell::Impl::RegisterFFT<N, inverse>::template run_leading<given>(x);
  else
    Bracewell::Impl::RegisterFFT<N, inverse>::run(x);
  double error = 0;
  for (int k = 0; k < N; ++k) {
    std::complex<double> sum = 0;
    for (int i = 0; i < N; ++i)
      sum += in[i] * std::polar(1.0, (inverse ? 2 : -2) * M_PI * (k * i % N) / N);
    error = std::max(error, std::abs(sum - std::complex(x[k].re, x[k].im)));
  }
  return error;
}

/// The same at frequencies k + shift.
template <int N, bool inverse>
double shifted_error(double shift) {
  using FFT = Bracewell::Impl::RegisterFFT<N, inverse>;
  Bracewell::Impl::PlainComplex<double> x[N], factors[FFT::factors];
  std::complex<double> in[N];
  for (int i = 0; i < N; ++i) {
    x[i] = {std::sin(3 * i + 1), std::cos(i * i)};
    in[i] = {x[i].re, x[i].im};
  }
  FFT::write_factors(shift, factors);
  FFT::run_shifted(x, factors);
  double error = 0;
  for (int k = 0; k < N; ++k) {
    std::complex<double> sum = 0;
    for (int i = 0; i < N; ++i)
      sum += in[i] * std::polar(1.0, (inverse ? 2 : -2) * M_PI * (k * i % N + shift * i) / N);
    error = std::max(error, std::abs(sum - std::complex(x[k].re, x[k].im)));
  }
  return error;
}

struct Lens {
  Space space;
  int m = 10, n = 24;
  AberratedProbe<Space, double> model{
      space, m, n, {.wavelength = 0.0197, .pixel_size = 0.2, .convergence_angle = 0.02}};
  View<double*> parameters{"parameters", 5}, gradient{"gradient", 5};
  View<Complex**> probe{"probe", 10, 10}, probe_gradient{"probe gradient", 10, 10};

  void set(const std::array<double, 5>& values) {
    const auto host = Kokkos::create_mirror_view(parameters);
    for (int i = 0; i < 5; ++i)
      host(i) = values[i];
    Test::deep_copy(parameters, host);
    model.evaluate(space, parameters, probe);
    space.fence();
  }
};

} // namespace

TEST_CASE("transforms in registers are the DFT, also where trailing inputs are zeros that are not read") {
  CHECK(register_error<2, false>() < 1e-14);
  CHECK(register_error<3, true>() < 1e-14);
  CHECK(register_error<5, false>() < 1e-14);
  CHECK(register_error<8, true>() < 1e-14);
  CHECK(register_error<10, false>() < 1e-14);
  CHECK(register_error<10, false, 5>() < 1e-14);
  CHECK(register_error<10, false, 4>() < 1e-14);
  CHECK(register_error<12, true>() < 1e-14);
  CHECK(register_error<12, false, 4>() < 1e-14);
  CHECK(register_error<16, true>() < 1e-14);
  CHECK(register_error<16, false, 5>() < 1e-14);
  CHECK(register_error<16, false, 8>() < 1e-14);
  CHECK(register_error<20, false, 10>() < 1e-14);
  CHECK(register_error<32, false, 10>() < 1e-13);
  CHECK(register_error<32, true>() < 1e-13);
  CHECK(register_error<40, false, 13>() < 1e-13);
  for (const double shift : {0.0, 0.3, 0.9375}) {
    CHECK(shifted_error<4, false>(shift) < 1e-14);
    CHECK(shifted_error<8, true>(shift) < 1e-14);
    CHECK(shifted_error<10, true>(shift) < 1e-14);
    CHECK(shifted_error<12, false>(shift) < 1e-14);
    CHECK(shifted_error<16, false>(shift) < 1e-14);
    CHECK(shifted_error<20, true>(shift) < 1e-14);
    CHECK(shifted_error<32, true>(shift) < 1e-13);
  }
}

TEST_CASE("the probe is the definition: aberrations, unit energy, crop around the origin") {
  Lens lens;
  lens.set({45, 0.06, 8, 0.2, 0.12});
  const auto found = numbers(lens.probe);
  const double wavelength = 0.0197, k_max = 0.02 / wavelength;
  const int n = lens.n, m = lens.m;
  std::vector<std::complex<double>> wave(n * n);
  double energy = 0;
  for (int i = 0; i < n * n; ++i) {
    const double k1 = (i / n < n / 2 ? i / n : i / n - n) / (n * 0.2);
    const double k2 = (i % n < n / 2 ? i % n : i % n - n) / (n * 0.2);
    const double k = std::hypot(k1, k2), theta = std::atan2(k2, k1);
    const double chi = M_PI * wavelength * 45 * k * k +
                       0.5 * M_PI * std::pow(wavelength, 3) * 0.06e6 * std::pow(k, 4) +
                       M_PI * wavelength * 8 * k * k * std::cos(2 * (theta - 0.2));
    wave[i] = std::polar(1 / (1 + std::exp(-(k_max - k) / (k_max * 0.13))), chi);
    energy += std::norm(wave[i]);
  }
  double error = 0;
  for (int y = 0; y < m; ++y)
    for (int x = 0; x < m; ++x) {
      std::complex<double> sum = 0;
      for (int i = 0; i < n * n; ++i)
        sum += wave[i] * std::polar(1.0, 2 * M_PI * ((i / n) * (y - m / 2) + (i % n) * (x - m / 2)) / n);
      error = std::max(error, std::abs(sum / (n * std::sqrt(energy)) - found[y * m + x]));
    }
  CHECK(error < 1e-14);
}

TEST_CASE("gradients of the five parameters of the probe are those of differences") {
  for (const double smoothness : {0.12, -0.12}) {
    Lens lens;
    const std::array<double, 5> values{45, 0.06, 8, 0.2, smoothness}, steps{1e-4, 1e-6, 1e-4, 1e-5, 1e-5};
    randomise(lens.probe_gradient, 3);
    lens.set(values);
    lens.model.gradients(lens.space, lens.parameters, lens.probe_gradient, lens.gradient);
    lens.space.fence();
    const auto gradient = on_host(lens.gradient);
    for (int p = 0; p < 5; ++p) {
      double difference = 0;
      for (const double sign : {1.0, -1.0}) {
        auto moved = values;
        moved[p] += sign * steps[p];
        lens.set(moved);
        difference +=
            sign * product(numbers(lens.probe_gradient), numbers(lens.probe)).real() / (2 * steps[p]);
      }
      INFO("parameter " << p);
      CHECK(std::abs(gradient(p) / difference - 1) < 1e-6);
    }
  }
  Lens lens;
  lens.set({45, 0.06, 8, 0.2, 0});
  randomise(lens.probe_gradient, 3);
  lens.model.gradients(lens.space, lens.parameters, lens.probe_gradient, lens.gradient);
  lens.space.fence();
  CHECK(on_host(lens.gradient)(ApertureSmoothness) == 0);
}

TEST_CASE("object from amplitude and phase: gradients are those of differences") {
  const Space space;
  const View<double**> amplitude("amplitude", 3, 5), phase("phase", 3, 5), da("da", 3, 5), dp("dp", 3, 5);
  const View<Complex**> object("object", 3, 5), gradient("gradient", 3, 5);
  const auto a = Kokkos::create_mirror_view(amplitude), p = Kokkos::create_mirror_view(phase);
  for (int i = 0; i < 15; ++i) {
    a.data()[i] = 0.5 + 0.1 * i;
    p.data()[i] = 0.7 * i - 4;
  }
  randomise(gradient, 1);
  const auto value = [&] {
    Test::deep_copy(amplitude, a);
    Test::deep_copy(phase, p);
    complex_object(space, amplitude, phase, object);
    space.fence();
    return product(numbers(gradient), numbers(object)).real();
  };
  value();
  complex_object_gradients(space, amplitude, phase, gradient, {.amplitude = da, .phase = dp});
  space.fence();
  const auto ga = on_host(da), gp = on_host(dp);
  for (const auto& [values, expected] : {std::pair{a, ga}, std::pair{p, gp}})
    for (const int i : {0, 7, 14}) {
      double difference = 0;
      const double start = values.data()[i];
      for (const double sign : {1.0, -1.0}) {
        values.data()[i] = start + sign * 1e-5;
        difference += sign * value() / 2e-5;
      }
      values.data()[i] = start;
      CHECK(std::abs(difference - expected.data()[i]) < 1e-8);
    }
}

TEST_CASE("exit waves and propagation have the adjoints that are said to be theirs") {
  const Space space;
  Experiment<double> e(20, 23, 8, 12, {{0, 0}, {12, 15}, {12, 15}, {4, 7}, {0, 15}}, 2);
  const ScanPositions<Space> scan(space, e.positions(), {20, 23}, 8);
  const View<Complex****> waves("waves", 5, 2, 12, 12), cotangent("cotangent", 5, 2, 12, 12);
  randomise(cotangent, 4);
  exit_waves(space, scan, e.object, e.probe, waves);
  const View<Complex**> object_gradient("gradient", 20, 23);
  const View<Complex***> probe_gradient("gradient", 2, 8, 8);
  exit_wave_gradients(space, scan, e.object, e.probe, cotangent,
                      {.object = object_gradient, .probe = probe_gradient});
  space.fence();
  // The waves are linear in the object and in the probe: <G, psi> = <gradient, O> = <gradient, p>.
  const auto expected = product(numbers(cotangent), numbers(waves));
  CHECK(std::abs(product(numbers(object_gradient), numbers(e.object)) - expected) <
        1e-13 * std::abs(expected));
  CHECK(std::abs(product(numbers(probe_gradient), numbers(e.probe)) - expected) < 1e-13 * std::abs(expected));

  for (const auto& fresnel :
       {std::optional<double>(), std::optional<double>(3.7), std::optional<double>(-0.8)}) {
    const Propagator<Space, double> propagator(space, 12, 10, fresnel);
    randomise(waves, 5);
    const auto x = numbers(waves);
    propagator.propagate(space, waves);
    space.fence();
    const auto moved = numbers(waves);
    Test::deep_copy(waves, cotangent);
    propagator.adjoint(space, waves);
    space.fence();
    const auto forward = product(numbers(cotangent), moved), backward = product(numbers(waves), x);
    CHECK(std::abs(forward - backward) <
          1e-13 * std::sqrt(product(moved, moved).real() * product(x, x).real()));
    const double gain = std::sqrt(product(moved, moved).real() / product(x, x).real());
    CHECK(std::abs(gain - (fresnel ? 1 : 12)) < 1e-12); // Parseval
  }
}

TEST_CASE("messages of wrong positions and shapes") {
  const Space space;
  const auto scan = [&](double y, double x) {
    const Kokkos::View<double**, Kokkos::HostSpace> positions("positions", 2, 2);
    positions(1, 0) = y;
    positions(1, 1) = x;
    return ScanPositions<Space>(space, positions, {20, 30}, 8);
  };
  CHECK_NOTHROW(scan(12, 22));
  CHECK_NOTHROW(scan(12.49, -0.49));
  CHECK_THROWS_WITH(scan(12.5, 0),
                    ContainsSubstring("rows from -0.5 to below 12.5") && ContainsSubstring("position 1"));
  CHECK_THROWS_WITH(scan(0, -1), ContainsSubstring("columns from -0.5 to below 22.5"));
  CHECK_THROWS_WITH(scan(NAN, 0), ContainsSubstring("nan"));
  CHECK_THROWS_WITH((AberratedProbe<Space, double>(space, 10, 8, {1, 1, 1})),
                    ContainsSubstring("probe: expected"));
  CHECK_THROWS_WITH((AberratedProbe<Space, double>(space, 4, 8, {0, 1, 1})),
                    ContainsSubstring("optics.wavelength"));
  CHECK_THROWS_WITH((Propagator<Space, double>(space, 8, 1, 0.0)), ContainsSubstring("fresnel_number"));
  const View<Complex**> object("object", 20, 30);
  const View<Complex***> probe("probe", 1, 8, 8);
  const View<Complex****> waves("waves", 2, 1, 7, 7);
  CHECK_THROWS_WITH(exit_waves(space, scan(0, 0), object, probe, waves), ContainsSubstring("n >= 8"));
  CHECK_THROWS_WITH(complex_object(space, View<double**>("a", 3, 4), View<double**>("p", 4, 3), object),
                    ContainsSubstring("phase: expected [3, 4], found [4, 3]"));
}

TEST_CASE(
    "patterns compared in blocks, as plans do it on GPUs, have the losses and gradients of whole ones") {
  namespace Impl = Bracewell::Impl;
  const Space space;
  const int count = 3, modes = 2, n = 50, pixels = n * n; // two blocks
  const View<Complex****> waves("waves", count, modes, n, n), same("waves", count, modes, n, n);
  const View<double***> targets("targets", count, n, n);
  const View<double*> losses("losses", count), found("losses", count);
  const auto values = Kokkos::create_mirror_view(targets);
  for (int k = 0; k < count * pixels; ++k)
    values.data()[k] = k % 11 == 5 ? -1.0 : 0.5 + k % 7; // -1: does not count
  Test::deep_copy(targets, values);
  const int blocks = Impl::CompareBlocks<Space, double, double, PatternLoss::Amplitude>::count(pixels);
  REQUIRE(blocks == 2);
  const View<Impl::PatternSums<double>*> sums_of_patterns("sums", count);
  const View<double*> sums("sums", 2 * count * blocks);
  for (const PatternLoss loss : {PatternLoss::LeastSquares, PatternLoss::Amplitude, PatternLoss::Poisson})
    for (const double counts : {0.0, 3.0}) {
      INFO("loss " << int(loss) << " counts " << counts);
      randomise(waves, 9);
      Test::deep_copy(same, waves);
      Test::deep_copy(sums_of_patterns, Impl::PatternSums<double>{1, 0, 0});
      compare_patterns(space, waves, targets, losses, {.loss = loss, .counts = counts});
      Impl::compare_in_blocks<double>(space, loss, same.data(), {nullptr, 0, count},
                                      Impl::Targets<double, double>{targets.data(), nullptr, nullptr, nullptr,
                                                                    nullptr, counts, counts > 0, true},
                                      1e-3, modes, pixels, 1.0 / (count * pixels), found.data(), true,
                                      Impl::DetectorTerms<double>{},
                                      Impl::BlockSums<double>{sums_of_patterns.data(), sums.data()});
      space.fence();
      CHECK(relative_difference(numbers(same), numbers(waves)) < 1e-13);
      for (int i = 0; i < count; ++i)
        CHECK(std::abs(on_host(found)(i) / on_host(losses)(i) - 1) < 1e-13);
    }
}
