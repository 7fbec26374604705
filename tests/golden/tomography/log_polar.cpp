#include "log_polar.hpp"
#include "../../deep_copy.hpp"

#include <bracewell/tomography/log_polar.hpp>

#include <algorithm>
#include <numbers>

namespace Golden {
namespace {

/// The trigonometric interpolant of a row of n values, twice as fine: the factor of value j in value i.
double finer_kernel(std::size_t i, std::size_t j, std::size_t n) {
  const double x = std::numbers::pi * (0.5 * double(i) - double(j));
  if (2 * j == i)
    return 1;
  if (i % 2 == 0)
    return 0;
  return std::sin(x) / (double(n) * (n % 2 ? std::sin(x / double(n)) : std::tan(x / double(n))));
}

/// Every row twice as fine: what the exact operator interpolates with.
template <class T>
auto finer_rows(const Array& sinogram) {
  const std::size_t angles = sinogram.shape[0], n = sinogram.shape[1];
  Array fine{{angles, 2 * n}, false, {}};
  for (std::size_t p = 0; p < angles; ++p)
    for (std::size_t i = 0; i < 2 * n; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j)
        sum += finer_kernel(i, j, n) * sinogram.values[p * n + j];
      fine.values.push_back(sum);
    }
  return load<T***>(fine);
}

/// The definition of the projection: transposed trigonometric interpolation at s = X cos + Y sin + centre.
std::vector<double> projection(const TomographyCase& golden, const std::vector<double>& image) {
  const auto& theta = golden.array("theta").values;
  const int n = golden.json.at("n");
  const double centre = golden.json.at("center").get<double>();
  std::vector<double> result(theta.size() * std::size_t(n));
  for (std::size_t p = 0; p < theta.size(); ++p)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x) {
        const double s = (x - n / 2) * std::cos(theta[p]) + (y - n / 2) * std::sin(theta[p]) + centre;
        for (int i = 0; i < n; ++i) {
          const double u = std::numbers::pi * (s - i), small = u / n;
          const double kernel = std::abs(std::sin(small)) < 1e-12
                                    ? 1
                                    : std::sin(u) / (n * (n % 2 ? std::sin(small) : std::tan(small)));
          result[p * std::size_t(n) + std::size_t(i)] +=
              std::numbers::pi / double(theta.size()) * kernel * image[std::size_t(y * n + x)];
        }
      }
  return result;
}

/// The transpose of finer_rows.
Array coarser_rows(const Array& fine) {
  const std::size_t angles = fine.shape[0], n = fine.shape[1] / 2;
  Array rows{{angles, n}, false, {}};
  for (std::size_t p = 0; p < angles; ++p)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < 2 * n; ++i)
        sum += finer_kernel(i, j, n) * fine.values[p * 2 * n + i];
      rows.values.push_back(sum);
    }
  return rows;
}

double relative(const std::vector<double>& values, const std::vector<double>& exact) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(values[i] - exact[i], 2);
    norm += exact[i] * exact[i];
  }
  const double result = std::sqrt(difference / norm);
  return std::isfinite(result) ? result : INFINITY;
}

template <class View>
std::vector<double> values(const View& view) {
  const auto host = Test::on_host(view);
  return {host.data(), host.data() + host.size()};
}

template <class T>
LogPolarErrors errors(const TomographyCase& golden) {
  using namespace Bracewell;
  const Space space;
  const int n = golden.json.at("n");
  const Array& sinogram = golden.array("sinogram");
  const ParallelBeamGeometry geometry{
      .angles = golden.array("theta").values, .width = n, .centre = golden.json.at("center").get<double>()};
  LogPolarTomographyOptions options{.row_upsampling = 2};
  // The two outermost pixels of the disc see beyond the detector, where the exact operator goes on
  // periodically.
  const auto inside = [&](std::vector<double> image) {
    for (int i = 0; i < n * n; ++i)
      if (std::hypot(i % n - n / 2, i / n - n / 2) > n / 2 - 2)
        image[std::size_t(i)] = 0;
    return image;
  };
  const auto images = view<T***>({1, std::size_t(n), std::size_t(n)});
  LogPolarTomography<Space, T>(space, geometry, options).backproject(space, finer_rows<T>(sinogram), images);
  space.fence();
  LogPolarErrors result;
  const Array image{{std::size_t(n), std::size_t(n)}, false, inside(golden.array("backprojection").values)};
  result.backprojection = relative(inside(values(images)), image.values);
  // Projected again, this image against the sum that defines the projection.
  const auto projections = view<T***>({1, sinogram.shape[0], 2 * std::size_t(n)});
  options.oversampling =
      2; // back-projection loses little of smooth rows at 1.1; of smooth images, projection does
  LogPolarTomography<Space, T>(space, geometry, options)
      .project(space, load<T***>({{1, image.shape[0], image.shape[1]}, false, image.values}), projections);
  space.fence();
  result.projection =
      relative(coarser_rows({{sinogram.shape[0], 2 * std::size_t(n)}, false, values(projections)}).values,
               projection(golden, image.values));
  return result;
}

} // namespace

bool suits_log_polar(const TomographyCase& golden) {
  const auto& theta = golden.array("theta").values;
  const double step = std::numbers::pi / double(theta.size());
  for (std::size_t p = 0; p < theta.size(); ++p)
    if (std::abs(theta[p] - theta[0] - double(p) * step) > 1e-6)
      return false;
  return true;
}

LogPolarErrors run_log_polar(const TomographyCase& golden, bool single_precision) {
  return single_precision ? errors<float>(golden) : errors<double>(golden);
}

} // namespace Golden
