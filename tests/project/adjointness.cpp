// <project V, P> = <V, backproject P> over the full Hermitian spectrum, and both against their definition.

#include "problems.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

using namespace Test;

namespace {
// Positions far outside the box lose digits before they are wrapped back into it, here and in the definition.
double rounding(const Shape& shape) { return std::max(1., shape.scale); }
} // namespace

TEST_CASE("project agrees with its definition") {
  const auto kernel = GENERATE(from_range(kernels()));
  const auto shape = GENERATE(from_range(shapes()));
  CAPTURE(kernel, describe(shape));
  const Problem<double> problem(shape, kernel);
  Random random(1);
  auto projections = random_like(problem.projections, random); // every element must be overwritten
  problem.operators.project(problem.reconstruction, problem.poses, projections, problem.options);
  CHECK(relative_error(projections, problem.reference_projections()) < 1e-12 * rounding(shape));
}

TEST_CASE("backproject with every strategy agrees with its definition") {
  const auto kernel = GENERATE(from_range(kernels()));
  const auto shape = GENERATE(from_range(shapes()));
  CAPTURE(kernel, describe(shape));
  Problem<double> problem(shape, kernel);
  Random random(2);
  // Volumes are added to, so they do not start from zero.
  const auto data_before = random_like(problem.reconstruction, random);
  const auto weight_before = random_like(spectra<double>({2}, shape.volume), random);
  for (const bool absolute : {false, true}) {
    auto expected_data = data_before;
    auto expected_weight = weight_before;
    problem.reference_backprojections(absolute, expected_data, expected_weight);
    problem.options.kernel_weights =
        absolute ? Bracewell::KernelWeights::Absolute : Bracewell::KernelWeights::Signed;
    for (const Strategy strategy : strategies()) {
      CAPTURE(absolute, int(strategy));
      problem.options.strategy = strategy;
      auto data = data_before;
      auto weight = weight_before;
      problem.operators.backproject(problem.projections, problem.poses, data, weight, problem.weights,
                                    problem.options);
      CHECK(relative_error(data, expected_data) < 1e-12 * rounding(shape));
      CHECK(relative_error(weight, expected_weight) < 1e-12 * rounding(shape));
    }
  }
}

TEST_CASE("backproject is the adjoint of project over the full spectrum") {
  const auto kernel = GENERATE(from_range(kernels()));
  const auto shape = GENERATE(from_range(shapes()));
  CAPTURE(kernel, describe(shape));
  Problem<double> problem(shape, kernel);
  auto projections = zero_like(problem.projections);
  problem.operators.project(problem.reconstruction, problem.poses, projections, problem.options);
  const double scale = norm(problem.reconstruction) * norm(problem.projections);
  for (const Strategy strategy : strategies()) {
    CAPTURE(int(strategy));
    problem.options.strategy = strategy;
    auto data = zero_like(problem.reconstruction);
    Tensor<double> no_weight;
    problem.operators.backproject(problem.projections, problem.poses, data, no_weight, {}, problem.options);
    const double gap = full_dot(projections, problem.projections) - full_dot(problem.reconstruction, data);
    CHECK(std::abs(gap) < 1e-12 * scale);
  }
}
