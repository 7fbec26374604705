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

/// Powers per shell of what backproject gathered of two half sets [1, P, P, P/2+1], of images whose box is P over the
/// oversampling. `energy` is kernel_energy of the kernel.
SignalAndNoise powers_of_halves(const Space& space,
                                const std::array<Part<const Kokkos::complex<float>****>, 2>& data,
                                const std::array<Part<const float****>, 2>& weight, double oversampling,
                                double energy);

/// The divisor of data with these weights [1, P, P, P/2+1], by at most so many steps of an equaliser, until weights are
/// within `even` of one. `averages` [1, shells], `spectrum` and `volume` are overwritten; the prior may be empty.
void equalise(const Space& space, const WeightEqualiser<Space, float>& equaliser,
              const Part<const float****>& weight, const MapWeight& divisor,
              const DeviceView<double**>& averages, const MapSpectrum& spectrum, const Map& volume,
              const DeviceView<double**>& prior, int steps, double even);

} // namespace Bracewell::Examples
