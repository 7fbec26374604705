// SPDX-License-Identifier: MIT
// What beamlines do with projections: phase retrieval, outliers, binning, roll, half acquisition, drifting flat fields, beam
// hardening, all stripes; against what they are defined as, in double.
#include "../deep_copy.hpp"
#include "phantom.hpp"

#include <bracewell/tomography/detector.hpp>
#include <bracewell/tomography/find_centre.hpp>
#include <bracewell/tomography/half_acquisition.hpp>
#include <bracewell/tomography/outliers.hpp>
#include <bracewell/tomography/phase.hpp>
#include <bracewell/tomography/preprocess.hpp>
#include <bracewell/tomography/stripes.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <numeric>

using namespace TomographyTest;
using namespace Bracewell;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr double pi = std::numbers::pi;

std::size_t at(int value) { return static_cast<std::size_t>(value); }

auto matches(const char* text) { return MessageMatches(ContainsSubstring(text)); }

const PhaseOptions near_field{.wavelength = 6e-11, .distance = 0.2, .pixel_size = 1e-6, .delta_beta = 20};

/// The factor of a filter, as the articles write it.
double factor(const PhaseOptions& o, double fy, double fx) {
  const double defocus = pi * o.wavelength * o.distance / std::pow(o.pixel_size, 2), f2 = fx * fx + fy * fy;
  if (o.method == PhaseMethod::Paganin)
    return 1 / (1 + o.delta_beta * defocus * f2);
  if (o.method == PhaseMethod::GeneralisedPaganin)
    return 1 /
           (1 + o.delta_beta * defocus / (2 * pi * pi) * (2 - std::cos(2 * pi * fx) - std::cos(2 * pi * fy)));
  const double d = std::cos(defocus * f2) + o.delta_beta * std::sin(defocus * f2);
  return d / (d * d + o.regularisation);
}

/// An image [h, w] filtered by sums over all pixels and frequencies.
Values filtered(const Values& image, int h, int w, const PhaseOptions& options) {
  std::vector<std::complex<double>> spectrum(image.size());
  const auto wave = [](int k, int x, int size) { return std::polar(1., -2 * pi * (k * x % size) / size); };
  const auto frequency = [](int k, int size) { return double(2 * k > size ? k - size : k) / size; };
  Values result(image.size());
  for (int ky = 0; ky < h; ++ky)
    for (int kx = 0; kx < w; ++kx) {
      std::complex<double> sum = 0;
      for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x)
          sum += image[at(y * w + x)] * wave(ky, y, h) * wave(kx, x, w);
      sum *= factor(options, frequency(ky, h), frequency(kx, w)) / (h * w);
      for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x)
          result[at(y * w + x)] += (sum * std::conj(wave(ky, y, h) * wave(kx, x, w))).real();
    }
  return result;
}

/// The sum over the products of all values.
template <class Forward, class Transpose>
double gap(const Volume<double>& x, const Volume<double>& y, const Forward& forward,
           const Transpose& transpose) {
  const Volume<double> image("image", y.extent(0), y.extent(1), y.extent(2)),
      back("back", x.extent(0), x.extent(1), x.extent(2));
  Test::deep_copy(image, NAN); // all of it is written
  Test::deep_copy(back, NAN);
  forward(x, image);
  transpose(y, back);
  const double left = dot(to_host(image), to_host(y)), right = dot(to_host(x), to_host(back));
  return std::abs(left - right) /
         std::sqrt(dot(to_host(image), to_host(image)) * dot(to_host(y), to_host(y)));
}

} // namespace

TEMPLATE_TEST_CASE("phase retrieval is a filter of frames whose edges go on", "", float, double) {
  const Space space;
  const int S = 5, P = 3, n = 7, h = 12, w = 14; // 5 + 6 and 7 + 6, next even fast sizes
  const Values transmission = random_values(at(S * P * n), 0.5, 1);
  Values attenuation;
  for (const double value : transmission)
    attenuation.push_back(-std::log(value));
  for (const auto method : {PhaseMethod::Paganin, PhaseMethod::GeneralisedPaganin, PhaseMethod::WeakObject}) {
    CAPTURE(int(method));
    PhaseOptions options = near_field;
    options.method = method;
    options.padding = 3;
    const bool weak = method == PhaseMethod::WeakObject;
    Values expected(transmission.size());
    for (int p = 0; p < P; ++p) {
      Values frame;
      const auto edge = [](int i, int length, int size) {
        return i < length ? i : i < length + (size - length) / 2 ? length - 1 : 0;
      };
      for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x)
          frame.push_back(transmission[at((edge(y, S, h) * P + p) * n + edge(x, n, w))] - (weak ? 1 : 0));
      const Values result = filtered(frame, h, w, options);
      for (int s = 0; s < S; ++s)
        for (int i = 0; i < n; ++i) {
          const double value = result[at(s * w + i)];
          expected[at((s * P + p) * n + i)] = weak ? -value : -std::log(value);
        }
    }
    const PhaseRetrieval<Space, TestType> plan(space, 2, S, n, options);
    const auto out = to_device<TestType>(attenuation, P, n);
    plan.execute(space, out, out); // in place
    CHECK(relative_error(to_host(out), expected) < 20 * rounding<TestType>);
    options.attenuation = false;
    PhaseRetrieval<Space, TestType>(space, 20, S, n, options)
        .execute(space, to_device<TestType>(transmission, P, n), out);
    CHECK(relative_error(to_host(out), expected) < 20 * rounding<TestType>);
  }
}

