// SPDX-License-Identifier: MIT
#include "cryoem/half_maps.hpp"

namespace Bracewell::Examples {

DeviceView<double**> shell_curve(const Space& space, const std::vector<double>& values) {
  const DeviceView<double**> result("Bracewell::examples::curve", 1, values.size());
  copy_values(space, Kokkos::subview(result, 0, Kokkos::ALL), host_view(values));
  space.fence("Bracewell::examples::curve"); // the host's go
  return result;
}

void equalise(const Space& space, const WeightEqualiser<Space, float>& equaliser,
              const Part<const float****>& weight, const MapWeight& divisor,
              const DeviceView<double**>& averages, const MapSpectrum& spectrum, const Map& volume,
              const DeviceView<double**>& prior, int steps, double even) {
  const DeviceView<double*> error("Bracewell::examples::error", 2);
  for (int step = 0; step < steps; ++step) {
    equaliser.improve(space, weight, divisor, averages, spectrum, volume, error, prior, {.first = step == 0});
    const auto sums = values_on_host(error);
    if (sums(0) <= even * even * sums(1))
      break;
  }
}

} // namespace Bracewell::Examples
