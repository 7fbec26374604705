// SPDX-License-Identifier: MIT
// Projections in real space beside those through Fourier space: bench_lines [BOX], by default 256 on GPUs, 96 on hosts.
// A volume of Gaussian blobs (sigma of 1.5 voxels, float), tilted about y from -60 to 60 degrees. The first table has the median of 5 runs
// in milliseconds: sums along lines, their transpose and gradients of poses; a map that is prepared (oversampling 2, Catmull-Rom),
// projected and transformed to images; and the same without preparing. The second has relative errors (L2) against the line
// integrals of the blobs in the box, for blobs in a ball within the box and for blobs that the box cuts.

#include "timing.hpp"

#include <bracewell/fft/plan.hpp>
#include <bracewell/project/prepare_map.hpp>
#include <bracewell/project/project.hpp>
#include <bracewell/project/project_lines.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;
using Complex = Kokkos::complex<float>;
template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Space>;

constexpr bool host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, Space::memory_space>::accessible;
constexpr double sigma = 1.5;

/// Median milliseconds.
double measure(const std::function<void()>& run) { return 1e3 * Bench::seconds_of(run); }

struct Specimen {
  int n;
  std::vector<std::array<double, 3>> blobs; ///< from the centre
  View<float****> map;

  /// Blobs in a ball within the box, or in a cube twice as long.
  Specimen(int n_, bool cut) : n(n_), map("map", 1, n_, n_, n_) {
    std::mt19937 engine(1);
    std::uniform_real_distribution<double> uniform(-1, 1);
    const double reach = cut ? n : n / 2. - 6 * sigma;
    while (blobs.size() < (cut ? 1600 : 100)) {
      const std::array<double, 3> at{reach * uniform(engine), reach * uniform(engine),
                                     reach * uniform(engine)};
      if (cut || at[0] * at[0] + at[1] * at[1] + at[2] * at[2] < reach * reach)
        blobs.push_back(at);
    }
    const auto on_host = Kokkos::create_mirror_view(map);
    Kokkos::deep_copy(on_host, 0);
    for (const auto& blob : blobs) {
      int first[3], last[3];
      for (int d = 0; d < 3; ++d) {
        first[d] = std::max(0, int(blob[d] + n / 2 - 6 * sigma));
        last[d] = std::min(n - 1, int(blob[d] + n / 2 + 6 * sigma));
      }
      for (int z = first[2]; z <= last[2]; ++z)
        for (int y = first[1]; y <= last[1]; ++y)
          for (int x = first[0]; x <= last[0]; ++x)
            on_host(0, z, y, x) +=
                float(std::exp(-(std::pow(x - n / 2 - blob[0], 2) + std::pow(y - n / 2 - blob[1], 2) +
                                 std::pow(z - n / 2 - blob[2], 2)) /
                               (2 * sigma * sigma)));
    }
    Kokkos::deep_copy(map, on_host);
  }

  /// The integral along the line of a pixel within the box.
  double integral(const double (&M)[3][3], double u, double v) const {
    double from = -1e9, to = 1e9, corner[3];
    for (int d = 0; d < 3; ++d) {
      corner[d] = M[d][0] * u + M[d][1] * v;
      if (std::abs(M[d][2]) < 1e-12) {
        if (corner[d] < -n / 2 - 0.5 || corner[d] > n - n / 2 - 0.5)
          return 0;
        continue;
      }
      const double a = (-n / 2 - 0.5 - corner[d]) / M[d][2], b = (n - n / 2 - 0.5 - corner[d]) / M[d][2];
      from = std::max(from, std::min(a, b));
      to = std::min(to, std::max(a, b));
    }
    double sum = 0;
    for (const auto& blob : blobs) {
      double along = 0, squared = 0;
      for (int d = 0; d < 3; ++d)
        along += (blob[d] - corner[d]) * M[d][2];
      for (int d = 0; d < 3; ++d)
        squared += std::pow(blob[d] - corner[d] - along * M[d][2], 2);
      const double scale = std::sqrt(2.) * sigma;
      if (from < to && squared < 72 * sigma * sigma)
        sum += std::exp(-squared / (scale * scale)) * scale * std::sqrt(std::acos(-1.)) / 2 *
               (std::erf((to - along) / scale) - std::erf((from - along) / scale));
    }
    return sum;
  }
};

struct Tilts {
  int poses;
  View<float****> matrices;

  explicit Tilts(int poses_) : poses(poses_), matrices("matrices", 1, poses_, 3, 3) {
    const auto on_host = Kokkos::create_mirror_view(matrices);
    for (int p = 0; p < poses; ++p) {
      double M[3][3];
      of(p, M);
      for (int i = 0; i < 9; ++i)
        on_host.data()[9 * p + i] = float(M[i / 3][i % 3]);
    }
    Kokkos::deep_copy(matrices, on_host);
  }

