// The expectation step beside its floor, the product of matrices of PoseScoring:
//   bench_expectation [IMAGES CLASSES POSES SHIFTS BOX RADIUS], by default three cases of classification on GPUs, small ones
//   on hosts.
// Images are projections of the first class at poses of the grid in noise of 20 times their power. Prints a table: the
// median of 5 runs up to a fence; candidates (images x classes x poses x shifts) a second; the operations of the product, 4 for
// each candidate and frequency, a second; candidates of an image that sums are of. `evidence`: evidence and best candidate.
// `sums`: volumes and shells too. `twice`: sums where no scores are kept. `scores`: PoseScoring, the best candidate alone.

#include "timing.hpp"

#include <bracewell/geometry/rotations.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/expectation.hpp>
#include <bracewell/project/score_poses.hpp>

#include <Kokkos_Random.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
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
  std::int64_t images, classes, poses, shifts, box;
  double radius;
};

struct Problem {
  Sizes sizes;
  Space space;
  std::size_t n, padded;
  View<Complex****> references, data;
  View<float****> weight;
  View<Complex***> images;
  View<float***> filters, matrices;
  View<float**> noise, shifts;
  ProjectionOptions options;
  double frequencies = 0;

  explicit Problem(const Sizes& asked)
      : sizes(asked), n(std::size_t(asked.box)), padded(2 * n),
        references("references", std::size_t(sizes.classes), padded, padded, padded / 2 + 1),
        data("data", std::size_t(sizes.classes), padded, padded, padded / 2 + 1),
        weight("weight", std::size_t(sizes.classes), padded, padded, padded / 2 + 1),
        images("images", std::size_t(sizes.images), n, n / 2 + 1),
        filters("filters", std::size_t(sizes.images), n, n / 2 + 1),
        matrices("matrices", std::size_t(sizes.poses), 3, 3), noise("noise", 1, 2 * n),
        shifts("shifts", std::size_t(sizes.shifts), 2), options{.oversampling = 2, .radius = asked.radius} {
    std::mt19937 engine(7);
    std::uniform_real_distribution<float> random(-1, 1);
    std::normal_distribution<float> normal;
    const std::size_t of_class = references.size() / std::size_t(sizes.classes), columns = padded / 2 + 1;
    fill_with(references, [&](std::size_t i) { // power falls with frequency, as that of molecules does
      const auto frequency = [&](std::size_t k) {
        return k > padded / 2 ? double(k) - double(padded) : double(k);
      };
      const double x = double(i % columns), y = frequency(i / columns % padded),
                   z = frequency(i % of_class / columns / padded),
                   amplitude = std::exp(-8 * std::sqrt(x * x + y * y + z * z) / double(padded));
      const float real = random(engine);
      return Complex(float(amplitude) * real, float(amplitude) * random(engine));
    });
    std::vector<float> rotations;
    for (std::int64_t i = 0; i < sizes.poses; ++i) {
      const auto rotation = rotation_matrix(rotation_of_grid<float>(i, sizes.poses));
      for (int j = 0; j < 9; ++j)
        rotations.push_back(rotation(j / 3, j % 3));
    }
    fill_with(matrices, [&](std::size_t i) { return rotations[i]; });
    const int side = int(std::ceil(std::sqrt(double(sizes.shifts))));
    fill_with(shifts, [&](std::size_t i) {
      return float(i % 2 ? int(i / 2) % side - side / 2 : int(i / 2) / side - side / 2);
    });
    fill_with(filters, [&](std::size_t) { return random(engine); });

    // Images show the first class at poses of the grid.
    const View<float****> at("matrices", 1, std::size_t(sizes.images), 3, 3),
        filters_of(filters.data(), 1, std::size_t(sizes.images), n, n / 2 + 1);
    const View<Complex****> out(images.data(), 1, std::size_t(sizes.images), n, n / 2 + 1);
    fill_with(
        at, [&](std::size_t i) { return rotations[(i / 9 * 7919) % std::size_t(sizes.poses) * 9 + i % 9]; });
    const View<Complex****> first(references.data(), 1, padded, padded, padded / 2 + 1);
    Poses<float, Memory> poses;
    poses.matrices = at;
    poses.filters = filters_of;
    project<Linear>(space, first, poses, out, options);
    const auto values = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), images);
    double power = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      power += std::norm(std::complex<double>(values.data()[i].real(), values.data()[i].imag()));
    const HalfSpectrumLayout<2> layout{{int(n), int(n)}};
    for (std::int64_t e = 0; e < layout.elements(); ++e) {
      int k[2];
      layout.frequency(e, k);
      frequencies += k[0] * k[0] + k[1] * k[1] <= sizes.radius * sizes.radius;
    }
    const float variance = float(20 * power / (double(sizes.images) * frequencies) / 2),
                sigma = std::sqrt(variance);
    for (std::size_t i = 0; i < values.size(); ++i)
      values.data()[i] += Complex(sigma * normal(engine), sigma * normal(engine));
    Kokkos::deep_copy(images, values);
    Kokkos::deep_copy(noise, variance);
  }

  void row(const char* what, double seconds, const std::string& kept) const {
    const double candidates = double(sizes.images * sizes.classes) * double(sizes.poses * sizes.shifts);
    std::printf("| %5d x %d x %5d x %3d, radius %2.0f | %-8s | %9.2f | %9.3g | %7.2f | %8s |\n",
                int(sizes.images), int(sizes.classes), int(sizes.poses), int(sizes.shifts), sizes.radius,
                what, 1e3 * seconds, candidates / seconds, 4 * candidates * frequencies / seconds / 1e12,
                kept.c_str());
    std::fflush(stdout);
  }
};