TEST_CASE("what spread in the near field comes back; the filter's transpose is one") {
  const Space space;
  const int S = 10, n = 16; // as they are
  const double a = pi * near_field.delta_beta * near_field.wavelength * near_field.distance / 1e-12;
  Values seen, truth;
  for (int y = 0; y < S; ++y)
    for (int x = 0; x < n; ++x) {
      // T and (1 - a / (4 pi^2) Laplacian) T of a wave.
      const double wave = 0.2 * std::cos(2 * pi * (2 * y / 10. - 3 * x / 16.)),
                   f2 = std::pow(2 / 10., 2) + std::pow(3 / 16., 2);
      truth.push_back(-std::log(1 + wave));
      seen.push_back(1 + wave * (1 + a * f2));
    }
  PhaseOptions options = near_field;
  options.attenuation = false;
  options.padding = 0;
  const auto view = to_device<double>(seen, 1, n);
  PhaseRetrieval<Space, double>(space, 1, S, n, options).execute(space, view, view);
  CHECK(relative_error(to_host(view), truth) < 1e-13);

  options.padding = {};
  CHECK(phase_reach(options) == int(std::ceil(8 * std::sqrt(a) / (2 * pi))));
  for (const auto& [rows, width] : {std::pair{7, 11}, {1, 9}, {6, 1}}) {
    const PhaseRetrieval<Space, double> plan(space, 3, rows, width, options);
    const auto values = [&, r = rows, c = width](unsigned seed) {
      return to_device<double>(random_values(at(r * 4 * c), -1, 1, seed), 4, c);
    };
    CHECK(gap(
              values(1), values(2), [&](const auto& in, const auto& out) { plan.filter(space, in, out); },
              [&](const auto& in, const auto& out) { plan.filter_transpose(space, in, out); }) < 1e-13);
  }
  CHECK_THROWS_MATCHES((PhaseRetrieval<Space, float>(space, 1, 2, 3, PhaseOptions{})), Error,
                       matches("PhaseRetrieval: options.wavelength: expected a finite value > 0, found 0"));
  CHECK_THROWS_MATCHES(
      (PhaseRetrieval<Space, double>(space, 1, 9, n, options).execute(space, view, view)), Error,
      matches("PhaseRetrieval::execute: sinograms: expected [9, angles, 16], found [10, 1, 16]"));
  options.distance *= 1e9; // in another unit
  CHECK_THROWS_MATCHES((PhaseRetrieval<Space, float>(space, 1, 2, 3, options)), Error,
                       matches("PhaseRetrieval: options.padding: expected a number, as the filter of these "
                               "lengths (wavelength, distance, "
                               "pixel_size, in one unit) reaches 16384 pixels or more, found none"));
}

TEMPLATE_TEST_CASE("outliers become the median around them", "", float, double) {
  const Space space;
  const int S = 2, P = 9, n = 13;
  Values values = random_values(at(S * P * n));
  for (const int k : {0, 12, 57, 58, 59, 150, S * P * n - 1}) // zingers, three of them side by side
    values[at(k)] -= 7;
  for (const auto& [window, threshold] : {std::pair{3, 1.2}, {5, 0.7}, {9, 3.0}}) {
    Values expected;
    for (int k = 0; k < S * P * n; ++k) {
      const int s = k / (P * n), p = k / n % P, i = k % n, reach = window / 2;
      Values around;
      for (int q = p - reach; q <= p + reach; ++q)
        for (int j = i - reach; j <= i + reach; ++j)
          around.push_back(values[at((s * P + std::clamp(q, 0, P - 1)) * n + std::clamp(j, 0, n - 1))]);
      std::ranges::sort(around);
      const double median = around[around.size() / 2];
      expected.push_back(std::abs(values[at(k)] - median) > threshold ? median : values[at(k)]);
    }
    const auto in = to_device<TestType>(values, P, n),
               out = to_device<TestType>(Values(values.size(), NAN), P, n);
    remove_outliers(space, in, out, {.window = window, .threshold = threshold});
    CHECK(relative_error(to_host(out), expected) < rounding<TestType>);
    CHECK(to_host(out) != to_host(in));
  }
  const auto view = to_device<TestType>(values, P, n);
  CHECK_THROWS_MATCHES(remove_outliers(space, view, view), Error, matches("memory shared with sinograms"));
  CHECK_THROWS_MATCHES(remove_outliers(space, view, to_device<TestType>(values, P, n), {.window = 4}), Error,
                       matches("options.window: expected 3, 5, 7 or 9, found 4"));
}

