// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/project/choose_insertion.hpp>
#include <bracewell/project/detail/sample_tiles.hpp>

namespace Bracewell {

/// What backproject adds to, and the weights that go into the weight volume.
template <class T, class MemorySpace>
struct Backprojection {
  Array<Kokkos::complex<T>, MemorySpace> data; ///< [B|1, (D,) H, W/2+1], added to
  Array<T, MemorySpace> weight = {};           ///< like data, added to; given together with weights
  Array<const T, MemorySpace> weights = {};    ///< real [B|1, P|1, (d,) h, w/2+1], for instance CTF^2
  Array<T, MemorySpace> scratch = {};          ///< only for Strategy::Duplicated (duplicated_scratch_size)
};

/// Cotangents of what backproject adds to, and the outputs of backproject_gradients; what is left out is not
/// computed.
template <class T, class MemorySpace>
struct BackprojectGradients {
  Array<const Kokkos::complex<T>, MemorySpace> data = {}; ///< cotangent [B|1, (D,) H, W/2+1]
  Array<const T, MemorySpace> weight = {};  ///< cotangent, like data; given together with weights
  Array<const T, MemorySpace> weights = {}; ///< as given to backproject
  Array<Kokkos::complex<T>, MemorySpace> projections = {}; ///< [B, P, ...], overwritten
  Array<T, MemorySpace> projection_weights = {};           ///< gradient of weights, [B, P, ...], overwritten
  Array<T, MemorySpace> matrices = {};                     ///< like poses.matrices, added to
  Array<T, MemorySpace> shifts = {};                       ///< like poses.shifts, added to
};

namespace Impl {

template <int M, int D, class Kernel, class ExecutionSpace, class T, class MemorySpace>
void backproject(const ExecutionSpace& space, const Array<const Kokkos::complex<T>, MemorySpace>& projections,
                 const Poses<T, MemorySpace>& poses, const Backprojection<T, MemorySpace>& target,
                 const ProjectionOptions& options) {
  const ProjectionArguments arguments{{"backproject"}};
  const auto samples =
      arguments.samples<M, D>("data", target.data, "projections", projections, poses, options);
  Amplitudes<T, M, D, Mates::Both> amplitudes{.samples = samples, .values = projections.data};
  arguments.require(bool(target.weight) == bool(target.weights), "weight", "weight and weights together",
                    "one without the other");
  if (target.weight) {
    arguments.same_spectrum("weight", target.weight, target.data);
    amplitudes.weights = arguments.per_projection("weights", target.weights, projections);
  }
  const NamedMemory outputs[] = {NamedMemory("data", target.data), NamedMemory("weight", target.weight),
                                 NamedMemory("scratch", target.scratch)};
  const NamedMemory inputs[] = {
      NamedMemory("projections", projections), NamedMemory("weights", target.weights),
      NamedMemory("poses.matrices", poses.matrices), NamedMemory("poses.shifts", poses.shifts),
      NamedMemory("poses.filters", poses.filters)};
  arguments.disjoint(outputs, inputs);
  const std::int64_t batches = target.data.extents[0];
  scatter<Kernel>(space, arguments, "Bracewell::backproject", options.strategy, amplitudes,
                  ScatterTarget<T>{.data = target.data.data,
                                   .weight = target.weight.data,
                                   .batches = batches,
                                   .batch_stride = batches == 1 ? 0 : samples.reconstruction.elements(),
                                   .absolute = options.kernel_weights == KernelWeights::Absolute},
                  target.scratch);
}

template <int M, int D, class Kernel, class ExecutionSpace, class T, class MemorySpace>
void backproject_gradients(const ExecutionSpace& space,
                           const Array<const Kokkos::complex<T>, MemorySpace>& projections,
                           const Poses<T, MemorySpace>& poses,
                           const BackprojectGradients<T, MemorySpace>& gradients,
                           const ProjectionOptions& options) {
  const ProjectionArguments arguments{{"backproject_gradients"}};
  const auto samples =
      arguments.samples<M, D>("data", gradients.data, "projections", projections, poses, options);
  Amplitudes<T, M, D, Mates::Both> amplitudes{.samples = samples, .values = projections.data};
  arguments.require(bool(gradients.weight) == bool(gradients.weights), "weight",
                    "weight and weights together", "one without the other");
  if (gradients.weight) {
    arguments.same_spectrum("weight", gradients.weight, gradients.data);
    amplitudes.weights = arguments.per_projection("weights", gradients.weights, projections);
  }
  if (gradients.projections)
    arguments.same_spectrum("projections", gradients.projections, projections);
  if (gradients.projection_weights) {
    arguments.require(bool(gradients.weight), "projection_weights", "a cotangent of the weight volume",
                      "none");
    arguments.same_spectrum("projection_weights", gradients.projection_weights, projections);
  }
  if (gradients.matrices)
    arguments.same_spectrum("matrices", gradients.matrices, poses.matrices);
  if (gradients.shifts)
    arguments.same_spectrum("shifts", gradients.shifts, poses.shifts);
  const NamedMemory outputs[] = {NamedMemory("projections", gradients.projections),
                                 NamedMemory("projection_weights", gradients.projection_weights),
                                 NamedMemory("matrices", gradients.matrices),
                                 NamedMemory("shifts", gradients.shifts)};
  const NamedMemory inputs[] = {
      NamedMemory("data", gradients.data),           NamedMemory("weight", gradients.weight),
      NamedMemory("weights", gradients.weights),     NamedMemory("projections (input)", projections),
      NamedMemory("poses.matrices", poses.matrices), NamedMemory("poses.shifts", poses.shifts),
      NamedMemory("poses.filters", poses.filters)};
  arguments.disjoint(outputs, inputs);
  if (!gradients.projections && !gradients.projection_weights && !gradients.matrices && !gradients.shifts)
    return;
  const std::int64_t stride = gradients.data.extents[0] == 1 ? 0 : samples.reconstruction.elements();
  launch_gather(
      space, "Bracewell::backproject_gradients",
      Gather<Kernel, T, M, D, Mates::Both>{.amplitudes = amplitudes,
                                           .volumes = {gradients.data.data, stride},
                                           .weight_volumes = {gradients.weight.data, stride},
                                           .absolute = options.kernel_weights == KernelWeights::Absolute,
                                           .values = gradients.projections.data,
                                           .weights = gradients.projection_weights.data},
      gradients.matrices.data, gradients.shifts.data);
}

/// Calls run.template operator()<M, D>() for the dimensions of projections [B, P, ...] and volumes [B, ...].
template <int M, class MemorySpace, class Value, class Run>
void with_dimensions(const ProjectionArguments& arguments, const Array<Value, MemorySpace>& data,
                     const Run& run) {
  if constexpr (M == 2) {
    if (data.rank == 3)
      return run.template operator()<2, 2>();
  }
  arguments.require(data.rank == 4, "data", M == 2 ? "[B, (D,) H, W/2+1]" : "[B, D, H, W/2+1]",
                    [&] { return data.shape(); });
  run.template operator()<M, 3>();
}

} // namespace Impl

/// Adjoint of `project` in the inner product over the full Hermitian spectrum: <project V, P> = <V,
/// backproject P> with every stored element counted as often as it stands for (twice, except on self-mated
/// columns). Each stored sample adds half its multiplicity times P(k) exp(+2 pi i k.s / n) at M (oversampling
/// k) and its conjugate at the opposite point; the stored half is kept. Weights go the same way, without
/// phase, into a real weight volume, so that data / weight estimates the reconstruction.
///
/// @param projections  complex [B, P, (d,) h, w/2+1]
/// @param poses        matrices and shifts, see Poses
/// @param target       volumes that are added to: data complex, weight real, [B|1, (D,) H, W/2+1]; weights
/// [B|1, P|1, (d,) h, w/2+1]
/// @throws Error on shapes that do not fit, shared memory, or options out of range; nothing is written then.
/// Poses that are not finite add nothing; nor do samples and shifts as far out as project's docstring says.
template <class Kernel = CatmullRom, class ExecutionSpace, class Projections>
void backproject(
    const ExecutionSpace& space, const Projections& projections,
    const Poses<Impl::real_of<Projections>, typename ExecutionSpace::memory_space>& poses,
    const Backprojection<Impl::real_of<Projections>, typename ExecutionSpace::memory_space>& target,
    const ProjectionOptions& options = {}) {
  constexpr int M = int(Impl::view_of<Projections>::rank()) - 2;
  static_assert(M == 2 || M == 3,
                "Bracewell::backproject: expected projections [B, P, h, w/2+1] or [B, P, d, h, w/2+1].");
  const Array<const Kokkos::complex<Impl::real_of<Projections>>, typename ExecutionSpace::memory_space> input(
      projections);
  Impl::with_dimensions<M>({{"backproject"}}, target.data, [&]<int m, int D>() {
    Impl::backproject<m, D, Kernel>(space, input, poses, target, options);
  });
}

/// Exact derivatives of a loss with respect to what `backproject` reads, from the cotangents of data and
/// weight. A matrix or shift shared over batches or poses gets the sum; the gradient of broadcast weights is
/// given per projection.
///
/// @param projections  complex [B, P, (d,) h, w/2+1], as given to backproject
/// @throws Error as backproject does
template <class Kernel = CatmullRom, class ExecutionSpace, class Projections>
void backproject_gradients(
    const ExecutionSpace& space, const Projections& projections,
    const Poses<Impl::real_of<Projections>, typename ExecutionSpace::memory_space>& poses,
    const BackprojectGradients<Impl::real_of<Projections>, typename ExecutionSpace::memory_space>& gradients,
    const ProjectionOptions& options = {}) {
  constexpr int M = int(Impl::view_of<Projections>::rank()) - 2;
  static_assert(
      M == 2 || M == 3,
      "Bracewell::backproject_gradients: expected projections [B, P, h, w/2+1] or [B, P, d, h, w/2+1].");
  const Array<const Kokkos::complex<Impl::real_of<Projections>>, typename ExecutionSpace::memory_space> input(
      projections);
  Impl::with_dimensions<M>({{"backproject_gradients"}}, gradients.data, [&]<int m, int D>() {
    Impl::backproject_gradients<m, D, Kernel>(space, input, poses, gradients, options);
  });
}

} // namespace Bracewell
