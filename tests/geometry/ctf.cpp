// The contrast transfer function against numbers from an independent evaluation of its formula.

#include "../deep_copy.hpp"

#include <bracewell/geometry/ctf_gradients.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <limits>

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;

namespace {

const CTFParameters astigmatic{.defocus_u = 26000,
                               .defocus_v = 24500,
                               .defocus_angle = 33,
                               .spherical_aberration = 2.7,
                               .amplitude_contrast = 0.07,
                               .b_factor = 80,
                               .scale = 0.9};
const CTFParameters phase_plate{.defocus_u = 12000,
                                .defocus_v = 9000,
                                .defocus_angle = -71,
                                .voltage = 200,
                                .spherical_aberration = 1.4,
                                .amplitude_contrast = 0.1,
                                .phase_shift = 90};

template <class Value>
using Spectra = Kokkos::View<Value***, Kokkos::LayoutRight, Space>;

Kokkos::View<CTF*, Space> on_device(std::initializer_list<CTFParameters> parameters) {
  Kokkos::View<CTF*, Space> ctfs("ctfs", parameters.size());
  const auto host = Kokkos::create_mirror_view(ctfs);
  std::size_t i = 0;
  for (const auto& p : parameters)
    host(i++) = CTF(p);
  Test::deep_copy(ctfs, host);
  return ctfs;
}

/// A bare transcription of the formula, by the angle of the frequency.
double by_formula(const CTFParameters& p, double x, double y) {
  const double pi = Kokkos::numbers::pi, volts = p.voltage * 1000;
  const double lambda = 12.2643247 / std::sqrt(volts * (1 + 0.978466e-6 * volts));
  const double k = std::hypot(x, y), angle = std::atan2(y, x) - p.defocus_angle * pi / 180;
  const double defocus =
      (p.defocus_u + p.defocus_v) / 2 + (p.defocus_u - p.defocus_v) / 2 * std::cos(2 * angle);
  const double chi = pi * lambda * defocus * k * k -
                     pi / 2 * p.spherical_aberration * 1e7 * std::pow(lambda, 3) * std::pow(k, 4);
  return p.scale * std::exp(-p.b_factor * k * k / 4) *
         std::sin(chi + std::asin(p.amplitude_contrast) + p.phase_shift * pi / 180);
}

} // namespace

TEST_CASE("CTF values equal numbers worked out independently", "[ctf]") {
  CHECK(std::abs(electron_wavelength(300) - 0.01968761530923358) < 1e-16);
  CHECK(std::abs(electron_wavelength(80) - 0.04175739707269597) < 1e-16);
  const CTF plain(
      {.defocus_u = 20000, .defocus_v = 20000, .spherical_aberration = 2.7, .amplitude_contrast = 0.1});
  CHECK(std::abs(plain.value<double>(0, 0) - 0.1) < 1e-15); // positive at low frequency
  CHECK(std::abs(plain.value<double>(0.1, 0) + 0.1281205989186573) < 1e-13);
  CHECK(std::abs(CTF(astigmatic).value<double>(0.05, -0.08) - 0.6191186410252459) < 1e-13);
  CHECK(std::abs(CTF(phase_plate).value<double>(-0.02, 0.11) - 0.7182589060216809) < 1e-13);
  const CTF overfocus({.defocus_u = -5000,
                       .defocus_v = -6000,
                       .defocus_angle = 10,
                       .voltage = 80,
                       .spherical_aberration = 1});
  CHECK(std::abs(overfocus.value<double>(0, 0.333) + 0.36689746855655453) < 1e-13);
}

TEST_CASE("float values are good to float precision where the phase is hundreds of radians", "[ctf]") {
  const CTF ctf(
      {.defocus_u = 40000, .defocus_v = 39000, .spherical_aberration = 2.7, .amplitude_contrast = 0.1});
  for (double x = 0; x < 0.7; x += 0.0173)
    CHECK(std::abs(ctf.value<float>(x, 0.3) - ctf.value<double>(x, 0.3)) < 3e-7);
}

