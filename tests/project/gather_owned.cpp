// The kernels that search bricks on GPUs, run by the host: against the definition.

#include "problems.hpp"

#include <bracewell/project/arguments.hpp>
#include <bracewell/project/gather.hpp>
#include <bracewell/project/gather_owned.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

using namespace Test;
using Bracewell::Mates;

namespace {

template <class Value, class Tensor>
auto array_of(Tensor& tensor) {
  Bracewell::Array<Value, Kokkos::HostSpace> array;
  array.data = tensor.values.data();
  array.rank = static_cast<int>(tensor.extents.size());
  std::copy(tensor.extents.begin(), tensor.extents.end(), array.extents);
  array.width = tensor.width;
  return array;
}

template <int M, int D, class Volume, class Images>
auto samples_of(const Problem<double>& problem, const Volume& volume, const Images& images) {
  return Bracewell::Impl::Arguments{"test"}.samples<M, D>(
      "volume", volume, "projections", images,
      Bracewell::Poses<double, Kokkos::HostSpace>{array_of<const double>(problem.poses.matrices),
                                                  array_of<const double>(problem.poses.shifts)},
      problem.options);
}

/// Back-projection into data and weight, or with Mates::Single the gradient of the reconstruction.
template <class Kernel, int M, int D, Mates mates>
void gather_owned(const Problem<double>& problem, Tensor<complex<double>>& data, Tensor<double>* weight,
                  bool absolute) {
  using namespace Bracewell::Impl;
  const auto images = array_of<const complex<double>>(problem.projections);
  const auto samples =
      samples_of<M, D>(problem, array_of<const complex<double>>(problem.reconstruction), images);
  Amplitudes<double, M, D, mates> amplitudes{.samples = samples, .values = images.data};
  ScatterTarget<double> target{.data = data.values.data(),
                               .batches = samples.batches,
                               .batch_stride = samples.reconstruction.elements(),
                               .absolute = absolute};
  if (weight) {
    amplitudes.weights =
        Arguments{"test"}.per_projection("weights", array_of<const double>(problem.weights), images);
    target.weight = weight->values.data();
  }
  const Kokkos::DefaultHostExecutionSpace space;
  GatherOwned<Kokkos::DefaultHostExecutionSpace, Kernel, double, M, D, mates>(amplitudes, target)
      .launch(space, "gather_owned");
  space.fence();
}

/// Projections of 3D reconstructions.
template <class Kernel>
Tensor<complex<double>> gather_bricks(const Problem<double>& problem) {
  using namespace Bracewell::Impl;
  auto result = zero_like(problem.projections);
  const auto images = array_of<complex<double>>(result);
  const auto volume = array_of<const complex<double>>(problem.reconstruction);
  const auto samples = samples_of<2, 3>(problem, volume, images);
  const Kokkos::DefaultHostExecutionSpace space;
  using Direct = Gather<Kernel, double, 2, 3, Mates::Single>;
  GatherBricks<Kokkos::DefaultHostExecutionSpace, Kernel, double, 2, 3, Mates::Single, complex<double>,
               false>(Direct{.tiles = {},
                             .amplitudes = {.samples = samples},
                             .volume = volume.data,
                             .volume_batch_stride = samples.reconstruction.elements(),
                             .values = images.data})
      .launch(space, "gather_bricks");
  space.fence();
  return result;
}

/// Gradients of back-projection into 3D with respect to projections and weights, from the cotangents of data
/// and weight.
template <class Kernel>
void gather_bricks(const Problem<double>& problem, const Tensor<complex<double>>& data,
                   const Tensor<double>& weight, bool absolute, Tensor<complex<double>>& projections,
                   Tensor<double>& weights) {
  using namespace Bracewell::Impl;
  const auto images = array_of<complex<double>>(projections);
  const auto volume = array_of<const complex<double>>(data);
  const auto samples = samples_of<2, 3>(problem, volume, images);
  const Kokkos::DefaultHostExecutionSpace space;
  GatherBricks<Kokkos::DefaultHostExecutionSpace, Kernel, double, 2, 3, Mates::Both, complex<double>, true>(
      Gather<Kernel, double, 2, 3, Mates::Both>{.tiles = {},
                                                .amplitudes = {.samples = samples},
                                                .volume = volume.data,
                                                .weight_volume = weight.values.data(),
                                                .volume_batch_stride = samples.reconstruction.elements(),
                                                .absolute = absolute,
                                                .values = images.data,
                                                .weights = weights.values.data()})
      .launch(space, "gather_bricks");
  space.fence();
}

template <class Kernel, int M, int D>
void check(const Shape& shape) {
  const Problem<double> problem(shape, Kernel::name, 1, 2);
  const double rounding = 1e-12 * std::max(1., shape.scale);
  for (const bool absolute : {false, true}) {
    auto data = zero_like(problem.reconstruction), expected = data;
    auto weight = spectra<double>({1}, shape.volume), expected_weight = weight;
    gather_owned<Kernel, M, D, Mates::Both>(problem, data, &weight, absolute);
    problem.reference_backprojections(absolute, expected, expected_weight);
    CHECK(relative_error(data, expected) < rounding);
    CHECK(relative_error(weight, expected_weight) < rounding);
  }
  // The gradient of the reconstruction is the transpose of project, by definition.
  auto gradient = zero_like(problem.reconstruction);
  gather_owned<Kernel, M, D, Mates::Single>(problem, gradient, nullptr, false);
  Random random(41);
  Problem<double> other = problem;
  for (int probe = 0; probe < 3; ++probe) {
    fill(other.reconstruction, random);
    const auto projections = other.reference_projections();
    const double scale =
        norm(projections) * norm(problem.projections) + norm(gradient) * norm(other.reconstruction);
    CHECK(std::abs(dot(gradient, other.reconstruction) - dot(projections, problem.projections)) <=
          rounding * scale);
  }
}

} // namespace

