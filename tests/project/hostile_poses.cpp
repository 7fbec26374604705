// Poses that are not finite, or absurdly large: nothing outside the arrays is touched, and the other poses
// are as they would be alone.

#include "problems.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <limits>

using namespace Test;

namespace {

const std::vector<Shape> pairs{
    {"2D", {9, 8}, {7, 6}},          {"2D smallest", {4, 4}, {4, 4}, 1, 9.},
    {"3D to 2D", {8, 7, 9}, {7, 6}}, {"3D to 2D smallest", {4, 4, 5}, {5, 4}, 1, 9.},
    {"3D", {8, 7, 9}, {6, 5, 7}},    {"3D smallest", {5, 4, 4}, {4, 4, 5}, 1, 9.}};

/// A problem of three poses, the second of which is spoiled.
struct Spoiled {
  Problem<double> problem;
  Spoiled(const Shape& shape, const std::string& kernel, double value, bool whole_matrix)
      : problem(shape, kernel, 1, 3) {
    const std::size_t size = shape.volume.size() * shape.volume.size();
    for (std::size_t i = 0; i < (whole_matrix ? size : 1); ++i)
      problem.poses.matrices[size + i] = value;
  }
};

/// The second of three poses, spoiled, adds nothing: as if its projection and weights were zero.
void check_adds_nothing(Problem<double> good, const HostPoses<double>& spoiled, const Shape& shape) {
  auto images = good.projections;
  auto weights = good.weights;
  const std::size_t elements = good.image_elements();
  std::fill_n(images.values.begin() + elements, elements, 0.);
  std::fill_n(weights.values.begin() + elements, elements, 0.);
  for (const Strategy strategy : strategies()) {
    CAPTURE(int(strategy));
    good.options.strategy = strategy;
    auto expected = zero_like(good.reconstruction), data = expected;
    auto expected_weight = spectra<double>({1}, shape.volume), weight = expected_weight;
    good.operators.backproject(images, good.poses, expected, expected_weight, weights, good.options);
    good.operators.backproject(good.projections, spoiled, data, weight, good.weights, good.options);
    CHECK(relative_error(data, expected) < 1e-14);
    CHECK(relative_error(weight, expected_weight) < 1e-14);

    Operators<double>::ProjectGradients some, all;
    some.reconstruction = all.reconstruction = zero_like(good.reconstruction);
    good.operators.project_gradients(good.reconstruction, good.poses, images, some, good.options);
    good.operators.project_gradients(good.reconstruction, spoiled, good.projections, all, good.options);
    CHECK(relative_error(all.reconstruction, some.reconstruction) < 1e-14);
  }
}

} // namespace

TEST_CASE("matrices that are not finite spoil their own projection only") {
  const auto kernel = GENERATE(from_range(kernels()));
  const auto shape = GENERATE(from_range(pairs));
  const double value = GENERATE(double(NAN), double(INFINITY), -double(INFINITY));
  const bool whole_matrix = GENERATE(false, true);
  CAPTURE(kernel, describe(shape), value, whole_matrix);
  const Problem<double> good(shape, kernel, 1, 3);
  const Spoiled spoiled(shape, kernel, value, whole_matrix);
  auto expected = zero_like(good.projections), projections = expected;
  good.operators.project(good.reconstruction, good.poses, expected, good.options);
  spoiled.problem.operators.project(good.reconstruction, spoiled.problem.poses, projections, good.options);
  const std::size_t elements = good.image_elements();
  for (std::size_t i = 0; i < 3 * elements; ++i)
    if (i / elements != 1)
      CHECK(projections[i] == expected[i]);
  CHECK(std::isnan(projections[elements + 1].real())); // k = (1, 0[, 0])
}

TEST_CASE("matrices that are not finite add nothing") {
  const auto kernel = GENERATE(from_range(kernels()));
  const auto shape = GENERATE(from_range(pairs));
  const double value = GENERATE(double(NAN), double(INFINITY), -double(INFINITY));
  CAPTURE(kernel, describe(shape), value);
  const Problem<double> good(shape, kernel, 1, 3);
  check_adds_nothing(good, Spoiled(shape, kernel, value, true).problem.poses, shape);
}

TEST_CASE("shifts that are not finite spoil their own projection only") {
  const auto shape = GENERATE(from_range(pairs));
  const double value = GENERATE(double(NAN), double(INFINITY));
  CAPTURE(describe(shape), value);
  const Problem<double> good(shape, "catmull_rom", 1, 3);
  Problem<double> spoiled = good;
  spoiled.poses.shifts[shape.image.size()] = value;
  auto expected = zero_like(good.projections), projections = expected;
  good.operators.project(good.reconstruction, good.poses, expected, good.options);
  good.operators.project(good.reconstruction, spoiled.poses, projections, good.options);
  const std::size_t elements = good.image_elements();
  for (std::size_t i = 0; i < 3 * elements; ++i)
    if (i / elements != 1)
      CHECK(projections[i] == expected[i]);
  CHECK(std::isnan(projections[elements + 1].real()));
}