TEST_CASE("binned and turned frames, and their transposes") {
  const Space space;
  const int P = 2, S = 7, n = 11;
  const Values values = random_values(at(P * S * n));
  const auto frames = to_device<double>(values, S, n);
  for (const int bin : {1, 2, 4}) {
    Values expected;
    for (int p = 0; p < P; ++p)
      for (int s = 0; s < S / bin; ++s)
        for (int i = 0; i < n / bin; ++i) {
          double sum = 0;
          for (int k = 0; k < bin * bin; ++k)
            sum += values[at((p * S + s * bin + k / bin) * n + i * bin + k % bin)];
          expected.push_back(sum / (bin * bin));
        }
    const auto binned = to_device<double>(Values(expected.size(), NAN), S / bin, n / bin);
    bin_frames(space, frames, binned, bin);
    CHECK(relative_error(to_host(binned), expected) < 1e-15);
    CHECK(gap(
              frames, binned, [&](const auto& in, const auto& out) { bin_frames(space, in, out, bin); },
              [&](const auto& in, const auto& out) { bin_frames_transpose(space, in, out, bin); }) < 1e-14);
  }
  CHECK_THROWS_MATCHES(bin_frames(space, frames, frames, 2), Error,
                       matches("bin_frames: binned: expected [2, 3, 5]"));

  const auto wider = to_device<double>(random_values(at(P * S * 17)), S, 17);
  CHECK(gap(
            frames, wider, [&](const auto& in, const auto& out) { extend_detector(space, in, out, 4); },
            [&](const auto& in, const auto& out) { extend_detector_transpose(space, in, out, 4); }) < 1e-14);
  extend_detector(space, frames, wider, 4);
  const Values extended = to_host(wider);
  for (int k = 0; k < P * S * 17; ++k)
    CHECK(extended[at(k)] == values[at(k / 17 * n + std::clamp(k % 17 - 4, 0, n - 1))]);
  CHECK_THROWS_MATCHES(extend_detector(space, frames, wider, 7), Error,
                       matches("extend_detector: wider: expected rows"));

  // A plane is interpolated exactly, where the turned pixels are on the detector.
  const int rows = 9, angles = 3, width = 15;
  const RollOptions roll{.angle = 0.2, .row = 4, .column = 7.5};
  const auto plane = [](double s, double i, int p) { return 2 + 0.3 * s - 0.5 * i + p; };
  Values upright, planes;
  for (int s = 0; s < rows; ++s)
    for (int p = 0; p < angles; ++p)
      for (int i = 0; i < width; ++i) {
        const double y = 4 + std::cos(0.2) * (s - 4) - std::sin(0.2) * (i - 7.5),
                     x = 7.5 + std::sin(0.2) * (s - 4) + std::cos(0.2) * (i - 7.5);
        planes.push_back(plane(s, i, p));
        upright.push_back(plane(std::clamp(y, 0., 8.), std::clamp(x, 0., 14.), p));
      }
  const auto turned = to_device<double>(Values(planes.size(), NAN), angles, width),
             seen = to_device<double>(planes, angles, width);
  turn_detector(space, seen, turned, roll);
  CHECK(relative_error(to_host(turned), upright) < 1e-14);
  const auto other = to_device<double>(random_values(planes.size(), -1, 1, 4), angles, width);
  CHECK(gap(
            other, seen, [&](const auto& in, const auto& out) { turn_detector(space, in, out, roll); },
            [&](const auto& in, const auto& out) { turn_detector_transpose(space, in, out, roll); }) < 1e-14);
}

