// SPDX-License-Identifier: MIT
// The library behind bracewell-reconstruct: local resolution of maps that are known.
#include "cryoem/local_resolution.hpp"
#include "cryoem/map.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>
#include <vector>

using namespace Bracewell::Examples;

namespace {

constexpr double pixel_size = 3;

/// A real volume with random values, and what filters by |k| (periods per box) leave of it: separable sums.
class RandomVolume {
public:
  RandomVolume(int box, unsigned seed) : n_(static_cast<std::size_t>(box)) {
    std::mt19937 engine(seed);
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < n_ * n_ * n_; ++i)
      spectrum_.push_back(normal(engine));
    transform(spectrum_, -1);
  }

  template <class Filter>
  std::vector<double> filtered(const Filter& filter) const {
    auto values = spectrum_;
    const auto frequency = [this](std::size_t i) { return double(i) - (2 * i > n_ ? double(n_) : 0.0); };
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] *= filter(std::hypot(frequency(i / (n_ * n_)), frequency(i / n_ % n_), frequency(i % n_))) /
                   double(values.size());
    transform(values, 1);
    std::vector<double> real;
    for (const auto& value : values)
      real.push_back(value.real());
    return real;
  }

private:
  using Values = std::vector<std::complex<double>>;

  void transform(Values& values, int sign) const {
    std::vector<std::complex<double>> waves, line(n_);
    for (std::size_t i = 0; i < n_; ++i)
      waves.push_back(std::polar(1.0, sign * 2 * std::numbers::pi * double(i) / double(n_)));
    for (const std::size_t stride : {std::size_t{1}, n_, n_ * n_})
      for (std::size_t begin = 0; begin < values.size(); ++begin) {
        if (begin / stride % n_ != 0)
          continue;
        for (std::size_t k = 0; k < n_; ++k) {
          double re = 0, im = 0;
          for (std::size_t x = 0, at = 0; x < n_; ++x, at = (at + k) % n_) {
            const auto value = values[begin + x * stride], wave = waves[at];
            re += value.real() * wave.real() - value.imag() * wave.imag();
            im += value.real() * wave.imag() + value.imag() * wave.real();
          }
          line[k] = {re, im};
        }
        for (std::size_t k = 0; k < n_; ++k)
          values[begin + k * stride] = line[k];
      }
  }

  std::size_t n_;
  Values spectrum_;
};

} // namespace

TEST_CASE("local resolution is the frequency up to which both halves have the same") {
  // Left of the middle halves agree up to 8 periods in the box, right of it up to 16; beyond, each has noise of its own.
  const double width = 16;
  for (const int box : {48, 45}) {
    const double limits[] = {box / 6.0, box / 3.0};
    for (const double decay : {0.0, 8.0}) { // amplitudes fall to exp(-2) at the Nyquist limit of an even box
      CAPTURE(box, decay);
      const RandomVolume common(box, 1), noises[] = {{box, 2}, {box, 3}};
      std::array<std::vector<float>, 2> halves;
      for (std::size_t half : {0, 1}) {
        halves[half].resize(static_cast<std::size_t>(box * box * box));
        for (const int right : {0, 1}) {
          const double limit = limits[right];
          const auto fall = [&](double k) { return std::exp(-decay * k * k / (box * box)); };
          const auto low = common.filtered([&](double k) { return k < limit ? fall(k) : 0.0; });
          const auto high = noises[half].filtered([&](double k) { return k < limit ? 0.0 : fall(k); });
          for (std::size_t i = 0; i < low.size(); ++i)
            if ((static_cast<int>(i) % box >= box / 2) == (right == 1))
              halves[half][i] = static_cast<float>(low[i] + high[i]);
        }
      }
      const Space space;
      const Bracewell::SoftSphere sphere{.radius = box / 2.0};
      const auto on_device = [&](const std::vector<float>& values) {
        return to_device(space, {.box = box, .values = values, .voxel_size = {}});
      };
      const LocalResolution found =
          local_resolution(space, on_device(halves[0]), on_device(halves[1]), sphere, width, pixel_size);
      const auto map = to_host(space, found.map);
      CHECK(found.width == width * pixel_size);
      double worst = 0;
      int outside = 0;
      std::size_t i = 0;
      for (int z = 0; z < box; ++z)
        for (int y = 0; y < box; ++y)
          for (int x = 0; x < box; ++x, ++i) {
            const int dz = z - box / 2, dy = y - box / 2, dx = x - box / 2;
            const double radius = std::sqrt(double(dz * dz + dy * dy + dx * dx));
            outside += radius > sphere.radius && map[i] != 0;
            // Windows that no point of the other side is in, nor much of what lies beyond the box.
            if (std::abs(dx) < width || radius > box / 2.0 - 4)
              continue;
            const double limit = limits[dx > 0] / box;
            worst = std::max(worst, std::abs(pixel_size / map[i] - limit));
          }
      CHECK(outside == 0);
      CHECK(worst < 1 / width / 2); // half of a window's resolution in frequency
    }
  }
}
