// SPDX-License-Identifier: MIT
#include "cryoem/half_maps.hpp"

namespace Bracewell::Examples {

DeviceView<double**> shell_curve(const Space& space, const std::vector<double>& values) {
  const DeviceView<double**> result("Bracewell::examples::curve", 1, values.size());
  Kokkos::deep_copy(space, Kokkos::subview(result, 0, Kokkos::ALL), host_view(values));
  space.fence("Bracewell::examples::curve"); // the host's go
  return result;
}

SignalAndNoise powers_of_halves(const Space& space,
                                const std::array<Part<const Kokkos::complex<float>****>, 2>& data,
                                const std::array<Part<const float****>, 2>& weight, double oversampling,
                                double energy) {
  const std::size_t shells = data[0].extent(1) / 2 + 1;
  const DeviceView<double***> moments("Bracewell::examples::moments", 1, shells, half_set_moment_count);
  DeviceView<double**> prior("Bracewell::examples::prior", 1, shells);
  SignalAndNoise powers;
  shell_averages(space, weight[0], prior);
  for (int round = 0; round < 2; ++round) { // weighed by what was found the first time
    half_set_moments(space, data[0], weight[0], data[1], weight[1], moments, prior);
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), moments);
    // The kernel reaches one element beyond the last samples, which are not all around those next to the limit.
    powers = signal_and_noise({host.data(), host.size()}, energy, shells - 2);
    prior = shell_curve(space, wiener_prior(powers, oversampling, 1));
  }
  return powers;
}

void equalise(const Space& space, const WeightEqualiser<Space, float>& equaliser,
              const Part<const float****>& weight, const MapWeight& divisor,
              const DeviceView<double**>& averages, const MapSpectrum& spectrum, const Map& volume,
              const DeviceView<double**>& prior, int steps, double even) {
  const DeviceView<double*> error("Bracewell::examples::error", 2);
  for (int step = 0; step < steps; ++step) {
    equaliser.improve(space, weight, divisor, averages, spectrum, volume, error, prior, {.first = step == 0});
    const auto sums = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), error);
    if (sums(0) <= even * even * sums(1))
      break;
  }
}

} // namespace Bracewell::Examples
