// SPDX-License-Identifier: MIT
// Objects whose parallel projections are known in closed form, and sums written out as they are defined.
#pragma once

#include "../deep_copy.hpp"

#include <Kokkos_Core.hpp>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

namespace TomographyTest {

using Space = Kokkos::DefaultExecutionSpace;
using Values = std::vector<double>;

/// Lengths in pixels from the image's centre floor(n/2).
struct Ellipse {
  double x, y, a, b, angle, value;
};

/// The head phantom of Shepp and Logan (IEEE Trans. Nucl. Sci. 21, 1974), with the contrasts of Toft, in a
/// disc of the given radius.
inline std::vector<Ellipse> shepp_logan(double radius) {
  const double table[10][6] = {{0, 0, 0.69, 0.92, 0, 1},          {0, -0.0184, 0.6624, 0.874, 0, -0.8},
                               {0.22, 0, 0.11, 0.31, -18, -0.2},  {-0.22, 0, 0.16, 0.41, 18, -0.2},
                               {0, 0.35, 0.21, 0.25, 0, 0.1},     {0, 0.1, 0.046, 0.046, 0, 0.1},
                               {0, -0.1, 0.046, 0.046, 0, 0.1},   {-0.08, -0.605, 0.046, 0.023, 0, 0.1},
                               {0, -0.605, 0.023, 0.023, 0, 0.1}, {0.06, -0.605, 0.023, 0.046, 0, 0.1}};
  std::vector<Ellipse> ellipses;
  for (const auto& e : table)
    ellipses.push_back(
        {radius * e[0], radius * e[1], radius * e[2], radius * e[3], e[4] * std::numbers::pi / 180, e[5]});
  return ellipses;
}

/// Line integrals at the detector's pixels, [angles, n].
inline Values sinogram(const std::vector<Ellipse>& ellipses, int n, const Values& angles, double centre) {
  Values values;
  for (const double theta : angles)
    for (int i = 0; i < n; ++i) {
      double sum = 0;
      for (const auto& e : ellipses) {
        const double s = i - centre - e.x * std::cos(theta) - e.y * std::sin(theta);
        const double half = std::hypot(e.a * std::cos(theta - e.angle), e.b * std::sin(theta - e.angle));
        if (std::abs(s) < half)
          sum += 2 * e.value * e.a * e.b * std::sqrt(half * half - s * s) / (half * half);
      }
      values.push_back(sum);
    }
  return values;
}

/// Mean over each pixel of [n, n].
inline Values image(const std::vector<Ellipse>& ellipses, int n, int samples = 4) {
  Values values;
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      double sum = 0;
      for (int i = 0; i < samples * samples; ++i)
        for (const auto& e : ellipses) {
          const double x = column - n / 2 + (i % samples + 0.5) / samples - 0.5 - e.x;
          const double y = row - n / 2 + (i / samples + 0.5) / samples - 0.5 - e.y;
          const double u = x * std::cos(e.angle) + y * std::sin(e.angle);
          const double v = y * std::cos(e.angle) - x * std::sin(e.angle);
          if (u * u / (e.a * e.a) + v * v / (e.b * e.b) < 1)
            sum += e.value;
        }
      values.push_back(sum / (samples * samples));
    }
  return values;
}

/// `count` angles evenly over `span`.
inline Values even_angles(int count, double span = std::numbers::pi, double first = 0) {
  Values angles;
  for (int p = 0; p < count; ++p)
    angles.push_back(first + span * p / count);
  return angles;
}

inline Values random_values(std::size_t count, double low = -1, double high = 1, unsigned seed = 1) {
  std::mt19937 generator(seed);
  Values values(count);
  for (double& value : values)
    value = low + (high - low) * generator() / 4294967296.0;
  return values;
}

template <class T>
using Volume = Kokkos::View<T***, Kokkos::LayoutRight, Space>;

/// On the device, as [values / (rows columns), rows, columns].
template <class T>
Volume<T> to_device(const Values& values, int rows, int columns) {
  const auto r = static_cast<std::size_t>(rows), c = static_cast<std::size_t>(columns);
  const Volume<T> view("values", values.size() / (r * c), r, c);
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < values.size(); ++i)
    host.data()[i] = static_cast<T>(values[i]);
  Test::deep_copy(view, host);
  return view;
}

template <class View>
Values to_host(const View& view) {
  const auto host = Test::on_host(view);
  return Values(host.data(), host.data() + host.size());
}

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

/// |a - b| / |b|.
inline double relative_error(const Values& a, const Values& b) {
  double difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference += (a[i] - b[i]) * (a[i] - b[i]);
  return a.size() == b.size() ? std::sqrt(difference / dot(b, b)) : INFINITY;
}

/// The same in the disc of the given radius about the centre of every slice [n, n].
inline double error_in_disc(const Values& a, const Values& b, int n, double radius) {
  Values inside_a, inside_b;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int pixel = static_cast<int>(i % static_cast<std::size_t>(n * n));
    if (std::hypot(pixel % n - n / 2, pixel / n - n / 2) < radius) {
      inside_a.push_back(a[i]);
      inside_b.push_back(b[i]);
    }
  }
  return relative_error(inside_a, inside_b);
}

template <class T>
constexpr double rounding = sizeof(T) == 4 ? 1e-6 : 1e-14;

} // namespace TomographyTest