void measure(const Sizes& sizes) {
  const Problem p(sizes);
  const auto reference = prepare<Linear>(p.space, p.references);
  using Images = ExpectationImages<float, Memory>; // named for nvcc
  using Results = ExpectationResults<float, Memory, 3>;
  using Grid = ExpectationPoses<float, Memory>;
  const std::size_t count = std::size_t(sizes.images);
  const View<double*> evidence("evidence", count);
  const View<float**> posteriors("posteriors", count, 1);
  const View<int**> classes("classes", count, 1), poses("poses", count, 1), shifts("shifts", count, 1);
  const View<int*> candidates("candidates", count);
  for (const bool kept : {true, false}) {
    Expectation<Space> step(p.space,
                            {.images = sizes.images,
                             .shifts = int(sizes.shifts),
                             .height = int(sizes.box),
                             .width = int(sizes.box),
                             .bytes = kept ? std::int64_t(256) << 20 : 0},
                            p.options);
    step.set_images(p.space, Images{.spectra = p.images, .noise = p.noise, .filters = p.filters});
    step.set_shifts(p.space, p.shifts);
    Results results{.log_evidence = evidence,
                    .posteriors = posteriors,
                    .classes = classes,
                    .poses = poses,
                    .shifts = shifts};
    const auto run = [&] { step.run(p.space, reference, Grid{.matrices = p.matrices}, results); };
    if (kept)
      p.row("evidence", seconds_of(run), "");
    const View<double***> shell_sums("shells", count, step.shell_sizes().size(), 3);
    results.data = p.data;
    results.weight = p.weight;
    results.candidates = candidates;
    results.shell_sums = shell_sums;
    const double seconds = seconds_of(run);
    const auto found = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), candidates);
    double mean = 0;
    for (std::size_t i = 0; i < count; ++i)
      mean += found(i) / double(count);
    p.row(kept ? "sums" : "twice", seconds, std::to_string(std::lround(mean)));
  }
  PoseScoring<Space> scoring(p.space,
                             {.images = sizes.images,
                              .shifts = int(sizes.shifts),
                              .height = int(sizes.box),
                              .width = int(sizes.box),
                              .best = 1},
                             p.options);
  using Scored = ScoredImages<float, Memory>;
  using Scores = PoseScores<float, Memory>;
  scoring.set_images(p.space, Scored{.spectra = p.images, .filters = p.filters});
  scoring.set_shifts(p.space, p.shifts);
  const View<Complex****> first(p.references.data(), 1, p.padded, p.padded, p.padded / 2 + 1);
  const auto one = prepare<Linear>(p.space, first);
  p.row("scores", seconds_of([&] {
          for (std::int64_t c = 0; c < sizes.classes; ++c)
            scoring.score(p.space, one, p.matrices,
                          Scores{.best = posteriors, .poses = poses, .shifts = shifts});
        }),
        "");
}

} // namespace

int main(int argc, char* argv[]) {
  if (argc != 1 && argc != 7) {
    std::fprintf(stderr, "expected no arguments, or IMAGES CLASSES POSES SHIFTS BOX RADIUS\n");
    return 2;
  }
  Kokkos::ScopeGuard kokkos(argc, argv);
  std::printf("| images x classes x poses x shifts | what | ms | candidates/s | Tflop/s | kept "
              "|\n|---|---|---|---|---|---|\n");
  if (argc == 7)
    measure({std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4]),
             std::atoll(argv[5]), std::atof(argv[6])});
  else if (host)
    for (const Sizes& sizes : {Sizes{64, 2, 512, 29, 24, 10}, Sizes{16, 1, 512, 29, 64, 30}})
      measure(sizes);
  else
    for (const Sizes& sizes : {Sizes{2000, 4, 4608, 81, 24, 10}, Sizes{256, 1, 4608, 29, 64, 30},
                               Sizes{128, 1, 4608, 29, 128, 60}})
      measure(sizes);
  return 0;
}
