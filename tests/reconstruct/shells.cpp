#include "../deep_copy.hpp"
#include "support.hpp"

#include <bracewell/reconstruct/fourier_shell_correlation.hpp>
#include <bracewell/reconstruct/normalise.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

using namespace Bracewell;
using namespace ReconstructTest;

namespace {

using Curves = Kokkos::View<double**, Kokkos::LayoutRight, Space>;

template <class T, int Dim>
void check_curves(const Shape& shape, int shells) {
  CAPTURE(Dim, shape[0], shape.back(), shells);
  const Space space;
  const std::int64_t batch = 2, size = elements(stored(shape));
  const auto a = make<Kokkos::complex<T>, Dim>(batch, stored(shape)),
             b = make<Kokkos::complex<T>, Dim>(batch, stored(shape));
  const auto weight = make<T, Dim>(batch, stored(shape));
  fill_random(a, 1);
  fill_random(b, 2);
  fill_random(weight, 3, 0, 5);
  const Curves correlation("correlation", batch, shells), averages("averages", batch, shells);
  fourier_shell_correlation(space, HalfSpectrum{a, shape.back()}, HalfSpectrum{b, shape.back()}, correlation);
  shell_averages(space, HalfSpectrum{weight, shape.back()}, averages);

  const auto place = places(shape);
  const auto first = to_host(a), second = to_host(b);
  const auto weights = to_host(weight);
  const auto fsc = to_host(correlation), mean = to_host(averages);
  for (std::int64_t batch_index = 0; batch_index < batch; ++batch_index)
    for (int s = 0; s < shells; ++s) {
      double cross = 0, power1 = 0, power2 = 0, sum = 0, count = 0;
      for (std::int64_t i = 0; i < size; ++i)
        if (place[i].shell == s) {
          const Kokkos::complex<double> x(first[batch_index * size + i]), y(second[batch_index * size + i]);
          const double m = place[i].multiplicity;
          cross += m * (x * Kokkos::conj(y)).real();
          power1 += m * (x * Kokkos::conj(x)).real();
          power2 += m * (y * Kokkos::conj(y)).real();
          sum += m * weights[batch_index * size + i];
          count += m;
        }
      CAPTURE(s);
      CHECK(std::abs(fsc[batch_index * shells + s] - (count > 0 ? cross / std::sqrt(power1 * power2) : 0)) <
            1e-12);
      CHECK(std::abs(mean[batch_index * shells + s] - (count > 0 ? sum / count : 0)) < 1e-12);
    }
}

} // namespace

TEMPLATE_TEST_CASE("shell curves equal sums over the full spectrum", "[reconstruct]", float, double) {
  using T = TestType;
  check_curves<T, 3>({8, 8, 8}, 5);
  check_curves<T, 3>({7, 7, 7}, 4);
  check_curves<T, 3>({12, 12, 12}, 14); // past the corners
  check_curves<T, 3>({5, 8, 9}, 7);
  check_curves<T, 2>({16, 16}, 9);
  check_curves<T, 2>({13, 10}, 6);
  check_curves<T, 2>({1, 2}, 2);
}

TEST_CASE("every frequency belongs to one shell", "[reconstruct]") {
  for (const Shape& shape : {Shape{16, 16, 16}, {9, 9, 9}, {6, 10, 8}}) {
    const auto ones = make<double, 3>(1, stored(shape));
    Test::deep_copy(ones, 1);
    const Curves averages("averages", 1, 30);
    shell_averages(Space(), HalfSpectrum{ones, shape.back()}, averages);
    const auto place = places(shape);
    const auto mean = to_host(averages);
    for (int s = 0; s < 30; ++s) {
      const bool occupied =
          std::any_of(place.begin(), place.end(), [&](const Place& p) { return p.shell == s; });
      CHECK(mean[s] == (occupied ? 1 : 0));
    }
  }
}

TEST_CASE("shell correlations of known mixtures", "[reconstruct]") {
  const Space space;
  const Shape shape{24, 24, 24};
  const auto a = make<Kokkos::complex<float>, 3>(1, stored(shape)),
             b = make<Kokkos::complex<float>, 3>(1, stored(shape));
  fill_random(a, 9);
  const auto place = places(shape);
  auto values = to_host(a);
  // Scaled, orthogonal (a quarter turn), mixed at 60 degrees, opposite, and without signal.
  const Kokkos::complex<float> factors[] = {{3, 0}, {0, 2}, {0.5f, 0.8660254f}, {-0.1f, 0}, {0, 0}};
  const double expected[] = {1, 0, 0.5, -1, 0};
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] *= factors[place[i].shell % 5];
  from_host(b, values);
  const Curves curve("curve", 1, 13);
  fourier_shell_correlation(space, a, b, curve);
  const auto fsc = to_host(curve);
  for (int s = 0; s < 13; ++s)
    CHECK(std::abs(fsc[s] - expected[s % 5]) < 1e-6);
}

