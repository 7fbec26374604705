// Every gradient against central differences of the operators, in double, at random positions.

#include "problems.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

using namespace Test;

namespace {

/// Shapes whose positions lie off the grid lines, where linear and absolute weights have no derivative; those
/// with thousands of samples have some that come too close.
std::vector<Shape> generic_shapes() {
  std::vector<Shape> chosen;
  for (const Shape& shape : shapes())
    if (shape.kind == Matrices::General && shape.scale <= 10 && shape.image.front() < 15 &&
        shape.volume.back() < 40)
      chosen.push_back(shape);
  return chosen;
}

/// (L(+step) - L(-step)) / (2 step)
template <class Loss>
double slope(const Loss& loss, double step) {
  return (loss(step) - loss(-step)) / (2 * step);
}

/// Differences of matrices move positions by |k| times as much; the steps balance truncation and rounding.
constexpr double matrix_step = 2e-6, shift_step = 1e-4;

/// Checks every element of a gradient against the slope of loss(changed poses) in that element. On GPUs atomic sums have no
/// fixed order, so that losses differ in their last bits where nothing depends on an element (an image of one pixel).
template <class Loss>
void check_elements(const Tensor<double>& gradient, const Tensor<double>& at, double step, const Loss& loss) {
  const double rounding = 4e-16 * std::abs(loss(at)) / step * std::sqrt(static_cast<double>(at.size()));
  Tensor<double> slopes = zero_like(gradient);
  for (std::size_t i = 0; i < at.size(); ++i)
    slopes[i] = slope(
        [&](double distance) {
          auto changed = at;
          changed[i] += distance;
          return loss(changed);
        },
        step);
  CHECK(norm(moved(gradient, -1, slopes)) <= 1e-7 * norm(slopes) + rounding);
}

} // namespace

TEST_CASE("gradients of project") {
  const auto kernel = GENERATE(from_range(kernels()));
  const auto shape = GENERATE(from_range(generic_shapes()));
  CAPTURE(kernel, describe(shape));
  const Problem<double> problem(shape, kernel, 1, 2);
  Random random(3);
  const auto cotangent = random_like(problem.projections, random);
  const auto projections_at = [&](const Tensor<complex<double>>& reconstruction,
                                  const HostPoses<double>& poses) {
    auto projections = zero_like(problem.projections);
    problem.operators.project(reconstruction, poses, projections, problem.options);
    return projections;
  };
  const auto loss = [&](const Tensor<complex<double>>& reconstruction, const HostPoses<double>& poses) {
    return dot(cotangent, projections_at(reconstruction, poses));
  };

  Operators<double>::ProjectGradients gradients{
      zero_like(problem.projections), zero_like(problem.reconstruction), zero_like(problem.poses.matrices),
      zero_like(problem.poses.shifts)};
  problem.operators.project_gradients(problem.reconstruction, problem.poses, cotangent, gradients,
                                      problem.options);

  CHECK(relative_error(gradients.projections, projections_at(problem.reconstruction, problem.poses)) < 1e-13);

  const auto direction =
      random_like(problem.reconstruction, random);        // not Hermitian: every stored element by itself
  const double expected = loss(direction, problem.poses); // project is linear
  CHECK(std::abs(dot(gradients.reconstruction, direction) - expected) <
        1e-12 * norm(direction) * norm(cotangent));

  check_elements(gradients.matrices, problem.poses.matrices, matrix_step,
                 [&](const Tensor<double>& matrices) {
                   return loss(problem.reconstruction, {matrices, problem.poses.shifts});
                 });
  check_elements(gradients.shifts, problem.poses.shifts, shift_step, [&](const Tensor<double>& shifts) {
    return loss(problem.reconstruction, {problem.poses.matrices, shifts});
  });
}

