// Template matching beside its floor, the inverse FFTs:
//   bench_template_matching [HEIGHT WIDTH BOX ORIENTATIONS LIMIT]; by default micrographs of 4096 and 2048 pixels a side on GPUs,
//   of 512 on hosts.
// Prints a table: milliseconds of an orientation, the median of 5 runs up to a fence, orientations a second, and hours of
// 10^6 orientations; bytes an orientation moves at least, a second. `search`: all of it. `FFT`: the inverse transforms
// alone, complex to real in the batches of the plan. `pairs`: complex transforms, two orientations in each.

#include "timing.hpp"

#include <bracewell/geometry/rotations.hpp>
#include <bracewell/project/template_matching.hpp>

#include <algorithm>
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
};

void row(const char* name, double seconds, double bytes) {
  std::printf("| `%s` | %.4g | %.4g | %.3g | %.3g |\n", name, 1e3 * seconds, 1 / seconds,
              1e6 * seconds / 3600, bytes / seconds / 1e9);
  std::fflush(stdout);
}

void measure(const Sizes& sizes) {
  const Space space;
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  const View<float**> micrograph("micrograph", std::size_t(sizes.height), std::size_t(sizes.width));
  fill_with(micrograph, [&](std::size_t) { return normal(engine); });
  const auto padded = std::size_t(2 * sizes.box);
  const View<Complex****> volume("volume", 1, padded, padded, padded / 2 + 1);
  fill_with(volume, [&](std::size_t i) { return Complex(float(i % 13), float(i % 7)); });
  const TemplateMatching<Space>::Reference reference(space, volume);
  const View<float***> matrices("matrices", std::size_t(sizes.orientations), 3, 3);
  const auto rotations = Kokkos::create_mirror_view(matrices);
  for (std::size_t i = 0; i < std::size_t(sizes.orientations); ++i) {
    const auto matrix = rotation_matrix(rotation_of_grid<double>(std::int64_t(i), sizes.orientations));
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c)
        rotations(i, std::size_t(r), std::size_t(c)) = float(matrix(r, c));
  }
  Kokkos::deep_copy(matrices, rotations);
  TemplateMatching<Space> matching(space, {.height = sizes.height, .width = sizes.width},
                                   {.limit = sizes.limit});
  matching.set_micrograph(space, micrograph);
  const int rows = matching.rows(), columns = matching.columns(), batch = matching.batch();
  std::printf(
      "\n%d x %d pixels, box %d, limit %g: correlations of %d x %d, batches of %d, %lld orientations, %.3g "
      "GB held\n\n",
      sizes.height, sizes.width, sizes.box, sizes.limit, rows, columns, batch,
      static_cast<long long>(sizes.orientations), double(matching.memory_bytes()) / 1e9);
  std::printf("| | ms each | orientations/s | h for 10^6 | GB/s |\n|---|---|---|---|---|\n");
  const double half = 8. * rows * (columns / 2 + 1), real = 4. * rows * columns,
               pixels = double(rows) * columns;
  const double transform = 3 * half + real,
               all = half + transform + real + (12 * pixels / 2 + 48 * pixels) / batch;
  row("search", seconds_of([&] { matching.search(space, reference, matrices); }) / double(sizes.orientations),
      all);
  const View<Complex***> spectra("spectra", std::size_t(batch), std::size_t(rows),
                                 std::size_t(columns / 2 + 1));
  const View<float***> correlations("correlations", std::size_t(batch), std::size_t(rows),
                                    std::size_t(columns));
  {
    const FFT<Space, 2, Complex, float> inverse(space, {rows, columns}, batch);
    row("FFT", seconds_of([&] { inverse.execute(space, spectra, correlations); }) / batch, transform);
  }
  const int pairs = std::max(1, batch / 2);
  const View<Complex***> waves("waves", std::size_t(pairs), std::size_t(rows), std::size_t(columns));
  const FFT<Space, 2, Complex, Complex> complex(space, {rows, columns}, pairs,
                                                {.direction = FFTDirection::Backward});
  row("pairs", seconds_of([&] { complex.execute(space, waves, waves); }) / (2. * pairs), 16 * pixels);
}

} // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard(argc, argv);
  std::printf("execution space: %s\n", Space::name());
  if (argc == 6) {
    measure({std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]), std::atoll(argv[4]),
             std::atof(argv[5])});
  } else if (host) {
    measure({512, 512, 64, 64, 0.5});
    measure({1024, 1024, 64, 16, 0.5});
  } else {
    measure({4096, 4096, 256, 960, 0.5});
    measure({4096, 4096, 256, 960, 0.36});
    measure({2048, 2048, 128, 1920, 0.5});
    measure({4092, 5760, 256, 960, 0.5});
  }
}
