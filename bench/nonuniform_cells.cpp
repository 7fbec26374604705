// SPDX-License-Identifier: MIT
// Non-uniform FFTs on hosts, a cell of a table per argument TYPE:DIM:POINTS:N:DIGITS:TRANSFORMS:PRECISION, as
// nonuniform_finufft.py gives them. A row of output is the cell and five numbers. The first four are milliseconds of
// processor time of all threads: a transform, the points set anew, and a plan with its points, each the least of many
// runs, and the first plan, which fits its kernel. The fifth is the relative error of a few outputs against direct sums. Types are those of FINUFFT: 3 is NonuniformSums, N cycles along every
// axis. CELLS_DIM and CELLS_REAL, where defined, compile for one dimension and one precision.

#include <bracewell/gridding/nonuniform_fft.hpp>
#include <bracewell/gridding/nonuniform_sums.hpp>

#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <ctime>
#include <random>
#include <stdexcept>
#include <string>

namespace {

using namespace Bracewell;
using Space = Kokkos::DefaultExecutionSpace;
template <class DataType>
using View = Kokkos::View<DataType, Kokkos::LayoutRight, Space>;

struct Cell {
  int type, dim;
  long points, n;
  double digits;
  long transforms;
  bool in_double;

  static Cell read(const std::string& text) {
    Cell cell = {};
    char precision[8] = {};
    if (std::sscanf(text.c_str(), "%d:%d:%ld:%ld:%lf:%ld:%7s", &cell.type, &cell.dim, &cell.points, &cell.n,
                    &cell.digits, &cell.transforms, precision) != 7)
      throw std::runtime_error("expected TYPE:DIM:POINTS:N:DIGITS:TRANSFORMS:PRECISION, found " + text);
    cell.in_double = std::string(precision) == "double";
    return cell;
  }
};

double milliseconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * double(time.tv_sec) + 1e-6 * double(time.tv_nsec);
}

/// The least time of a run: of at least 3, and of as many as half a second has.
template <class Run>
double least(const Run& run) {
  double result = 1e300, all = 0;
  for (int i = 0; i < 3 || (all < 500 && i < 2000); ++i) {
    const double begin = milliseconds();
    run();
    const double time = milliseconds() - begin;
    result = std::min(result, time);
    all += time;
  }
  return result;
}

View<double**> random_points(const char* label, long count, int dim, double reach, std::mt19937_64& random) {
  const View<double**> points(label, count, dim);
  std::uniform_real_distribution<double> any(-reach, reach);
  for (long i = 0; i < count; ++i)
    for (int d = 0; d < dim; ++d)
      points(i, d) = any(random);
  return points;
}

template <class Some>
void randomise(const Some& values, std::mt19937_64& random) {
  using Value = typename Some::non_const_value_type;
  std::uniform_real_distribution<typename Value::value_type> any(-1, 1);
  for (std::size_t i = 0; i < values.size(); ++i)
    values.data()[i] = Value(any(random), any(random));
}

/// The relative error of `count` outputs of the first transform, out of `all`, which are sums over `inputs` with phase(output, input)
/// in cycles.
template <class In, class Out, class Phase>
double error(const In& in, long inputs, const Out& out, long outputs, const Phase& phase) {
  const long step = std::max<long>(outputs / 7, 1);
  double wrong = 0, all = 0;
  for (long k = step / 2; k < outputs; k += step) {
    std::complex<double> sum = 0;
    for (long j = 0; j < inputs; ++j)
      sum += std::complex<double>(in.data()[j].real(), in.data()[j].imag()) *
             std::polar(1., 2 * std::acos(-1.) * phase(k, j));
    const auto found = out.data()[k];
    wrong += std::norm(sum - std::complex<double>(found.real(), found.imag()));
    all += std::norm(sum);
  }
  return std::sqrt(wrong / all);
}

