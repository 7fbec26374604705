// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/ring_correlation.hpp"

#include "bracewell-ptychography/alignment.hpp"
#include "bracewell-ptychography/host_copies.hpp"
#include "common/line_plot.hpp"
#include "common/output_family.hpp"
#include "common/text_table.hpp"

#include <bracewell/ptychography/propagator.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace Bracewell::Examples {
namespace {

using Complex = std::complex<double>;

/// Weights of pixels, 1 where there was light and smooth at its border, and the square of n x n pixels around them.
struct Window {
  std::vector<double> weights;
  std::int64_t top, left, n;

  explicit Window(const Reconstruction& result)
      : weights(illumination(result)), top(result.rows), left(result.columns) {
    const double most = *std::ranges::max_element(weights);
    std::int64_t bottom = 0, right = 0;
    for (std::int64_t i = 0; i < result.rows * result.columns; ++i) {
      double& weight = weights[static_cast<std::size_t>(i)];
      weight = most > 0 ? std::clamp((weight / most - 0.05) / 0.3, 0.0, 1.0) : 0;
      weight = weight * weight * (3 - 2 * weight);
      if (weight == 0)
        continue;
      const std::int64_t row = i / result.columns, column = i % result.columns;
      top = std::min(top, row), left = std::min(left, column);
      bottom = std::max(bottom, row), right = std::max(right, column);
    }
    n = std::max<std::int64_t>({2, bottom - top + 1, right - left + 1});
    n += n % 2;
  }
};

} // namespace

RingCorrelation ring_correlation(const Space& space, const Reconstruction& first,
                                 const Reconstruction& second, bool free_probe) {
  const Reconstruction a = first.projection(), b = second.projection();
  const Alignment fit = align(a, b, free_probe);
  const Window window(a);
  const std::int64_t n = window.n;
  const auto spectrum = [&](const auto& value) { // of value(i, row, column), without its mean
    Complex mean = 0;
    double sum = 0;
    std::vector<std::complex<float>> wave(static_cast<std::size_t>(n * n));
    const auto at = [&](std::int64_t row, std::int64_t column) {
      return static_cast<std::size_t>(row * a.columns + column);
    };
    for (std::int64_t row = 0; row < a.rows; ++row)
      for (std::int64_t column = 0; column < a.columns; ++column) {
        const double weight = window.weights[at(row, column)];
        mean += weight * value(at(row, column), row, column), sum += weight;
      }
    mean /= std::max(sum, std::numeric_limits<double>::min());
    for (std::int64_t y = 0; y < n; ++y)
      for (std::int64_t x = 0; x < n; ++x) {
        const std::int64_t row = window.top + y, column = window.left + x;
        if (row < a.rows && column < a.columns)
          wave[static_cast<std::size_t>(y * n + x)] = std::complex<float>(
              window.weights[at(row, column)] * (value(at(row, column), row, column) - mean));
      }
    const auto view = allocate<DeviceView<Kokkos::complex<float>***>>("spectrum", 1, n, n);
    upload(space, view, wave);
    Propagator<Space, float>(space, static_cast<int>(n), 1).propagate(space, view);
    return download(space, view);
  };
  const auto of_first =
      spectrum([&](std::size_t i, std::int64_t, std::int64_t) { return Complex(a.object(i)); });
  const auto of_second = spectrum([&](std::size_t i, std::int64_t row, std::int64_t column) {
    return std::polar(1.0, fit.ramp[0] * (double(row) - double(a.rows) / 2) +
                               fit.ramp[1] * (double(column) - double(a.columns) / 2)) *
           b.object(i);
  });
  const auto rings = static_cast<std::size_t>(n / 2);
  std::vector<double> products(rings), squares_a(rings), squares_b(rings), counts(rings);
  for (std::int64_t i = 0; i < n * n; ++i) {
    const auto frequency = [n](std::int64_t k) { return double(2 * k < n ? k : k - n); };
    const double row = frequency(i / n), column = frequency(i % n);
    const auto ring = static_cast<std::size_t>(std::lround(std::hypot(row, column)));
    if (ring >= rings)
      continue;
    const double turn = -2 * std::numbers::pi * (row * fit.shift[0] + column * fit.shift[1]) / double(n) +
                        fit.ramp[0] * fit.shift[0] + fit.ramp[1] * fit.shift[1];
    const Complex x(of_first[std::size_t(i)]), y = Complex(of_second[std::size_t(i)]) * std::polar(1.0, turn);
    products[ring] += (x * std::conj(y) * std::conj(fit.factor)).real() /
                      std::max(std::abs(fit.factor), std::numeric_limits<double>::min());
    squares_a[ring] += std::norm(x), squares_b[ring] += std::norm(y);
    counts[ring] += 1;
  }
  double lit = 0;
  for (const double weight : window.weights)
    lit += weight * weight / double(n * n);
  RingCorrelation result;
  bool above = true;
  for (std::size_t ring = 1; ring < rings; ++ring) {
    const double both = std::sqrt(squares_a[ring] * squares_b[ring]),
                 root = std::sqrt(std::max(1.0, counts[ring] * lit));
    result.frequencies.push_back(double(ring) / double(n));
    result.values.push_back(both > 0 ? products[ring] / both : 0);
    result.thresholds.push_back((0.2071 + 1.9102 / root) / (1.2071 + 0.9102 / root));
    if (above && ring > 2 && result.values.back() < result.thresholds.back()) {
      above = false;
      result.resolution = double(n) / double(ring);
    }
  }
  return result;
}

std::array<std::filesystem::path, 2> ring_correlation_paths(const std::filesystem::path& out,
                                                            const std::string& picture_ending) {
  return {beside(out, "_frc.txt"), beside(out, "_frc" + picture_ending)};
}

void write_ring_correlation(const std::array<std::filesystem::path, 2>& paths,
                            const RingCorrelation& correlation, double pixel_size) {
  const double unit = pixel_size > 0 ? 1e9 * pixel_size : 1; // nanometres or pixels
  TextColumn frequency{pixel_size > 0 ? "frequency_1/nm" : "frequency_1/px", {}, 6},
      period{pixel_size > 0 ? "period_nm" : "period_px", {}, 6}, values{"correlation", correlation.values, 5},
      thresholds{"half_bit", correlation.thresholds, 5};
  for (const double cycles : correlation.frequencies) {
    frequency.values.push_back(cycles / unit);
    period.values.push_back(unit / cycles);
  }
  const std::vector<TextColumn> columns{frequency, period, values, thresholds};
  write_text_table(paths[0], columns);
  write_picture(paths[1],
                draw_line_plot({.title = "Fourier ring correlation of halves of the scan",
                                .x_label = pixel_size > 0 ? "period (nm)" : "period (pixels)",
                                .y_label = "correlation",
                                .x_as_period = true,
                                .curves = {{"halves", frequency.values, correlation.values},
                                           {"half-bit threshold", frequency.values, correlation.thresholds}},
                                .y_range = PlotRange{-0.1, 1.05}}));
}

} // namespace Bracewell::Examples
