// SPDX-License-Identifier: MIT
#include "bracewell-ptychography/demo.hpp"

#include "bracewell-ptychography/host_copies.hpp"
#include "bracewell-ptychography/measurement.hpp"
#include "bracewell-ptychography/object_file.hpp"

#include <bracewell/ptychography/exit_wave.hpp>
#include <bracewell/ptychography/propagator.hpp>

#include <Eigen/Cholesky>

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
class DemoObject {
public:
  DemoObject(double size, double step) : size_(size) {
    std::mt19937_64 generator(1948);
    const auto uniform = [&](double low, double high) {
      return low + (high - low) * std::generate_canonical<double, 53>(generator);
    };
    for (int i = 0; i < 40; ++i)
      particles_.push_back({uniform(0, size), uniform(0, size), uniform(0.3, 1.2) * step, uniform(0.05, 0.4),
                            uniform(-0.3, 0.6)});
  }

  struct Value {
    float amplitude, phase;
  };
  Value at(double y, double x) const {
    const double row = y - size_ / 2, column = x - size_ / 2, radius = 0.38 * size_;
    const double distance = std::hypot(row, column), angle = std::atan2(row, column);
    // Distance to the edge of a spoke along the circle.
    const double spoke = soft_step(-std::sin(12 * angle) * distance / 12);
    const double inside = soft_step(distance - radius) * soft_step(0.1 * radius - distance);
    const double gap = 1 - soft_step(std::abs(distance - 0.55 * radius) - 0.04 * radius);
    double phase = 0.8 * spoke * inside * gap, amplitude = 1 - 0.1 * spoke * inside * gap;
    for (const auto& p : particles_) {
      if (std::max(std::abs(y - p.row), std::abs(x - p.column)) > p.radius + 20)
        continue; // the step is 0 to the last bit there
      const double share = soft_step(std::hypot(y - p.row, x - p.column) - p.radius);
      phase += p.phase * share;
      amplitude *= 1 - p.absorption * share;
    }
    return {static_cast<float>(amplitude), static_cast<float>(phase)};
  }

private:
  struct Particle {
    double row, column, radius, absorption, phase;
  };
  double size_;
  std::vector<Particle> particles_;
};

/// By what true positions differ from those written: each by itself, not all together by an affine map.
std::vector<std::array<double, 2>> position_errors(const std::vector<std::array<double, 2>>& written,
                                                   double most) {
  std::mt19937_64 generator(1960);
  std::vector<std::array<double, 2>> errors;
  Eigen::Matrix3d normal = Eigen::Matrix3d::Zero();
  std::array<Eigen::Vector3d, 2> right{Eigen::Vector3d::Zero(), Eigen::Vector3d::Zero()};
  for (const auto& [row, column] : written) {
    const Eigen::Vector3d terms(1, row, column);
    normal += terms * terms.transpose();
    auto& error = errors.emplace_back();
    for (const std::size_t axis : {0, 1}) {
      error[axis] = most * (2 * std::generate_canonical<double, 53>(generator) - 1);
      right[axis] += error[axis] * terms;
    }
  }
  for (const std::size_t axis : {0, 1}) {
    const Eigen::Vector3d affine = normal.ldlt().solve(right[axis]);
    for (std::size_t j = 0; j < written.size(); ++j)
      errors[j][axis] -= affine.dot(Eigen::Vector3d(1, written[j][0], written[j][1]));
  }
  return errors;
}

/// More modes of a probe [1, m, m]: each is the one before times the column and then the row, with a quarter of
/// its energy.
void add_true_modes(std::vector<std::complex<float>>& probe, int m, int modes) {
  const auto pixels = static_cast<std::size_t>(m) * static_cast<std::size_t>(m);
  for (int mode = 1; mode < modes; ++mode) {
    const std::size_t first = probe.size() - pixels;
    double before = 0, after = 0;
    for (std::size_t i = 0; i < pixels; ++i) {
      const int pixel = static_cast<int>(i), place = mode % 2 == 1 ? pixel % m : pixel / m;
      const auto value = probe[first + i];
      probe.push_back(value * static_cast<float>(place - m / 2));
      before += std::norm(value), after += std::norm(probe.back());
    }
    for (std::size_t i = 0; i < pixels; ++i)
      probe[first + pixels + i] *= static_cast<float>(std::sqrt(0.25 * before / after));
  }
}

/// 0 for good pixels, in the order of the patterns: zero frequency at [0, 0].
std::vector<std::uint32_t> masked_pixels(int n) {
  std::mt19937_64 generator(1964);
  std::vector<std::uint32_t> mask;
  for (int i = 0; i < n * n; ++i) {
    const bool gap = i / n == n / 5 || i / n == n / 5 + 1;
    mask.push_back(gap || generator() % 100 < 3 ? 1 : 0);
  }
  return mask;
}

/// A raster, every other row pushed by half a step, in pixels.
std::vector<std::array<double, 2>> raster(const Demo& demo) {
  std::vector<std::array<double, 2>> positions;
  for (int i = 0; i < demo.scan * demo.scan; ++i)
    positions.push_back({double(i / demo.scan * demo.step),
                         std::min(double(i % demo.scan * demo.step + i / demo.scan % 2 * demo.step / 2),
                                  double((demo.scan - 1) * demo.step))});
  return positions;
}

