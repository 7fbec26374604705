// SPDX-License-Identifier: MIT
// What tolerances mean, and points that crowd or lie at edges, against direct sums.
#include "../deep_copy.hpp"
#include "support.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

using namespace GriddingTest;
using Bracewell::GriddingOptions;
using Bracewell::NonuniformFFT;

namespace {

/// Errors (L2) of both directions.
template <class T, int Dim>
std::array<double, 2> errors(const Points<Dim>& points, const std::array<int, Dim>& shape,
                             const GriddingOptions& options) {
  const Space space;
  const auto slices = static_cast<std::size_t>(options.slices);
  const NonuniformFFT<Space, Dim, T> plan(space, points.device(), shape, options);
  const Values samples = random_values(slices * points.list.size(), 1);
  const auto image = images<T, Dim>(options.slices, shape);
  Test::deep_copy(image, Kokkos::complex<T>(Kokkos::Experimental::quiet_NaN_v<T>)); // all must be written
  plan.adjoint(space, to_device<T>(samples, options.slices), image);
  const double adjoint = relative_error(to_host(image), direct<Dim>(points, samples, shape));
  const Values pixels = random_values(image.size(), 2);
  const auto flat = to_device<T>(pixels, 1);
  Test::deep_copy(View<Kokkos::complex<T>*>(image.data(), image.size()),
                  Kokkos::subview(flat, 0, Kokkos::ALL));
  const View<Kokkos::complex<T>**> back("back", slices, points.list.size());
  plan.forward(space, image, back);
  return {adjoint, relative_error(to_host(back), direct_forward<Dim>(points, pixels, shape))};
}

} // namespace

TEMPLATE_TEST_CASE("every tolerance is met or refused, and none that is refused comes after a tighter one",
                   "", float, double) {
  const double tightest = sizeof(TestType) == 4 ? 1e-7 : 2e-13; // the phases of the direct sums are no better
  for (const bool one : {true, false})
    for (const std::optional<double> oversampling : {std::optional<double>(), {1.2}, {1.25}, {1.5}, {2.}}) {
      const auto points = Points<3>::random(one ? 1 : 12);
      const std::array<int, 3> shape = one ? std::array{32, 32, 32} : std::array{9, 16, 13};
      bool refused = false;
      int met = 0;
      for (double tolerance = 1e-1; tolerance >= tightest; tolerance /= 10) {
        CAPTURE(one, oversampling.value_or(0), tolerance);
        try {
          const auto both =
              errors<TestType, 3>(points, shape, {.tolerance = tolerance, .oversampling = oversampling});
          CHECK(both[0] <= tolerance);
          CHECK(both[1] <= tolerance);
          CHECK(!refused);
          ++met;
        } catch (const Bracewell::Error& error) {
          refused = true;
          CHECK(std::string(error.what()).find("options.tolerance") != std::string::npos);
        }
      }
      // What the documents promise: 1e-6 in float and 1e-12 in double unless oversampling is asked for.
      if (!oversampling || *oversampling == 2)
        CHECK(met >= (sizeof(TestType) == 4 ? 6 : 12));
    }
}

TEST_CASE("the errors that a kernel is chosen by are those of the whole image, its edge included") {
  using namespace Bracewell::Impl;
  for (const double oversampling : {1.25, 2.}) {
    const KernelPolynomials polynomials(KernelShape::make(10, oversampling), 1e-8, oversampling);
    double aliasing = 0;
    const int pixels = 4000;
    for (int i = 0; i < pixels; ++i) {
      const double frequency = (i + 0.5) / (2 * pixels * oversampling);
      for (const int period : {-2, -1, 1, 2})
        aliasing +=
            std::pow(polynomials.transform(frequency + period) / polynomials.transform(frequency), 2) /
            pixels;
    }
    CHECK(std::abs(polynomials.errors(oversampling, 1).aliasing / std::sqrt(aliasing) - 1) < 1e-3);
  }
}

