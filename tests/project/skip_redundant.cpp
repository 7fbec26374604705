// The option skip_redundant: gradients of a loss written on the full spectrum, whose cotangent counts every
// frequency once.

#include "problems.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

using namespace Test;

namespace {

/// Calls visit(k) for every frequency of the full spectrum within the radius, both mates of each pair.
template <class Visit>
void for_each_frequency(const Reference& reference, const Visit& visit) {
  const int reach = static_cast<int>(reference.radius), m = static_cast<int>(reference.image.size());
  std::vector<int> k(m, -reach);
  for (;;) {
    if (reference.inside(k))
      visit(k);
    int c = 0;
    while (c < m && ++k[c] > reach)
      k[c++] = -reach;
    if (c == m)
      return;
  }
}

std::vector<long long> wide(const std::vector<int>& k) { return {k.begin(), k.end()}; }

complex<double> element(const Tensor<complex<double>>& image, const std::vector<int>& k, const Sizes& sizes) {
  const Stored at = stored(wide(k), sizes);
  return at.conjugate ? Kokkos::conj(image[at.index]) : image[at.index];
}

} // namespace

TEST_CASE("gradients of a loss on the full spectrum") {
  const auto shape = GENERATE(from_range(std::vector<Shape>{{"2D", {8, 9}, {8, 8}, 1, 3.5},
                                                            {"3D to 2D", {8, 9, 8}, {7, 8}, 1, 3.},
                                                            {"3D", {8, 7, 6}, {6, 6, 7}, 1, 2.5}}));
  const auto kernel = GENERATE(from_range(kernels()));
  CAPTURE(kernel, describe(shape));
  Problem<double> problem(shape, kernel, 1, 1);
  const Reference& reference = problem.reference;
  Random random(8);
  const auto target = Problem<double>::hermitian(problem.projections, shape.image, random);

  // Half the squared distance to the target over all frequencies, by definition.
  const auto loss = [&](const Tensor<complex<double>>& volume, const HostPoses<double>& poses) {
    double sum = 0;
    for_each_frequency(reference, [&](const std::vector<int>& k) {
      complex<double> value = 0;
      for_each_tap(kernel, reference.position(k, poses.matrices.values.data()),
                   [&](const auto& tap, double weight) {
                     const Stored at = stored(tap, shape.volume);
                     value += weight * (at.conjugate ? Kokkos::conj(volume[at.index]) : volume[at.index]);
                   });
      value = value * reference.phase(k, poses.shifts.values.data()) - element(target, k, shape.image);
      sum += (value.real() * value.real() + value.imag() * value.imag()) / 2;
    });
    return sum;
  };

  // Every pair of frequencies counts twice, in the one cotangent that is used; zero frequency counts once.
  auto cotangent = zero_like(target);
  problem.operators.project(problem.reconstruction, problem.poses, cotangent, problem.options);
  cotangent = moved(cotangent, -1, target);
  for (std::size_t i = 0; i < cotangent.size(); ++i) {
    const auto k = reference.frequency_of(i);
    if (!reference.inside(k))
      cotangent[i] = 1e6; // outside the radius nothing counts
    if (i > 0)
      cotangent[i] *= 2.;
  }

  const auto direction = Problem<double>::hermitian(problem.reconstruction, shape.volume, random);
  const double step = 1e-6;
  const double volume_slope = (loss(moved(problem.reconstruction, step, direction), problem.poses) -
                               loss(moved(problem.reconstruction, -step, direction), problem.poses)) /
                              (2 * step);
  auto matrix_slopes = zero_like(problem.poses.matrices);
  auto shift_slopes = zero_like(problem.poses.shifts);
  for (auto [slopes, at] :
       {std::pair{&matrix_slopes, &problem.poses.matrices}, std::pair{&shift_slopes, &problem.poses.shifts}})
    for (std::size_t i = 0; i < slopes->size(); ++i) {
      const double before = (*at)[i];
      (*at)[i] = before + step;
      (*slopes)[i] = loss(problem.reconstruction, problem.poses);
      (*at)[i] = before - step;
      (*slopes)[i] = ((*slopes)[i] - loss(problem.reconstruction, problem.poses)) / (2 * step);
      (*at)[i] = before;
    }

  problem.options.skip_redundant = true;
  for (const Strategy strategy : strategies()) {
    CAPTURE(int(strategy));
    problem.options.strategy = strategy;
    Operators<double>::ProjectGradients gradients{{},
                                                  zero_like(problem.reconstruction),
                                                  zero_like(problem.poses.matrices),
                                                  zero_like(problem.poses.shifts)};
    problem.operators.project_gradients(problem.reconstruction, problem.poses, cotangent, gradients,
                                        problem.options);
    CHECK(std::abs(dot(gradients.reconstruction, direction) - volume_slope) <
          1e-7 * norm(gradients.reconstruction));
    CHECK(relative_error(gradients.matrices, matrix_slopes) < 1e-7);
    CHECK(relative_error(gradients.shifts, shift_slopes) < 1e-7);
  }
}

TEST_CASE("skip_redundant leaves the projections themselves as they are") {
  for (const Shape& shape : shapes()) {
    CAPTURE(describe(shape));
    Problem<double> problem(shape, "linear", 1, 1);
    problem.options.skip_redundant = true;
    auto projections = zero_like(problem.projections);
    problem.operators.project(problem.reconstruction, problem.poses, projections, problem.options);
    Operators<double>::ProjectGradients gradients;
    gradients.projections = zero_like(projections);
    gradients.shifts = zero_like(problem.poses.shifts);
    problem.operators.project_gradients(problem.reconstruction, problem.poses, problem.projections, gradients,
                                        problem.options);
    CHECK(relative_error(projections, problem.reference_projections()) < 1e-12 * std::max(1., shape.scale));
    // Positions, which the two passes round on their own, are as large as `scale`.
    CHECK(relative_error(gradients.projections, projections) < 1e-13 * std::max(1., shape.scale));
  }
}
