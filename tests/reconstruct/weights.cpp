// Weights by the noise of half sets, and their gridding correction.
#include "../deep_copy.hpp"
#include "support.hpp"

#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/reconstruct/normalise.hpp>
#include <bracewell/reconstruct/signal_and_noise.hpp>
#include <bracewell/reconstruct/weight_equaliser.hpp>

#include <algorithm>
#include <cmath>
#include <random>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

using namespace Bracewell;
using namespace ReconstructTest;

namespace {

using Curves = Kokkos::View<double**, Kokkos::LayoutRight, Space>;
using Moments = Kokkos::View<double***, Kokkos::LayoutRight, Space>;

} // namespace

TEMPLATE_TEST_CASE("normalisation adds a prior to each shell", "[reconstruct]", float, double) {
  using T = TestType;
  using C = Kokkos::complex<T>;
  const Space space;
  const Shape shape{8, 8, 8};
  const auto data = make<C, 3>(1, stored(shape)), volume = make<C, 3>(1, stored(shape));
  const auto weight = make<T, 3>(1, stored(shape));
  fill_random(data, 1);
  fill_random(weight, 2, 0, 1);
  const Curves averages("averages", 1, 5), prior("prior", 1, 5);
  from_host(prior, std::vector<double>{0, 0.5, 1, 0, 2});
  normalise<Linear>(space, data, weight, volume, averages, {.wiener = 0.25}, prior);
  const auto in = to_host(data), out = to_host(volume);
  const auto w = to_host(weight);
  const auto mean = to_host(averages), added = to_host(prior);
  const auto place = places(shape);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto shell = std::size_t(std::min(place[i].shell, 4));
    const double more = 0.25 + added[shell];
    const double divisor = std::max(w[i] + more, 1e-3 * (mean[shell] + more));
    const C expected = place[i].squared > 16 ? C(0) : in[i] * T(1 / divisor);
    CHECK(Kokkos::abs(out[i] - expected) < 8 * epsilon<T> / divisor);
  }
  // A kernel without negative lobes leaves directions that are seen 300 times less than others.
  fill_random(weight, 2, 1, 1.0001);
  auto few = to_host(weight);
  few[1] = T(1) / 300;
  from_host(weight, few);
  normalise<Linear>(space, data, weight, volume, averages);
  CHECK(std::abs(to_host(volume)[1].real() / (300 * in[1].real()) - 1) < 1e-4);
  normalise<CatmullRom>(space, data, weight, volume, averages);
  CHECK(std::abs(to_host(volume)[1].real() / in[1].real()) < 6);
  // The edge: half of a frequency in the middle of it, nothing at the radius.
  fill_random(weight, 2, 1, 1.0001);
  normalise<Linear>(space, data, weight, volume, averages, {.radius = 4, .edge = 2});
  const auto soft = to_host(volume), from = to_host(data);
  const auto even = to_host(weight);
  for (std::size_t i = 0; i < soft.size(); ++i) {
    const double along = std::clamp((std::sqrt(double(place[i].squared)) - 2) / 2, 0.0, 1.0);
    const double kept = place[i].squared > 16 ? 0 : 0.5 + 0.5 * std::cos(Kokkos::numbers::pi * along);
    CHECK(Kokkos::abs(soft[i] - from[i] * T(kept / even[i])) < 16 * epsilon<T>);
  }
  CHECK_THROWS_AS(normalise<Linear>(space, data, weight, volume, averages, {.radius = 4, .edge = 5}), Error);
  CHECK_THROWS_AS(normalise<Linear>(space, data, weight, volume, averages, {.edge = -1}), Error);
  CHECK_THROWS_AS(normalise(space, data, weight, volume, averages, {}, Curves("prior", 1, 4)), Error);
  CHECK_THROWS_AS(normalise(space, data, weight, volume, averages, {}, averages), Error);
}

