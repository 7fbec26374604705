// Half spectra and images at lists of points: against sums of the definition, and finite differences of them.

#include "../deep_copy.hpp"
#include "kernel_definitions.hpp"

#include <bracewell/project/points.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace Test;
using Space = Kokkos::DefaultHostExecutionSpace;
using Device = Kokkos::DefaultExecutionSpace;
template <class Value>
using View = Kokkos::View<Value, Kokkos::LayoutRight, Kokkos::HostSpace>;

/// The same View where there is no other memory.
template <class AnyView>
auto on_device(const AnyView& view) {
  return Test::on_device(view);
}

/// An image or volume of random numbers that is zero outside.
template <class T, int D>
struct Image {
  std::array<int, D> size; // x, y[, z]
  std::vector<T> values;

  Image(const std::array<int, D>& size_, unsigned seed) : size(size_) {
    std::size_t count = 1;
    for (const int n : size)
      count *= n;
    std::mt19937 engine(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(T(uniform(engine)));
  }

  template <class Kernel>
  double sample(const double (&q)[D]) const {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      double weight = values[i];
      std::size_t rest = i;
      for (int d = 0; d < D; ++d) {
        weight *= definition(Kernel{}, q[d] - double(rest % size[d]));
        rest /= size[d];
      }
      sum += weight;
    }
    return sum;
  }
};

double real_product(double a, double b) { return a * b; }
double real_product(const Double& a, const Double& b) { return a.real() * b.real() + a.imag() * b.imag(); }

/// Grids [B|1, ...] with what they are at a point, for check_points.
template <class T, int D>
struct Spectra {
  using Value = Kokkos::complex<T>;
  std::vector<Spectrum<T, D>> each;
  template <class Kernel>
  auto sample(int batch, const double (&q)[D], Mates mates) const {
    return each[batch].template sample<Kernel>(q, mates);
  }
};
template <class T, int D>
struct Images {
  using Value = T;
  std::vector<Image<T, D>> each;
  template <class Kernel>
  auto sample(int batch, const double (&q)[D], Mates) const {
    return each[batch].template sample<Kernel>(q);
  }
};

template <class Kernel, class T, int D, class Grids, class View, class Argument>
void check_points(const Grids& grids, const View& grid, const View& target, const Argument& as_argument,
                  const HalfSpectrumLayout<D>& layout, int batches, bool shared_points, Mates mates) {
  using Value = typename Grids::Value;
  const bool shared_grid = grids.each.size() == 1;
  CAPTURE(Kernel::width, sizeof(T), D, batches, shared_points, shared_grid, int(mates), layout.size[0]);
  const Device space;
  const int count = 37;
  const Kokkos::View<T***, Kokkos::LayoutRight, Kokkos::HostSpace> points(
      "points", shared_points ? 1 : batches, count, D),
      of_points("of_points", shared_points ? 1 : batches, count, D);
  const auto wanted = positions<D>(layout, count * batches);
  for (std::size_t i = 0; i < points.size() / D; ++i)
    for (int d = 0; d < D; ++d)
      points.data()[i * D + d] = T(wanted[i][d]);
  const Kokkos::View<Value**, Kokkos::LayoutRight, Kokkos::HostSpace> values("values", batches, count),
      amplitudes("amplitudes", batches, count), same("same", batches, count);
  std::mt19937 engine(9);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (std::size_t i = 0; i < amplitudes.size(); ++i) {
    if constexpr (std::is_same_v<Value, T>)
      amplitudes.data()[i] = T(uniform(engine));
    else
      amplitudes.data()[i] = Value(T(uniform(engine)), T(uniform(engine)));
  }
  const PointOptions options{.mates = mates};
  const auto at = on_device(points), slopes = on_device(of_points);
  const auto factors = on_device(amplitudes), sampled = on_device(values);
  const auto from = on_device(grid);
  sample<Kernel>(space, as_argument(from), at, sampled, options);
  Test::deep_copy(values, sampled);
  Test::deep_copy(target, Value(0));
  const auto to = on_device(target);
  insert<Kernel>(space, factors, at, as_argument(to), options);
  Test::deep_copy(target, to);
  double left = 0, right = 0;
  for (std::size_t i = 0; i < grid.size(); ++i)
    right += real_product(wide(grid.data()[i]), wide(target.data()[i]));
  const View of_grid("of_grid", grid.layout());
  const auto sums = on_device(of_grid);
  sample_gradients<Kernel>(space, as_argument(from), at, factors,
                           {.values = sampled, .grid = as_argument(sums), .points = slopes}, options);
  Test::deep_copy(of_grid, sums);
  Test::deep_copy(same, sampled);
  Test::deep_copy(of_points, slopes);
  for (std::size_t i = 0; i < grid.size(); ++i)
    CHECK(std::abs(wide(of_grid.data()[i]) - wide(target.data()[i])) < 20 * rounding<T>);
  for (int b = 0; b < batches; ++b)
    for (int i = 0; i < count; ++i) {
      double q[D];
      for (int d = 0; d < D; ++d)
        q[d] = points(shared_points ? 0 : b, i, d);
      const auto expected = grids.template sample<Kernel>(shared_grid ? 0 : b, q, mates);
      CHECK(std::abs(wide(values(b, i)) - expected) < 20 * rounding<T>);
      CHECK(std::abs(wide(same(b, i)) - expected) < 20 * rounding<T>);
      left += real_product(wide(amplitudes(b, i)), wide(values(b, i)));
    }
  CHECK(std::abs(left - right) < 20 * rounding<T> * count * batches);
  // Finite differences of the definition; the cotangent of what is inserted gives the same as that of what is sampled.
  const Kokkos::View<T***, Kokkos::LayoutRight, Kokkos::HostSpace> again("again", points.layout());
  const auto slopes_again = on_device(again);
  insert_gradients<Kernel>(space, factors, at, as_argument(from), {.values = sampled, .points = slopes_again},
                           options);
  Test::deep_copy(again, slopes_again);
  for (int set = 0; set < (shared_points ? 1 : batches); ++set)
    for (int i = 0; i < count; ++i)
      for (int d = 0; d < D; ++d) {
        double q[D], slope = 0;
        for (int e = 0; e < D; ++e)
          q[e] = points(set, i, e);
        if (std::abs(q[d] - std::round(q[d])) < 0.01)
          continue; // a knot
        for (int b = shared_points ? 0 : set; b < (shared_points ? batches : set + 1); ++b)
          for (const double h : {1e-5, -1e-5}) {
            double moved[D];
            std::copy(q, q + D, moved);
            moved[d] += h;
            slope += real_product(wide(amplitudes(b, i)),
                                  grids.template sample<Kernel>(shared_grid ? 0 : b, moved, mates)) /
                     (2 * h);
          }
        CHECK(std::abs(of_points(set, i, d) - slope) < 200 * rounding<T> + 1e-7);
        CHECK(again(set, i, d) == of_points(set, i, d));
      }
}

