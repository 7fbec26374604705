// SPDX-License-Identifier: MIT
#include "cryoem/sharpen.hpp"

#include "cryoem/report.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/reconstruct/shells.hpp>
#include <bracewell/reconstruct/signal_and_noise.hpp>
#include <bracewell/rfft/layout.hpp>

#include <algorithm>
#include <cmath>

namespace Bracewell::Examples {
namespace {

MapSpectrum spectrum_of(const Space& space, const Map& map) {
  const int n = static_cast<int>(map.extent(1));
  const auto spectrum = allocate<MapSpectrum>("spectrum", 1, n, n, n / 2 + 1);
  FFT<Space, 3, float, Kokkos::complex<float>>(space, {n, n, n}).execute(space, map, spectrum);
  return spectrum;
}

/// The spectrum is overwritten.
Map map_of(const Space& space, const MapSpectrum& spectrum) {
  const int n = static_cast<int>(spectrum.extent(1));
  const auto map = allocate<Map>("map", 1, n, n, n);
  FFT<Space, 3, Kokkos::complex<float>, float>(space, {n, n, n}).execute(space, spectrum, map);
  space.fence("Bracewell::examples::map_of"); // plan and spectrum go
  return map;
}

/// Random phases, the same in every run, for frequencies of at least a radius; mates stay mates.
struct RandomisePhases {
  MapSpectrum spectrum;
  double radius;
  unsigned seed;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const int n = static_cast<int>(spectrum.extent(1)), z = static_cast<int>(row / n),
              y = static_cast<int>(row % n);
    const double kz = HalfSpectrumLayout<3>::frequency(z, n), ky = HalfSpectrumLayout<3>::frequency(y, n);
    for (int x = 0; x <= n / 2; ++x) {
      const double squared = kz * kz + ky * ky + double(x) * x;
      auto& value = spectrum(0, z, y, x);
      const float scale = 1 / (float(n) * float(n) * float(n));
      value *= scale; // of the transform back
      if (squared < radius * radius)
        continue;
      const int mate_z = z == 0 ? 0 : n - z, mate_y = y == 0 ? 0 : n - y;
      const bool self_mated = x == 0 || 2 * x == n;
      const bool mate_first = self_mated && (mate_z < z || (mate_z == z && mate_y < y));
      if (self_mated && mate_z == z && mate_y == y)
        continue; // is real
      const std::uint64_t key =
          mate_first ? (std::uint64_t(mate_z) * n + mate_y) * n + x : (std::uint64_t(z) * n + y) * n + x;
      std::uint64_t bits = (key + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1342543de82ef95u; // splitmix64
      bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
      bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
      const double turn = double((bits ^ (bits >> 31)) >> 11) / 9007199254740992.0;
      const double angle = (mate_first ? -2 : 2) * Kokkos::numbers::pi * turn;
      const float magnitude = Kokkos::abs(value);
      value = Kokkos::complex<float>(magnitude * float(Kokkos::cos(angle)),
                                     magnitude * float(Kokkos::sin(angle)));
    }
  }
};

/// Times a curve of |k|, between its values linearly, and a scale.
struct MultiplyByCurve {
  MapSpectrum spectrum;
  DeviceView<double*> curve;
  double scale;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const int n = static_cast<int>(spectrum.extent(1)), z = static_cast<int>(row / n),
              y = static_cast<int>(row % n);
    const int last = static_cast<int>(curve.extent(0)) - 1;
    const double kz = HalfSpectrumLayout<3>::frequency(z, n), ky = HalfSpectrumLayout<3>::frequency(y, n);
    for (int x = 0; x <= n / 2; ++x) {
      const double radius = Kokkos::sqrt(kz * kz + ky * ky + double(x) * x);
      const int shell = static_cast<int>(radius);
      const double part = radius - shell;
      const double factor = shell < last ? (1 - part) * curve(shell) + part * curve(shell + 1) : 0;
      spectrum(0, z, y, x) *= static_cast<float>(scale * factor);
    }
  }
};

template <class Functor>
void for_rows(const Space& space, const char* label, std::size_t n, const Functor& functor) {
  Kokkos::parallel_for(
      label,
      Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, static_cast<std::int64_t>(n * n)),
      functor);
}

/// Times a curve by shells, as a transform back needs it.
void multiply(const Space& space, const MapSpectrum& spectrum, const std::vector<double>& factor) {
  const auto n = static_cast<double>(spectrum.extent(1));
  const DeviceView<double*> on_device("Bracewell::examples::factor", factor.size());
  copy_values(space, on_device, host_view(factor));
  for_rows(space, "Bracewell::examples::multiply", spectrum.extent(1),
           MultiplyByCurve{spectrum, on_device, 1 / (n * n * n)});
  space.fence("Bracewell::examples::multiply"); // the curve goes
}