  void of(int pose, double (&M)[3][3]) const {
    const double degrees = poses == 1 ? 20 : -60 + 120. * pose / (poses - 1),
                 a = degrees * std::acos(-1.) / 180;
    const double turned[3][3] = {{std::cos(a), 0, std::sin(a)}, {0, 1, 0}, {-std::sin(a), 0, std::cos(a)}};
    std::copy(&turned[0][0], &turned[0][0] + 9, &M[0][0]);
  }
};

/// A prepared map to images of `width` pixels.
struct ThroughFourier {
  int n, poses, width;
  View<Complex****> spectra;
  View<float***> images, cropped;
  FFT<Space, 2, Complex, float> back;

  ThroughFourier(const Space& space, int n_, int poses_, int width_)
      : n(n_), poses(poses_), width(width_), spectra("spectra", 1, poses, n, n / 2 + 1),
        images("images", poses, n, n), cropped("cropped", poses, width, width), back(space, {n, n}, poses) {}

  template <class Reference>
  void run(const Space& space, const Reference& reference, const View<float****>& matrices) const {
    // Lines go through the corners of the square of frequencies, too.
    project(space, reference, {.matrices = matrices}, spectra, {.radius = n / 2.});
    back.execute(space, View<Complex***>(spectra.data(), poses, n, n / 2 + 1), images);
    crop_centre(space, images, cropped, 1. / (double(n) * n));
  }
};

template <class Images>
double error(const Specimen& specimen, const Tilts& tilts, const Images& images, int width) {
  const auto found = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), images);
  double squares = 0, norm = 0;
  for (int p = 0; p < tilts.poses; ++p) {
    double M[3][3];
    tilts.of(p, M);
    for (int y = 0; y < width; y += 3)
      for (int x = 0; x < width; x += 3) {
        const double exact = specimen.integral(M, x - width / 2, y - width / 2);
        squares += std::pow(double(found.data()[(std::int64_t(p) * width + y) * width + x]) - exact, 2);
        norm += exact * exact;
      }
  }
  return std::sqrt(squares / norm);
}

void times(const Specimen& specimen, int poses, int width) {
  const Space space;
  const int n = specimen.n;
  const Tilts tilts(poses);
  const View<float****> images("images", 1, poses, width, width), sum("sum", 1, n, n, n),
      of_matrices("of_matrices", 1, poses, 3, 3);
  const Poses<float, Space::memory_space> all{.matrices = tilts.matrices};
  const ThroughFourier fourier(space, n, poses, width);
  const double lines = measure([&] { project_lines(space, specimen.map, all, images); }),
               back = measure([&] { backproject_lines(space, images, all, sum); }),
               gradients = measure([&] {
                 project_lines_gradients(space, specimen.map, all, images, {.matrices = of_matrices});
               }),
               prepared = measure([&] {
                 const auto reference = prepare_map<CatmullRom>(space, specimen.map, 2 * n);
                 fourier.run(space, reference, tilts.matrices);
               });
  const auto reference = prepare_map<CatmullRom>(space, specimen.map, 2 * n);
  const double alone = measure([&] { fourier.run(space, reference, tilts.matrices); });
  std::printf("| %4d | %5d | %5d | %9.3f | %9.3f | %9.3f | %9.3f | %9.3f |\n", n, poses, width, lines, back,
              gradients, prepared, alone);
  std::fflush(stdout);
}

void errors(const char* name, const Specimen& specimen, int width) {
  const Space space;
  const Tilts tilts(5);
  const View<float****> images("images", 1, tilts.poses, width, width);
  project_lines(space, specimen.map, {.matrices = tilts.matrices}, images);
  const ThroughFourier fourier(space, specimen.n, tilts.poses, width);
  fourier.run(space, prepare_map<CatmullRom>(space, specimen.map, 2 * specimen.n), tilts.matrices);
  std::printf("| %-17s | %5d | %8.4f | %8.4f |\n", name, width, error(specimen, tilts, images, width),
              error(specimen, tilts, fourier.cropped, width));
}

} // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard(argc, argv);
  const int n = argc > 1 ? std::atoi(argv[1]) : (host ? 96 : 256);
  const Specimen within(n, false);
  std::printf("float, %s\n\n", Space::name());
  std::printf("|  box | poses | width |  lines,   | transpose | gradients | map to    | images of |\n");
  std::printf("|      |       |       |  ms       | ms        | ms        | images,ms | a map, ms |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const int poses : {1, 8, 61})
    for (const int width : {n, n / 4})
      times(within, poses, width);
  std::printf("\n| blobs             | width | lines    | Fourier  |\n|---|---|---|---|\n");
  errors("within the box", within, n);
  const Specimen cut(n, true);
  errors("cut by the box", cut, n);
  errors("cut by the box", cut, n / 4);
}
