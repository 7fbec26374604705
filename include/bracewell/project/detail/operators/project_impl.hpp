// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/insertion/insertion.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/detail/sampling/sampling.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <type_traits>

namespace Bracewell::Impl {

/// What operators on ExecutionSpace read of a View.
template <class ExecutionSpace, class Reconstruction>
auto reconstruction_of(const Reconstruction& reconstruction) {
  return reference_to(
      "reconstruction",
      Array<const spectrum_value_of<Reconstruction>, typename ExecutionSpace::memory_space>(reconstruction));
}

// Doors are `cold`: their time is that of the kernels that they launch, and small code is compiled faster.

template <class Kernel, int M, int D, class ExecutionSpace, class Reference, class T, class Memory>
[[gnu::cold]] void
project(const ExecutionSpace& space, const Reference& reference, const Poses<T, Memory>& poses,
        const std::type_identity_t<Array<Kokkos::complex<T>, Memory>>& output, ProjectionOptions options) {
  using Stored = typename Reference::Stored;
  Kokkos::Profiling::ScopedRegion region("Bracewell::project");
  const ProjectionArguments arguments{{"project"}};
  if (!options.oversampling)
    options.oversampling = reference.oversampling;
  const auto samples = arguments.samples<M, D, Kernel>("reconstruction", reference.shape, "projections",
                                                       output, poses, options);
  arguments.disjoint({{"projections", output}}, {reference.memory,
                                                 {"poses.matrices", poses.matrices},
                                                 {"poses.shifts", poses.shifts},
                                                 {"poses.filters", poses.filters}});
  if (samples.none())
    return;
  const auto work = sampling_work<ExecutionSpace>(arguments, samples, reference);
  launch_sampling(space, "Bracewell::project", choose_sampling(work), reference.spectra,
                  Sampler<Kernel, T, M, D, Mates::Single, Stored>{.amplitudes = {.samples = samples},
                                                                  .values = output.data},
                  SamplesAlone());
}

template <class Kernel, int M, int D, class ExecutionSpace, class Reference, class T, class Memory,
          class Gradients>
[[gnu::cold]] void
project_gradients(const ExecutionSpace& space, const Reference& reference, const Poses<T, Memory>& poses,
                  const std::type_identity_t<Array<const Kokkos::complex<T>, Memory>>& slopes,
                  const Gradients& gradients, ProjectionOptions options) {
  using Stored = typename Reference::Stored;
  Kokkos::Profiling::ScopedRegion region("Bracewell::project_gradients");
  const ProjectionArguments arguments{{"project_gradients"}};
  if (!options.oversampling)
    options.oversampling = reference.oversampling;
  const auto samples =
      arguments.samples<M, D, Kernel>("reconstruction", reference.shape, "cotangent", slopes, poses, options);
  arguments.require(gradients.projections || gradients.reconstruction || gradients.matrices ||
                        gradients.shifts,
                    "gradients", "at least one output", "none");
  arguments.same_if_given("gradients.projections", gradients.projections, slopes);
  arguments.same_if_given("gradients.reconstruction", gradients.reconstruction, reference.shape);
  arguments.same_if_given("gradients.matrices", gradients.matrices, poses.matrices);
  arguments.same_if_given("gradients.shifts", gradients.shifts, poses.shifts);
  arguments.disjoint({{"gradients.projections", gradients.projections},
                      {"gradients.reconstruction", gradients.reconstruction},
                      {"gradients.matrices", gradients.matrices},
                      {"gradients.shifts", gradients.shifts},
                      {"scratch", gradients.scratch}},
                     {reference.memory,
                      {"cotangent", slopes},
                      {"poses.matrices", poses.matrices},
                      {"poses.shifts", poses.shifts},
                      {"poses.filters", poses.filters}});
  auto work = sampling_work<ExecutionSpace>(arguments, samples, reference);
  work.pose_gradients = gradients.matrices || gradients.shifts;
  const auto clear = [&] {
    set_zero(space, "Bracewell::project_gradients::zero",
             std::array{reals(gradients.reconstruction), reals(gradients.matrices), reals(gradients.shifts)});
  };
  if (samples.none())
    return clear();

  const std::int64_t spectra = reference.shape.extents[0],
                     stride = spectra == 1 ? 0 : samples.reconstruction.elements();
  const Amplitudes<T, M, D, Mates::Single> amplitudes{
      .samples = samples, .values = slopes.data, .skip_redundant = options.skip_redundant};
  if (gradients.reconstruction)
    launch_insertion<Kernel>(
        space, arguments, "Bracewell::project_gradients::reconstruction",
        choose_insertion(insertion_work<Kernel>(space, samples, options.strategy)), amplitudes,
        InsertionTarget<T>{.data = gradients.reconstruction.data, .batches = spectra, .batch_stride = stride},
        gradients.scratch, clear);
  else
    clear();
  if (gradients.projections || work.pose_gradients)
    launch_sampling(space, "Bracewell::project_gradients", choose_sampling(work), reference.spectra,
                    Sampler<Kernel, T, M, D, Mates::Single, Stored>{.amplitudes = amplitudes,
                                                                    .values = gradients.projections.data},
                    PoseGradients<T>{gradients.matrices.data, gradients.shifts.data,
                                     options.strategy == Strategy::Owned});
}

} // namespace Bracewell::Impl
