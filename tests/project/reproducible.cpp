// Strategy::Owned gives the same bits in every run, on every instance and with every number of threads.

#include "problems.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <cstdio>
#include <cstring>

using namespace Test;

namespace {

const std::vector<Shape> pairs{{"2D", {70, 81}, {33, 40}, 2},
                               {"3D to 2D", {36, 20, 40}, {19, 20}, 2},
                               {"3D", {21, 36, 40}, {9, 10, 11}, 2},
                               {"2D unbounded", {20, 20}, {16, 16}, 1, 20., Matrices::General, 5}};

template <class Value>
bool same_bits(const Tensor<Value>& a, const Tensor<Value>& b) {
  return a.size() == b.size() && std::memcmp(a.values.data(), b.values.data(), a.size() * sizeof(Value)) == 0;
}

/// Everything that Owned accumulates; `matrices` and `shifts` of one pose, which threads could share.
struct Result {
  Tensor<complex<double>> data, gradient;
  Tensor<double> weight, matrices, shifts;
};
Result owned(const Shape& shape, const std::string& kernel) {
  Problem<double> problem(shape, kernel, 2, 20);
  problem.options.strategy = Strategy::Owned;
  Result result{spectra<complex<double>>({1}, shape.volume), {}, spectra<double>({1}, shape.volume), {}, {}};
  problem.operators.backproject(problem.projections, problem.poses, result.data, result.weight,
                                problem.weights, problem.options);
  Operators<double>::ProjectGradients gradients;
  gradients.reconstruction = zero_like(problem.reconstruction);
  problem.operators.project_gradients(problem.reconstruction, problem.poses, problem.projections, gradients,
                                      problem.options);
  result.gradient = gradients.reconstruction;

  Problem<double> one(shape, kernel, 1, 1);
  one.options.strategy = Strategy::Owned;
  Operators<double>::ProjectGradients of_pose;
  of_pose.matrices = zero_like(one.poses.matrices);
  of_pose.shifts = zero_like(one.poses.shifts);
  one.operators.project_gradients(one.reconstruction, one.poses, one.projections, of_pose, one.options);
  result.matrices = of_pose.matrices;
  result.shifts = of_pose.shifts;
  return result;
}

/// FNV-1a over the bytes.
template <class Value>
void hash(const Tensor<Value>& tensor, std::uint64_t& state) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(tensor.values.data());
  for (std::size_t i = 0; i < tensor.size() * sizeof(Value); ++i)
    state = (state ^ bytes[i]) * 0x100000001b3;
}

} // namespace

TEST_CASE("Owned gives the same bits in every run") {
  const auto kernel = GENERATE(from_range(kernels()));
  const auto shape = GENERATE(from_range(pairs));
  CAPTURE(kernel, describe(shape));
  const Result first = owned(shape, kernel);
  CHECK(norm(first.data) > 0);
  CHECK(norm(first.matrices) > 0);
  for (int run = 0; run < 3; ++run) {
    const Result again = owned(shape, kernel);
    CHECK(same_bits(again.data, first.data));
    CHECK(same_bits(again.weight, first.weight));
    CHECK(same_bits(again.gradient, first.gradient));
    CHECK(same_bits(again.matrices, first.matrices));
    CHECK(same_bits(again.shifts, first.shifts));
  }
}

TEST_CASE("hash of what Owned gives", "[.hash]") { // run with several numbers of threads by a ctest
  std::uint64_t state = 0xcbf29ce484222325;
  for (const auto& kernel : kernels())
    for (const Shape& shape : pairs) {
      const Result result = owned(shape, kernel);
      hash(result.data, state);
      hash(result.weight, state);
      hash(result.gradient, state);
      hash(result.matrices, state);
      hash(result.shifts, state);
    }
  std::printf("threads %d hash %016llx\n", Kokkos::DefaultExecutionSpace().concurrency(),
              static_cast<unsigned long long>(state));
}