TEMPLATE_TEST_CASE("moments of half sets equal sums over the full spectrum", "[reconstruct]", float, double) {
  using T = TestType;
  using C = Kokkos::complex<T>;
  const Space space;
  for (const Shape& shape : {Shape{8, 8, 8}, {7, 9, 5}}) {
    const std::int64_t batch = 2, size = elements(stored(shape));
    const int shells = 5;
    const auto d1 = make<C, 3>(batch, stored(shape)), d2 = make<C, 3>(batch, stored(shape));
    const auto w1 = make<T, 3>(batch, stored(shape)), w2 = make<T, 3>(batch, stored(shape));
    fill_random(d1, 1);
    fill_random(d2, 2);
    fill_random(w1, 3, 0, 5);
    fill_random(w2, 4, 0, 5);
    const Curves prior("prior", batch, shells);
    from_host(prior, std::vector<double>{0.5, 1, 2, 3, 4, 5, 0.1, 7, 8, 9});
    const auto place = places(shape);
    const auto a = to_host(d1), b = to_host(d2);
    const auto u = to_host(w1), v = to_host(w2);
    for (const bool with_prior : {false, true}) {
      const Moments moments("moments", batch, shells, half_set_moment_count);
      const auto width = shape.back();
      half_set_moments(space, HalfSpectrum{d1, width}, HalfSpectrum{w1, width}, HalfSpectrum{d2, width},
                       HalfSpectrum{w2, width}, moments,
                       with_prior ? Array<const double, Space::memory_space>(prior)
                                  : Array<const double, Space::memory_space>());
      const auto found = to_host(moments), added = to_host(prior);
      for (std::int64_t n = 0; n < batch * shells; ++n) {
        double sum[half_set_moment_count] = {};
        for (std::int64_t i = 0; i < size; ++i) {
          if (place[i].shell != n % shells)
            continue;
          const std::int64_t at = n / shells * size + i;
          const double m = place[i].multiplicity, first = u[at], second = v[at];
          const double g = with_prior ? 1 / (first + added[n]) : 1,
                       h = with_prior ? 1 / (second + added[n]) : 1;
          const double cross = double(a[at].real()) * b[at].real() + double(a[at].imag()) * b[at].imag();
          const double power1 = std::pow(double(a[at].real()), 2) + std::pow(double(a[at].imag()), 2);
          const double power2 = std::pow(double(b[at].real()), 2) + std::pow(double(b[at].imag()), 2);
          const double terms[] = {cross * g * h,
                                  first * second * g * h,
                                  power1 * g * g + power2 * h * h,
                                  first * first * g * g + second * second * h * h,
                                  first * g * g + second * h * h,
                                  (first + second) / 2,
                                  1};
          for (int t = 0; t < half_set_moment_count; ++t)
            sum[t] += m * terms[t];
        }
        for (int t = 0; t < half_set_moment_count; ++t)
          CHECK(std::abs(found[n * half_set_moment_count + t] - sum[t]) < 1e-11 * (1 + std::abs(sum[t])));
      }
    }
  }
}

