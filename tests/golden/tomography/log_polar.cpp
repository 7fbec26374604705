#include "log_polar.hpp"

#include <bracewell/tomography/log_polar.hpp>

#include <algorithm>
#include <numbers>

namespace Golden {
namespace {

/// The trigonometric interpolant of every row, twice as fine: what the exact operator interpolates with.
template <class T>
auto finer_rows(const Array& sinogram) {
  const std::size_t angles = sinogram.shape[0], n = sinogram.shape[1];
  Array fine{{angles, 2 * n}, false, {}};
  for (std::size_t p = 0; p < angles; ++p)
    for (std::size_t i = 0; i < 2 * n; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) {
        const double x = std::numbers::pi * (0.5 * double(i) - double(j));
        const double kernel =
            2 * j == i ? 1
            : i % 2 == 0
                ? 0
                : std::sin(x) / (double(n) * (n % 2 ? std::sin(x / double(n)) : std::tan(x / double(n))));
        sum += kernel * sinogram.values[p * n + j];
      }
      fine.values.push_back(sum);
    }
  return load<T***>(fine);
}

template <class T>
double error(const TomographyCase& golden) {
  using namespace Bracewell;
  const Space space;
  const int n = golden.json.at("n");
  const LogPolarTomography<Space, T> plan(space, {.angles = golden.array("theta").values,
                                                  .width = n,
                                                  .centre = golden.json.at("center").get<double>(),
                                                  .row_upsampling = 2});
  const auto images = view<T***>({1, std::size_t(n), std::size_t(n)});
  plan.backproject(space, finer_rows<T>(golden.array("sinogram")), images);
  space.fence();
  // The two outermost pixels of the disc see beyond the detector, where the exact operator goes on
  // periodically.
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), images);
  const auto& expected = golden.array("backprojection").values;
  double difference = 0, norm = 0;
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x) {
      const double exact = expected[std::size_t(y * n + x)];
      if (std::hypot(x - n / 2, y - n / 2) > n / 2 - 2)
        continue;
      difference += std::pow(host(0, y, x) - exact, 2);
      norm += exact * exact;
    }
  const double result = std::sqrt(difference / norm);
  return std::isfinite(result) ? result : INFINITY;
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

double run_log_polar(const TomographyCase& golden, bool single_precision) {
  return single_precision ? error<float>(golden) : error<double>(golden);
}

} // namespace Golden
