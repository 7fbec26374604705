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

namespace {

/// Noise of the size of the probe where that is, by which patterns begin to tell their probes apart; or what was found before.
void set_relaxation(const Space& space, const Job& job, const SolverViews& own, const Probe& probe) {
  const auto modes = static_cast<std::size_t>(job.shape().relaxation);
  if (modes == 0)
    return;
  const auto pixels = std::size_t(job.shape().probe) * std::size_t(job.shape().probe);
  std::mt19937_64 generator(job.options().seed + 1);
  std::normal_distribution<float> normal;
  Probe noise;
  for (std::size_t i = 0; i < modes * pixels; ++i) {
    const float re = normal(generator), im = normal(generator);
    noise.push_back(std::sqrt(0.5f) * probe[i % pixels] * std::complex<float>(re, im));
  }
  std::vector<std::complex<float>> coefficients(own.coefficients.size());
  if (const auto& old = job.continued();
      old && !old->coefficients.empty() && old->probe_size == job.shape().probe) {
    const std::size_t before = old->relaxation.size() / pixels, kept = std::min(before, modes);
    std::copy_n(old->relaxation.begin(), kept * pixels, noise.begin());
    for (std::size_t j = 0; j < old->positions.size(); ++j)
      std::copy_n(old->coefficients.begin() + std::ptrdiff_t(j * before), kept,
                  coefficients.begin() + std::ptrdiff_t(j * modes));
  }
  upload(space, own.relaxation, noise);
  upload(space, own.coefficients, coefficients);
}

} // namespace

void set_start(const Space& space, const Job& job, const SolverViews& own, const Probe& probe,
               const Totals& totals) {
  const bool random = job.options().start == Start::Random;
  std::mt19937_64 generator(job.options().seed);
  std::normal_distribution<float> normal;
  const auto start = [&](const auto& view, float mean) {
    std::vector<float> values(view.size(), mean);
    if (random) { // of the whole object, of which a tile takes its own
      const Rectangle& tile = job.tile().object;
      auto next = values.begin();
      for (int slice = 0; slice < job.shape().slices; ++slice)
        for (std::int64_t row = 0; row < job.object()[0]; ++row)
          for (std::int64_t column = 0; column < job.object()[1]; ++column) {
            const float value = mean + 0.1f * normal(generator);
            if (tile.has(row, column))
              *next++ = value;
          }
    }
    upload(space, view, values);
  };
  // A thin object is shared by the slices: `part` of a value is each one's.
  const auto go_on = [&](const auto& view, const std::vector<float>& old, float beyond, const auto& part) {
    const Rectangle& tile = job.tile().object;
    const auto& from = job.continued_from();
    const std::int64_t rows = job.continued()->rows, columns = job.continued()->columns;
    const bool shared = job.continued()->slices == 1 && job.shape().slices > 1;
    std::vector<float> values;
    for (int slice = 0; slice < job.shape().slices; ++slice)
      for (std::int64_t row = tile.begin[0] + from[0]; row < tile.end[0] + from[0]; ++row)
        for (std::int64_t column = tile.begin[1] + from[1]; column < tile.end[1] + from[1]; ++column) {
          const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
          const auto at = static_cast<std::size_t>(((shared ? 0 : slice) * rows + row) * columns + column);
          values.push_back(!inside ? beyond : shared ? part(old[at]) : old[at]);
        }
    upload(space, view, values);
  };
  if (job.continued()) {
    const auto slices = float(job.shape().slices);
    go_on(own.amplitude, job.continued()->amplitude, 1,
          [&](float value) { return std::pow(std::abs(value), 1 / slices); });
    go_on(own.phase, job.continued()->phase, 0, [&](float value) { return value / slices; });
  } else {
    start(own.amplitude, random ? 0.9f : 1.0f);
    start(own.phase, 0);
  }
  upload(space, own.probe, probe);
  set_relaxation(space, job, own, probe);
  const auto& old = job.continued();
  if (own.factors.size() > 0)
    upload(space, own.factors,
           old && !old->factors.empty() ? old->factors : std::vector<float>(own.factors.size(), 1));
  if (own.background_roots.size() > 0) {
    const auto first = float(0.03 * totals.root(job));
    std::vector<float> roots(own.background_roots.size(), first);
    if (old && old->background.size() == roots.size()) // where pixels did not count it is not a number
      std::ranges::transform(old->background, roots.begin(),
                             [&](float value) { return std::isfinite(value) ? std::sqrt(value) : first; });
    upload(space, own.background_roots, roots);
  }
  upload(space, own.aberrations, std::vector<float>(job.aberrations().begin(), job.aberrations().end()));
}

} // namespace Bracewell::Examples
