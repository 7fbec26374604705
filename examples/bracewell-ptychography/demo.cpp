// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/demo.hpp"

#include "bracewell-ptychography/host_copies.hpp"
#include "bracewell-ptychography/measurement.hpp"
#include "bracewell-ptychography/object_file.hpp"

#include <bracewell/ptychography/exit_wave.hpp>
#include <bracewell/ptychography/object.hpp>
#include <bracewell/ptychography/propagator.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace Bracewell::Examples {
namespace {

using Wave = Kokkos::complex<float>;

/// 1 inside, 0 outside of where `distance` (pixels, from inside to outside) is zero.
double soft_step(double distance) { return 0.5 - 0.5 * std::tanh(distance); }

/// A star of spokes with a gap between rings, and absorbing round particles.
void draw_object(Reconstruction& truth, double step) {
  const double size = double(truth.rows), radius = 0.38 * size;
  std::mt19937_64 generator(1948);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * std::generate_canonical<double, 53>(generator);
  };
  struct Particle {
    double row, column, radius, absorption, phase;
  };
  std::vector<Particle> particles;
  for (int i = 0; i < 40; ++i)
    particles.push_back({uniform(0, size), uniform(0, size), uniform(0.3, 1.2) * step, uniform(0.05, 0.4),
                         uniform(-0.3, 0.6)});
  for (std::int64_t y = 0; y < truth.rows; ++y)
    for (std::int64_t x = 0; x < truth.columns; ++x) {
      const double row = double(y) - size / 2, column = double(x) - size / 2;
      const double distance = std::hypot(row, column), angle = std::atan2(row, column);
      // Distance to the edge of a spoke along the circle.
      const double spoke = soft_step(-std::sin(12 * angle) * distance / 12);
      const double inside = soft_step(distance - radius) * soft_step(0.1 * radius - distance);
      const double gap = 1 - soft_step(std::abs(distance - 0.55 * radius) - 0.04 * radius);
      double phase = 0.8 * spoke * inside * gap, amplitude = 1 - 0.1 * spoke * inside * gap;
      for (const auto& p : particles) {
        const double share = soft_step(std::hypot(double(y) - p.row, double(x) - p.column) - p.radius);
        phase += p.phase * share;
        amplitude *= 1 - p.absorption * share;
      }
      truth.amplitude.push_back(static_cast<float>(amplitude));
      truth.phase.push_back(static_cast<float>(phase));
    }
}

} // namespace

void simulate(const Space& space, const Demo& demo, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  Reconstruction truth;
  truth.rows = truth.columns = demo.probe + (demo.scan - 1) * demo.step;
  truth.modes = 1, truth.probe_size = demo.probe;
  truth.aberrations = demo.aberrations;
  truth.pixel_size = demo.optics.pixel_size * 1e-9;
  for (int i = 0; i < demo.scan * demo.scan; ++i) // a raster, every other row pushed by half a step
    truth.positions.push_back({double(i / demo.scan * demo.step),
                               std::min(double(i % demo.scan * demo.step + i / demo.scan % 2 * demo.step / 2),
                                        double(truth.columns - demo.probe))});
  draw_object(truth, demo.step);

  const auto amplitude = allocate<Owned<float**>>("amplitude", truth.rows, truth.columns);
  const auto phase = allocate<Owned<float**>>("phase", truth.rows, truth.columns);
  const auto object = allocate<Owned<Wave**>>("object", truth.rows, truth.columns);
  upload(space, amplitude, truth.amplitude);
  upload(space, phase, truth.phase);
  complex_object(space, amplitude, phase, object);
  const auto probe = allocate<Owned<Wave***>>("probe", 1, demo.probe, demo.probe);
  const auto parameters = allocate<Owned<float*>>("aberrations", int(probe_parameter_count));
  upload(space, parameters, std::vector<float>(demo.aberrations.begin(), demo.aberrations.end()));
  AberratedProbe<Space, float>(space, demo.probe, demo.detector, demo.optics)
      .evaluate(space, parameters, probe);
  truth.probe = download(space, probe);

  const auto count = static_cast<std::int64_t>(truth.positions.size());
  const Kokkos::View<const double**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>
      positions(truth.positions.front().data(), truth.positions.size(), 2);
  const ScanPositions<Space> scan(space, positions, {truth.rows, truth.columns}, demo.probe);
  const auto waves = allocate<Owned<Wave****>>("waves", count, 1, demo.detector, demo.detector);
  exit_waves(space, scan, object, probe, waves);
  Propagator<Space, float>(space, demo.detector, count).propagate(space, waves);
  std::vector<double> intensities;
  double sum = 0;
  for (const auto& value : download(space, waves)) {
    intensities.push_back(std::norm(std::complex<double>(value)));
    sum += intensities.back();
  }
  std::mt19937_64 generator(1956);
  std::vector<std::uint16_t> counts;
  for (const double intensity : intensities) {
    std::poisson_distribution<int> detected(intensity * demo.counts * double(intensities.size()) / sum);
    counts.push_back(static_cast<std::uint16_t>(std::min(detected(generator), 65535)));
  }

  const double metre = 1e-9, distance = 1;
  MeasurementWriter writer(
      folder / "scan.cxi", demo.detector, truth.positions,
      {.wavelength = demo.optics.wavelength * metre,
       .distance = distance,
       .detector_pixel = demo.optics.wavelength * distance / (demo.detector * demo.optics.pixel_size),
       .object_pixel = truth.pixel_size});
  writer.write(0, count, counts);
  writer.commit();
  write_reconstruction(folder / "truth.h5", truth);
}

} // namespace Bracewell::Examples
