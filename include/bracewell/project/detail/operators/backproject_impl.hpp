// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/insertion/insertion.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/detail/sampling/sampling.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <type_traits>

namespace Bracewell::Impl {

// Doors are `cold`: their time is that of the kernels that they launch, and small code is compiled faster.

template <class Kernel, int M, int D, class ExecutionSpace, class T, class Memory, class Target>
[[gnu::cold]] void
backproject(const ExecutionSpace& space,
            const std::type_identity_t<Array<const Kokkos::complex<T>, Memory>>& projections,
            const Poses<T, Memory>& poses, const Target& target, const ProjectionOptions& options) {
  Kokkos::Profiling::ScopedRegion region("Bracewell::backproject");
  const ProjectionArguments arguments{{"backproject"}};
  const auto samples =
      arguments.samples<M, D, Kernel>("data", target.data, "projections", projections, poses, options);
  Amplitudes<T, M, D, Mates::Both> amplitudes{.samples = samples, .values = projections.data};
  amplitudes.weights = arguments.weights(target, target.data, projections);
  arguments.disjoint({{"data", target.data}, {"weight", target.weight}, {"scratch", target.scratch}},
                     {{"projections", projections},
                      {"weights", target.weights},
                      {"poses.matrices", poses.matrices},
                      {"poses.shifts", poses.shifts},
                      {"poses.filters", poses.filters}});
  if (samples.none())
    return;

  const std::int64_t batches = target.data.extents[0];
  launch_insertion<Kernel>(
      space, arguments, "Bracewell::backproject",
      choose_insertion(insertion_work<Kernel>(space, samples, options.strategy)), amplitudes,
      InsertionTarget<T>{.data = target.data.data,
                         .weight = target.weight.data,
                         .batches = batches,
                         .batch_stride = batches == 1 ? 0 : samples.reconstruction.elements(),
                         .absolute = options.kernel_weights == KernelWeights::Absolute},
      target.scratch, [] {});
}

template <class Kernel, int M, int D, class ExecutionSpace, class Reference, class T, class Memory,
          class Gradients>
[[gnu::cold]] void
backproject_gradients(const ExecutionSpace& space, const Reference& data,
                      const std::type_identity_t<Array<const Kokkos::complex<T>, Memory>>& projections,
                      const Poses<T, Memory>& poses, const Gradients& gradients, ProjectionOptions options) {
  using Stored = typename Reference::Stored;
  Kokkos::Profiling::ScopedRegion region("Bracewell::backproject_gradients");
  const ProjectionArguments arguments{{"backproject_gradients"}};
  if (!options.oversampling)
    options.oversampling = data.oversampling;
  const auto samples =
      arguments.samples<M, D, Kernel>("data", data.shape, "projections", projections, poses, options);
  Amplitudes<T, M, D, Mates::Both> amplitudes{.samples = samples, .values = projections.data};
  amplitudes.weights = arguments.weights(gradients, data.shape, projections);
  arguments.same_if_given("projections", gradients.projections, projections);
  if (gradients.projection_weights && !gradients.weight)
    fail(arguments.function, "projection_weights", "a cotangent of the weight volume", "none");
  arguments.same_if_given("projection_weights", gradients.projection_weights, projections);
  arguments.same_if_given("matrices", gradients.matrices, poses.matrices);
  arguments.same_if_given("shifts", gradients.shifts, poses.shifts);
  arguments.disjoint({{"projections", gradients.projections},
                      {"projection_weights", gradients.projection_weights},
                      {"matrices", gradients.matrices},
                      {"shifts", gradients.shifts}},
                     {data.memory,
                      {"weight", gradients.weight},
                      {"weights", gradients.weights},
                      {"projections (input)", projections},
                      {"poses.matrices", poses.matrices},
                      {"poses.shifts", poses.shifts},
                      {"poses.filters", poses.filters}});
  arguments.require(gradients.projections || gradients.projection_weights || gradients.matrices ||
                        gradients.shifts,
                    "gradients", "at least one output", "none");
  auto work = sampling_work<ExecutionSpace>(arguments, samples, data);
  work.pose_gradients = gradients.matrices || gradients.shifts;
  set_zero(space, "Bracewell::backproject_gradients::zero",
           std::array{reals(gradients.matrices), reals(gradients.shifts)});
  if (samples.none())
    return;

  const std::int64_t stride = data.shape.extents[0] == 1 ? 0 : samples.reconstruction.elements();
  const PoseGradients<T> of_poses{gradients.matrices.data, gradients.shifts.data,
                                  options.strategy == Strategy::Owned};
  launch_sampling(space, "Bracewell::backproject_gradients", choose_sampling(work), data.spectra,
                  Sampler<Kernel, T, M, D, Mates::Both, Stored>{
                      .amplitudes = amplitudes,
                      .weight_volumes = {gradients.weight.data, stride},
                      .absolute = options.kernel_weights == KernelWeights::Absolute,
                      .values = gradients.projections.data,
                      .weights = gradients.projection_weights.data},
                  of_poses);
}

} // namespace Bracewell::Impl