TEMPLATE_TEST_CASE("bricks give the projections of the definition", "", Bracewell::Linear,
                   Bracewell::CatmullRom) {
  const auto shape = GENERATE(from_range(shapes()));
  if (shape.volume.size() != 3 || shape.image.size() != 2)
    return;
  CAPTURE(describe(shape));
  const Problem<double> problem(shape, TestType::name, 2, 3);
  CHECK(relative_error(gather_bricks<TestType>(problem), problem.reference_projections()) <
        1e-12 * std::max(1., shape.scale));
}

TEMPLATE_TEST_CASE("bricks give the transpose of back-projection", "", Bracewell::Linear,
                   Bracewell::CatmullRom) {
  const auto shape = GENERATE(from_range(shapes()));
  if (shape.volume.size() != 3 || shape.image.size() != 2)
    return;
  CAPTURE(describe(shape));
  Problem<double> problem(shape, TestType::name, 2, 3);
  Random random(43);
  const auto data = random_like(problem.reconstruction, random);
  const auto weight = random_like(spectra<double>({2}, shape.volume), random);
  for (const bool absolute : {false, true}) {
    auto projections = zero_like(problem.projections);
    auto weights = zero_like(problem.weights);
    gather_bricks<TestType>(problem, data, weight, absolute, projections, weights);
    for (int probe = 0; probe < 3; ++probe) {
      fill(problem.projections, random);
      fill(problem.weights, random);
      auto expected = zero_like(data);
      auto expected_weight = zero_like(weight);
      problem.reference_backprojections(absolute, expected, expected_weight);
      const double rounding = 1e-12 * std::max(1., shape.scale);
      CHECK(std::abs(dot(projections, problem.projections) - dot(data, expected)) <=
            rounding * (norm(projections) * norm(problem.projections) + norm(data) * norm(expected)));
      CHECK(std::abs(dot(weights, problem.weights) - dot(weight, expected_weight)) <=
            rounding * (norm(weights) * norm(problem.weights) + norm(weight) * norm(expected_weight)));
    }
  }
}

TEMPLATE_TEST_CASE("elements gather what the definition scatters", "", Bracewell::Linear,
                   Bracewell::CatmullRom, Bracewell::CubicBSpline) {
  const auto shape = GENERATE(from_range(shapes()));
  CAPTURE(describe(shape));
  if (shape.volume.size() == 2)
    check<TestType, 2, 2>(shape);
  else if (shape.image.size() == 2)
    check<TestType, 2, 3>(shape);
  else
    check<TestType, 3, 3>(shape);
}