TEST_CASE("half acquisition: the axis is found and every ray weighs the same") {
  const Space space;
  const int full = 300, P = 360;
  const Values angles = even_angles(P, 2 * pi, 0.3);
  for (const double axis : {149.5, 151.0, 148.3}) // of the whole detector
    for (const bool right : {true, false}) {
      const int n = 180, cut = right ? 0 : full - n; // the axis is 29 pixels from an end, or 28
      const double centre = axis - cut;
      CAPTURE(centre);
      const Values whole = sinogram(shepp_logan(140), full, angles, axis),
                   noise = random_values(at(P * n), -0.5, 0.5, 7);
      Values seen, noisy;
      for (int k = 0; k < P * n; ++k) {
        seen.push_back(whole[at(k / n * full + cut + k % n)]);
        noisy.push_back(seen.back() + noise[at(k)] + (k % n == 50 ? 20 : 0)); // and a stripe
      }
      const auto volume = to_device<float>(noisy, P, n);
      const Kokkos::View<float**, Kokkos::LayoutRight, Space> one(volume.data(), P, n);
      CHECK(std::abs(find_overlap(space, one, angles) - centre) < 0.2);
      const HalfAcquisition place = half_acquisition(n, centre);
      CHECK(place.width == int(std::ceil(2 * (right ? centre : n - 1 - centre))) + 1);
      CHECK(place.centre == centre + place.offset);
      const auto in = to_device<double>(seen, P, n),
                 out = to_device<double>(Values(at(P * place.width), NAN), P, place.width);
      weigh_half_acquisition(space, in, out, centre);
      const double twice = 2 * place.centre;
      if (twice == std::round(twice)) { // rays of opposite views meet
        const Values rows = to_host(out);
        double worst = 0;
        for (int p = 0; p < P / 2; ++p)
          for (int j = 1; j < place.width; ++j) { // 1: its opposite one may be beyond the row
            const int opposite = int(twice) - j, i = j - place.offset + cut;
            const double here = rows[at(p * place.width + j)],
                         there = opposite >= 0 && opposite < place.width
                                     ? rows[at((p + P / 2) * place.width + opposite)]
                                     : 0;
            if (i >= 0 && i < full)
              worst = std::max(worst, std::abs(here + there - 2 * whole[at(p * full + i)]));
          }
        CHECK(worst < 1e-9);
      }
      const auto weights = to_device<double>(random_values(at(P * place.width)), P, place.width);
      CHECK(
          gap(
              in, weights, [&](const auto& a, const auto& b) { weigh_half_acquisition(space, a, b, centre); },
              [&](const auto& a, const auto& b) { weigh_half_acquisition_transpose(space, a, b, centre); }) <
          1e-14);
    }
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> rows("rows", 20, 32);
  CHECK_THROWS_MATCHES(find_overlap(space, rows, even_angles(20)), Error, matches("350 degrees"));
  // Nothing has no axis.
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> whole_turn("whole_turn", 40, 16);
  for (const auto& [value, words] :
       {std::pair{0., "values that differ, those of an object, found 0 everywhere"},
        {3.5, "found 3.5 everywhere"},
        {double(NAN), "finite values, found 640 of 640 that are not"}}) {
    Test::deep_copy(rows, float(value));
    Test::deep_copy(whole_turn, float(value));
    CHECK_THROWS_MATCHES(find_overlap(space, whole_turn, even_angles(40, 2 * pi)), Error, matches(words));
    CHECK_THROWS_MATCHES(find_centre(space, rows, even_angles(20)), Error, matches(words));
  }
  CHECK_THROWS_MATCHES(half_acquisition(20, 21), Error,
                       matches("half_acquisition: centre: expected from 0 to 19"));
}

TEST_CASE("flat fields that drift, and beams that harden") {
  const Space space;
  const int P = 7, S = 2, n = 5, F = 3;
  const Values attenuation = random_values(at(P * S * n), 0, 2), dark = random_values(at(S * n), 10, 20, 2),
               flats = random_values(at(F * S * n), 900, 1300, 3), places{-1, 0, 0.25, 1, 1.5, 2, 9};
  Values raw, expected(attenuation.size());
  for (int p = 0; p < P; ++p)
    for (int k = 0; k < S * n; ++k) {
      const double place = std::clamp(places[at(p)], 0., F - 1.);
      const int first = std::min(int(place), F - 2);
      const double light =
                       flats[at(first * S * n + k)] +
                       (place - first) * (flats[at((first + 1) * S * n + k)] - flats[at(first * S * n + k)]),
                   value = attenuation[at(p * S * n + k)];
      raw.push_back(dark[at(k)] + (light - dark[at(k)]) * std::exp(-value));
      expected[at((k / n * P + p) * n + k % n)] = value;
    }
  const auto out = to_device<double>(Values(expected.size(), NAN), P, n),
             frames = to_device<double>(raw, S, n), lights = to_device<double>(flats, S, n),
             place = to_device<double>(places, 1, P), shades = to_device<double>(dark, S, n);
  using Row = Kokkos::View<double*, Space>;
  using Frame = Kokkos::View<double**, Kokkos::LayoutRight, Space>;
  const Frame shade(shades.data(), S, n);
  normalise_projections(space, frames, shade, lights, Row(place.data(), P), out);
  CHECK(relative_error(to_host(out), expected) < 1e-13);
  CHECK_THROWS_MATCHES(normalise_projections(space, frames, shade, shades, Row("places", 4), out), Error,
                       matches("normalise_projections: places: expected [7]"));

  correct_beam_hardening(space, out, {1.1, -0.2, 0.05});
  for (double& value : expected)
    value = 1.1 * value - 0.2 * value * value + 0.05 * value * value * value;
  CHECK(relative_error(to_host(out), expected) < 1e-13);
  CHECK_THROWS_MATCHES(correct_beam_hardening(space, out, {}), Error,
                       matches("coefficients: expected from 1 to 8"));
}

