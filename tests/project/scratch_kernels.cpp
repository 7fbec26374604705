// The kernels of GPUs that work in scratch memory, on GPUs and on hosts, for problems of all kinds: against
// the definition.

#include "../deep_copy.hpp"
#include "problems.hpp"

#include <bracewell/project/detail/insertion/insert_owned_gpu.hpp>
#include <bracewell/project/detail/insertion/insert_patches.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/detail/sampling/sample_padded.hpp>
#include <bracewell/project/project.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>

using namespace Test;
using Bracewell::Impl::Mates;

namespace {

using Space = Kokkos::DefaultExecutionSpace;

/// A tensor of the host and its copy where the kernels run.
template <class Value>
struct Copy {
  Tensor<Value>& tensor;
  Kokkos::View<Value*, Space> values;

  explicit Copy(Tensor<Value>& source)
      : tensor(source), values(Kokkos::view_alloc("copy", Kokkos::WithoutInitializing), source.size()) {
    Test::deep_copy(values, host());
  }
  explicit Copy(const Tensor<Value>& source) : Copy(const_cast<Tensor<Value>&>(source)) {}

  void fetch() { Test::deep_copy(host(), values); }

  template <class Element = Value>
  Bracewell::Array<Element, Space::memory_space> array() const {
    Bracewell::Array<Element, Space::memory_space> result;
    result.data = values.data();
    result.given = true;
    result.rank = static_cast<int>(tensor.extents.size());
    std::copy(tensor.extents.begin(), tensor.extents.end(), result.extents);
    result.width = tensor.width;
    result.states_width = true;
    result.given = true;
    return result;
  }

private:
  auto host() const {
    return Kokkos::View<Value*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(tensor.values.data(),
                                                                            tensor.size());
  }
};

/// What every kernel reads.
struct Inputs {
  Copy<complex<double>> volume, images;
  Copy<double> weights, matrices, shifts;
  const Bracewell::ProjectionOptions& options;

  explicit Inputs(const Problem<double>& problem)
      : volume(problem.reconstruction), images(problem.projections), weights(problem.weights),
        matrices(problem.poses.matrices), shifts(problem.poses.shifts), options(problem.options) {}