TEST_CASE("powers of signal and noise are found, however unevenly directions are seen", "[reconstruct]") {
  const Space space;
  using C = Kokkos::complex<double>;
  const Shape shape{48, 48, 48};
  const auto place = places(shape);
  const std::size_t size = place.size();
  std::mt19937 engine(7);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(-2, 1);
  const double noise = 0.5, energy = kernel_energy<Linear>();
  const auto signal = [](double shell) { return 4 * std::exp(-shell / 8); };
  std::vector<C> d1(size), d2(size);
  std::vector<double> w1(size), w2(size);
  for (std::size_t i = 0; i < size; ++i) {
    const double amplitude = std::sqrt(signal(std::sqrt(place[i].squared)) / 2);
    const C value(amplitude * normal(engine), amplitude * normal(engine));
    const auto gather = [&](C& data, double& weight) {
      weight = std::pow(10, uniform(engine)); // a thousand to one
      const double deviation = std::sqrt(weight * noise * energy / 2);
      data = weight * value + C(deviation * normal(engine), deviation * normal(engine));
    };
    gather(d1[i], w1[i]);
    gather(d2[i], w2[i]);
  }
  const auto data1 = make<C, 3>(1, stored(shape)), data2 = make<C, 3>(1, stored(shape));
  const auto weight1 = make<double, 3>(1, stored(shape)), weight2 = make<double, 3>(1, stored(shape));
  from_host(data1, d1);
  from_host(data2, d2);
  from_host(weight1, w1);
  from_host(weight2, w2);
  const Moments moments("moments", 1, 25, half_set_moment_count);
  const Curves prior("prior", 1, 25);
  shell_averages(space, weight1, prior);
  SignalAndNoise powers;
  for (int round = 0; round < 2; ++round) {
    half_set_moments(space, data1, weight1, data2, weight2, moments, prior);
    const auto sums = to_host(moments);
    powers = signal_and_noise(sums, energy, 24);
    from_host(prior, wiener_prior(powers, 1, 1));
  }
  CHECK(powers.signal[24] == powers.signal[23]);
  CHECK(powers.noise[24] == powers.noise[23]);
  for (std::size_t s = 10; s < 24; ++s) {
    CAPTURE(s);
    CHECK(std::abs(powers.signal[s] / signal(double(s)) - 1) < 0.15);
    // Less a tenth of the signal's power, which weights of a thousand to one let count.
    CHECK(powers.noise[s] < 1.1 * noise);
    CHECK(powers.noise[s] > 0.9 * (noise - 0.1 * 3 * powers.signal[s] / energy));
  }
}

TEST_CASE("weak signals are averaged over more shells, and noise-free images have no noise",
          "[reconstruct]") {
  // Shells of 4 pi s^2 elements, as many samples of signal and noise: the first sum has the standard error that noise gives it.
  const std::size_t shells = 60;
  std::mt19937 engine(5);
  std::normal_distribution<double> normal;
  const auto moments = [&](double signal, double noise) {
    std::vector<double> result;
    for (std::size_t s = 0; s < shells; ++s) {
      const double count = 1 + 12.6 * double(s * s), power = 2 * count * (signal + noise);
      const double error = power / 2 * std::sqrt(8 / count);
      for (const double sum :
           {count * signal + error * normal(engine), count, power, 2 * count, 2 * count, count, count})
        result.push_back(sum);
    }
    return result;
  };
  // In a shell of 40 the error is 0.4 of the signal, over a sixteenth of the frequency about 0.25, over a third below 0.12.
  for (int run = 0; run < 5; ++run) {
    const auto weak = signal_and_noise(moments(0.05, 1), 1);
    for (std::size_t s = 30; s < 50; ++s) {
      CAPTURE(run, s);
      CHECK(std::abs(weak.signal[s] / 0.05 - 1) < 0.4);
      CHECK(std::abs(weak.noise[s] - 1) < 0.1);
    }
  }
  const auto free = signal_and_noise(moments(1, 1e-4), 1);
  CHECK(std::ranges::all_of(free.noise, [](double noise) { return noise == 0; }));
  const auto little = signal_and_noise(moments(1, 0.5), 1);
  CHECK(std::ranges::any_of(little.noise, [](double noise) { return noise > 0.01; }));
}