TEST_CASE("the roll-off is the reciprocal of the kernel's transform") {
  using namespace Bracewell::Impl;
  double worst = 0;
  for (const double oversampling : {1.2, 1.5, 2., 8.})
    for (const int width : {3, 8, 16}) {
      const KernelPolynomials polynomials(KernelShape::make(width, oversampling), 1e-8, oversampling);
      const double reach = 0.5 / oversampling;
      const ReciprocalTransform reciprocal(polynomials, reach);
      for (int i = 0; i <= 100; ++i) {
        // By quadrature the transform is wrong by the rounding of its sum, which is as large as at 0.
        const double frequency = reach * i / 100, exact = polynomials.transform(frequency);
        const double error = std::abs(reciprocal(frequency) * exact - 1) * exact / polynomials.transform(0);
        worst = std::max(worst, error);
      }
    }
  CHECK(worst < 2e-14);
}

TEMPLATE_TEST_CASE("points that crowd, lie at edges, are many or few, in bins", "", float, double) {
  const double tolerance = sizeof(TestType) == 4 ? 1e-5 : 1e-10;
  Points<3> crowd = Points<3>::random(6000, 0.01), edges, many = Points<3>::random(3000),
            few = Points<3>::random(1);
  for (auto& [x, y, z] : crowd.list) // in few cells: on GPUs chunks of samples change places
    y = std::abs(y), z = std::abs(z);
  for (const double x : {0., 0.5, -0.5, 0.49999999, -1e-17, 1.})
    for (const double y : {0., 0.5, -0.3})
      for (const double z : {0., -0.5, 1 / 64., 7.25})
        edges.list.push_back({x, y, z});
  const auto check = [&](const Points<3>& points, const std::array<int, 3>& shape, std::int64_t slices) {
    for (const auto strategy : sorted_strategies<3>()) {
      CAPTURE(points.list.size(), shape, slices, int(strategy));
      const auto both = errors<TestType, 3>(points, shape,
                                            {.slices = slices, .tolerance = tolerance, .strategy = strategy});
      CHECK(both[0] <= tolerance);
      CHECK(both[1] <= tolerance);
    }
  };
  for (const auto& points : {crowd, edges, many, few})
    for (const auto& shape : {std::array{7, 9, 8}, std::array{1, 1, 5}, std::array{3, 33, 2}})
      check(points, shape, 1);
  // On GPUs many teams share a bin, whose tiles are joined by teams.
  Points<3> heap = Points<3>::random(20000, 0.01);
  for (auto& [x, y, z] : heap.list)
    x = std::abs(x), y = std::abs(y), z = std::abs(z);
  check(heap, {2, 1, 3}, 2);
  // On GPUs teams own boxes of eight slices where no bin has more than 512 samples.
  Points<3> cell{{crowd.list.begin(), crowd.list.begin() + 500}};
  for (const auto& points : {cell, edges, many, few})
    check(points, {3, 33, 2}, 9);
}

TEMPLATE_TEST_CASE("several slices in bins with kernels of every width", "", float, double) {
  const auto plane = Points<2>::random(60);
  const auto volume = Points<3>::random(60);
  for (double tolerance = 0.3; tolerance > (sizeof(TestType) == 4 ? 1e-6 : 1e-12); tolerance /= 5) {
    CAPTURE(tolerance);
    GriddingOptions options{
        .slices = 5, .tolerance = tolerance, .oversampling = 2, .strategy = GriddingStrategy::Bins};
    for (const double error : errors<TestType, 2>(plane, {12, 17}, options))
      CHECK(error <= tolerance);
    for (const auto strategy : sorted_strategies<3>()) {
      options.strategy = strategy;
      for (const double error : errors<TestType, 3>(volume, {5, 17, 3}, options))
        CHECK(error <= tolerance);
    }
  }
}