namespace {

/// The steps of Vo, Atwood and Drakopoulos on one sinogram [P, n], with the conditions of StripeMethod::All, written down
/// as they are defined.
struct AllStripes {
  int P, n, large, window;
  double ratio;

  static double median(Values values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  }
  int mirrored(int i) const {
    i = std::abs(i);
    return std::clamp(i >= n ? 2 * (n - 1) - i : i, 0, n - 1);
  }
  template <class Of>
  double around(const Of& of, int i, int count) const {
    Values values;
    for (int k = i - count / 2; k <= i + count / 2; ++k)
      values.push_back(of(mirrored(k)));
    return median(values);
  }
  /// 1 for what stands out above, -1 below.
  std::vector<int> sides(const Values& values, double floor) const {
    Values sorted = values;
    std::ranges::sort(sorted);
    double x = 0, y = 0, xx = 0, xy = 0;
    const int drop = n / 4, count = n - 2 * drop;
    for (int k = drop; k < n - drop; ++k)
      x += k, y += sorted[at(k)], xx += double(k) * k, xy += k * sorted[at(k)];
    const double slope = (xy - x * y / count) / (xx - x * x / count), low = (y - slope * x) / count,
                 high = low + slope * (n - 1), noise = std::max(high - low, floor);
    std::vector<int> result;
    for (const double v : values)
      result.push_back(sorted.back() - high >= ratio * noise && v > high + 0.5 * ratio * noise ? 1
                       : low - sorted[0] >= ratio * noise && v < low - 0.5 * ratio * noise     ? -1
                                                                                               : 0);
    return result;
  }
  std::vector<bool> with_neighbours(const std::vector<bool>& stripes) const {
    std::vector<bool> wider = stripes;
    for (int i = 0; i < n; ++i)
      wider[at(i)] = stripes[at(i)] || (i > 0 && stripes[at(i - 1)]) || (i + 1 < n && stripes[at(i + 1)]);
    return wider;
  }
  std::vector<bool> fluctuating(const Values& change, const Values& compared) const {
    const std::vector<int> side = sides(compared, 1e-6);
    std::vector<bool> stripes(at(n));
    for (int i = 0; i < n; ++i) {
      const auto beside = [&](int first, int last) {
        const auto begin = change.begin();
        return median(Values(begin + std::max(first, 0), begin + std::min(last + 1, n)));
      };
      const double left = beside(i > 0 ? i - 15 : 1, i > 0 ? i - 1 : 15),
                   right = beside(i + 1 < n ? i + 1 : n - 16, i + 1 < n ? i + 15 : n - 2),
                   own = change[at(i)];
      stripes[at(i)] =
          side[at(i)] != 0 && (own > 2 * std::max(left, right) || 2 * own < std::min(left, right));
    }
    return with_neighbours(stripes);
  }
  std::vector<bool> wide(const Values& differences, const Values& shares, double noise) const {
    const std::vector<int> side = sides(differences, noise);
    std::vector<bool> stripes(at(n));
    for (int begin = 0; begin < n;) {
      int end = begin + 1; // of those on one side
      while (end < n && side[at(end)] == side[at(begin)])
        ++end;
      if (side[at(begin)] != 0 && begin >= 2 && end <= n - 2 && 2 * (end - begin) <= large) {
        const auto height = [&](int i) { return side[at(begin)] * differences[at(i)]; };
        double most = 0, share = 0;
        for (int i = begin; i < end; ++i)
          most = std::max(most, height(i)), share += shares[at(i)] / (end - begin);
        const bool steep = height(std::min(begin + 1, end - 1)) - height(begin - 2) >= most / 2 &&
                           height(std::max(end - 2, begin)) - height(end + 1) >= most / 2;
        for (int i = begin; i < end; ++i)
          stripes[at(i)] = steep && share >= 0.7;
      }
      begin = end;
    }
    return with_neighbours(stripes);
  }

