// SPDX-License-Identifier: MIT
#include "cryoem/directions.hpp"

#include "common/picture.hpp"
#include "common/text_table.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/reconstruct/fourier_shell_correlation.hpp>
#include <bracewell/rfft/layout.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace Bracewell::Examples {
namespace {

constexpr double degree = Kokkos::numbers::pi / 180;

/// Adds the weights of a row of two half spectra, and how many there are, to their directions.
struct AddWeights {
  MapWeight first, second;
  DirectionGrid grid;
  DeviceView<double* [2]> sums;
  std::int64_t step, rows; ///< every row so far from the last one, and their number along an axis

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const int n = static_cast<int>(first.extent(1)), columns = static_cast<int>(first.extent(3));
    const int z = static_cast<int>(row / rows * step), y = static_cast<int>(row % rows * step);
    const double kz = HalfSpectrumLayout<3>::frequency(z, n), ky = HalfSpectrumLayout<3>::frequency(y, n);
    const double nyquist = n / 2.0, low = 0.25 * nyquist, high = 0.9 * nyquist;
    double sum = 0, count = 0;
    int direction = -1;
    const auto flush = [&] {
      if (direction >= 0) {
        Kokkos::atomic_add(&sums(direction, 0), sum);
        Kokkos::atomic_add(&sums(direction, 1), count);
      }
      sum = count = 0;
    };
    for (int x = 0; x < columns; ++x) {
      const double squared = kz * kz + ky * ky + double(x) * x;
      if (squared < low * low || squared > high * high)
        continue;
      const int own = grid.find(x, ky, kz);
      if (own != direction) {
        flush();
        direction = own;
      }
      sum += double(first(0, z, y, x)) + second(0, z, y, x);
      count += 1;
    }
    flush();
  }
};

/// Adds products and powers of a row of two half spectra to shells of directions.
struct AddProducts {
  MapSpectrum first, second;
  int n, shells;
  DirectionGrid grid;
  DeviceView<double** [3]> sums;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const int z = static_cast<int>(row / n), y = static_cast<int>(row % n);
    const double kz = HalfSpectrumLayout<3>::frequency(z, n), ky = HalfSpectrumLayout<3>::frequency(y, n);
    for (int x = 0; x <= n / 2; ++x) {
      const double radius = Kokkos::sqrt(kz * kz + ky * ky + double(x) * x);
      const int shell = static_cast<int>(radius + 0.5);
      if (shell == 0 || shell >= shells)
        continue;
      const int direction = grid.find(x, ky, kz);
      const auto a = first(0, z, y, x), b = second(0, z, y, x);
      double* const sum = &sums(direction, shell, 0);
      Kokkos::atomic_add(sum, double(a.real()) * b.real() + double(a.imag()) * b.imag());
      Kokkos::atomic_add(sum + 1, double(a.real()) * a.real() + double(a.imag()) * a.imag());
      Kokkos::atomic_add(sum + 2, double(b.real()) * b.real() + double(b.imag()) * b.imag());
    }
  }
};

std::string text(double value, int digits = 3) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  return buffer;
}

} // namespace

DirectionGrid::DirectionGrid() {
  begins_[0] = 0;
  for (int ring = 0; ring < rings; ++ring) {
    const double area = std::cos(ring * 90.0 / rings * degree) - std::cos((ring + 1) * 90.0 / rings * degree);
    const double pole = 1 - std::cos(90.0 / rings * degree);
    begins_[ring + 1] = begins_[ring] + std::max(3, static_cast<int>(std::lround(3 * area / pole)));
  }
}

double DirectionGrid::tilt(int direction) const {
  const int ring = static_cast<int>(std::upper_bound(begins_, begins_ + rings, direction) - begins_) - 1;
  return (ring + 0.5) * 90 / rings;
}

double DirectionGrid::rot(int direction) const {
  const int ring = static_cast<int>(std::upper_bound(begins_, begins_ + rings, direction) - begins_) - 1;
  return (direction - begins_[ring] + 0.5) * 360 / (begins_[ring + 1] - begins_[ring]);
}

double DirectionGrid::cosine(int one, int other) const {
  const double a = tilt(one) * degree, b = tilt(other) * degree;
  return std::abs(std::cos(a) * std::cos(b) +
                  std::sin(a) * std::sin(b) * std::cos((rot(one) - rot(other)) * degree));
}

std::string Directions::warning() const {
  const double usual = std::max(median, mean);
  if (all.empty() || !(least < 0.1 * usual))
    return {};
  const auto lowest = std::ranges::min_element(all, {}, &Direction::weight);
  const auto few =
      std::ranges::count_if(all, [&](const Direction& one) { return one.weight * mean < 0.1 * usual; });
  return text(100.0 * double(few) / double(all.size())) +
         " % of all directions hold less than a tenth of the " + (median > mean ? "median" : "mean") +
         " weight, the least " + text(100 * least / usual, 2) + " % of it (tilt " + text(lowest->tilt) +
         ", rot " + text(lowest->rot) + "): the map is uncertain along them";
}