TEST_CASE("resolution is interpolated where the curve crosses the threshold", "[reconstruct]") {
  const double curve[] = {1, 0.9, 0.8, 0.5, 0.1, 0.05};
  CHECK(std::abs(resolution(curve, 0.5, 100, 2) - 200.0 / 3) <
        1e-12); // touches 0.5 at shell 3, falls after it
  CHECK(std::abs(resolution(curve, 0.3, 100, 2) - 200.0 / 3.5) < 1e-12);
  CHECK(std::abs(resolution(curve, 0.143, 64, 1.5) - 96 / (3 + (0.5 - 0.143) / 0.4)) < 1e-12);
  CHECK(std::abs(resolution(curve, 0.01, 10, 1) - 2) < 1e-15); // never below: the last shell
  const double noise[] = {1, -0.2, 0.9};
  CHECK(std::abs(resolution(noise, 0.5, 10, 1) - 10 / (0.5 / 1.2)) < 1e-12);
  CHECK(std::isinf(resolution(std::span<const double>(curve).subspan(4), 0.5, 10, 1)));
  CHECK_THROWS_AS(resolution(std::span<const double>(curve, 1), 0.5, 100, 2), Error);
  CHECK_THROWS_AS(resolution(curve, 0.5, 0, 2), Error);
  CHECK_THROWS_AS(resolution(curve, 0.5, 100, -1), Error);
}

TEMPLATE_TEST_CASE("normalisation divides by the weight with its floors", "[reconstruct]", float, double) {
  using T = TestType;
  using C = Kokkos::complex<T>;
  const Space space;
  for (const Shape& shape : {Shape{8, 8, 8}, {9, 7, 7}}) {
    const Shape columns = stored(shape);
    const auto data = make<C, 3>(2, columns), volume = make<C, 3>(2, columns);
    const auto weight = make<T, 3>(2, columns);
    fill_random(data, 1);
    fill_random(weight, 2, -0.3, 1);
    const int shells = 4; // the others take the floor of the last
    const Curves averages("averages", 2, shells), means("means", 2, shells);
    shell_averages(space, HalfSpectrum{weight, shape.back()}, means);
    const auto mean = to_host(means);
    const auto check = [&](const NormaliseOptions& options, const auto& divisor) {
      normalise(space, HalfSpectrum{data, shape.back()}, HalfSpectrum{weight, shape.back()},
                HalfSpectrum{volume, shape.back()}, averages, options);
      CHECK(to_host(averages) == mean);
      const auto in = to_host(data), out = to_host(volume);
      const auto w = to_host(weight);
      const auto place = places(shape);
      double error = 0;
      for (std::size_t i = 0; i < in.size(); ++i) {
        const auto& [shell, multiplicity, squared] = place[i % place.size()];
        const double m = mean[i / place.size() * shells + std::size_t(std::min(shell, shells - 1))];
        const double limit = options.radius.value_or(shape.back() / 2.0);
        const double d = squared > limit * limit * (1 + 1e-9) ? 0 : divisor(double(w[i]), m);
        const double scale = d > 0 ? 1 / d : 0;
        error = std::max(
            error, std::hypot(out[i].real() - in[i].real() * scale, out[i].imag() - in[i].imag() * scale) /
                       (1 + scale));
      }
      CHECK(error < 4 * epsilon<T>);
    };
    check({}, [](double w, double m) { return std::max(w, 0.2 * m); });
    check({.wiener = 0.25}, [](double w, double m) { return std::max(w + 0.25, 0.2 * (m + 0.25)); });
    check({.floor = 0}, [](double w, double) { return w; });
    check({.floor = 1e-3, .radius = 1e6}, [](double w, double m) { return std::max(w, 1e-3 * m); });
    check({.floor = 0.5, .radius = 3.5}, [](double w, double m) { return std::max(w, 0.5 * m); });
    const auto expected = (normalise(space, data, weight, volume, averages, {.radius = 3}), to_host(volume));
    normalise(space, data, weight, data, averages, {.radius = 3});
    CHECK(to_host(data) == expected);
  }
}