  Values operator()(Values q) const {
    Values change(at(n)), means(at(n));
    double floor = 0;
    for (int i = 0; i < n; ++i) {
      for (int p = 0; p < P; ++p) {
        double sum = 0;
        const int first = std::max(0, p - 5), last = std::min(P - 1, p + 5);
        for (int k = first; k <= last; ++k)
          sum += q[at(k * n + i)] / (last - first + 1);
        change[at(i)] += std::abs(q[at(p * n + i)] - sum) / P;
        means[at(i)] += q[at(p * n + i)] / P;
      }
      floor += 0.002 * std::abs(means[at(i)]) / n;
    }
    for (double& value : change)
      value += floor;
    Values compared;
    double usual = 0;
    for (int i = 0; i < n; ++i) {
      const double here = around([&](int k) { return change[at(k)]; }, i, large);
      compared.push_back(change[at(i)] / here);
      usual += here / n;
    }
    std::vector<bool> dead = fluctuating(change, compared);
    for (const int i : {0, 1, n - 2, n - 1})
      dead[at(i)] = false;
    const Values before = q;
    for (int i = 0; i < n; ++i)
      if (dead[at(i)]) {
        int left = i, right = i;
        while (dead[at(left)])
          --left;
        while (dead[at(right)])
          ++right;
        for (int p = 0; p < P; ++p)
          q[at(p * n + i)] =
              (before[at(p * n + left)] * (right - i) + before[at(p * n + right)] * (i - left)) /
              (right - left);
      }
    // Sorted columns, [n][P].
    std::vector<std::vector<std::pair<double, int>>> ranked(at(n));
    for (int i = 0; i < n; ++i) {
      for (int p = 0; p < P; ++p)
        ranked[at(i)].emplace_back(q[at(p * n + i)], p);
      std::ranges::sort(ranked[at(i)]);
    }
    std::vector<Values> medians(at(n));
    Values differences, shares;
    for (int i = 0; i < n; ++i) {
      Values some;
      for (int r = 0; r < P; ++r) {
        medians[at(i)].push_back(around([&](int k) { return ranked[at(k)][at(r)].first; }, i, large));
        if (r >= P / 20 && r < P - P / 20)
          some.push_back(ranked[at(i)][at(r)].first - medians[at(i)].back());
      }
      const double mean = std::accumulate(some.begin(), some.end(), 0.) / double(some.size());
      differences.push_back(mean);
      shares.push_back(
          double(std::ranges::count_if(
              some, [&](double value) { return (mean > 0 ? value : -value) > std::abs(mean) / 4; })) /
          double(some.size()));
    }
    const std::vector<bool> large_ones =
        wide(differences, shares, std::max(floor, 5.6 * usual / std::sqrt(P)));
    for (int i = 0; i < n; ++i)
      for (int r = 0; large_ones[at(i)] && r < P; ++r)
        ranked[at(i)][at(r)].first = medians[at(i)][at(r)];
    for (int i = 0; i < n; ++i)
      for (int r = 0; r < P; ++r)
        q[at(ranked[at(i)][at(r)].second * n + i)] =
            around([&](int k) { return ranked[at(k)][at(r)].first; }, i, window);
    found = {std::ranges::count(dead, true), std::ranges::count(large_ones, true)};
    return q;
  }
  mutable std::array<std::ptrdiff_t, 2> found = {}; ///< marked columns
};

} // namespace

TEMPLATE_TEST_CASE("all stripes go by the steps of the article", "", float, double) {
  const Space space;
  const int n = 130, P = 90, S = 18; // more slices than are marked at once
  const Values angles = even_angles(P), clean = sinogram(shepp_logan(60), n, angles, 64);
  Values sinograms, expected, stripeless;
  for (int s = 0; s < S; ++s) {
    const Values noise = random_values(clean.size(), -0.3, 0.3, unsigned(s) + 1);
    Values striped(clean.size()), noisy(clean.size());
    for (int k = 0; k < n * P; ++k) {
      const int i = k % n, p = k / n;
      noisy[at(k)] = 10 + clean[at(k)] + noise[at(k)];
      striped[at(k)] = i == 40 + s ? 20. + 30 * noise[at(k)]                      // flickers
                                   : noisy[at(k)] * (i >= 80 && i < 88 ? 0.6 : 1) // large
                                         + (i == 20              ? 1.5
                                            : i == 104 && p < 40 ? -2
                                                                 : 0); // small, partial
    }
    const AllStripes steps{P, n, 31, 21, 3};
    const Values result = steps(striped);
    CHECK(steps.found[0] >= 3);
    CHECK(steps.found[1] >= 10);
    CHECK(steps.found[0] + steps.found[1] < 30);
    sinograms.insert(sinograms.end(), striped.begin(), striped.end());
    expected.insert(expected.end(), result.begin(), result.end());
    stripeless.insert(stripeless.end(), noisy.begin(), noisy.end());
  }
  const auto view = to_device<TestType>(sinograms, P, n);
  StripeOptions options{.method = StripeMethod::All, .window = 21, .large_window = 31};
  StripeRemoval<Space, TestType>(space, P, n, options).execute(space, view);
  CHECK(relative_error(to_host(view), expected) < 10 * rounding<TestType>);
  CHECK(relative_error(to_host(view), stripeless) < relative_error(sinograms, stripeless));
  options.large_window = 30;
  CHECK_THROWS_MATCHES(
      (StripeRemoval<Space, TestType>(space, P, n, options)), Error,
      matches("StripeRemoval: options.large_window: expected an odd number up to 63, found 30"));
}