TEST_CASE("the first axis of astigmatism lies along the defocus angle", "[ctf]") {
  CTFParameters across = astigmatic, round = astigmatic;
  round.defocus_v = round.defocus_u;
  const double radians = astigmatic.defocus_angle * Kokkos::numbers::pi / 180;
  const double x = 0.07 * std::cos(radians), y = 0.07 * std::sin(radians);
  CHECK(std::abs(CTF(astigmatic).value<double>(x, y) - CTF(round).value<double>(x, y)) < 1e-13);
  across.defocus_angle += 90;
  round.defocus_u = round.defocus_v = astigmatic.defocus_v;
  CHECK(std::abs(CTF(across).value<double>(x, y) - CTF(round).value<double>(x, y)) < 1e-13);
}

TEMPLATE_TEST_CASE("half spectra are filled with, and multiplied by, the CTF of each particle", "[ctf]",
                   float, double) {
  using T = TestType;
  const Space space;
  const double pixel_size = 1.7;
  const auto ctfs = on_device({astigmatic, phase_plate, astigmatic});
  const CTFParameters parameters[] = {astigmatic, phase_plate, astigmatic};
  for (const auto& [h, w] : {std::pair{8, 8}, {7, 9}, {37, 70}, {1, 2}}) {
    CAPTURE(h, w);
    const Spectra<T> values("values", 3, h, w / 2 + 1), weights("weights", 3, h, w / 2 + 1);
    const Spectra<Kokkos::complex<T>> spectra("spectra", 3, h, w / 2 + 1);
    Test::deep_copy(spectra, Kokkos::complex<T>(2, -3));
    evaluate_ctf(space, ctfs, pixel_size, HalfSpectrum{values, w});
    apply_ctf(space, ctfs, pixel_size, HalfSpectrum{spectra, w}, HalfSpectrum{weights, w});
    const auto value = Test::on_host(values);
    const auto weight = Test::on_host(weights);
    const auto spectrum = Test::on_host(spectra);
    double error = 0;
    for (int p = 0; p < 3; ++p)
      for (int row = 0; row < h; ++row)
        for (int x = 0; x <= w / 2; ++x) {
          const int y = row <= h / 2 ? row : row - h;
          const double expected = by_formula(parameters[p], x / (w * pixel_size), y / (h * pixel_size));
          error = std::max(error, std::abs(value(p, row, x) - expected));
          error = std::max(error, std::abs(weight(p, row, x) - expected * expected));
          error = std::max(error, std::abs(spectrum(p, row, x).real() - 2 * expected));
          error = std::max(error, std::abs(spectrum(p, row, x).imag() + 3 * expected));
        }
    CHECK(error < (std::is_same_v<T, float> ? 1e-6 : 1e-12));
  }
}