TEST_CASE("priors follow from powers", "[reconstruct]") {
  CHECK(std::abs(kernel_energy<Linear>() - 8.0 / 27) < 1e-6);
  CHECK(std::abs(kernel_energy<CubicBSpline>() - std::pow(151.0 / 315, 3)) < 1e-6); // beta^7(0)
  const SignalAndNoise powers{
      .signal = {2, 0, 1, 1, 0}, .noise = {4, 3, 0, 1e9, 0}, .weight = {1, 1, 1, 1, 1}};
  const auto prior = wiener_prior(powers, 2, 0.5);
  CHECK(prior == std::vector<double>{4 * 0.5 / (2 * 8), 100, 0, 100, 0});
  CHECK_THROWS_AS(wiener_prior(powers, 0, 0.5), Error);
  CHECK_THROWS_AS(wiener_prior(powers, 2, 1.5), Error);
  CHECK_THROWS_AS(signal_and_noise(std::vector<double>(8), 1), Error);
  CHECK_THROWS_AS(signal_and_noise(std::vector<double>(7), -1), Error);
  CHECK_THROWS_AS(signal_and_noise(std::vector<double>(14), 1, 3), Error);
  CHECK_THROWS_AS(signal_and_noise(std::vector<double>(14), 1, 0), Error);
  const auto none = signal_and_noise(std::vector<double>(14), 1);
  CHECK(none.signal == std::vector<double>{0, 0});
  CHECK(none.noise == std::vector<double>{0, 0});
}

TEMPLATE_TEST_CASE("steps of the equaliser equal direct convolutions", "[reconstruct]", float, double) {
  using T = TestType;
  using C = Kokkos::complex<T>;
  const Space space;
  for (const int n : {6, 7}) {
    const Shape shape{n, n, n};
    const int map = 4, columns = n / 2 + 1, shells = columns;
    // Weights with the symmetry of spectra.
    std::vector<double> full(static_cast<std::size_t>(n * n * n));
    const auto at = [&](int x, int y, int z) {
      const auto wrap = [&](int k) { return ((k % n) + n) % n; };
      return static_cast<std::size_t>((wrap(z) * n + wrap(y)) * n + wrap(x));
    };
    std::mt19937 engine(3);
    std::uniform_real_distribution<double> uniform(0, 1);
    for (int z = 0; z < n; ++z)
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x)
          full[at(x, y, z)] = full[at(-x, -y, -z)] = std::pow(uniform(engine), 6);
    full[at(1, 1, 0)] = full[at(-1, -1, 0)] = 0;
    const auto half = [&](const std::vector<double>& values) {
      std::vector<double> result;
      for (int z = 0; z < n; ++z)
        for (int y = 0; y < n; ++y)
          for (int x = 0; x < columns; ++x)
            result.push_back(values[at(x, y, z)]);
      return result;
    };
    const auto weight = make<T, 3>(1, stored(shape)), divisor = make<T, 3>(1, stored(shape)),
               volume = make<T, 3>(1, shape);
    const auto spectrum = make<C, 3>(1, stored(shape));
    from_host(weight, half(full));
    const Curves averages("averages", 1, shells), prior("prior", 1, shells);
    from_host(prior, std::vector<double>{0.1, 0, 0.02, 0.2});
    const Kokkos::View<double*, Space> error("error", 2);
    const WeightEqualiser<Space, T> equaliser(space, {n, n, n}, {map, map, map});

    // The blur: product of sums over cosines of exp(-(2.5 x / map)^2) along each axis.
    std::vector<double> kernel(static_cast<std::size_t>(n));
    for (int k = 0; k < n; ++k)
      for (int i = 0; i < n; ++i) {
        const double x = 2.5 * frequency(i, n) / map;
        kernel[static_cast<std::size_t>(k)] +=
            std::exp(-x * x) * std::cos(2 * Kokkos::numbers::pi * k * i / n) / n;
      }
    const auto blurred = [&](int x, int y, int z, const auto& value) {
      double sum = 0;
      for (int c = 0; c < n; ++c)
        for (int b = 0; b < n; ++b)
          for (int a = 0; a < n; ++a)
            sum += kernel[static_cast<std::size_t>((a - x + n) % n)] *
                   kernel[static_cast<std::size_t>((b - y + n) % n)] *
                   kernel[static_cast<std::size_t>((c - z + n) % n)] * value(at(a, b, c));
      return sum;
    };
    std::vector<double> q(full.size()), own(full.size());
    std::vector<int> shell(full.size());
    shell_averages(space, HalfSpectrum{weight, n}, averages);
    const auto mean = to_host(averages), added = to_host(prior);
    const double radius = 2.9;
    for (int z = 0; z < n; ++z)
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x) {
          const double r = std::hypot(frequency(x, n), frequency(y, n), frequency(z, n));
          const auto i = at(x, y, z), s = static_cast<std::size_t>(std::min(int(r + 0.5), shells - 1));
          q[i] = mean[s] + added[s];
          own[i] = r <= radius ? full[i] + added[s] : 0;
        }
    for (const bool first : {true, false}) {
      double off = 0, total = 0;
      auto next = q;
      for (int z = 0; z < n; ++z)
        for (int y = 0; y < n; ++y)
          for (int x = 0; x < n; ++x) {
            const double sum = blurred(x, y, z, [&](std::size_t i) { return own[i] / q[i]; });
            const auto i = at(x, y, z);
            if (own[i] == 0)
              continue;
            const double part = own[i] / q[i] /
                                (1 + std::pow(frequency(x, n), 2) + std::pow(frequency(y, n), 2) +
                                 std::pow(frequency(z, n), 2));
            off += part * std::pow(std::abs(sum) - 1, 2);
            total += part;
            next[i] = q[i] * std::pow(std::abs(sum), first ? 1 : 1.5);
          }
      q = next;
      equaliser.improve(space, HalfSpectrum{weight, n}, HalfSpectrum{divisor, n}, averages,
                        HalfSpectrum{spectrum, n}, volume, error, prior, {.radius = radius, .first = first});
      const auto found = to_host(divisor);
      const auto expected = half(q);
      for (std::size_t i = 0; i < found.size(); ++i)
        CHECK(std::abs(found[i] - expected[i]) < 50 * epsilon<T> * expected[i] + 1e-30);
      const auto sums = to_host(error);
      CHECK(std::abs(sums[0] - off) < 100 * epsilon<T> * total);
      CHECK(std::abs(sums[1] - total) < 100 * epsilon<T> * total);
    }
    equaliser.keep_power(space, HalfSpectrum{weight, n}, HalfSpectrum{divisor, n}, HalfSpectrum{spectrum, n},
                         volume, {.radius = radius});
    const auto expected_of = q;
    for (int z = 0; z < n; ++z)
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x) {
          const double kept = std::clamp(
              blurred(x, y, z, [&](std::size_t i) { return own[i] > 0 ? full[i] / expected_of[i] : 0; }),
              1e-3, 1.0);
          q[at(x, y, z)] *= std::sqrt(kept * (1 + kept) / 2);
        }
    const auto found = to_host(divisor);
    const auto expected = half(q);
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(std::abs(found[i] - expected[i]) < 500 * epsilon<T> * expected[i] + 1e-30);
  }
}