TEST_CASE("what has no stripes has the same slices after all methods against them") {
  const Space space;
  const int n = 200, P = 300;
  const Values angles = even_angles(P);
  const StripeOptions all{.method = StripeMethod::All, .window = 1}; // no medians of few columns
  struct Object {
    std::vector<Ellipse> ellipses;
    double left; ///< of a stripe, at most; one that is no higher than how the object goes on around it stays
  };
  for (const auto& [object, left] :
       {Object{shepp_logan(80), 0.7}, Object{{{40, 20, 10, 10, 0, 1}}, 0.3},
        Object{{{0, 0, 60, 60, 0, 1}}, 1.001}, Object{{{5, 0, 60, 60, 0, 1}, {2, 1, 6, 6, 0, 3}}, 1.001},
        Object{{{0, 0, 90, 80, 0, 1}}, 1.001}})
    for (const double noise : {0., 0.003, 0.05}) {
      const Values clean = sinogram(object, n, angles, 97.25);
      const double most = *std::ranges::max_element(clean);
      const Values random = random_values(clean.size(), -1.7 * noise * most, 1.7 * noise * most);
      Values seen(clean.size()), striped(clean.size());
      for (int k = 0; k < n * P; ++k) {
        seen[at(k)] = clean[at(k)] + random[at(k)];
        striped[at(k)] = seen[at(k)] + (k % n >= 100 && k % n < 106 ? 0.2 * most : 0);
      }
      CAPTURE(most, noise);
      const auto after = [&](const Values& values) {
        const auto view = to_device<float>(values, P, n);
        StripeRemoval<Space, float>(space, P, n, all).execute(space, view);
        return to_host(view);
      };
      CHECK(relative_error(after(seen), seen) < 1e-6);
      CHECK(relative_error(after(striped), seen) < left * relative_error(striped, seen));
    }
}

namespace {

/// One level of a periodic wavelet transform of values that lie `stride` apart: smooth ones, then details.
void transform(double* values, int count, int stride, bool back) {
  // Ten numbers with the properties that define them, which the test checks.
  const double h[] = {0.160102397974,  0.603829269797, 0.724308528438,  0.138428145901,  -0.242294887066,
                      -0.032244869585, 0.077571493840, -0.006241490213, -0.012580751999, 0.003335725285};
  Values in, out(at(count));
  for (int i = 0; i < count; ++i)
    in.push_back(values[i * stride]);
  for (int i = 0; i < count / 2; ++i)
    for (int t = 0; t < 10; ++t) {
      const double g = (t % 2 ? -1 : 1) * h[9 - t];
      const int fine = (2 * i + t) % count;
      if (back) {
        out[at(fine)] += h[t] * in[at(i)] + g * in[at(i + count / 2)];
      } else {
        out[at(i)] += h[t] * in[at(fine)];
        out[at(i + count / 2)] += g * in[at(fine)];
      }
    }
  for (int i = 0; i < count; ++i)
    values[i * stride] = out[at(i)];
}

/// Stripe removal as the article has it, with wavelets along both axes of [P, n], n columns with zeros around them.
void remove_stripes(Values& image, int P, int n, int levels, double damping) {
  for (int level = 0; level < levels; ++level) {
    const int rows = P >> level, columns = n >> level;
    for (int p = 0; p < rows; ++p)
      transform(&image[at(p * n)], columns, 1, false);
    for (int i = 0; i < columns; ++i)
      transform(&image[at(i)], rows, n, false);
    for (int i = columns / 2; i < columns; ++i) { // details along the columns, smooth along the angles
      std::vector<std::complex<double>> spectrum;
      const int count = rows / 2;
      for (int k = 0; k < count; ++k) {
        std::complex<double> sum = 0;
        for (int p = 0; p < count; ++p)
          sum += image[at(p * n + i)] * std::polar(1., -2 * pi * (k * p % count) / count);
        const double frequency = std::min(k, count - k);
        spectrum.push_back(sum * (1 - std::exp(-0.5 * std::pow(frequency / damping, 2))));
      }
      for (int p = 0; p < count; ++p) {
        std::complex<double> sum = 0;
        for (int k = 0; k < count; ++k)
          sum += spectrum[at(k)] * std::polar(1., 2 * pi * (k * p % count) / count);
        image[at(p * n + i)] = sum.real() / count;
      }
    }
  }
  for (int level = levels; level-- > 0;) {
    const int rows = P >> level, columns = n >> level;
    for (int i = 0; i < columns; ++i)
      transform(&image[at(i)], rows, n, true);
    for (int p = 0; p < rows; ++p)
      transform(&image[at(p * n)], columns, 1, true);
  }
}

} // namespace

