// Operators made of building blocks (docs/building-blocks.md) beside the library's, and points of a half spectrum:
//   bench_building_blocks [BOX POSES GRID POINTS], by default 128 64 256 10000000 on GPUs, 128 64 128 1000000 on hosts.
// Prints a table: the median of at least 9 runs of each, turn by turn, up to a fence; the relative difference of the two
// results in L2; for points the bytes that have to move at least (grid, points, values and gradients once) per second.

#include "../tests/project/building_blocks.hpp"

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/backproject.hpp>
#include <bracewell/project/points.hpp>
#include <bracewell/project/project.hpp>

#include <Kokkos_Random.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;
using Complex = Kokkos::complex<float>;
template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Space>;

constexpr bool host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, Space::memory_space>::accessible;

View<float*> numbers(void* data, std::size_t bytes) {
  return View<float*>(static_cast<float*>(data), bytes / sizeof(float));
}
template <class AnyView>
View<float*> numbers(const AnyView& view) {
  return numbers(view.data(), view.size() * sizeof(typename AnyView::value_type));
}
template <class AnyView>
void fill(const AnyView& view, float low, float high) {
  Kokkos::fill_random(numbers(view), Kokkos::Random_XorShift64_Pool<Space>(20260101), low, high);
}

double relative_difference(const View<float*>& a, const View<float*>& b) {
  double difference = 0, norm = 0;
  Kokkos::parallel_reduce(
      "difference", Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(0, std::int64_t(a.size())),
      KOKKOS_LAMBDA(std::int64_t i, double& d, double& n) {
        d += (double(a(i)) - double(b(i))) * (double(a(i)) - double(b(i)));
        n += double(b(i)) * double(b(i));
      },
      difference, norm);
  return std::sqrt(difference / norm);
}

/// Median milliseconds of each of several, turn by turn.
std::vector<double> measure(const std::vector<std::function<void()>>& runs) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> times(runs.size());
  for (int turn = 0; turn < 10; ++turn)
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Kokkos::fence();
      const auto start = Clock::now();
      runs[i]();
      Kokkos::fence();
      if (turn > 0)
        times[i].push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
  std::vector<double> medians;
  for (auto& of_run : times) {
    std::nth_element(of_run.begin(), of_run.begin() + of_run.size() / 2, of_run.end());
    medians.push_back(of_run[of_run.size() / 2]);
  }
  return medians;
}

void compare(const std::string& name, const std::function<void()>& library,
             const std::function<void()>& blocks, const View<float*>& of_library,
             const View<float*>& of_blocks) {
  const auto times = measure({library, blocks});
  std::printf("| %-26s | %9.3f | %9.3f | %5.2f | %8.1e |\n", name.c_str(), times[0], times[1],
              times[1] / times[0], relative_difference(of_blocks, of_library));
  std::fflush(stdout);
}

/// Adds the other copies of a volume to the first.
void add_copies(const Space& space, const View<float*>& all, std::int64_t count, int copies) {
  if (copies > 1)
    Kokkos::parallel_for(
        "sum", Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count),
        KOKKOS_LAMBDA(std::int64_t i) {
          for (int c = 1; c < copies; ++c)
            all(i) += all(c * count + i);
        });
}

struct Problem {
  int box;
  std::int64_t poses;
  Space space;
  View<Complex****> volume, images, found, data;
  View<float****> matrices;
  View<float***> shifts;

