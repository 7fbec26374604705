// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/start.hpp"

#include "bracewell-ptychography/host_copies.hpp"

#include <bracewell/ptychography/probe.hpp>
#include <bracewell/ptychography/propagator.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace Bracewell::Examples {
namespace {

/// The wave of the square root of the mean pattern, brought back to the sample. In the far field it gets the
/// curvature of a defocus that spreads it over a step of the scan: a focused one sees dots of the object.
Probe probe_of_mean_pattern(const Space& space, const Measurement& measurement, const Totals& totals, int m,
                            bool conjugate) {
  const int n = measurement.detector();
  std::vector<std::complex<float>> values;
  for (const double sum : totals.pattern)
    values.emplace_back(static_cast<float>(std::sqrt(sum / double(measurement.count()))));
  if (!measurement.near_field()) {
    const auto square = [n](std::size_t i) { // of the frequency, in pixels of the detector
      const auto signed_index = [n](int k) { return 2 * k < n ? k : k - n; };
      return std::pow(signed_index(int(i) / n), 2) + std::pow(signed_index(int(i) % n), 2);
    };
    double moment = 0, sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      moment += totals.pattern[i] * square(i), sum += totals.pattern[i];
    // The frequency q goes to the pixel c q where the phase is pi c q^2 / n.
    const double sign = conjugate ? -1 : 1,
                 c = sign * std::min(measurement.step(), m / 6.0) / std::sqrt(std::max(1.0, moment / sum));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] *= std::complex<float>(std::polar(1.0, std::numbers::pi * c * square(i) / n));
  }
  const auto wave = allocate<DeviceView<Kokkos::complex<float>**>>("wave", n, n);
  upload(space, wave, values);
  Propagator<Space, float>(space, n, 1, measurement.fresnel_number()).adjoint(space, wave);
  values = download(space, wave);
  if (measurement.near_field())
    return values;
  Probe probe; // the origin in the middle
  for (int y = 0; y < m; ++y)
    for (int x = 0; x < m; ++x) {
      const int from = (y - m / 2 + n) % n * n + (x - m / 2 + n) % n;
      probe.push_back(values[static_cast<std::size_t>(from)]);
    }
  return probe;
}

/// The probe [1, m, m] of a smaller or larger window with the same middle.
Probe resized(const Probe& probe, int from, int to) {
  Probe result;
  for (std::size_t mode = 0; mode < probe.size() / static_cast<std::size_t>(from * from); ++mode)
    for (int y = 0; y < to; ++y)
      for (int x = 0; x < to; ++x) {
        const int row = y - to / 2 + from / 2, column = x - to / 2 + from / 2;
        const bool inside = row >= 0 && row < from && column >= 0 && column < from;
        result.push_back(inside ? probe[mode * static_cast<std::size_t>(from * from) +
                                        static_cast<std::size_t>(row * from + column)]
                                : 0);
      }
  return result;
}

/// More modes than there are: the first one weakened and multiplied by low polynomials.
void add_modes(Probe& probe, int m, int modes) {
  const auto pixels = static_cast<std::size_t>(m) * static_cast<std::size_t>(m);
  for (auto mode = static_cast<int>(probe.size() / pixels); mode < modes; ++mode)
    for (std::size_t i = 0; i < pixels; ++i) {
      const double row = 2 * double(i) / double(pixels) - 1,
                   column = 2 * double(i % static_cast<std::size_t>(m)) / m - 1;
      const double factor =
          0.5 * std::pow(row, mode % 2 ? (mode + 1) / 2 : 0) * std::pow(column, mode % 2 ? 0 : mode / 2);
      probe.push_back(probe[i] * static_cast<float>(factor));
    }
  probe.resize(pixels * static_cast<std::size_t>(modes));
}

} // namespace

double energy(const Probe& probe) {
  double sum = 0;
  for (const auto& value : probe)
    sum += std::norm(std::complex<double>(value));
  return sum;
}