TEMPLATE_TEST_CASE("gradients of CTFs and of their parameters are the slopes of the formula", "[ctf]", float,
                   double) {
  using T = TestType;
  const Space space;
  const double pixel_size = 1.7;
  const CTFParameters parameters[] = {astigmatic, phase_plate};
  const auto ctfs = on_device({astigmatic, phase_plate});
  for (const auto& [h, w] : {std::pair{12, 12}, {11, 9}, {1, 2}}) {
    CAPTURE(h, w);
    const Spectra<T> cotangents("cotangents", 2, h, w / 2 + 1);
    const auto c = Kokkos::create_mirror_view(cotangents);
    for (std::size_t i = 0; i < c.size(); ++i)
      c.data()[i] = T(std::sin(1.7 * double(i)) + 0.3);
    Test::deep_copy(cotangents, c);
    const Kokkos::View<CTF*, Space> gradients("gradients", 2);
    ctf_gradients(space, ctfs, pixel_size, HalfSpectrum{cotangents, w}, gradients);
    const auto found = Test::on_host(gradients);
    for (int p = 0; p < 2; ++p) {
      const auto loss = [&, height = h, width = w](const CTFParameters& at) {
        double sum = 0;
        for (int row = 0; row < height; ++row)
          for (int x = 0; x <= width / 2; ++x)
            sum += double(c(p, row, x)) *
                   by_formula(at, x / (width * pixel_size),
                              (row <= height / 2 ? row : row - height) / (height * pixel_size));
        return sum;
      };
      const CTFParameters gradient = ctf_parameter_gradients(parameters[p], found(p));
      const auto check = [&, h = h, w = w](double CTFParameters::*member, double step) {
        CTFParameters low = parameters[p], high = low;
        low.*member -= step;
        high.*member += step;
        const double slope = (loss(high) - loss(low)) / (2 * step);
        // Moved by its step a parameter changes no value by more than about 1e-2.
        CHECK(std::abs(gradient.*member - slope) * step <
              (std::is_same_v<T, float> ? 1e-6 : 1e-8) * std::sqrt(double(h * w)));
      };
      check(&CTFParameters::defocus_u, 0.3);
      check(&CTFParameters::defocus_v, 0.3);
      check(&CTFParameters::defocus_angle, 0.003);
      check(&CTFParameters::voltage, 0.003);
      check(&CTFParameters::spherical_aberration, 1e-3);
      check(&CTFParameters::amplitude_contrast, 1e-3);
      check(&CTFParameters::phase_shift, 0.1);
      check(&CTFParameters::b_factor, 0.1);
      check(&CTFParameters::scale, 0.01);
      CHECK(gradient.defocus_u != 0);
    }
  }
  CHECK_THROWS_WITH(
      ctf_gradients(space, ctfs, 1, Spectra<T>("three", 3, 8, 5), Kokkos::View<CTF*, Space>("g", 2)),
      "Bracewell::ctf_gradients: ctfs: expected [3], found [2]");
  CHECK_THROWS_WITH(
      ctf_gradients(space, ctfs, 1, Spectra<T>("two", 2, 8, 5), Kokkos::View<CTF*, Space>("g", 1)),
      "Bracewell::ctf_gradients: gradients: expected [2], found [1]");
}

TEST_CASE("wrong CTF arguments are named", "[ctf]") {
  const auto with = [](auto change) {
    CTFParameters p = astigmatic;
    change(p);
    return p;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(CTF(with([](auto& p) { p.voltage = 0; })), Error);
  CHECK_THROWS_AS(CTF(with([&](auto& p) { p.voltage = nan; })), Error);
  CHECK_THROWS_WITH(CTF(with([](auto& p) { p.voltage = 300000; })),
                    "Bracewell::CTF: voltage: expected from 1 to 10000 kV, found 300000");
  CHECK_THROWS_AS(CTF(with([&](auto& p) { p.defocus_u = nan; })), Error);
  CHECK_THROWS_AS(CTF(with([](auto& p) { p.amplitude_contrast = 1.1; })), Error);
  CHECK_THROWS_WITH(CTF(with([](auto& p) { p.b_factor = INFINITY; })),
                    "Bracewell::CTF: b_factor: expected a finite value, found inf");
  CHECK_THROWS_AS(electron_wavelength(-300), Error);
  const Space space;
  const auto ctfs = on_device({astigmatic, phase_plate});
  const Spectra<float> three("three", 3, 8, 5), two("two", 2, 8, 5);
  CHECK_THROWS_AS(evaluate_ctf(space, ctfs, 1.0, three), Error);
  CHECK_THROWS_AS(evaluate_ctf(space, ctfs, 0.0, two), Error);
  CHECK_THROWS_AS(evaluate_ctf(space, ctfs, 1.0, HalfSpectrum{two, 10}), Error);
  const Spectra<Kokkos::complex<float>> spectra("spectra", 2, 8, 5);
  CHECK_THROWS_AS(apply_ctf(space, ctfs, 1.0, spectra, three), Error);
  const Spectra<float> shared(reinterpret_cast<float*>(spectra.data()), 2, 8, 5);
  CHECK_THROWS_WITH(
      apply_ctf(space, ctfs, 1.0, spectra, shared),
      "Bracewell::apply_ctf: weights: expected memory of its own, found memory shared with spectra");
}

TEST_CASE("the CTF of no particles is no work", "[ctf]") {
  const Kokkos::View<CTF*, Space> none("none", 0);
  const Spectra<float> values("values", 0, 8, 5);
  const Spectra<Kokkos::complex<float>> spectra("spectra", 0, 8, 5);
  CHECK_NOTHROW(evaluate_ctf(Space(), none, 1.0, values));
  CHECK_NOTHROW(apply_ctf(Space(), none, 1.0, spectra, values));
}