TEMPLATE_TEST_CASE("wavelets take stripes out as the article does", "", float, double) {
  const Space space;
  const int P = 256, n = 56, padded = 136, slices = 18; // beside what the plan works on at once
  const StripeOptions options{.method = StripeMethod::Wavelet, .levels = 3, .damping = 1.5, .dead = 0};
  const StripeRemoval<Space, TestType> removal(space, P, n, options);
  CHECK(removal.memory_bytes() == StripeRemoval<Space, TestType>::bytes_needed(space, P, n, options));
  const Values strengths = random_values(at(slices * n), -1, 1, 3), noise = random_values(at(slices * P * n));
  Values sinograms(at(slices * P * n));
  for (int i = 0; i < slices * P * n; ++i) {
    const int column = i % n, p = i / n % P, slice = i / n / P;
    const double inside = column >= 8 && column < 48; // air at both edges
    sinograms[at(i)] = inside * (strengths[at(slice * n + column)] * (1 + 0.3 * std::sin(2 * pi * p / P)) +
                                 std::cos(0.3 * column + 0.05 * p) + 0.1 * noise[at(i)]);
  }
  const auto device = to_device<TestType>(sinograms, P, n);
  removal.execute(space, device);
  const Values found = to_host(device);
  double changed = 0;
  for (const int slice : {0, 17}) {
    Values image(at(P * padded));
    for (int i = 0; i < P * n; ++i)
      image[at(i / n * padded + i % n)] = sinograms[at(slice * P * n + i)];
    remove_stripes(image, P, padded, 3, 1.5);
    Values expected, ours;
    for (int i = 0; i < P * n; ++i) {
      expected.push_back(image[at(i / n * padded + i % n)]);
      ours.push_back(found[at(slice * P * n + i)]);
      changed = std::max(changed, std::abs(ours.back() - sinograms[at(slice * P * n + i)]));
    }
    CHECK(relative_error(ours, expected) < 1e-3); // what wavelets along the angles see of low frequencies
  }
  CHECK(changed > 0.5);

  const Values other = random_values(at(slices * P * n), -1, 1, 7);
  const auto forward = to_device<TestType>(noise, P, n), transposed = to_device<TestType>(other, P, n);
  removal.execute(space, forward); // no air at the edges, which go on
  removal.transpose(space, transposed);
  CHECK(std::abs(dot(to_host(forward), other) - dot(noise, to_host(transposed))) <
        (sizeof(TestType) == 4 ? 1e-7 : 1e-14) * std::sqrt(dot(noise, noise) * dot(other, other)));
}

TEST_CASE("wavelets leave nothing of a stripe and all of what is none") {
  const Space space;
  const int P = 90, n = 61;
  const StripeRemoval<Space, double> removal(space, P, n,
                                             {.method = StripeMethod::Wavelet, .levels = 5, .dead = 0});
  Values stripe(at(P * n)), waves(at(P * n)), even(at(P * n), 2.5);
  for (int i = 0; i < P * n; ++i) {
    stripe[at(i)] = i % n == 30 ? 1 : 0;
    waves[at(i)] = std::cos(2 * pi * 30 * (i / n) / P) * (i % n == 30 ? 1 : std::sin(0.2 * (i % n)));
  }
  for (const auto& [before, keeps] : {std::pair{stripe, false}, {waves, true}, {even, true}}) {
    const auto device = to_device<double>(before, P, n);
    removal.execute(space, device);
    const Values after = to_host(device);
    // Wavelets of 5 levels leave the mean over 32 columns of a stripe, about.
    if (keeps)
      CHECK(relative_error(after, before) < 1e-12);
    else
      CHECK(std::abs(*std::ranges::max_element(after)) < 1.5 / 32);
  }
  const StripeRemoval<Space, double> sorting(space, P, n);
  CHECK_THROWS_MATCHES(sorting.transpose(space, to_device<double>(even, P, n)), Error,
                       matches("StripeRemoval::transpose: options"));
  CHECK_THROWS_MATCHES((StripeRemoval<Space, double>(space, P, n, {.levels = 0})), Error,
                       matches("options.levels"));
}