  template <int M, int D>
  auto samples() const {
    return Bracewell::Impl::ProjectionArguments{{"test"}}.samples<M, D>(
        "volume", volume.array<const complex<double>>(), "projections", images.array<const complex<double>>(),
        Bracewell::Poses<double, Space::memory_space>{matrices.array<const double>(),
                                                      shifts.array<const double>()},
        options);
  }
};

enum class Way { Owned, Patches };

/// Back-projection into data and weight, or with Mates::Single the gradient of the reconstruction.
template <class Kernel, int M, int D, Mates mates>
void scatter(Way way, const Problem<double>& problem, Tensor<complex<double>>& data, Tensor<double>* weight,
             bool absolute) {
  using namespace Bracewell::Impl;
  const Inputs inputs(problem);
  const auto samples = inputs.samples<M, D>();
  Copy<complex<double>> sums(data);
  Tensor<double> none({1});
  Copy<double> weight_sums(weight ? *weight : none);
  Amplitudes<double, M, D, mates> amplitudes{.samples = samples, .values = inputs.images.values.data()};
  InsertionTarget<double> target{.data = sums.values.data(),
                                 .batches = samples.batches,
                                 .batch_stride = samples.reconstruction.elements(),
                                 .absolute = absolute};
  if (weight) {
    amplitudes.weights = ProjectionArguments{{"test"}}.per_projection(
        "weights", inputs.weights.array<const double>(), inputs.images.array<const complex<double>>());
    target.weight = weight_sums.values.data();
  }
  const Space space;
  if (way == Way::Owned)
    InsertOwnedGpu<Space, Kernel, double, M, D, mates>(amplitudes, target).launch(space, "insert_owned");
  else if constexpr (M == 2)
    InsertPatches<Space, Kernel, Amplitudes<double, 2, D, mates>, mates == Mates::Both>(space, amplitudes,
                                                                                        target)
        .launch(space, "insert_patches");
  sums.fetch();
  weight_sums.fetch();
}

/// Projections of images and volumes from padded copies.
template <class Kernel, int M, int D>
Tensor<complex<double>> gather_padded(const Problem<double>& problem) {
  using namespace Bracewell::Impl;
  const Inputs inputs(problem);
  const auto samples = inputs.samples<M, D>();
  const auto& layout = samples.reconstruction;
  auto result = zero_like(problem.projections);
  Copy<complex<double>> images(result);
  const Space space;
  using Order = PaddedOrder<complex<double>, D, Kernel::width>;
  const Kokkos::View<typename Order::Entry*, Space> entries("entries", samples.batches * Order(layout).size);
  const PaddedSpectra<complex<double>, D, Kernel::width> copies{entries.data(), Order(layout), false};
  copy_to_padded<Mates::Single>(
      space, "copy", layout, StoredSpectra<complex<double>>{inputs.volume.values.data(), layout.elements()},
      samples.batches, copies);
  SamplePadded<Kernel, double, M, D, Mates::Single, complex<double>>(samples, copies, images.values.data())
      .launch(space, "gather_padded");
  images.fetch();
  return result;
}

template <class Kernel, int M, int D>
void check(Way way, const Shape& shape) {
  const Problem<double> problem(shape, Kernel::name, 1, 2);
  const double rounding = 1e-12 * std::max(1., shape.scale);
  for (const bool absolute : {false, true}) {
    auto data = zero_like(problem.reconstruction), expected = data;
    auto weight = spectra<double>({1}, shape.volume), expected_weight = weight;
    scatter<Kernel, M, D, Mates::Both>(way, problem, data, &weight, absolute);
    problem.reference_backprojections(absolute, expected, expected_weight);
    CHECK(relative_error(data, expected) < rounding);
    CHECK(relative_error(weight, expected_weight) < rounding);
  }
  // The gradient of the reconstruction is the transpose of project, by definition.
  auto gradient = zero_like(problem.reconstruction);
  scatter<Kernel, M, D, Mates::Single>(way, problem, gradient, nullptr, false);
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

TEMPLATE_TEST_CASE("padded copies give the projections of the definition", "", Bracewell::Linear,
                   Bracewell::CatmullRom) {
  const auto shape = GENERATE(from_range(shapes()));
  CAPTURE(describe(shape));
  const Problem<double> problem(shape, TestType::name, 2, 3);
  const auto projections = shape.volume.size() == 2  ? gather_padded<TestType, 2, 2>(problem)
                           : shape.image.size() == 2 ? gather_padded<TestType, 2, 3>(problem)
                                                     : gather_padded<TestType, 3, 3>(problem);
  CHECK(relative_error(projections, problem.reference_projections()) < 1e-12 * std::max(1., shape.scale));
}

TEMPLATE_TEST_CASE("elements gather what the definition scatters", "", Bracewell::Linear,
                   Bracewell::CatmullRom, Bracewell::CubicBSpline) {
  const auto shape = GENERATE(from_range(shapes()));
  CAPTURE(describe(shape));
  if (shape.volume.size() == 2)
    check<TestType, 2, 2>(Way::Owned, shape);
  else if (shape.image.size() == 2)
    check<TestType, 2, 3>(Way::Owned, shape);
  else
    check<TestType, 3, 3>(Way::Owned, shape);
}

TEST_CASE("owned bricks that no sample reaches are not written") {
  const auto shape = GENERATE(from_range(shapes()));
  if (shape.image.size() != 2)
    return;
  CAPTURE(describe(shape));
  Problem<double> problem(shape, "catmull_rom", 1, 1);
  problem.poses.matrices[0] = NAN;
  auto data = zero_like(problem.reconstruction);
  for (auto& value : data.values)
    value = complex<double>(-0., -0.); // which adding zero would change
  constexpr auto both = Bracewell::Impl::Mates::Both;
  if (shape.volume.size() == 2)
    scatter<Bracewell::CatmullRom, 2, 2, both>(Way::Owned, problem, data, nullptr, false);
  else
    scatter<Bracewell::CatmullRom, 2, 3, both>(Way::Owned, problem, data, nullptr, false);
  CHECK(std::all_of(data.values.begin(), data.values.end(), [](const complex<double>& value) {
    return std::signbit(value.real()) && std::signbit(value.imag());
  }));
}

TEMPLATE_TEST_CASE("patches of samples add what the definition scatters", "", Bracewell::Linear,
                   Bracewell::CatmullRom) {
  const auto shape = GENERATE(from_range(shapes()));
  if (shape.image.size() != 2)
    return;
  CAPTURE(describe(shape));
  if (shape.volume.size() == 2)
    check<TestType, 2, 2>(Way::Patches, shape);
  else
    check<TestType, 2, 3>(Way::Patches, shape);
}
