// SPDX-License-Identifier: MIT
#pragma once

#include "cryoem/views.hpp"

#include <bracewell/reconstruct/signal_and_noise.hpp>
#include <bracewell/reconstruct/weight_equaliser.hpp>

#include <algorithm>
#include <array>
#include <vector>

/// From what backproject gathered to maps: what reconstructions and classifications have in common.
namespace Bracewell::Examples {

/// A curve of |k| on the device [1, shells].
DeviceView<double**> shell_curve(const Space& space, const std::vector<double>& values);

/// The last shell before a correlation of half maps falls below 0.143.
inline double last_shell(const std::vector<double>& correlation) {
  const auto below = std::find_if(correlation.begin() + 1, correlation.end(),
                                  [](double value) { return !(value >= 0.143); });
  return static_cast<double>(below - correlation.begin()) - 1;
}

/// Powers per shell of what backproject gathered of two half sets [B, (P,) P, P/2+1], of images whose box is P over the
/// oversampling; of all B together. `energy` is kernel_energy of the kernel.
template <class Data, class Weight>
SignalAndNoise powers_of_halves(const Space& space, const std::array<Data, 2>& data,
                                const std::array<Weight, 2>& weight, double oversampling, double energy) {
  const std::size_t shells = data[0].extent(1) / 2 + 1, batches = data[0].extent(0);
  const DeviceView<double***> moments("Bracewell::examples::moments", batches, shells, half_set_moment_count);
  const DeviceView<double**> prior("Bracewell::examples::prior", batches, shells);
  SignalAndNoise powers;
  shell_averages(space, weight[0], prior);
  for (int round = 0; round < 2; ++round) { // weighed by what was found the first time
    half_set_moments(space, data[0], weight[0], data[1], weight[1], moments, prior);
    const auto host = values_on_host(moments);
    // The kernel reaches one element beyond the last samples, which are not all around those next to the limit.
    std::vector<double> sums(host.size() / batches, 0.0);
    for (std::size_t i = 0; i < host.size(); ++i)
      sums[i % sums.size()] += host.data()[i];
    powers = signal_and_noise(sums, energy, shells - 2);
    const auto curve = shell_curve(space, wiener_prior(powers, oversampling, 1));
    for (std::size_t b = 0; b < batches; ++b)
      copy_values(space, Kokkos::subview(prior, b, Kokkos::ALL), Kokkos::subview(curve, 0, Kokkos::ALL));
  }
  return powers;
}

/// The divisor of data with these weights [1, P, P, P/2+1], by at most so many steps of an equaliser, until weights are
/// within `even` of one. `averages` [1, shells], `spectrum` and `volume` are overwritten; the prior may be empty.
void equalise(const Space& space, const WeightEqualiser<Space, float>& equaliser,
              const Part<const float****>& weight, const MapWeight& divisor,
              const DeviceView<double**>& averages, const MapSpectrum& spectrum, const Map& volume,
              const DeviceView<double**>& prior, int steps, double even);

} // namespace Bracewell::Examples
