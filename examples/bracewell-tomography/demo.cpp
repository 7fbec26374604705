// SPDX-License-Identifier: MIT
#include "bracewell-tomography/demo.hpp"

#include "common/hdf5.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace Bracewell::Examples {
namespace {

/// Lengths in units of half the width; z from -1 to 1 over the rows. Attenuation over that half width.
struct Ellipsoid {
  double x, y, z, a, b, c, angle, value;
};

constexpr Ellipsoid object[] = {
    {0, 0, 0, 0.72, 0.84, 1.6, 0.3, 1.0},         {0.02, -0.03, 0, 0.64, 0.76, 1.5, 0.3, -0.35},
    {-0.25, 0.3, 0.2, 0.16, 0.1, 0.8, -0.4, 0.5}, {0.3, 0.2, -0.3, 0.1, 0.22, 0.9, 0.8, -0.3},
    {0.05, -0.35, 0, 0.2, 0.2, 0.7, 0, -0.65},    {0.05, -0.35, 0, 0.06, 0.06, 1, 0, 1.2},
    {-0.3, -0.15, 0.5, 0.05, 0.05, 0.6, 0, 0.8},  {0.35, -0.2, -0.5, 0.04, 0.04, 0.7, 0, 0.8}};

/// The ellipses in which a row cuts the object, in pixels.
std::vector<Ellipsoid> cuts(const TomographyDemo& demo, int row) {
  std::vector<Ellipsoid> ellipses;
  for (const Ellipsoid& e : object) {
    const double z = (2.0 * row + 1) / demo.rows - 1, inside = 1 - std::pow((z - e.z) / e.c, 2),
                 half = demo.width / 2.0;
    if (inside <= 0)
      continue;
    const double scale = std::sqrt(inside) * half;
    ellipses.push_back({e.x * half, e.y * half, 0, e.a * scale, e.b * scale, 0, e.angle, e.value / half});
  }
  return ellipses;
}

/// Integrals of an ellipse along lines of one direction.
class Shadow {
public:
  Shadow(const Ellipsoid& e, double theta)
      : half_(std::hypot(e.a * std::cos(theta - e.angle), e.b * std::sin(theta - e.angle))),
        x_(e.x * std::cos(theta)), y_(e.y * std::sin(theta)), area_(2 * e.value * e.a * e.b) {}

  double at(double s) const {
    const double distance = s - x_ - y_;
    return std::abs(distance) < half_
               ? area_ * std::sqrt(half_ * half_ - distance * distance) / (half_ * half_)
               : 0;
  }

private:
  double half_, x_, y_, area_;
};

/// Counts of a detector, the same on every machine.
class Detector {
public:
  explicit Detector(const TomographyDemo& demo) : demo_(demo) {
    for (int i = 0; i < demo.rows * demo.width; ++i)
      gain_.push_back((1 - 0.3 * std::pow(2.0 * (i % demo.width) / demo.width - 1, 2)) *
                      (1 + 0.03 * normal()));
  }

  std::uint16_t count(int row, int column, double transmission) {
    const double light =
        demo_.counts * gain_[static_cast<std::size_t>(row) * demo_.width + column] * transmission;
    const double noisy = offset_ + light + std::sqrt(light + 25) * normal();
    return static_cast<std::uint16_t>(std::clamp(std::round(noisy), 0.0, 65535.0));
  }

private:
  double normal() {
    const auto uniform = [this] { return (generator_() + 0.5) / 4294967296.0; };
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  static constexpr double offset_ = 100; ///< of the electronics
  TomographyDemo demo_;
  std::mt19937 generator_{7};
  std::vector<double> gain_;
};

} // namespace

void simulate_scan(const TomographyDemo& demo, const std::filesystem::path& file) {
  Detector detector(demo);
  Hdf5Writer writer(file);
  std::vector<std::uint16_t> frame(static_cast<std::size_t>(demo.rows * demo.width));
  const auto write_frames = [&](const std::string& name, int count, const auto& transmission) {
    writer.create_dataset<std::uint16_t>(name, {count, demo.rows, demo.width});
    for (int f = 0; f < count; ++f) {
      for (int row = 0; row < demo.rows; ++row)
        for (int i = 0; i < demo.width; ++i)
          frame[static_cast<std::size_t>(row) * demo.width + i] =
              detector.count(row, i, transmission(f, row, i));
      writer.write<std::uint16_t>(name, {{f, 0, 0}, {1, demo.rows, demo.width}}, frame);
    }
  };
  write_frames("/exchange/data_white", demo.flats, [](int, int, int) { return 1.0; });
  write_frames("/exchange/data_dark", demo.darks, [](int, int, int) { return 0.0; });
  std::vector<double> theta;
  for (int p = 0; p < demo.angles; ++p)
    theta.push_back(demo.span * p / demo.angles);
  std::vector<Shadow> shadows;
  write_frames("/exchange/data", demo.angles, [&](int p, int row, int i) {
    if (i == 0) { // of a row, whose pixels come one after the other
      shadows.clear();
      for (const Ellipsoid& e : cuts(demo, row))
        shadows.emplace_back(e, theta[static_cast<std::size_t>(p)] * std::numbers::pi / 180);
    }
    double sum = 0;
    for (const Shadow& shadow : shadows)
      sum += shadow.at(i - demo.centre);
    const bool changed = i == demo.width / 3 || i == demo.width / 2 + 20 || i == 3 * demo.width / 4;
    return std::exp(-sum) * (changed ? 0.93 : 1);
  });
  writer.write<double>("/exchange/theta", {demo.angles}, theta);
  writer.write_attribute("/exchange/theta", "units", std::string("degrees"));
  writer.commit();
}

std::vector<float> true_slices(const TomographyDemo& demo) {
  constexpr int samples = 4;
  std::vector<float> slices;
  for (int row = 0; row < demo.rows; ++row) {
    const auto ellipses = cuts(demo, row);
    for (int y = 0; y < demo.width; ++y)
      for (int x = 0; x < demo.width; ++x) {
        double sum = 0;
        for (const Ellipsoid& e : ellipses) {
          const double right = x - demo.width / 2 - e.x, up = demo.width / 2 - y - e.y;
          if (std::max(std::abs(right), std::abs(up)) > std::max(e.a, e.b) + 1)
            continue;
          const double cosine = std::cos(e.angle), sine = std::sin(e.angle);
          for (int i = 0; i < samples * samples; ++i) {
            const double dx = right + (i % samples + 0.5) / samples - 0.5;
            const double dy = up + (i / samples + 0.5) / samples - 0.5;
            const double u = (dx * cosine + dy * sine) / e.a, v = (dy * cosine - dx * sine) / e.b;
            sum += u * u + v * v < 1 ? e.value : 0;
          }
        }
        slices.push_back(static_cast<float>(sum / (samples * samples)));
      }
  }
  return slices;
}

double error_of_slices(const TomographyDemo& demo, const std::vector<float>& slices,
                       const std::vector<float>& truth) {
  double difference = 0, norm = 0;
  for (std::size_t k = 0; k < truth.size(); ++k) {
    const int pixel = static_cast<int>(k % static_cast<std::size_t>(demo.width * demo.width));
    if (std::hypot(pixel % demo.width - demo.width / 2, pixel / demo.width - demo.width / 2) >
        0.45 * demo.width)
      continue;
    difference += std::pow(double(slices[k]) - truth[k], 2);
    norm += std::pow(double(truth[k]), 2);
  }
  return std::sqrt(difference / norm);
}

} // namespace Bracewell::Examples
