// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/alignment.hpp"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>

namespace Bracewell::Examples {
namespace {

using Complex = std::complex<double>;

struct Pixel {
  double row, column; ///< from the middle
  Complex object, reference, row_slope, column_slope;
};

std::vector<Pixel> lit_pixels(const Reconstruction& result, const Reconstruction& reference) {
  const auto light = illumination(reference);
  const double least = 0.1 * *std::ranges::max_element(light);
  const auto columns = static_cast<std::size_t>(result.columns), rows = static_cast<std::size_t>(result.rows);
  std::vector<Pixel> pixels;
  for (std::size_t y = 1; y + 1 < rows; ++y)
    for (std::size_t x = 1; x + 1 < columns; ++x) {
      const std::size_t i = y * columns + x;
      if (light[i] >= least)
        pixels.push_back({double(y) - double(rows) / 2, double(x) - double(columns) / 2, result.object(i),
                          reference.object(i),
                          (reference.object(i + columns) - reference.object(i - columns)) / 2.0,
                          (reference.object(i + 1) - reference.object(i - 1)) / 2.0});
    }
  return pixels;
}

} // namespace

Alignment align(const Reconstruction& result, const Reconstruction& reference, bool free_probe) {
  const auto pixels = lit_pixels(result, reference);
  Complex product = 0;
  double norm = 0;
  for (const auto& pixel : pixels) {
    product += pixel.object * std::conj(pixel.reference);
    norm += std::norm(pixel.reference);
  }
  Alignment fit{norm > 0 ? product / norm : 0, {0, 0}, {0, 0}, 0};
  const auto turned = [&](const Pixel& pixel) {
    return fit.factor * std::polar(1.0, fit.ramp[0] * pixel.row + fit.ramp[1] * pixel.column);
  };
  const auto modelled = [&](const Pixel& pixel) {
    return turned(pixel) *
           (pixel.reference - fit.shift[0] * pixel.row_slope - fit.shift[1] * pixel.column_slope);
  };
  // Gauss and Newton, on the logarithm of the factor.
  using Vector = Eigen::Matrix<double, 6, 1>;
  for (int iteration = 0; free_probe && iteration < 20; ++iteration) {
    Eigen::Matrix<double, 6, 6> normal = Eigen::Matrix<double, 6, 6>::Zero();
    Vector right = Vector::Zero();
    for (const auto& pixel : pixels) {
      const Complex value = modelled(pixel), i(0, 1), factor = turned(pixel), rest = pixel.object - value;
      const std::array<Complex, 6> slope{value,
                                         i * value,
                                         i * value * pixel.row,
                                         i * value * pixel.column,
                                         -factor * pixel.row_slope,
                                         -factor * pixel.column_slope};
      Vector re, im;
      for (int c = 0; c < 6; ++c) {
        re[c] = slope[static_cast<std::size_t>(c)].real();
        im[c] = slope[static_cast<std::size_t>(c)].imag();
      }
      normal += re * re.transpose() + im * im.transpose();
      right += re * rest.real() + im * rest.imag();
    }
    const Vector step = normal.ldlt().solve(right);
    if (!step.allFinite())
      break;
    fit.factor *= std::exp(Complex(step[0], step[1]));
    fit.ramp = {fit.ramp[0] + step[2], fit.ramp[1] + step[3]};
    fit.shift = {fit.shift[0] + step[4], fit.shift[1] + step[5]};
  }
  double difference = 0, total = 0;
  for (const auto& pixel : pixels) {
    difference += std::norm(pixel.object - modelled(pixel));
    total += std::norm(modelled(pixel));
  }
  fit.error = total > 0 ? std::sqrt(difference / total) : 1;
  return fit;
}

double position_error(const Reconstruction& result, const Reconstruction& reference) {
  const std::size_t count = std::min(result.positions.size(), reference.positions.size());
  std::array<double, 2> mean{};
  const auto difference = [&](std::size_t j, std::size_t axis) {
    return result.positions[j][axis] - reference.positions[j][axis] - mean[axis];
  };
  for (const std::size_t axis : {0, 1}) {
    double sum = 0;
    for (std::size_t j = 0; j < count; ++j)
      sum += difference(j, axis);
    mean[axis] = sum / double(count);
  }
  std::vector<double> distances;
  for (std::size_t j = 0; j < count; ++j)
    distances.push_back(std::hypot(difference(j, 0), difference(j, 1)));
  const auto middle = distances.begin() + std::ptrdiff_t(count / 2);
  std::ranges::nth_element(distances, middle);
  return *middle;
}

} // namespace Bracewell::Examples