TEST_CASE("gradients of backproject") {
  const auto kernel = GENERATE(from_range(kernels()));
  const auto shape = GENERATE(from_range(generic_shapes()));
  const bool absolute = GENERATE(false, true);
  CAPTURE(kernel, describe(shape), absolute);
  Problem<double> problem(shape, kernel, 1, 2);
  problem.options.kernel_weights =
      absolute ? Bracewell::KernelWeights::Absolute : Bracewell::KernelWeights::Signed;
  Random random(4);
  const auto data_cotangent = random_like(problem.reconstruction, random);
  const auto weight_cotangent = random_like(spectra<double>({1}, shape.volume), random);
  const auto loss = [&](const Tensor<complex<double>>& projections, const Tensor<double>& weights,
                        const HostPoses<double>& poses) {
    auto data = zero_like(data_cotangent);
    auto weight = zero_like(weight_cotangent);
    problem.operators.backproject(projections, poses, data, weight, weights, problem.options);
    return dot(data_cotangent, data) + dot(weight_cotangent, weight);
  };

  Operators<double>::BackprojectGradients gradients;
  gradients.data = data_cotangent;
  gradients.weight = weight_cotangent;
  gradients.weights = problem.weights;
  gradients.projections = zero_like(problem.projections);
  gradients.projection_weights = zero_like(problem.weights);
  gradients.matrices = zero_like(problem.poses.matrices);
  gradients.shifts = zero_like(problem.poses.shifts);
  problem.operators.backproject_gradients(problem.projections, problem.poses, gradients, problem.options);

  const auto direction = random_like(problem.projections, random);
  const auto weights_direction = random_like(problem.weights, random);
  const auto no_projections = zero_like(problem.projections);
  const auto no_weights = zero_like(problem.weights);
  const double scale = norm(data_cotangent) * norm(direction);
  CHECK(std::abs(dot(gradients.projections, direction) - loss(direction, no_weights, problem.poses)) <
        1e-12 * scale);
  CHECK(std::abs(dot(gradients.projection_weights, weights_direction) -
                 loss(no_projections, weights_direction, problem.poses)) < 1e-12 * scale);

  check_elements(gradients.matrices, problem.poses.matrices, matrix_step,
                 [&](const Tensor<double>& matrices) {
                   return loss(problem.projections, problem.weights, {matrices, problem.poses.shifts});
                 });
  check_elements(gradients.shifts, problem.poses.shifts, shift_step, [&](const Tensor<double>& shifts) {
    return loss(problem.projections, problem.weights, {problem.poses.matrices, shifts});
  });
}

TEST_CASE("gradients of backproject without a weight volume") {
  const auto kernel = GENERATE(from_range(kernels()));
  const auto shape = GENERATE(from_range(generic_shapes()));
  CAPTURE(kernel, describe(shape));
  const Problem<double> problem(shape, kernel, 1, 2);
  Random random(5);
  Operators<double>::BackprojectGradients gradients;
  gradients.data = random_like(problem.reconstruction, random);
  gradients.matrices = zero_like(problem.poses.matrices);
  problem.operators.backproject_gradients(problem.projections, problem.poses, gradients, problem.options);
  check_elements(gradients.matrices, problem.poses.matrices, matrix_step,
                 [&](const Tensor<double>& matrices) {
                   auto data = zero_like(gradients.data);
                   Tensor<double> no_weight;
                   problem.operators.backproject(problem.projections, {matrices, problem.poses.shifts}, data,
                                                 no_weight, {}, problem.options);
                   return dot(gradients.data, data);
                 });
}

TEST_CASE("gradients are the same whichever others are asked for, and written over") {
  const auto shape = GENERATE(from_range(generic_shapes()));
  CAPTURE(describe(shape));
  const Problem<double> problem(shape, "catmull_rom");
  Random random(6);
  const auto cotangent = random_like(problem.projections, random);
  using Gradients = Operators<double>::ProjectGradients;
  Gradients all{zero_like(problem.projections), zero_like(problem.reconstruction),
                zero_like(problem.poses.matrices), zero_like(problem.poses.shifts)};
  problem.operators.project_gradients(problem.reconstruction, problem.poses, cotangent, all, problem.options);
  for (int asked = 1; asked < 16; ++asked) {
    Gradients some; // full of numbers that must not count
    if (asked & 1)
      some.projections = random_like(all.projections, random);
    if (asked & 2)
      some.reconstruction = random_like(all.reconstruction, random);
    if (asked & 4)
      some.matrices = random_like(all.matrices, random);
    if (asked & 8)
      some.shifts = random_like(all.shifts, random);
    problem.operators.project_gradients(problem.reconstruction, problem.poses, cotangent, some,
                                        problem.options);
    if (asked & 1)
      CHECK(relative_error(some.projections, all.projections) < 1e-14);
    if (asked & 2)
      CHECK(relative_error(some.reconstruction, all.reconstruction) < 1e-13);
    if (asked & 4)
      CHECK(relative_error(some.matrices, all.matrices) < 1e-13);
    if (asked & 8)
      CHECK(relative_error(some.shifts, all.shifts) < 1e-13);
  }
}

TEST_CASE("the third column of a 3D to 2D matrix has no gradient") {
  const Problem<double> problem({"", {7, 9, 5}, {5, 7}}, "bspline3");
  Operators<double>::ProjectGradients gradients;
  gradients.matrices = zero_like(problem.poses.matrices);
  problem.operators.project_gradients(problem.reconstruction, problem.poses, problem.projections, gradients,
                                      problem.options);
  for (std::size_t i = 2; i < gradients.matrices.size(); i += 3)
    CHECK(gradients.matrices[i] == 0);
}