template <class Kernel, class T, int D>
void check_points_of_spectra(const std::array<int, D>& size, bool shared_grid, bool shared_points) {
  const int batches = 2;
  Spectra<T, D> grids;
  for (int b = 0; b < (shared_grid ? 1 : batches); ++b)
    grids.each.push_back(spectrum_of<T, D>(size, 20 + b));
  const auto layout = layout_of<D>(size);
  using Data = std::conditional_t<D == 2, Kokkos::complex<T>***, Kokkos::complex<T>****>;
  const auto make = [&] {
    if constexpr (D == 2)
      return View<Data>("grid", grids.each.size(), size[1], size[0] / 2 + 1);
    else
      return View<Data>("grid", grids.each.size(), size[2], size[1], size[0] / 2 + 1);
  };
  const auto grid = make(), target = make();
  for (std::size_t b = 0; b < grids.each.size(); ++b)
    std::copy(grids.each[b].values.begin(), grids.each[b].values.end(),
              grid.data() + b * grids.each[b].values.size());
  for (const Mates mates : {Mates::Single, Mates::Both})
    check_points<Kernel, T, D>(
        grids, grid, target,
        [&](const auto& view) {
          return HalfSpectrum{view, size[0]};
        },
        layout, batches, shared_points, mates);
}

template <class Kernel, class T, int D>
void check_points_of_images(const std::array<int, D>& size, bool shared_grid, bool shared_points) {
  const int batches = 2;
  Images<T, D> grids;
  for (int b = 0; b < (shared_grid ? 1 : batches); ++b)
    grids.each.emplace_back(size, 20 + b);
  using Data = std::conditional_t<D == 2, T***, T****>;
  const auto make = [&] {
    if constexpr (D == 2)
      return View<Data>("grid", grids.each.size(), size[1], size[0]);
    else
      return View<Data>("grid", grids.each.size(), size[2], size[1], size[0]);
  };
  const auto grid = make(), target = make();
  for (std::size_t b = 0; b < grids.each.size(); ++b)
    std::copy(grids.each[b].values.begin(), grids.each[b].values.end(),
              grid.data() + b * grids.each[b].values.size());
  check_points<Kernel, T, D>(
      grids, grid, target, [](const auto& view) { return view; }, layout_of<D>(size), batches, shared_points,
      Mates::Single);
}

} // namespace

