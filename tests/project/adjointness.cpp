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

TEST_CASE("the error of sums over many poses in float does not grow with their number") {
  struct Case {
    std::size_t batches, poses, volumes;
  };
  const auto [batches, poses, volumes] = GENERATE(Case{1, 10000, 1}, Case{2, 5000, 2}, Case{2000, 5, 1});
  const Strategy strategy = GENERATE(Strategy::Automatic, Strategy::Atomic);
  CAPTURE(batches, poses, volumes, int(strategy));
  const Shape shape{"rotation", {12, 12, 12}, {8, 8}, 1.5, {}, Matrices::Rotation};
  const Problem<double> one(shape, "catmull_rom", 1, 1);
  Problem<float> many(shape, "catmull_rom", batches,
                      poses); // the same pose, image and weights again and again
  const auto repeat = [](auto& all, const auto& first) {
    using Value = std::remove_cvref_t<decltype(all[0])>;
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = Value(first[i % first.size()]);
  };
  repeat(many.projections, one.projections);
  repeat(many.weights, one.weights);
  repeat(many.poses.matrices, one.poses.matrices);
  repeat(many.poses.shifts, one.poses.shifts);
  many.options.strategy = strategy;

  Tensor<complex<double>> data = spectra<complex<double>>({1}, shape.volume);
  Tensor<double> weight = spectra<double>({1}, shape.volume);
  one.reference_backprojections(false, data, weight);
  auto sums = spectra<complex<float>>({volumes}, shape.volume);
  auto weights = spectra<float>({volumes}, shape.volume);
  many.operators.backproject(many.projections, many.poses, sums, weights, many.weights, many.options);
  const double times = double(batches * poses) / double(volumes);
  const auto error = [&](const auto& found, const auto& of_one) {
    double difference = 0, all = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto right = times * of_one[i % of_one.size()];
      difference += std::pow(double(Kokkos::abs(decltype(right)(found[i]) - right)), 2);
      all += std::pow(double(Kokkos::abs(right)), 2);
    }
    return std::sqrt(difference / all);
  };
  // Of one pose: positions, weights and phases are rounded.
  CHECK(error(sums, data) < 5e-6);
  CHECK(error(weights, weight) < 5e-6);
}
