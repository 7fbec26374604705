// SPDX-License-Identifier: MIT
#include "cryoem/local_resolution.hpp"

#include "cryoem/sharpen.hpp"

#include <bracewell/fft/fast_size.hpp>
#include <bracewell/fft/plan.hpp>
#include <bracewell/reconstruct/fourier_shell_correlation.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

namespace Bracewell::Examples {
namespace {

/// Windows of a map from `corners` on, folded: elements that are a multiple of the folded size apart are summed, so that the
/// transform has every so many of the window's frequencies. What is outside of the map is 0.
struct FoldWindows {
  Map map, window, folded; ///< the last: [windows, size, size, size], at least half of the window's size
  DeviceView<int* [3]> corners;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int n = static_cast<int>(map.extent(1)), size = static_cast<int>(folded.extent(1)),
              all = static_cast<int>(window.extent(1));
    const int i = team.league_rank() / size, first_z = team.league_rank() % size;
    const int at_x = corners(i, 0), begin = Kokkos::max(0, -at_x), end = Kokkos::min(all, n - at_x);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, size), [&](int first_y) {
      float* const row = &folded(i, first_z, first_y, 0);
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, size), [&](int x) { row[x] = 0; });
      for (int z = first_z; z < all; z += size)
        for (int y = first_y; y < all; y += size) {
          const int map_z = corners(i, 2) + z, map_y = corners(i, 1) + y;
          if (map_z < 0 || map_z >= n || map_y < 0 || map_y >= n)
            continue;
          const float* const own = &map(0, map_z, map_y, 0) + at_x;
          const float* const shape = &window(0, z, y, 0);
          for (int from = 0; from < all; from += size) {
            Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, size), [&](int x) {
              if (from + x >= begin && from + x < end) // each element has one thread
                row[x] += shape[from + x] * own[from + x];
            });
          }
        }
    });
  }
};

/// Linearly between the points of a lattice that are known; 0 outside of the sphere.
struct FillMap {
  Map map;
  DeviceView<float***> frequency; ///< [z, y, x] about the middle, by steps; negative: not known
  double step, radius, unit;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const int n = static_cast<int>(map.extent(1)), side = static_cast<int>(frequency.extent(0)) / 2;
    const int z = static_cast<int>(row / n), y = static_cast<int>(row % n);
    for (int x = 0; x < n; ++x) {
      const double place[3] = {double(z - n / 2), double(y - n / 2), double(x - n / 2)};
      map(0, z, y, x) = 0;
      if (place[0] * place[0] + place[1] * place[1] + place[2] * place[2] > radius * radius)
        continue;
      int first[3];
      double part[3], sum = 0, weights = 0;
      for (int i = 0; i < 3; ++i) {
        first[i] = Kokkos::clamp(static_cast<int>(Kokkos::floor(place[i] / step)), -side, side - 1);
        part[i] = Kokkos::clamp(place[i] / step - first[i], 0.0, 1.0);
      }
      for (int corner = 0; corner < 8; ++corner) {
        int point[3];
        double weight = 1;
        for (int i = 0; i < 3; ++i) {
          const int next = (corner >> i) & 1;
          point[i] = first[i] + next + side;
          weight *= next ? part[i] : 1 - part[i];
        }
        const double value = frequency(point[0], point[1], point[2]);
        if (value >= 0)
          sum += weight * value, weights += weight;
      }
      if (sum > 0)
        map(0, z, y, x) = static_cast<float>(unit * weights / sum);
    }
  }
};

} // namespace

double window_width(double period, int box) {
  constexpr double periods = 7, least = 8;
  const double most = std::max(4.0, box / 2.0);
  return std::isfinite(period) ? std::clamp(periods * period, std::min(least, most), most) : most;
}

