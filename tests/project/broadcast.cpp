// An axis of extent 1 means what the explicit repetition means, and its gradient is the sum over what shares
// it.

#include "problems.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

using namespace Test;

namespace {

constexpr std::size_t batches = 3, pose_count = 4;

/// Keeps the first entry of the axes that are shared.
template <class Value>
Tensor<Value> first_of(const Tensor<Value>& full, bool share_batch, bool share_pose,
                       bool has_pose_axis = true) {
  auto extents = full.extents;
  if (share_batch)
    extents[0] = 1;
  if (share_pose)
    extents[1] = 1;
  Tensor<Value> result(extents);
  result.width = full.width;
  const std::size_t poses = has_pose_axis ? full.extents[1] : 1, kept = has_pose_axis ? extents[1] : 1;
  const std::size_t rest = full.size() / (full.extents[0] * poses);
  for (std::size_t b = 0; b < extents[0]; ++b)
    for (std::size_t p = 0; p < kept; ++p)
      std::copy_n(&full.values[(b * poses + p) * rest], rest, &result.values[(b * kept + p) * rest]);
  return result;
}

/// The explicit repetition of a shared array, and its transpose, the sum.
template <class Value>
Tensor<Value> repeat(const Tensor<Value>& shared, const Tensor<Value>& like, bool has_pose_axis = true) {
  Tensor<Value> result = like;
  const std::size_t poses = has_pose_axis ? like.extents[1] : 1, kept = has_pose_axis ? shared.extents[1] : 1;
  const std::size_t rest = like.size() / (like.extents[0] * poses);
  for (std::size_t b = 0; b < like.extents[0]; ++b)
    for (std::size_t p = 0; p < poses; ++p)
      std::copy_n(&shared.values[((shared.extents[0] == 1 ? 0 : b) * kept + (kept == 1 ? 0 : p)) * rest],
                  rest, &result.values[(b * poses + p) * rest]);
  return result;
}
template <class Value>
Tensor<Value> sum(const Tensor<Value>& full, const Tensor<Value>& like, bool has_pose_axis = true) {
  Tensor<Value> result = zero_like(like);
  const std::size_t poses = has_pose_axis ? full.extents[1] : 1, kept = has_pose_axis ? like.extents[1] : 1;
  const std::size_t rest = full.size() / (full.extents[0] * poses);
  for (std::size_t b = 0; b < full.extents[0]; ++b)
    for (std::size_t p = 0; p < poses; ++p)
      for (std::size_t i = 0; i < rest; ++i)
        result[((like.extents[0] == 1 ? 0 : b) * kept + (kept == 1 ? 0 : p)) * rest + i] +=
            full[(b * poses + p) * rest + i];
  return result;
}

/// A problem with shared arguments, and the same with all of them repeated.
struct Shared {
  Problem<double> shared, repeated;
  Shared(const Shape& shape, bool share_batch, bool share_pose)
      : shared(shape, "catmull_rom", batches, pose_count), repeated(shared) {
    shared.reconstruction = first_of(shared.reconstruction, share_batch, false, false);
    shared.poses.matrices = first_of(shared.poses.matrices, share_batch, share_pose);
    shared.poses.shifts = first_of(shared.poses.shifts, share_batch, share_pose);
    shared.weights = first_of(shared.weights, share_batch, share_pose);
    Random random(9);
    repeated.poses.filters = random_like(repeated.weights, random);
    shared.poses.filters = first_of(repeated.poses.filters, share_batch, share_pose);
    repeated.poses.filters = repeat(shared.poses.filters, repeated.poses.filters);
    repeated.reconstruction = repeat(shared.reconstruction, repeated.reconstruction, false);
    repeated.poses.matrices = repeat(shared.poses.matrices, repeated.poses.matrices);
    repeated.poses.shifts = repeat(shared.poses.shifts, repeated.poses.shifts);
    repeated.weights = repeat(shared.weights, repeated.weights);
  }
};

const std::vector<Shape> pairs{
    {"2D", {9, 8}, {7, 6}}, {"3D to 2D", {8, 7, 9}, {7, 6}}, {"3D", {8, 7, 9}, {6, 5, 7}}};

} // namespace