/// The modes [modes, m, m] of a lens' probe.
std::vector<std::complex<float>> true_probe(const Space& space, const Demo& demo) {
  const int m = demo.probe;
  const auto lens = allocate<DeviceView<Wave**>>("lens", m, m);
  const auto parameters = allocate<DeviceView<float*>>("aberrations", int(probe_parameter_count));
  upload(space, parameters, std::vector<float>(demo.aberrations.begin(), demo.aberrations.end()));
  AberratedProbe<Space, float>(space, m, demo.detector, demo.optics).evaluate(space, parameters, lens);
  auto probe = download(space, lens);
  add_true_modes(probe, m, demo.modes);
  return probe;
}

/// The waves [N, modes, n, n] on the detector.
std::vector<std::complex<float>> detected_waves(const Space& space, const Demo& demo,
                                                const Reconstruction& truth, const DemoObject& drawing) {
  const int m = demo.probe;
  const auto probe = allocate<DeviceView<Wave***>>("probe", demo.modes, m, m);
  upload(space, probe, truth.probe);
  // The windows of the object where they truly lie, one below the other.
  const auto count = static_cast<std::int64_t>(truth.positions.size());
  std::vector<std::complex<float>> windows;
  std::vector<std::array<double, 2>> places;
  for (const auto& [row, column] : truth.positions) {
    places.push_back({double(places.size()) * m, 0});
    for (int i = 0; i < m * m; ++i) {
      const auto value = drawing.at(row + i / m, column + i % m);
      windows.push_back(std::polar(value.amplitude, value.phase));
    }
  }
  const auto object = allocate<DeviceView<Wave**>>("object", count * m, m);
  upload(space, object, windows);
  const Kokkos::View<const double**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>
      positions(places.front().data(), places.size(), 2);
  const ScanPositions<Space> scan(space, positions, {count * m, m}, m);
  const auto waves = allocate<DeviceView<Wave****>>("waves", count, demo.modes, demo.detector, demo.detector);
  exit_waves(space, scan, object, probe, waves);
  Propagator<Space, float>(space, demo.detector, count * demo.modes).propagate(space, waves);
  return download(space, waves);
}

/// Photons [N, n, n] of waves whose modes do not interfere.
std::vector<std::uint16_t> detected_counts(const Demo& demo, const std::vector<std::complex<float>>& waves) {
  const auto pixels = static_cast<std::size_t>(demo.detector) * static_cast<std::size_t>(demo.detector);
  std::vector<double> intensities;
  double sum = 0;
  for (std::size_t wave = 0; wave < waves.size() / pixels; wave += static_cast<std::size_t>(demo.modes))
    for (std::size_t k = 0; k < pixels; ++k) {
      intensities.push_back(0);
      for (int mode = 0; mode < demo.modes; ++mode)
        intensities.back() +=
            std::norm(std::complex<double>(waves[(wave + static_cast<std::size_t>(mode)) * pixels + k]));
      sum += intensities.back();
    }
  std::mt19937_64 generator(1956);
  std::vector<std::uint16_t> counts;
  for (const double intensity : intensities) {
    std::poisson_distribution<int> detected(intensity * demo.counts * double(intensities.size()) / sum);
    counts.push_back(static_cast<std::uint16_t>(std::min(detected(generator), 65535)));
  }
  return counts;
}

} // namespace

void simulate(const Space& space, const Demo& demo, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const char* const name : {"scan.cxi", "truth.h5", "scan.h5"})
    const AtomicFile writable(folder / name); // before anything is
  Reconstruction truth;
  const int m = demo.probe, margin = demo.margin();
  truth.rows = truth.columns = m + (demo.scan - 1) * demo.step + 2 * margin;
  truth.modes = demo.modes, truth.probe_size = m;
  truth.aberrations = demo.aberrations;
  truth.pixel_size = demo.optics.pixel_size * 1e-9;
  const auto written = raster(demo), errors = position_errors(written, demo.position_errors);
  for (std::size_t j = 0; j < written.size(); ++j)
    truth.positions.push_back({written[j][0] + margin + errors[j][0], written[j][1] + margin + errors[j][1]});
  const DemoObject drawing(double(truth.rows), demo.step);
  for (std::int64_t y = 0; y < truth.rows; ++y)
    for (std::int64_t x = 0; x < truth.columns; ++x) {
      const auto value = drawing.at(double(y), double(x));
      truth.amplitude.push_back(value.amplitude);
      truth.phase.push_back(value.phase);
    }
  truth.probe = true_probe(space, demo);
  const auto counts = detected_counts(demo, detected_waves(space, demo, truth, drawing));

  const double metre = 1e-9, distance = 1;
  MeasurementWriter writer(
      folder / "scan.cxi", demo.detector, written,
      {.wavelength = demo.optics.wavelength * metre,
       .distance = distance,
       .detector_pixel = demo.optics.wavelength * distance / (demo.detector * demo.optics.pixel_size),
       .object_pixel = truth.pixel_size});
  writer.write(0, std::ssize(written), counts);
  if (demo.masked)
    writer.write_mask(masked_pixels(demo.detector));
  writer.commit();
  write_reconstruction(folder / "truth.h5", truth);
}

} // namespace Bracewell::Examples