  Problem(int box_, std::int64_t poses_)
      : box(box_), poses(poses_), volume("volume", 1, box, box, box / 2 + 1),
        images("images", 1, poses, box, box / 2 + 1), found("found", 1, poses, box, box / 2 + 1),
        data("data", 1, box, box, box / 2 + 1), matrices("matrices", 1, poses, 3, 3),
        shifts("shifts", 1, poses, 2) {
    fill(volume, -1, 1);
    fill(images, -1, 1);
    fill(shifts, -2, 2);
    const auto on_host = Kokkos::create_mirror_view(matrices);
    std::mt19937 engine(7);
    std::normal_distribution<double> normal;
    for (std::int64_t i = 0; i < poses; ++i) {
      double q[4], norm = 0;
      for (double& one : q)
        norm += std::pow(one = normal(engine), 2);
      for (double& one : q)
        one /= std::sqrt(norm);
      const auto [w, x, y, z] = q;
      const double m[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                           2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                           2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
      for (int e = 0; e < 9; ++e)
        on_host.data()[9 * i + e] = float(m[e]);
    }
    Kokkos::deep_copy(matrices, on_host);
  }
};

template <class Kernel>
void operators(const Problem& p, const std::string& kernel) {
  const Poses<float, Space::memory_space> poses{.matrices = p.matrices, .shifts = p.shifts};
  const HalfSpectrumLayout<2> layout{{p.box, p.box}};
  const HalfSpectrum<float, 3> volume(p.volume.data(), {{p.box, p.box, p.box}});
  const auto flat = [&](const auto& view) {
    return View<Complex**>(view.data(), p.poses, view.size() / p.poses);
  };
  const View<float***> matrices(p.matrices.data(), p.poses, 3, 3);
  const View<float**> shifts(p.shifts.data(), p.poses, 2);
  const View<Complex****> result("result", 1, p.poses, p.box, p.box / 2 + 1);
  compare(
      "project " + kernel, [&] { project<Kernel>(p.space, p.volume, poses, p.found); },
      [&] {
        Page::project<Kernel, Space, float>(p.space, volume, 1, matrices, shifts, layout, flat(result));
      },
      numbers(p.found), numbers(result));

  const int copies = host ? p.space.concurrency() : 1;
  const View<Complex****> sums("sums", copies, p.box, p.box, p.box / 2 + 1);
  const HalfSpectrum<float, 3> first(sums.data(), volume.layout);
  const auto one = numbers(sums.data(), p.data.size() * sizeof(Complex));
  const auto all = numbers(sums);
  compare(
      "backproject " + kernel,
      [&] {
        Kokkos::deep_copy(p.space, p.data, Complex(0));
        backproject<Kernel>(p.space, p.images, poses, {.data = p.data});
      },
      [&] {
        Kokkos::deep_copy(p.space, sums, Complex(0));
        Page::backproject<Kernel, Space, float>(p.space, flat(p.images), layout, matrices, shifts, 1, first);
        add_copies(p.space, all, one.size(), copies);
      },
      numbers(p.data), one);

  const View<float****> of_matrices("of_matrices", 1, p.poses, 3, 3), own("own", 1, p.poses, 3, 3);
  const View<float***> of_shifts("of_shifts", 1, p.poses, 2), own_shifts("own_shifts", 1, p.poses, 2);
  compare(
      "pose gradients " + kernel,
      [&] {
        project_gradients<Kernel>(p.space, p.volume, poses, p.images,
                                  {.matrices = of_matrices, .shifts = of_shifts});
      },
      [&] {
        Kokkos::deep_copy(p.space, own, 0);
        Kokkos::deep_copy(p.space, own_shifts, 0);
        Page::pose_gradients<Kernel, Space, float>(p.space, volume, 1, matrices, shifts, layout,
                                                   flat(p.images), View<float***>(own.data(), p.poses, 3, 3),
                                                   View<float**>(own_shifts.data(), p.poses, 2));
      },
      numbers(of_matrices), numbers(own));
}

template <class Kernel>
void points(int n, std::int64_t count, const std::string& kernel) {
  const Space space;
  const View<Complex****> grid("grid", 1, n, n, n / 2 + 1), of_grid("of_grid", 1, n, n, n / 2 + 1);
  const View<float***> positions("points", 1, count, 3), of_points("of_points", 1, count, 3);
  const View<Complex**> values("values", 1, count), cotangent("cotangent", 1, count);
  fill(grid, -1, 1);
  fill(cotangent, -1, 1);
  fill(positions, -0.5f * float(n), 0.5f * float(n));
  const double per_point = 3 * sizeof(float), per_value = sizeof(Complex),
               spectrum = double(grid.size()) * sizeof(Complex);
  const auto show = [&](const std::string& name, double bytes_per_point, double grids,
                        const std::function<void()>& run) {
    const double ms = measure({run})[0], bytes = bytes_per_point * double(count) + grids * spectrum;
    std::printf("| %-34s | %9.3f | %9.1f | %9.1f |\n", (name + " " + kernel).c_str(), ms,
                double(count) / 1e3 / ms, bytes / 1e6 / ms);
    std::fflush(stdout);
  };
  show("values", per_point + per_value, 1, [&] { sample<Kernel>(space, grid, positions, values); });
  show("gradients of points", 2 * per_point + per_value, 1,
       [&] { sample_gradients<Kernel>(space, grid, positions, cotangent, {.points = of_points}); });
  show("values, gradients of all", 2 * per_point + 2 * per_value, 3, [&] {
    sample_gradients<Kernel>(space, grid, positions, cotangent,
                             {.values = values, .grid = of_grid, .points = of_points});
  });
  show("insertion", per_point + per_value, 2, [&] { insert<Kernel>(space, cotangent, positions, of_grid); });
}

} // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard(argc, argv);
  const auto argument = [&](int i, std::int64_t otherwise) {
    return argc > i ? std::int64_t(std::atoll(argv[i])) : otherwise;
  };
  const Problem problem(int(argument(1, 128)), argument(2, 64));
  const int n = int(argument(3, host ? 128 : 256));
  const std::int64_t count = argument(4, host ? 1000000 : 10000000);
  std::printf("%lld projections of %d^3, float, %s\n\n", static_cast<long long>(problem.poses), problem.box,
              Space::name());
  std::printf("| operator                   | library,  | blocks,   | ratio | relative |\n");
  std::printf(
      "|                            |        ms |        ms |       |    error |\n|---|---|---|---|---|\n");
  operators<Linear>(problem, "linear");
  operators<CatmullRom>(problem, "catmull_rom");
  operators<CubicBSpline>(problem, "bspline3");
  std::printf("\n%lld random points of a half spectrum of %d^3, float\n\n", static_cast<long long>(count), n);
  std::printf("| what                               |        ms |  points/s | GB/s that |\n");
  std::printf(
      "|                                    |           |      1e6  | must move |\n|---|---|---|---|\n");
  points<Linear>(n, count, "linear");
  points<CatmullRom>(n, count, "catmull_rom");
  points<CubicBSpline>(n, count, "bspline3");
}