TEMPLATE_TEST_CASE("normalisation divides by the least weights there are", "[reconstruct]", float, double) {
  using T = TestType;
  using C = Kokkos::complex<T>;
  const Shape columns = stored({7, 7, 7});
  const auto data = make<C, 3>(1, columns), volume = make<C, 3>(1, columns);
  const auto weight = make<T, 3>(1, columns);
  const auto sums = Kokkos::create_mirror_view(data);
  const auto weights = Kokkos::create_mirror_view(weight);
  for (std::size_t i = 0; i < weights.size();
       ++i) { // multiples of the least number, whose inverse is infinite
    weights.data()[i] = std::numeric_limits<T>::denorm_min() * T(1 + i % 100);
    sums.data()[i] = C(3 * weights.data()[i], -2 * weights.data()[i]);
  }
  Test::deep_copy(data, sums);
  Test::deep_copy(weight, weights);
  normalise(Space(), HalfSpectrum{data, 7}, HalfSpectrum{weight, 7}, HalfSpectrum{volume, 7},
            Curves("averages", 1, 4), {.floor = 0, .radius = 100});
  for (const auto& value : to_host(volume)) {
    CHECK(value.real() == 3);
    CHECK(value.imag() == -2);
  }
}

TEST_CASE("wrong arguments of shell operators are named", "[reconstruct]") {
  const Space space;
  using C = Kokkos::complex<float>;
  const auto a = make<C, 3>(1, {8, 8, 5}), b = make<C, 3>(1, {8, 6, 5});
  const auto weight = make<float, 3>(1, {8, 8, 5}), other = make<float, 3>(2, {8, 8, 5});
  const Curves curve("curve", 1, 5), two("two", 2, 5);
  CHECK_THROWS_AS(fourier_shell_correlation(space, a, b, curve), Error);
  CHECK_THROWS_AS(fourier_shell_correlation(space, a, HalfSpectrum{a, 9}, curve), Error);
  CHECK_THROWS_AS(fourier_shell_correlation(space, a, a, two), Error);
  CHECK_THROWS_AS(fourier_shell_correlation(space, HalfSpectrum{a, 11}, HalfSpectrum{a, 11}, curve), Error);
  CHECK_THROWS_AS(shell_averages(space, weight, Curves()), Error);
  CHECK_THROWS_AS(shell_averages(space, weight, Curves("many", 1, 33)), Error);
  const Curves in_weight(reinterpret_cast<double*>(weight.data()), 1, 5);
  CHECK_THROWS_WITH(
      shell_averages(space, weight, in_weight),
      "Bracewell::shell_averages: averages: expected memory of its own, found memory shared with "
      "values");
  const Curves in_a(reinterpret_cast<double*>(a.data()), 1, 5);
  CHECK_THROWS_AS(fourier_shell_correlation(space, b, b, two), Error);
  CHECK_THROWS_AS(fourier_shell_correlation(space, a, a, in_a), Error);
  CHECK_THROWS_AS(normalise(space, a, weight, a, in_a), Error);
  CHECK_THROWS_AS(normalise(space, a, weight, b, in_weight), Error);
  CHECK_THROWS_AS(normalise(space, a, weight, a, curve, {.radius = NAN}), Error);
  CHECK_THROWS_AS(normalise(space, a, other, a, curve), Error);
  CHECK_THROWS_AS(normalise(space, a, weight, b, curve), Error);
  CHECK_THROWS_WITH(normalise(space, a, weight, a, curve, {.wiener = -1e-7}),
                    "Bracewell::normalise: options.wiener: expected a finite value >= 0, found -1e-07");
  CHECK_THROWS_AS(normalise(space, a, weight, a, curve, {.floor = NAN}), Error);
  CHECK_THROWS_AS(normalise(space, a, weight, a, two), Error);
  CHECK_THROWS_WITH(normalise(space, a, weight, a, Curves("none", 1, 0)),
                    "Bracewell::normalise: averages: expected [1, at least one shell], found [1, 0]");
  const Batch<C, 3> shared(reinterpret_cast<C*>(weight.data()), 1, 4, 8, 5);
  const auto half_weight = make<C, 3>(1, {4, 8, 5});
  const Batch<float, 3> small(weight.data(), 1, 4, 8, 5);
  CHECK_THROWS_AS(normalise(space, half_weight, small, shared, curve), Error);
}

TEST_CASE("no spectra and no shells are no work", "[reconstruct]") {
  const Space space;
  using C = Kokkos::complex<float>;
  const auto spectrum = make<C, 3>(1, {8, 8, 5}), no_spectra = make<C, 3>(0, {8, 8, 5});
  const auto weight = make<float, 3>(1, {8, 8, 5}), no_weights = make<float, 3>(0, {8, 8, 5});
  const Curves no_shells("none", 1, 0), no_curves("none", 0, 5);
  shell_averages(space, weight, no_shells);
  shell_averages(space, no_weights, no_curves);
  fourier_shell_correlation(space, spectrum, spectrum, no_shells);
  fourier_shell_correlation(space, no_spectra, no_spectra, no_curves);
  normalise(space, no_spectra, no_weights, no_spectra, no_curves);
}