TEST_CASE("other points for the same plan, and the other sign of the exponent") {
  const Space space;
  const std::array<int, 3> shape{7, 9, 8};
  auto first = Points<3>::random(300), then = Points<3>::random(300, 0.02, 8), negative = then;
  for (auto& point : negative.list)
    for (double& x : point)
      x = -x;
  const Values samples = random_values(300, 1);
  for (const auto strategy : strategies()) {
    CAPTURE(int(strategy));
    NonuniformFFT<Space, 3, double> plan(space, first.device(), shape,
                                         {.tolerance = 1e-9, .strategy = strategy, .sign = -1});
    plan.set_points(space, then.device());
    const auto image = images<double, 3>(1, shape);
    plan.adjoint(space, to_device<double>(samples, 1), image);
    CHECK(relative_error(to_host(image), direct<3>(negative, samples, shape)) <= 1e-9);
    const Values pixels = to_host(image);
    const View<Kokkos::complex<double>**> back("back", 1, 300);
    plan.forward(space, image, back);
    CHECK(relative_error(to_host(back), direct_forward<3>(negative, pixels, shape)) <= 1e-9);
    const auto refuses = [&](const Points<3>& points) {
      CHECK_THROWS_AS(plan.set_points(space, points.device()), Bracewell::Error);
    };
    refuses(Points<3>::random(299));
    auto broken = first;
    broken.list[7][1] = NAN;
    refuses(broken);
  }
  CHECK_THROWS_AS((NonuniformFFT<Space, 3, double>(space, first.device(), shape, {.sign = 0})),
                  Bracewell::Error);
}

TEST_CASE("gradients of points are those of direct sums by finite differences") {
  const Space space;
  const std::array<int, 3> shape{7, 4, 8};
  const std::size_t count = 40, slices = 2, pixels = 7 * 4 * 8;
  const auto points = Points<3>::random(count);
  const Values image = random_values(slices * pixels, 1), samples = random_values(slices * count, 2);
  for (const int sign : {1, -1})
    for (const auto order : {SampleOrder::SlicesFirst, SampleOrder::SlicesLast}) {
      const bool last = order == SampleOrder::SlicesLast;
      const NonuniformFFT<Space, 3, double> plan(
          space, points.device(), shape, {.slices = 3, .tolerance = 1e-10, .order = order, .sign = sign});
      const auto device_image = images<double, 3>(2, shape);
      Test::deep_copy(View<Kokkos::complex<double>*>(device_image.data(), device_image.size()),
                      Kokkos::subview(to_device<double>(image, 1), 0, Kokkos::ALL));
      const auto device_samples =
          last ? to_device<double>(transposed(samples, slices), count) : to_device<double>(samples, slices);
      const View<Kokkos::complex<double>**> scratch("scratch", device_samples.extent(0),
                                                    device_samples.extent(1));
      const View<double**> gradients("gradients", count, 3);
      plan.point_gradients(space, device_image, device_samples, gradients, scratch);
      const auto found = Test::on_host(gradients);
      double error = 0, norm = 0;
      for (std::size_t j = 0; j < count; ++j)
        for (std::size_t d = 0; d < 3; ++d) {
          // Of both losses, Re <samples, forward(image)> and Re <image, adjoint(samples)>, as they are equal.
          double loss[2];
          for (const int side : {0, 1}) {
            Points<3> moved{{points.list[j]}};
            moved.list[0][d] += side == 0 ? 1e-6 : -1e-6;
            for (double& x : moved.list[0])
              x *= sign;
            const Values values = direct_forward<3>(moved, image, shape);
            loss[side] = 0;
            for (std::size_t slice = 0; slice < slices; ++slice)
              loss[side] += (std::conj(samples[slice * count + j]) * values[slice]).real();
          }
          error += std::pow(found(j, d) - (loss[0] - loss[1]) / 2e-6, 2);
          norm += std::pow(found(j, d), 2);
        }
      CHECK(std::sqrt(error / norm) < 1e-8);
    }
  const NonuniformFFT<Space, 3, double> none(space, Points<3>{}.device(), shape);
  const View<Kokkos::complex<double>**> empty("empty", 1, 0);
  none.point_gradients(space, images<double, 3>(1, shape), empty, View<double**>("gradients", 0, 3), empty);
  const NonuniformFFT<Space, 3, double> one(space, Points<3>::random(1).device(), shape);
  const View<Kokkos::complex<double>**> sample("sample", 1, 1);
  CHECK_THROWS_AS(one.point_gradients(space, images<double, 3>(1, shape), sample,
                                      View<double**>("gradients", 1, 3), sample),
                  Bracewell::Error);
  CHECK_THROWS_AS(one.point_gradients(space, images<double, 3>(1, shape), sample,
                                      View<double**>("gradients", 1, 2),
                                      View<Kokkos::complex<double>**>("scratch", 1, 1)),
                  Bracewell::Error);
}