TEST_CASE("half maps tell how well the whole agrees with the truth, however unevenly it was seen",
          "[reconstruct]") {
  // Weights fall from 3 to 0.02 along z, little within the reach of the blur.
  const Space space;
  using C = Kokkos::complex<double>;
  const int n = 80;
  const Shape shape{n, n, n}, half_shape = stored(shape);
  const auto size = static_cast<std::size_t>(elements(half_shape));
  std::mt19937 engine(11);
  std::normal_distribution<double> normal;
  for (const double noise : {0.1, 1.0, 10.0}) { // over signal
    CAPTURE(noise);
    std::vector<double> divisor(size), sums(6), weight(size);
    std::vector<C> data[2], truth(size);
    for (std::size_t i = 0; i < size; ++i) {
      const int z = indices(static_cast<std::int64_t>(i), half_shape)[0];
      weight[i] = std::exp(-1.4 + 2.5 * std::cos(2 * Kokkos::numbers::pi * z / n));
      truth[i] = C(normal(engine), normal(engine)) / std::sqrt(2.0);
      for (auto& half : data) {
        const double deviation = std::sqrt(weight[i] * noise / 2);
        half.push_back(weight[i] * truth[i] + C(deviation * normal(engine), deviation * normal(engine)));
      }
      divisor[i] = weight[i] + noise;
    }
    const auto w = make<double, 3>(1, half_shape), q = make<double, 3>(1, half_shape),
               volume = make<double, 3>(1, shape);
    const auto spectrum = make<C, 3>(1, half_shape);
    from_host(w, weight);
    from_host(q, divisor);
    const WeightEqualiser<Space, double> equaliser(space, {n, n, n}, {n / 2, n / 2, n / 2});
    equaliser.keep_power(space, w, q, spectrum, volume, {.radius = n});
    const auto kept = to_host(q);
    for (std::size_t i = 0; i < size; ++i) {
      const C a = data[0][i] / kept[i], b = data[1][i] / kept[i];
      const C whole = (data[0][i] + data[1][i]) / (2 * weight[i] + noise);
      const auto product = [](const C& x, const C& y) { return x.real() * y.real() + x.imag() * y.imag(); };
      const double terms[] = {product(a, b),         product(a, a),
                              product(b, b),         product(whole, truth[i]),
                              product(whole, whole), product(truth[i], truth[i])};
      for (std::size_t t = 0; t < 6; ++t)
        sums[t] += terms[t];
    }
    const double halves = sums[0] / std::sqrt(sums[1] * sums[2]);
    const double right = sums[3] / std::sqrt(sums[4] * sums[5]);
    CHECK(std::abs(std::sqrt(2 * halves / (1 + halves)) - right) < 0.02);
  }
}