template <int Dim, class T>
void measure(const Cell& cell, const std::string& name) {
  using Complex = Kokkos::complex<T>;
  const Space space;
  std::mt19937_64 random(1);
  const GriddingOptions options{.slices = cell.transforms, .tolerance = std::pow(10., -cell.digits)};
  double run = 0, set = 0, plan_time = 0, wrong = 0, first = 0;
  const View<Complex**> samples("samples", cell.transforms, cell.points);
  randomise(samples, random);
  if (cell.type == 3) {
    const double pi = std::acos(-1.);
    const auto points = random_points("points", cell.points, Dim, pi, random),
               targets = random_points("targets", cell.points, Dim, double(cell.n) / (4 * pi), random);
    using Plan = NonuniformSums<Space, Dim, T>;
    first = milliseconds();
    Plan plan(space, points, targets, options);
    first = milliseconds() - first;
    const View<Complex**> sums("sums", cell.transforms, cell.points);
    run = least([&] { plan.forward(space, samples, sums); });
    wrong = error(samples, cell.points, sums, cell.points, [&](long k, long j) {
      double phase = 0;
      for (int d = 0; d < Dim; ++d)
        phase += points(j, d) * targets(k, d);
      return options.sign * phase;
    });
    set = least([&] { plan.set_points(space, points, targets); });
    plan_time = least([&] { Plan(space, points, targets, options); });
  } else {
    const auto points = random_points("points", cell.points, Dim, 0.5, random);
    std::array<int, Dim> shape;
    shape.fill(static_cast<int>(cell.n));
    using Plan = NonuniformFFT<Space, Dim, T>;
    first = milliseconds();
    Plan plan(space, points, shape, options);
    first = milliseconds() - first;
    std::conditional_t<Dim == 1, View<Complex**>,
                       std::conditional_t<Dim == 2, View<Complex***>, View<Complex****>>>
        images;
    if constexpr (Dim == 1)
      images = decltype(images)("images", cell.transforms, cell.n);
    else if constexpr (Dim == 2)
      images = decltype(images)("images", cell.transforms, cell.n, cell.n);
    else
      images = decltype(images)("images", cell.transforms, cell.n, cell.n, cell.n);
    const auto pixels = static_cast<long>(images.size()) / cell.transforms;
    const auto phase = [&](long pixel, long point) {
      double sum = 0;
      for (int d = 0; d < Dim; ++d, pixel /= cell.n)
        sum += double(pixel % cell.n - cell.n / 2) * points(point, d);
      return sum;
    };
    if (cell.type == 1) {
      run = least([&] { plan.adjoint(space, samples, images); });
      wrong = error(samples, cell.points, images, pixels, phase);
    } else {
      randomise(images, random);
      run = least([&] { plan.forward(space, images, samples); });
      wrong = error(images, pixels, samples, cell.points,
                    [&](long point, long pixel) { return -phase(pixel, point); });
    }
    set = least([&] { plan.set_points(space, points); });
    plan_time = least([&] { Plan(space, points, shape, options); });
  }
  std::printf("%s %.4f %.4f %.4f %.4f %.2e\n", name.c_str(), run, set, plan_time, first, wrong);
  std::fflush(stdout);
}

template <int Dim>
void measure(const Cell& cell, const std::string& name) {
#ifdef CELLS_DIM
  if constexpr (Dim != CELLS_DIM)
    throw std::runtime_error("another dimension was compiled");
  else
#endif
#ifdef CELLS_REAL
    return measure<Dim, CELLS_REAL>(cell, name);
#else
  if (cell.in_double)
    measure<Dim, double>(cell, name);
  else
    measure<Dim, float>(cell, name);
#endif
}

} // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos;
  try {
    for (int i = 1; i < argc; ++i) {
#ifdef BRACEWELL_HAS_AVX2_VERSIONS
      if (argv[i] == std::string("without-avx2")) {
        Impl::uses_avx2() = false;
        continue;
      }
#endif
      const Cell cell = Cell::read(argv[i]);
      cell.dim == 1   ? measure<1>(cell, argv[i])
      : cell.dim == 2 ? measure<2>(cell, argv[i])
                      : measure<3>(cell, argv[i]);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nonuniform_cells: %s\n", error.what());
    return 2;
  }
  return 0;
}