TEST_CASE("bins cover the grid, and tiles of bins of one colour do not meet") {
  using Bracewell::Impl::BinGrid;
  for (const int width : {2, 5, 7, 12, 16})
    for (const int size : {32, 33, 45, 64, 75, 128, 225})
      for (const int wanted : {1, 8, 16, 32})
        for (const int turns : {2, 3, 4}) {
          CAPTURE(width, size, wanted, turns);
          const auto bins = BinGrid<2>::make({{size, 40}}, width, {wanted, 16, 1}, turns, 16);
          CHECK(bins.first(0, 0) == 0);
          CHECK(bins.first(bins.number[0], 0) == size);
          CHECK(bins.stride >= bins.span(0));
          for (int cell = 0; cell < size; ++cell) {
            const int bin = bins.index(cell, 0);
            CHECK((bins.first(bin, 0) <= cell && cell < bins.first(bin + 1, 0)));
          }
          std::vector<std::vector<int>> colour(static_cast<std::size_t>(size)); // of tiles on a cell
          auto tiles = colour;                                                  // their bins
          for (int bin = 0; bin < bins.number[0]; ++bin) {
            CHECK(bins.first(bin + 1, 0) - bins.first(bin, 0) <= bins.edge[0]);
            for (int cell = bins.first(bin, 0); cell < bins.first(bin + 1, 0) + width - 1; ++cell) {
              colour[static_cast<std::size_t>(cell % size)].push_back(bins.colour(bin));
              tiles[static_cast<std::size_t>(cell % size)].push_back(bin);
            }
          }
          std::vector<std::vector<int>> neighbours(static_cast<std::size_t>(bins.number[0]));
          for (int bin = 0; bin < bins.number[0]; ++bin)
            for (int i = 0; i < bins.neighbours(); ++i)
              neighbours[static_cast<std::size_t>(bin)].push_back(static_cast<int>(bins.neighbour(bin, i)));
          bool known = true;
          for (const auto& here : tiles)
            for (const int bin : here)
              for (const int other : here) {
                const auto& all = neighbours[static_cast<std::size_t>(bin)];
                known = known && std::find(all.begin(), all.end(), other) != all.end();
              }
          CHECK(known);
          for (auto& colours : colour) {
            std::sort(colours.begin(), colours.end());
            CHECK(std::adjacent_find(colours.begin(), colours.end()) == colours.end());
          }
        }
}

TEST_CASE("bins are cut into tasks that fill whole rounds of teams") {
  using Bracewell::Impl::BinGrid;
  using Tasks = Bracewell::Impl::BinTasks<2>;
  const auto bins = BinGrid<2>::make({{64, 64}}, 5, {16, 16, 1}, 2, 1);
  const std::vector<std::uint32_t> samples{7,     0, 50000, 49999, 3,    512, 513, 1,
                                           26000, 0, 0,     100,   5000, 0,   0,   2};
  REQUIRE(bins.count() == static_cast<std::int64_t>(samples.size()));
  std::vector<std::uint32_t> begin(1);
  for (const std::uint32_t count : samples)
    begin.push_back(begin.back() + count);
  for (const std::int64_t wanted : {60, 64, 128, 1000}) {
    CAPTURE(wanted);
    const Tasks::Limits limits{std::max<std::int64_t>(begin.back() / wanted, 1024), 512, wanted};
    const auto cut = Tasks::make(bins, begin.data(), limits);
    CHECK(cut.slots <= wanted);
    CHECK(cut.slots > wanted * 3 / 4 - (wanted == 1000 ? 1000 : 0)); // no smaller than `most` allows
    CHECK(cut.largest == 50000);
    CHECK(cut.alone == 512);
    std::vector<std::uint32_t> found(samples.size());
    for (const auto& task : cut.tasks) {
      CHECK((begin[task.bin] <= task.begin && task.begin < task.end && task.end <= begin[task.bin + 1]));
      CHECK(task.end - task.begin < 2 * limits.most);
      CHECK((task.slot < 0) == (samples[task.bin] <= 512));
      found[task.bin] += task.end - task.begin;
    }
    CHECK(found == samples);
  }
}