/// |F|^2 in units of a scale, or (again) its square.
struct SquaredMagnitude {
  MapSpectrum spectrum;
  MapWeight power;
  float scale;
  bool again;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto value = spectrum.data()[i];
    const float real = scale * value.real(), imaginary = scale * value.imag();
    const float squared = real * real + imaginary * imaginary;
    power.data()[i] = again ? squared * squared : squared;
  }
};

struct LargestMagnitude {
  MapSpectrum spectrum;
  KOKKOS_FUNCTION void operator()(std::int64_t i, double& largest) const {
    largest = Kokkos::max(largest, double(Kokkos::abs(spectrum.data()[i])));
  }
};

/// Part of a shell's elements that would hold its power if all had as much: (sum |F|^2)^2 2 / (N sum |F|^4), 1 for Gaussian
/// values of one power.
std::vector<double> participation(const Space& space, const Map& map, std::size_t shells) {
  const auto spectrum = spectrum_of(space, map);
  const auto n = static_cast<int>(map.extent(1));
  const auto power = allocate<MapWeight>("power", 1, n, n, n / 2 + 1);
  double largest = 0; // fourth powers stay within float
  Kokkos::parallel_reduce("Bracewell::examples::largest",
                          Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                              space, 0, static_cast<std::int64_t>(spectrum.size())),
                          LargestMagnitude{spectrum}, Kokkos::Max<double>(largest));
  const auto scale = static_cast<float>(largest > 0 ? 1e6 / largest : 1);
  std::array<std::vector<double>, 2> means;
  for (const bool again : {false, true}) {
    Kokkos::parallel_for("Bracewell::examples::power",
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(
                             space, 0, static_cast<std::int64_t>(spectrum.size())),
                         SquaredMagnitude{spectrum, power, scale, again});
    const DeviceView<double**> averages("Bracewell::examples::averages", 1, shells);
    shell_averages(space, HalfSpectrum{power, n}, averages);
    const auto host = values_on_host(averages);
    means[again ? 1 : 0].assign(host.data(), host.data() + shells);
  }
  std::vector<double> part;
  for (std::size_t s = 0; s < shells; ++s)
    part.push_back(means[1][s] > 0 ? std::min(1.0, 2 * means[0][s] * means[0][s] / means[1][s]) : 1);
  return part;
}

/// (sum m^2)^2 / sum m^4 over the voxels of a box: as many independent values white noise has under the mask.
double independent_voxels(const SoftSphere& mask, double box) {
  constexpr int steps = 1000;
  const double end = std::min(mask.radius + mask.edge, box / 2);
  double squares = 0, fourth = 0;
  for (int i = 0; i < steps; ++i) {
    const double r = end * (i + 0.5) / steps, m = mask(r),
                 shell = 4 * Kokkos::numbers::pi * r * r * end / steps;
    squares += shell * m * m;
    fourth += shell * m * m * m * m;
  }
  return squares * squares / fourth;
}

std::vector<double> errors(const Space& space, const std::vector<double>& correlation, const Map& first,
                           const Map& second, const SoftSphere& mask, std::size_t copies) {
  const std::size_t shells = correlation.size();
  const auto box = static_cast<double>(first.extent(1));
  const double part = std::min(1.0, independent_voxels(mask, box) / (box * box * box)) / double(copies);
  const std::array<std::vector<double>, 2> of_power{participation(space, first, shells),
                                                    participation(space, second, shells)};
  std::vector<double> result;
  for (std::size_t s = 0; s < shells; ++s) {
    const double elements = s == 0 ? 1 : 4 * Kokkos::numbers::pi * (double(s) * double(s) + 1.0 / 12);
    const double independent = elements / 2 * part * std::sqrt(of_power[0][s] * of_power[1][s]);
    result.push_back((1 - correlation[s] * correlation[s]) / std::sqrt(std::max(1.0, 2 * independent - 1)));
  }
  return result;
}

/// Means over shells of Re F1 conj F2 and of (|F1|^2 + |F2|^2) / 2.
struct ShellPowers {
  std::vector<double> common, power;

  ShellPowers(const Space& space, const MapSpectrum& first, const MapSpectrum& second, std::size_t shells) {
    const auto n = static_cast<int>(first.extent(1));
    const auto ones = allocate<MapWeight>("ones", 1, n, n, n / 2 + 1);
    fill_values(space, ones, 1.0f);
    const DeviceView<double***> moments("Bracewell::examples::moments", 1, shells, half_set_moment_count);
    half_set_moments(space, HalfSpectrum{first, n}, HalfSpectrum{ones, n}, HalfSpectrum{second, n},
                     HalfSpectrum{ones, n}, moments);
    const auto host = values_on_host(moments);
    for (std::size_t s = 0; s < shells; ++s) {
      common.push_back(host(0, s, 0) / host(0, s, 6));
      power.push_back(host(0, s, 2) / (2 * host(0, s, 6)));
    }
  }
};

} // namespace