TEST_CASE("weights that are even stay as they are", "[reconstruct]") {
  const Space space;
  const int n = 12;
  const auto weight = make<double, 3>(1, {n, n, n / 2 + 1}), divisor = make<double, 3>(1, {n, n, n / 2 + 1}),
             volume = make<double, 3>(1, {n, n, n});
  const auto spectrum = make<Kokkos::complex<double>, 3>(1, {n, n, n / 2 + 1});
  Test::deep_copy(weight, 3);
  const Curves averages("averages", 1, n / 2 + 1);
  const Kokkos::View<double*, Space> error("error", 2);
  const WeightEqualiser<Space, double> equaliser(space, {n, n, n}, {6, 6, 6});
  for (const bool first : {true, false})
    equaliser.improve(space, weight, divisor, averages, spectrum, volume, error, {},
                      {.radius = 100, .first = first});
  for (const double q : to_host(divisor))
    CHECK(std::abs(q - 3) < 1e-12);
  CHECK(to_host(error)[0] < 1e-24 * to_host(error)[1]);

  using Equaliser = WeightEqualiser<Space, double>;
  CHECK_THROWS_AS(Equaliser(space, {8, 8, 8}, {9, 8, 8}), Error);
  CHECK_THROWS_AS(Equaliser(space, {8, 8, 8}, {0, 8, 8}), Error);
  const auto improve = [&](const auto& w, const auto& d, const auto& v) {
    equaliser.improve(space, w, d, averages, spectrum, v, error);
  };
  const auto other = make<double, 3>(1, {8, n, n / 2 + 1});
  CHECK_THROWS_AS(improve(other, divisor, volume), Error);
  CHECK_THROWS_AS(improve(weight, other, volume), Error);
  CHECK_THROWS_AS(improve(weight, divisor, other), Error);
  CHECK_THROWS_AS(improve(weight, weight, volume), Error);
  CHECK_THROWS_AS(equaliser.improve(space, weight, divisor, averages, spectrum, volume, {}), Error);
  CHECK_THROWS_AS(
      equaliser.improve(space, weight, divisor, averages, spectrum, volume, error, {}, {.radius = NAN}),
      Error);
  CHECK_THROWS_AS(equaliser.keep_power(space, other, divisor, spectrum, volume), Error);
  CHECK_THROWS_AS(equaliser.keep_power(space, weight, other, spectrum, volume), Error);
  CHECK_THROWS_AS(equaliser.keep_power(space, weight, divisor, spectrum, other), Error);
  CHECK_THROWS_AS(equaliser.keep_power(space, weight, weight, spectrum, volume), Error);
}
