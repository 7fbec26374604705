// Template matching beside its floor, the inverse FFTs:
//   bench_template_matching [HEIGHT WIDTH BOX ORIENTATIONS LIMIT [DEPTH]]; by default micrographs of 4096 and 2048 pixels a side
//   and blocks of tomograms of 256 voxels on GPUs, 512 pixels and 64 voxels on hosts.
// Prints a table: milliseconds of an orientation, the median of 5 runs up to a fence, orientations a second, and hours of
// 10^6 orientations; bytes an orientation moves at least, a second. `search`: all of it. `FFT`: the inverse transforms
// alone, complex to real in the batches of the plan. `pairs`: complex transforms, two orientations in each.

#include "timing.hpp"

#include <bracewell/geometry/rotations.hpp>
#include <bracewell/project/template_matching.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

namespace {

using namespace Bench;
using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;
using Memory = Space::memory_space;
using Complex = Kokkos::complex<float>;
template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Space>;

constexpr bool host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible;

struct Sizes {
  int height, width, box;
  std::int64_t orientations;
  double limit;
  int depth = 1; ///< 1: a micrograph
};

void row(const char* name, double seconds, double bytes) {
  std::printf("| `%s` | %.4g | %.4g | %.3g | %.3g |\n", name, 1e3 * seconds, 1 / seconds,
              1e6 * seconds / 3600, bytes / seconds / 1e9);
  std::fflush(stdout);
}

template <int Dim>
void measure(const Sizes& sizes) {
  const Space space;
  const auto image = [](auto depth, auto height, auto width) {
    if constexpr (Dim == 3)
      return View<float***>("image", std::size_t(depth), std::size_t(height), std::size_t(width));
    else
      return View<float**>("image", std::size_t(height), std::size_t(width));
  };
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  const auto micrograph = image(sizes.depth, sizes.height, sizes.width);
  fill_with(micrograph, [&](std::size_t) { return normal(engine); });
  const auto padded = std::size_t(2 * sizes.box);
  const View<Complex****> volume("volume", 1, padded, padded, padded / 2 + 1);
  fill_with(volume, [&](std::size_t i) { return Complex(float(i % 13), float(i % 7)); });
  const typename TemplateMatching<Space, float, Dim>::Reference reference(space, volume);
  const View<float***> matrices("matrices", std::size_t(sizes.orientations), 3, 3);
  const auto rotations = Kokkos::create_mirror_view(matrices);
  for (std::size_t i = 0; i < std::size_t(sizes.orientations); ++i) {
    const auto matrix = rotation_matrix(rotation_of_grid<double>(std::int64_t(i), sizes.orientations));
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c)
        rotations(i, std::size_t(r), std::size_t(c)) = float(matrix(r, c));
  }
  Kokkos::deep_copy(matrices, rotations);
  TemplateMatchingOptions options{.limit = sizes.limit};
  if (Dim == 3) {
    options.wedge.lowest = -60;
    options.wedge.highest = 60;
  }
  TemplateMatching<Space, float, Dim> matching(
      space, {.height = sizes.height, .width = sizes.width, .depth = sizes.depth}, options);
  matching.set_micrograph(space, micrograph);
  const int layers = matching.layers(), rows = matching.rows(), columns = matching.columns(),
            batch = matching.batch();
  std::printf("\n%d x %d x %d pixels, box %d, limit %g: correlations of %d x %d x %d, batches of %d, %lld "
              "orientations, %.3g "
              "GB held\n\n",
              sizes.depth, sizes.height, sizes.width, sizes.box, sizes.limit, layers, rows, columns, batch,
              static_cast<long long>(sizes.orientations), double(matching.memory_bytes()) / 1e9);
  std::printf("| | ms each | orientations/s | h for 10^6 | GB/s |\n|---|---|---|---|---|\n");
  const double pixels = double(layers) * rows * columns, real = 4 * pixels,
               half = 8. * layers * rows * (columns / 2 + 1);
  // Passes of a transform read and write: of two axes one each, of three one more.
  const double transform = (2 * Dim - 1) * half + real,
               all = half + transform + real + (12 * pixels / 2 + 48 * pixels) / batch;
  row("search", seconds_of([&] { matching.search(space, reference, matrices); }) / double(sizes.orientations),
      all);
  std::array<int, Dim> shape;
  const int full[3] = {layers, rows, columns};
  std::copy(full + 3 - Dim, full + 3, shape.begin());
  const auto batches = [&]<class Value>(int count, int last) {
    if constexpr (Dim == 3)
      return View<Value****>("batch", std::size_t(count), std::size_t(layers), std::size_t(rows),
                             std::size_t(last));
    else
      return View<Value***>("batch", std::size_t(count), std::size_t(rows), std::size_t(last));
  };
  {
    const auto spectra = batches.template operator()<Complex>(batch, columns / 2 + 1);
    const auto correlations = batches.template operator()<float>(batch, columns);
    const FFT<Space, Dim, Complex, float> inverse(space, shape, batch);
    row("FFT", seconds_of([&] { inverse.execute(space, spectra, correlations); }) / batch, transform);
  }
  const int pairs = std::max(1, batch / 2);
  const auto waves = batches.template operator()<Complex>(pairs, columns);
  const FFT<Space, Dim, Complex, Complex> complex(space, shape, pairs, {.direction = FFTDirection::Backward});
  row("pairs", seconds_of([&] { complex.execute(space, waves, waves); }) / (2. * pairs), Dim * 8 * pixels);
}

} // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard(argc, argv);
  std::printf("execution space: %s\n", Space::name());
  if (argc == 6 || argc == 7) {
    const Sizes sizes{std::atoi(argv[1]),  std::atoi(argv[2]), std::atoi(argv[3]),
                      std::atoll(argv[4]), std::atof(argv[5]), argc == 7 ? std::atoi(argv[6]) : 1};
    argc == 7 ? measure<3>(sizes) : measure<2>(sizes);
  } else if (host) {
    measure<2>({512, 512, 64, 64, 0.5});
    measure<2>({1024, 1024, 64, 16, 0.5});
    measure<3>({64, 64, 32, 64, 0.5, 64});
  } else {
    measure<2>({4096, 4096, 256, 960, 0.5});
    measure<2>({4096, 4096, 256, 960, 0.36});
    measure<2>({2048, 2048, 128, 1920, 0.5});
    measure<2>({4092, 5760, 256, 960, 0.5});
    measure<3>({256, 256, 64, 960, 0.5, 256});
    measure<3>({256, 256, 64, 960, 0.25, 256});
  }
}