TEST_CASE("shared arguments of project") {
  const auto shape = GENERATE(from_range(pairs));
  const bool share_batch = GENERATE(false, true), share_pose = GENERATE(false, true);
  CAPTURE(shape.name, share_batch, share_pose);
  Shared problems(shape, share_batch, share_pose);
  auto& [shared, repeated] = problems;

  auto projections = zero_like(shared.projections), expected = projections;
  shared.operators.project(shared.reconstruction, shared.poses, projections, shared.options);
  repeated.operators.project(repeated.reconstruction, repeated.poses, expected, repeated.options);
  CHECK(projections.values == expected.values);

  for (const Strategy strategy : strategies()) {
    shared.options.strategy = repeated.options.strategy = strategy;
    Operators<double>::ProjectGradients sums{{},
                                             zero_like(shared.reconstruction),
                                             zero_like(shared.poses.matrices),
                                             zero_like(shared.poses.shifts)};
    Operators<double>::ProjectGradients each{{},
                                             zero_like(repeated.reconstruction),
                                             zero_like(repeated.poses.matrices),
                                             zero_like(repeated.poses.shifts)};
    shared.operators.project_gradients(shared.reconstruction, shared.poses, shared.projections, sums,
                                       shared.options);
    repeated.operators.project_gradients(repeated.reconstruction, repeated.poses, repeated.projections, each,
                                         repeated.options);
    CHECK(relative_error(sums.reconstruction, sum(each.reconstruction, sums.reconstruction, false)) < 1e-13);
    CHECK(relative_error(sums.matrices, sum(each.matrices, sums.matrices)) < 1e-13);
    CHECK(relative_error(sums.shifts, sum(each.shifts, sums.shifts)) < 1e-13);
  }
}

TEST_CASE("shared arguments of backproject") {
  const auto shape = GENERATE(from_range(pairs));
  const bool share_batch = GENERATE(false, true), share_pose = GENERATE(false, true);
  CAPTURE(shape.name, share_batch, share_pose);
  Shared problems(shape, share_batch, share_pose);
  auto& [shared, repeated] = problems;

  for (const Strategy strategy : strategies()) {
    shared.options.strategy = repeated.options.strategy = strategy;
    auto data = zero_like(shared.reconstruction), data_each = zero_like(repeated.reconstruction);
    Tensor<double> weight = spectra<double>({data.extents[0]}, shape.volume);
    Tensor<double> weight_each = spectra<double>({batches}, shape.volume);
    shared.operators.backproject(shared.projections, shared.poses, data, weight, shared.weights,
                                 shared.options);
    repeated.operators.backproject(repeated.projections, repeated.poses, data_each, weight_each,
                                   repeated.weights, repeated.options);
    CHECK(relative_error(data, sum(data_each, data, false)) < 1e-13);
    CHECK(relative_error(weight, sum(weight_each, weight, false)) < 1e-13);
  }

  Random random(7);
  Operators<double>::BackprojectGradients sums, each;
  sums.data = random_like(shared.reconstruction, random);
  sums.weight = random_like(spectra<double>({sums.data.extents[0]}, shape.volume), random);
  sums.weights = shared.weights;
  each.data = repeat(sums.data, repeated.reconstruction, false);
  each.weight = repeat(sums.weight, spectra<double>({batches}, shape.volume), false);
  each.weights = repeated.weights;
  for (auto* gradients : {&sums, &each}) {
    const auto& poses = gradients == &sums ? shared.poses : repeated.poses;
    gradients->projections = zero_like(shared.projections);
    gradients->projection_weights = spectra<double>({batches, pose_count}, shape.image);
    gradients->matrices = zero_like(poses.matrices);
    gradients->shifts = zero_like(poses.shifts);
    shared.operators.backproject_gradients(shared.projections, poses, *gradients, shared.options);
  }
  CHECK(sums.projections.values == each.projections.values);
  CHECK(sums.projection_weights.values == each.projection_weights.values);
  CHECK(relative_error(sums.matrices, sum(each.matrices, sums.matrices)) < 1e-13);
  CHECK(relative_error(sums.shifts, sum(each.shifts, sums.shifts)) < 1e-13);
}