TEST_CASE("shifts that are not finite add nothing") {
  const auto shape = GENERATE(from_range(pairs));
  const double value = GENERATE(double(NAN), double(INFINITY), std::numeric_limits<double>::max());
  CAPTURE(describe(shape), value);
  const Problem<double> good(shape, "catmull_rom", 1, 3);
  auto poses = good.poses;
  poses.shifts[2 * shape.image.size() - 1] = value;
  check_adds_nothing(good, poses, shape);
}

TEST_CASE("poses that are not finite have gradients that are not") {
  const auto shape = GENERATE(from_range(pairs));
  const bool in_shift = GENERATE(false, true);
  CAPTURE(describe(shape), in_shift);
  Problem<double> problem(shape, "catmull_rom", 1, 3);
  const std::size_t m = shape.image.size(), size = shape.volume.size() * shape.volume.size();
  (in_shift ? problem.poses.shifts[m] : problem.poses.matrices[size]) = NAN;
  Operators<double>::ProjectGradients gradients;
  gradients.matrices = zero_like(problem.poses.matrices);
  gradients.shifts = zero_like(problem.poses.shifts);
  problem.operators.project_gradients(problem.reconstruction, problem.poses, problem.projections, gradients,
                                      problem.options);
  for (const auto* array : {&gradients.matrices, &gradients.shifts}) {
    const std::size_t per_pose = array->size() / 3;
    for (std::size_t pose = 0; pose < 3; ++pose) {
      double sum = 0;
      for (std::size_t i = 0; i < per_pose; ++i)
        sum += (*array)[pose * per_pose + i];
      CHECK(std::isnan(sum) == (pose == 1));
    }
  }
}

TEST_CASE("a volume that no sample reaches is not written") {
  const auto shape = GENERATE(from_range(pairs));
  CAPTURE(describe(shape));
  Problem<double> problem(shape, "catmull_rom", 1, 1);
  problem.poses.matrices[0] = NAN;
  for (const Strategy strategy : {Strategy::Atomic, Strategy::Owned}) {
    problem.options.strategy = strategy;
    auto data = zero_like(problem.reconstruction);
    auto weight = spectra<double>({1}, shape.volume);
    for (auto& value : data.values)
      value = complex<double>(-0., -0.); // which adding zero would change
    problem.operators.backproject(problem.projections, problem.poses, data, weight, problem.weights,
                                  problem.options);
    std::size_t written = 0;
    for (const auto& value : data.values)
      written += !std::signbit(value.real()) || !std::signbit(value.imag());
    CHECK(written == 0);
  }
}

TEST_CASE("all strategies agree on which samples are too far out") {
  const auto shape = GENERATE(from_range(pairs));
  const double scale = GENERATE(1e14, 1e15, 1e16, 1e17, 1e30);
  CAPTURE(describe(shape), scale);
  Problem<double> problem(shape, "catmull_rom", 1, 3);
  const std::size_t d = shape.volume.size();
  for (std::size_t i = 0; i < problem.poses.matrices.size(); ++i) // one element per row: positions are exact
    problem.poses.matrices[i] *= i % d == i / d % d % shape.image.size() ? scale : 0;
  Tensor<complex<double>> first;
  for (const Strategy strategy : strategies()) {
    CAPTURE(int(strategy));
    problem.options.strategy = strategy;
    auto data = zero_like(problem.reconstruction);
    auto weight = spectra<double>({1}, shape.volume);
    problem.operators.backproject(problem.projections, problem.poses, data, weight, problem.weights,
                                  problem.options);
    if (first.size() == 0)
      first = data;
    CHECK(relative_error(data, first) < 1e-13);
  }
}

TEST_CASE("absurdly large matrices and shifts are safe") {
  const auto kernel = GENERATE(from_range(kernels()));
  const auto shape = GENERATE(from_range(pairs));
  const double value = GENERATE(1e9, -1e17, std::numeric_limits<double>::max());
  Spoiled spoiled(shape, kernel, value, GENERATE(false, true));
  auto& [problem] = spoiled;
  problem.poses.shifts[0] = value;
  for (const Strategy strategy : strategies()) {
    problem.options.strategy = strategy;
    auto projections = zero_like(problem.projections);
    auto data = zero_like(problem.reconstruction);
    auto weight = spectra<double>({1}, shape.volume);
    Operators<double>::ProjectGradients gradients{projections, data, zero_like(problem.poses.matrices),
                                                  zero_like(problem.poses.shifts)};
    CHECK_NOTHROW(
        problem.operators.project(problem.reconstruction, problem.poses, projections, problem.options));
    CHECK_NOTHROW(problem.operators.backproject(problem.projections, problem.poses, data, weight,
                                                problem.weights, problem.options));
    CHECK_NOTHROW(problem.operators.project_gradients(problem.reconstruction, problem.poses,
                                                      problem.projections, gradients, problem.options));
  }
}