Probe first_probe(const Space& space, const Job& job, const Totals& totals) {
  const Measurement& measurement = job.measurement();
  const int m = job.shape().probe;
  Probe probe;
  const bool continued = job.continued() && job.options().train != Train::Aberrations;
  if (continued) {
    probe = resized(job.continued()->probe, job.continued()->probe_size, m);
  } else if (job.optics()) {
    const auto view = allocate<DeviceView<Kokkos::complex<float>**>>("probe", m, m);
    const auto parameters = allocate<DeviceView<float*>>("aberrations", int(probe_parameter_count));
    upload(space, parameters, std::vector<float>(job.aberrations().begin(), job.aberrations().end()));
    AberratedProbe<Space, float>(space, m, job.shape().detector, *job.optics())
        .evaluate(space, parameters, view);
    probe = download(space, view);
  } else if (!measurement.probe().empty()) {
    probe = resized(measurement.probe(), measurement.probe_size(), m);
  } else {
    probe = probe_of_mean_pattern(space, measurement, totals, m, job.options().measurement.conjugate_probe);
  }
  const double before = energy(probe);
  add_modes(probe, m, job.shape().modes);
  if (continued) { // the object that goes with it stays as it is
    const double factor = std::sqrt(before / energy(probe));
    for (auto& value : probe)
      value *= static_cast<float>(factor);
    return probe;
  }
  // In both fields the energy of an exit wave is the mean of its pattern (far) or its sum (near).
  double wanted = totals.counts / double(measurement.count());
  if (!measurement.near_field())
    wanted /= std::pow(job.shape().detector, 2);
  const double scale = std::sqrt(wanted / energy(probe));
  // A probe that is given and stays has its power from elsewhere.
  const bool stays = job.options().train == Train::Nothing && !job.optics() && !measurement.probe().empty();
  if (job.options().train != Train::Aberrations && !stays)
    for (auto& value : probe)
      value *= static_cast<float>(scale);
  return probe;
}

void set_start(const Space& space, const Job& job, const SolverViews& own, const Probe& probe) {
  const bool random = job.options().start == Start::Random;
  std::mt19937_64 generator(job.options().seed);
  std::normal_distribution<float> normal;
  const auto start = [&](const auto& view, float mean) {
    std::vector<float> values(view.size(), mean);
    if (random) { // of the whole object, of which a tile takes its own
      const Rectangle& tile = job.tile().object;
      auto next = values.begin();
      for (std::int64_t row = 0; row < job.object()[0]; ++row)
        for (std::int64_t column = 0; column < job.object()[1]; ++column) {
          const float value = mean + 0.1f * normal(generator);
          if (tile.has(row, column))
            *next++ = value;
        }
    }
    upload(space, view, values);
  };
  const auto go_on = [&](const auto& view, const std::vector<float>& old, float beyond) {
    const Rectangle& tile = job.tile().object;
    const auto& from = job.continued_from();
    std::vector<float> values;
    for (std::int64_t row = tile.begin[0] + from[0]; row < tile.end[0] + from[0]; ++row)
      for (std::int64_t column = tile.begin[1] + from[1]; column < tile.end[1] + from[1]; ++column) {
        const bool inside =
            row >= 0 && row < job.continued()->rows && column >= 0 && column < job.continued()->columns;
        values.push_back(inside ? old[static_cast<std::size_t>(row * job.continued()->columns + column)]
                                : beyond);
      }
    upload(space, view, values);
  };
  if (job.continued()) {
    go_on(own.amplitude, job.continued()->amplitude, 1);
    go_on(own.phase, job.continued()->phase, 0);
  } else {
    start(own.amplitude, random ? 0.9f : 1.0f);
    start(own.phase, 0);
  }
  upload(space, own.probe, probe);
  upload(space, own.aberrations, std::vector<float>(job.aberrations().begin(), job.aberrations().end()));
}

} // namespace Bracewell::Examples
