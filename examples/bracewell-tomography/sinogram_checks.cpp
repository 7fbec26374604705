// SPDX-License-Identifier: MIT
#include "bracewell-tomography/sinogram_checks.hpp"

#include "bracewell-tomography/seen_columns.hpp"
#include "common/median.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace Bracewell::Examples {
namespace {

/// Two digits of a positive number.
std::string in_two_digits(double value) {
  const double unit = std::pow(10., std::floor(std::log10(value)) - 1);
  return shortest(std::round(value / unit) * unit);
}

double deviation(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double value : values)
    mean += value / double(values.size());
  for (const double value : values)
    squares += std::pow(value - mean, 2) / double(values.size());
  return std::sqrt(squares);
}

/// Says where the light at both ends of the row changes alike from view to view; returns whether it does. An object that goes on
/// beyond the ends changes them differently.
bool check_beam(const Job& job, const HostSinogram& sinogram, const SeenColumns& columns, std::size_t first,
                Provenance& provenance) {
  if (!job.logarithm || job.options.air || job.scan.is_tilt_series() || sinogram.count < 8)
    return false;
  const std::size_t some = std::max<std::size_t>(1, sinogram.width / 50);
  std::vector<double> together, apart; // means of both ends, and halves of their differences
  for (std::size_t p = 0; p < sinogram.count; ++p) {
    const float* const row = sinogram.row(p);
    const double left = std::accumulate(row, row + some, 0.) / double(some),
                 right =
                     std::accumulate(row + sinogram.width - some, row + sinogram.width, 0.) / double(some);
    together.push_back(0.5 * (left + right)), apart.push_back(0.5 * (left - right));
  }
  constexpr double hundredth = 0.01;
  if (!(deviation(together) > std::max(hundredth, 3 * deviation(apart))))
    return false;
  const auto [least, most] = std::ranges::minmax(together);
  const bool at_left = columns.left_end >= sinogram.width - columns.right_begin;
  provenance.assume(
      job.scan.path().string() +
      ": the light at both ends of the row changes alike from view to view, by a factor of " +
      in_two_digits(std::exp(most - least)) + ": the beam changed, if they see air, and --air " +
      std::to_string(first + (at_left ? 0 : columns.right_begin)) + ":" +
      std::to_string(first + (at_left ? columns.left_end : sinogram.width)) + " divides it out");
  return true;
}

/// Says where the object is wider than the detector: the outermost columns see it.
void check_width(const Job& job, const SeenColumns& columns, Provenance& provenance) {
  const std::size_t some = std::max<std::size_t>(1, columns.means.size() / 50);
  const auto mean = [&](auto begin) {
    return std::accumulate(begin, begin + std::ptrdiff_t(some), 0.0) / double(some);
  };
  const double edge = std::max(mean(columns.means.begin()), mean(columns.means.end() - std::ptrdiff_t(some))),
               largest = *std::ranges::max_element(columns.means);
  if (edge > 0.2 * largest)
    provenance.assume(
        job.scan.path().string() + ": the object goes on beyond the detector, as the attenuation at " +
        "its edge is " + shortest(std::round(100 * edge / largest)) +
        " % of the largest: slices are wrong by a smooth background; where the edge sees air, use --air");
}

/// The deviation of columns from what is smooth along them, by the median of fourth differences. Independent values have their
/// own deviation.
double roughness(const std::vector<double>& columns) {
  std::vector<double> differences;
  for (std::size_t x = 2; x + 2 < columns.size(); ++x)
    differences.push_back(
        std::abs(columns[x - 2] - 4 * columns[x - 1] + 6 * columns[x] - 4 * columns[x + 1] + columns[x + 2]));
  constexpr double of_normal = 1.4826, squares = 1 + 16 + 36 + 16 + 1; // of the factors above
  return of_normal / std::sqrt(squares) * median(differences);
}

/// Says where columns differ from their neighbours in all views alike, by more than what even and odd views differ by.
void check_stripes(const Job& job, const HostSinogram& sinogram, const SeenColumns& columns,
                   Provenance& provenance) {
  if (job.options.stripes || sinogram.count < 16 || sinogram.width < 16)
    return;
  std::vector<double> halves(sinogram.width); // half of what the means over even and over odd views differ by
  const std::size_t numbers[2] = {(sinogram.count + 1) / 2, sinogram.count / 2};
  for (std::size_t p = 0; p < sinogram.count; ++p)
    for (std::size_t x = 0; x < sinogram.width; ++x)
      halves[x] += (p % 2 == 0 ? 0.5 : -0.5) * double(sinogram.row(p)[x]) / double(numbers[p % 2]);
  const double stripes = roughness(columns.means), noise = roughness(halves),
               largest = *std::ranges::max_element(columns.means);
  constexpr double visible = 0.0005, sure = 4;
  if (largest > 0 && stripes > visible * largest && stripes > sure * noise)
    provenance.took(job.scan.path(),
                    "columns that differ from their neighbours by " + in_two_digits(100 * stripes / largest) +
                        " % of the largest attenuation in all views alike, " +
                        (noise > 0 ? in_two_digits(stripes / noise) + " times what noise explains, " : "") +
                        "which makes rings: --stripes sorting takes them out");
}

} // namespace

void check_sinogram(const Job& job, const DeviceView<float**>& sinogram, std::size_t first,
                    Provenance& provenance) {
  const HostSinogram host(sinogram);
  const SeenColumns columns(host);
  if (!check_beam(job, host, columns, first, provenance))
    check_width(job, columns, provenance);
  check_stripes(job, host, columns, provenance);
}

} // namespace Bracewell::Examples