TEST_CASE("sample and insert at points are sums of their definition, with exact gradients") {
  // Each kernel, both precisions, spectra and images, 2D and 3D: pairs of them, as device compilers take seconds for each.
  check_points_of_spectra<Linear, double, 2>({12, 9}, false, false);
  check_points_of_spectra<CubicBSpline, float, 2>({11, 8}, true, false);
  check_points_of_spectra<CubicBSpline, double, 3>({9, 8, 7}, true, true);
  check_points_of_spectra<Lanczos, float, 3>({8, 6, 7}, false, true);
  check_points_of_spectra<CatmullRom, double, 3>({9, 8, 7}, false, true);
  check_points_of_images<Lanczos, double, 2>({5, 1}, false, true);
  check_points_of_images<CubicBSpline, float, 2>({9, 12}, true, false);
  check_points_of_images<Linear, double, 3>({4, 7, 3}, false, false);
}

TEST_CASE("points that are no numbers, empty lists, and arguments that do not fit") {
  const Space space;
  const View<Kokkos::complex<double>***> grid("grid", 1, 8, 5);
  const View<double***> image("image", 2, 8, 8);
  const View<double***> points("points", 2, 3, 2), none("none", 2, 0, 2), flat("flat", 2, 3, 3),
      of_points("of_points", 2, 3, 2);
  const View<Kokkos::complex<double>**> values("values", 2, 3), no_values("no_values", 2, 0);
  const View<double**> reals("reals", 2, 3), fewer("fewer", 2, 2);
  Test::deep_copy(grid, Kokkos::complex<double>(1));
  Test::deep_copy(image, 1);
  Test::deep_copy(values, Kokkos::complex<double>(1));
  Test::deep_copy(reals, 1);
  points(0, 1, 0) = NAN;
  points(1, 2, 1) = INFINITY;
  points(0, 2, 0) = 1e300;
  const auto sum = [](const auto& view) {
    double total = 0;
    for (std::size_t i = 0; i < view.size(); ++i)
      total += Kokkos::abs(view.data()[i]);
    return total;
  };
  insert(space, values, points, grid); // three of the six, all in element 0
  CHECK(grid(0, 0, 0).real() == 4);
  insert(space, reals, points, image);
  CHECK(image(0, 0, 0) + image(1, 0, 0) == 5);
  CHECK(sum(image) == 131);
  sample(space, grid, points, values);
  CHECK((std::isnan(values(0, 1).real()) && std::isnan(values(1, 2).imag()) &&
         std::isnan(values(0, 2).real())));
  CHECK(std::abs(values(1, 1).real() - 4) < 1e-14);
  sample(space, image, points, reals);
  CHECK((std::isnan(reals(0, 1)) && std::isnan(reals(1, 2)) && reals(0, 2) == 0));
  sample(space, grid, none, no_values);
  insert(space, no_values, none, grid);
  Test::deep_copy(of_points, 7);
  const View<Kokkos::complex<double>***> of_grid("of_grid", 1, 8, 5);
  Test::deep_copy(of_grid, Kokkos::complex<double>(7));
  sample_gradients(space, grid, none, no_values, {.grid = of_grid});
  CHECK(sum(of_grid) == 0);

  using Catch::Matchers::ContainsSubstring;
  using Catch::Matchers::MessageMatches;
  const auto says = [](const char* sentence) { return MessageMatches(ContainsSubstring(sentence)); };
  CHECK_THROWS_MATCHES(sample(space, grid, flat, values), Error,
                       says("Bracewell::sample: points: expected [1|2, 3, 2], found [2, 3, 3]"));
  CHECK_THROWS_MATCHES(sample(space, image, points, fewer), Error,
                       says("sample: points: expected [1|2, 2, 2]"));
  CHECK_THROWS_MATCHES(
      sample<Lanczos>(space, View<Kokkos::complex<double>***>("small", 1, 5, 4), points, values), Error,
      says("sample: grid: expected axes of 6 to 32768 elements, found [1, 5, 4]"));
  CHECK_THROWS_MATCHES(insert(space, values, points, View<Kokkos::complex<double>***>("three", 3, 8, 5)),
                       Error, says("insert: grid: expected batch axis of 1 or 2, found [3, 8, 5]"));
  CHECK_THROWS_MATCHES(sample(space, grid, points, View<Kokkos::complex<double>**>()), Error,
                       says("sample: values"));
  CHECK_THROWS_MATCHES(sample_gradients(space, grid, points, values, {}), Error,
                       says("sample_gradients: gradients: expected at least one output, found none"));
  CHECK_THROWS_MATCHES(sample_gradients(space, grid, points, values, {.points = points}), Error,
                       says("sample_gradients: gradients.points"));
  CHECK_THROWS_MATCHES(insert_gradients(space, values, points, grid, {.grid = of_grid}), Error,
                       says("insert_gradients: gradients.grid: expected none"));
  CHECK_THROWS_MATCHES(sample_gradients(space, grid, points, values, {.grid = grid}), Error,
                       says("gradients.grid"));
}