LocalResolution local_resolution(const Space& space, const Map& first, const Map& second,
                                 const SoftSphere& within, double width, double pixel_size) {
  constexpr std::size_t bytes = 64 << 20;
  const int box = static_cast<int>(first.extent(1));
  // Half of the width is flat; so much more falls off on each side.
  const SoftSphere shape{.radius = width / 4, .edge = width / 2};
  const int all = static_cast<int>(std::ceil(1.5 * width));
  // A window's frequencies say the same within one over its width, so no more of them are taken.
  const int size = static_cast<int>(next_fast_size(static_cast<std::int64_t>(std::ceil(width)), true));
  const auto shells = static_cast<std::size_t>((size + 1) / 2);
  const double step = std::max(1.0, std::floor(width / 2));
  const int side = static_cast<int>(std::ceil(std::min(within.radius, box / 2.0) / step));
  std::vector<std::array<int, 3>> points; // x, y, z
  for (int z = -side; z <= side; ++z)
    for (int y = -side; y <= side; ++y)
      for (int x = -side; x <= side; ++x)
        if (std::sqrt(double(z * z + y * y + x * x)) * step <= within.radius)
          points.push_back({x, y, z});
  const auto length = static_cast<std::size_t>(2 * side + 1);
  const DeviceView<float***> frequency("Bracewell::examples::frequency", length, length, length);
  const auto frequency_on_host = Kokkos::create_mirror_view(frequency);
  std::fill_n(frequency_on_host.data(), frequency_on_host.size(), -1.0f);

  const auto window = allocate<Map>("window", 1, all, all, all);
  fill_values(space, window, 1.0f);
  apply_mask(space, window, shape);
  const std::array<Map, 2> maps = flattened(space, first, second);
  const std::size_t of_window = 4 * sizeof(float) * static_cast<std::size_t>(size * size * size);
  const std::size_t together = std::clamp<std::size_t>(bytes / of_window, 1, points.size());
  const auto windows = allocate<Map>("windows", together, size, size, size);
  std::array<MapSpectrum, 2> spectra;
  for (auto& spectrum : spectra)
    spectrum = allocate<MapSpectrum>("spectra", together, size, size, size / 2 + 1);
  const FFT<Space, 3, float, Kokkos::complex<float>> forward(space, {size, size, size},
                                                             static_cast<std::int64_t>(together));
  const DeviceView<int* [3]> on_device("Bracewell::examples::corners", together);
  const auto on_host = Kokkos::create_mirror_view(on_device);
  const DeviceView<double**> curves("Bracewell::examples::curves", together, shells);
  const auto found = Kokkos::create_mirror_view(curves);
  for (std::size_t begin = 0; begin < points.size(); begin += together) {
    for (std::size_t i = 0; i < together; ++i) // the last ones once more where there are too few
      for (std::size_t axis = 0; axis < 3; ++axis)
        on_host(i, axis) =
            box / 2 - all / 2 + points[std::min(begin + i, points.size() - 1)][axis] * static_cast<int>(step);
    copy_values(space, on_device, on_host);
    for (const std::size_t half : {0, 1}) {
      const int teams = static_cast<int>(together) * size;
      const auto policy = kernels_run_on_host ? Kokkos::TeamPolicy<Space>(space, teams, 1)
                                              : Kokkos::TeamPolicy<Space>(space, teams, 8, 32);
      Kokkos::parallel_for("Bracewell::examples::fold_windows", policy,
                           FoldWindows{maps[half], window, windows, on_device});
      forward.execute(space, windows, spectra[half]);
    }
    fourier_shell_correlation(space, spectra[0], spectra[1], curves);
    copy_values(space, found, curves);
    space.fence("Bracewell::examples::local_resolution");
    for (std::size_t i = 0; i < std::min(together, points.size() - begin); ++i) {
      const std::span<const double> curve(&found(i, 0), shells);
      const double period = resolution(curve, LocalResolution::threshold, size, 1);
      const auto& [x, y, z] = points[begin + i];
      frequency_on_host(z + side, y + side, x + side) =
          static_cast<float>(std::clamp(1 / period, 1 / width, 0.5));
    }
  }

  copy_values(space, frequency, frequency_on_host);
  const double unit = pixel_size > 0 ? pixel_size : 1;
  LocalResolution result{allocate<Map>("local_resolution", 1, box, box, box), unit * width};
  Kokkos::parallel_for(
      "Bracewell::examples::fill_map",
      Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, std::int64_t(box) * box),
      FillMap{result.map, frequency, step, within.radius, unit});
  space.fence("Bracewell::examples::local_resolution");
  return result;
}

} // namespace Bracewell::Examples