MaskedCorrelations masked_correlations(const Space& space, const Map& first, const Map& second,
                                       const SoftSphere& mask, std::size_t copies) {
  constexpr double trusted = 0.8;
  MaskedCorrelations result;
  result.unmasked = correlation(space, first, second);
  const Map one = masked(space, first, mask), other = masked(space, second, mask);
  result.masked = correlation(space, one, other);
  const std::size_t shells = result.unmasked.size();
  result.error = errors(space, result.masked, one, other, mask, copies);
  result.from = 1;
  while (result.from < shells && result.unmasked[result.from] >= trusted)
    ++result.from;
  if (result.from == shells) {
    result.randomised.assign(shells, 0);
    result.corrected = result.masked;
    return result;
  }
  const auto randomised = [&](const Map& map, unsigned seed) {
    const auto spectrum = spectrum_of(space, map);
    for_rows(space, "Bracewell::examples::randomise_phases", spectrum.extent(1),
             RandomisePhases{spectrum, static_cast<double>(result.from) - 0.5, seed});
    return masked(space, map_of(space, spectrum), mask);
  };
  result.randomised = correlation(space, randomised(first, 1), randomised(second, 2));
  for (std::size_t s = 0; s < shells; ++s) {
    const double random = result.randomised[s];
    // The two shells at the edge share frequencies with those before it.
    result.corrected.push_back(
        s < result.from + 2 || !(random < 1) ? result.masked[s] : (result.masked[s] - random) / (1 - random));
  }
  return result;
}

SharpenedMap sharpen(const Space& space, const Map& whole, const Map& first, const Map& second,
                     std::span<const double> curve, std::span<const double> transfer,
                     const std::optional<double>& b_factor, double pixel_size) {
  constexpr double threshold = 0.143, low = 10;
  const auto n = static_cast<double>(whole.extent(1));
  const std::size_t shells = curve.size();
  const auto spectrum = spectrum_of(space, whole);
  const ShellPowers halves(space, spectrum_of(space, first), spectrum_of(space, second), shells);
  const ShellPowers own(space, spectrum, spectrum, shells);
  std::size_t end = 1; // the first shell that does not agree
  while (end < shells && curve[end] >= threshold)
    ++end;
  std::vector<double> signal(shells), factor(shells + 1);
  for (std::size_t s = 0; s < end; ++s)
    signal[s] = std::max(0.0, halves.common[s]) / (s < transfer.size() && transfer[s] > 0 ? transfer[s] : 1);

  SharpenedMap result;
  const auto squared = [&](std::size_t s) { // of the frequency
    return pixel_size > 0 ? std::pow(static_cast<double>(s) / (n * pixel_size), 2) : 0;
  };
  if (b_factor)
    result.b_factor = pixel_size > 0 ? *b_factor : 0;
  else { // ln amplitude = const - B k^2 / 4: a line by least squares
    double weight = 0, x = 0, y = 0, xx = 0, xy = 0;
    std::size_t points = 0;
    for (std::size_t s = 1; s < end; ++s)
      if (signal[s] > 0 && squared(s) >= 1 / (low * low)) {
        const double k = squared(s), amplitude = 0.5 * std::log(signal[s]);
        weight += 1, x += k, y += amplitude, xx += k * k, xy += k * amplitude, ++points;
      }
    const double spread = weight * xx - x * x;
    if (points >= 4 && spread > 0) {
      result.b_factor = 4 * (weight * xy - x * y) / spread;
      result.fitted = true;
    }
  }
  for (std::size_t s = 0; s < end; ++s) {
    const double agreement = std::max(0.0, 2 * curve[s] / (1 + curve[s]));
    factor[s] = own.power[s] > 0 ? std::sqrt(agreement * signal[s] / own.power[s]) *
                                       std::exp(-result.b_factor * squared(s) / 4)
                                 : 0;
  }
  multiply(space, spectrum, factor);
  result.map = map_of(space, spectrum);
  return result;
}

std::array<Map, 2> flattened(const Space& space, const Map& first, const Map& second) {
  const auto shells = (first.extent(1) + 1) / 2;
  std::array<MapSpectrum, 2> spectra{spectrum_of(space, first), spectrum_of(space, second)};
  const ShellPowers powers(space, spectra[0], spectra[1], shells);
  std::vector<double> factor(shells + 1); // 0 beyond the last shell
  for (std::size_t s = 0; s < shells; ++s)
    factor[s] = powers.power[s] > 0 ? 1 / std::sqrt(powers.power[s]) : 0;
  for (const auto& spectrum : spectra)
    multiply(space, spectrum, factor);
  return {map_of(space, spectra[0]), map_of(space, spectra[1])};
}

} // namespace Bracewell::Examples
