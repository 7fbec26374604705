// What Strategy::Owned does on GPUs, element by element on the host: against the definition.

#include "problems.hpp"

#include <bracewell/project/arguments.hpp>
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

/// Back-projection into data and weight, or with Mates::Single the gradient of the reconstruction.
template <class Kernel, int M, int D, Mates mates>
void gather_owned(const Problem<double>& problem, Tensor<complex<double>>& data, Tensor<double>* weight,
                  bool absolute) {
  using namespace Bracewell::Impl;
  const Arguments arguments{"test"};
  const auto images = array_of<const complex<double>>(problem.projections);
  const auto samples = arguments.samples<M, D>(
      "data", array_of<const complex<double>>(problem.reconstruction), "projections", images,
      Bracewell::Poses<double, Kokkos::HostSpace>{array_of<const double>(problem.poses.matrices),
                                                  array_of<const double>(problem.poses.shifts)},
      problem.options);
  Amplitudes<double, M, D, mates> amplitudes{.samples = samples, .values = images.data};
  ScatterTarget<double> target{.data = data.values.data(),
                               .batches = samples.batches,
                               .batch_stride = samples.reconstruction.elements(),
                               .absolute = absolute};
  if (weight) {
    amplitudes.weights = arguments.per_projection("weights", array_of<const double>(problem.weights), images);
    target.weight = weight->values.data();
  }
  using Owned = GatherOwned<Kokkos::DefaultHostExecutionSpace, Kernel, double, M, D, mates>;
  const Owned owned(amplitudes, target);
  int missed = 0;
  for (std::int64_t volume = 0; volume < samples.batches; ++volume)
    for (int brick = 0; brick < owned.bricks.count(); ++brick) {
      int first[D], last[D];
      owned.bricks.first(brick, first);
      int count = 1;
      for (int d = 0; d < D; ++d) {
        last[d] = first[d] + owned.bricks.edge[d] - 1;
        count *= owned.bricks.edge[d];
      }
      for (std::int64_t pose = 0; pose < samples.poses; ++pose)
        for (const int sign : {1, -1}) {
          const typename Owned::Entry entry(samples, volume * samples.poses + pose, sign);
          const bool reached = owned.brick_reached(entry, first, last);
          for (int i = 0; i < count; ++i) {
            int voxel[D];
            bool stored = true;
            for (int d = 0, rest = i; d < D; rest /= owned.bricks.edge[d], ++d) {
              voxel[d] = first[d] + rest % owned.bricks.edge[d];
              stored = stored && voxel[d] <= samples.reconstruction.size[d] / 2;
            }
            if (!stored)
              continue;
            typename Owned::Sum sum;
            owned.add_entry(entry, voxel, sum);
            missed += !reached && (Kokkos::abs(sum.data) > 0 || sum.weight != 0);
            const std::int64_t element =
                volume * target.batch_stride + samples.reconstruction.row(voxel) + voxel[0];
            data[element] += sum.data;
            if (weight)
              (*weight)[element] += sum.weight;
          }
        }
    }
  CHECK(missed == 0);
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