Directions weights_by_direction(const Space& space, const MapWeight& first, const MapWeight& second) {
  const DirectionGrid grid;
  const DeviceView<double* [2]> sums("Bracewell::examples::directions",
                                     static_cast<std::size_t>(grid.count()));
  const auto n = static_cast<std::int64_t>(first.extent(1));
  const std::int64_t step = std::max<std::int64_t>(1, n / 64), rows = (n + step - 1) / step; // samples enough
  Kokkos::parallel_for("Bracewell::examples::weights_by_direction",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, rows * rows),
                       AddWeights{first, second, grid, sums, step, rows});
  const auto host = values_on_host(sums);
  Directions result;
  std::vector<double> weights;
  for (int i = 0; i < grid.count(); ++i) {
    const double weight = host(i, 1) > 0 ? host(i, 0) / host(i, 1) : 0;
    weights.push_back(weight);
    result.mean += weight / grid.count();
  }
  for (int i = 0; i < grid.count(); ++i)
    result.all.push_back({grid.tilt(i),
                          grid.rot(i),
                          result.mean > 0 ? weights[static_cast<std::size_t>(i)] / result.mean : 0,
                          {}});
  std::ranges::sort(weights);
  result.least = weights.front();
  result.median = weights[weights.size() / 2];
  return result;
}

void add_resolutions(const Space& space, Directions& directions, const Map& first, const Map& second,
                     double pixel_size) {
  const DirectionGrid grid;
  const int n = static_cast<int>(first.extent(1)), shells = (n + 1) / 2;
  const FFT<Space, 3, float, Kokkos::complex<float>> forward(space, {n, n, n});
  const auto transformed = [&](const Map& map) {
    const auto spectrum = allocate<MapSpectrum>("spectrum", 1, n, n, n / 2 + 1);
    forward.execute(space, map, spectrum);
    return spectrum;
  };
  const DeviceView<double** [3]> sums("Bracewell::examples::cones", static_cast<std::size_t>(grid.count()),
                                      static_cast<std::size_t>(shells));
  Kokkos::parallel_for(
      "Bracewell::examples::add_resolutions",
      Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, std::int64_t(n) * n),
      AddProducts{transformed(first), transformed(second), n, shells, grid, sums});
  const auto host = values_on_host(sums);
  const double cone = std::cos(20 * degree);
  for (int i = 0; i < grid.count(); ++i) {
    std::vector<double> curve(static_cast<std::size_t>(shells), 1), cross(curve.size()), one(curve.size()),
        other(curve.size());
    for (int j = 0; j < grid.count(); ++j)
      if (grid.cosine(i, j) >= cone)
        for (int s = 1; s < shells; ++s) {
          const auto at = static_cast<std::size_t>(s);
          cross[at] += host(j, s, 0);
          one[at] += host(j, s, 1);
          other[at] += host(j, s, 2);
        }
    for (std::size_t s = 1; s < curve.size(); ++s) {
      const double norm = std::sqrt(one[s]) * std::sqrt(other[s]);
      curve[s] = norm > 0 ? cross[s] / norm : 0;
    }
    directions.all[static_cast<std::size_t>(i)].resolution =
        resolution(curve, 0.143, n, pixel_size > 0 ? pixel_size : 1);
  }
}

void write_directions(const std::filesystem::path& text_path, const std::filesystem::path& picture,
                      const Directions& directions, double pixel_size) {
  const bool resolved = directions.all.front().resolution.has_value();
  std::vector<TextColumn> columns{{"tilt", {}, 2}, {"rot", {}, 2}, {"weight", {}, 5}};
  if (resolved)
    columns.push_back({pixel_size > 0 ? "A" : "px", {}, 3});
  for (const auto& one : directions.all) {
    columns[0].values.push_back(one.tilt);
    columns[1].values.push_back(one.rot);
    columns[2].values.push_back(one.weight);
    if (resolved)
      columns[3].values.push_back(*one.resolution);
  }
  const std::vector<std::string> comments{
      "weight over the mean of all directions (0.25 to 0.9 of Nyquist): least " +
      text(directions.least / directions.mean) + ", median " + text(directions.median / directions.mean) +
      ", mean 1 (" + text(directions.mean, 6) + ")"};
  write_text_table(text_path, columns, comments);
  write_picture(picture, picture_of(directions, pixel_size));
}

Picture picture_of(const Directions& directions, double pixel_size) {
  const bool resolved = directions.all.front().resolution.has_value();
  const DirectionGrid grid;
  constexpr int width = 360, height = 90;
  const auto panel = [&](const std::string& caption, const auto& value_of) {
    std::vector<float> values;
    for (int row = 0; row < height; ++row)
      for (int column = 0; column < width; ++column) {
        const double z = 1 - (row + 0.5) / height, across = std::sqrt(1 - z * z),
                     angle = (column + 0.5) * degree;
        const int i = grid.find(across * std::cos(angle), across * std::sin(angle), z);
        values.push_back(static_cast<float>(value_of(directions.all[static_cast<std::size_t>(i)])));
      }
    const auto [low, high] = std::ranges::minmax(values);
    return grey_panel({.caption = caption,
                       .values = values,
                       .width = width,
                       .height = height,
                       .range = {std::min(low, 0.0f), high},
                       .unit = "degrees",
                       .points = 3 * width});
  };
  std::vector<Picture> panels{panel("weight by direction over the mean: tilt 0 (top) to 90, rot 0 to 360",
                                    [](const Direction& one) { return one.weight; })};
  if (resolved)
    panels.push_back(panel("frequency where half maps agree to 0.143 in a cone of 20 degrees, 1/" +
                               std::string(pixel_size > 0 ? "\u00c5" : "px"),
                           [](const Direction& one) { return 1 / *one.resolution; }));
  return stacked(panels);
}

} // namespace Bracewell::Examples
