// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/project/detail/insertion.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/detail/sampling.hpp>
#include <bracewell/project/options.hpp>
#include <bracewell/project/poses.hpp>
#include <bracewell/project/prepared_reference.hpp>
#include <bracewell/project/spectra_array.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// What backproject adds to, images (D = 2) or volumes, and the weights that go into the weight volume.
template <class T, class MemorySpace, int D>
struct Backprojection {
  SpectraArray<Kokkos::complex<T>, MemorySpace, D> data; ///< [B|1, (D,) H, W/2+1], added to
  Array<T, MemorySpace> weight = {};                     ///< like data, added to; given together with weights
  Array<const T, MemorySpace> weights = {}; ///< real [B|1, P|1, (d,) h, w/2+1], for instance CTF^2
  Array<T, MemorySpace> scratch =
      {}; ///< only for Strategy::Duplicated: scratch_size(space, strategy, elements, weight)
};

/// The Backprojection that fits projections of a type, for operators that run on ExecutionSpace.
template <class ExecutionSpace, class Projections, int D>
using BackprojectionFor =
    Backprojection<Impl::real_of<Projections>, typename ExecutionSpace::memory_space, D>;

/// Cotangents of what backproject adds to, images (D = 2) or volumes, and the outputs of
/// backproject_gradients, overwritten; what is left out is not computed.
template <class T, class MemorySpace, int D>
struct BackprojectGradients {
  SpectraArray<const Kokkos::complex<T>, MemorySpace, D> data = {}; ///< cotangent [B|1, (D,) H, W/2+1]
  Array<const T, MemorySpace> weight = {};  ///< cotangent, like data; given together with weights
  Array<const T, MemorySpace> weights = {}; ///< as given to backproject
  Array<Kokkos::complex<T>, MemorySpace> projections = {}; ///< [B, P, ...]
  Array<T, MemorySpace> projection_weights = {};           ///< gradient of weights, [B, P, ...]
  Array<T, MemorySpace> matrices = {};                     ///< like poses.matrices
  Array<T, MemorySpace> shifts = {};                       ///< like poses.shifts
};

/// The BackprojectGradients that fit projections of a type, for operators that run on ExecutionSpace.
template <class ExecutionSpace, class Projections, int D>
using BackprojectGradientsFor =
    BackprojectGradients<Impl::real_of<Projections>, typename ExecutionSpace::memory_space, D>;

namespace Impl {

// Doors are `cold`: their time is that of the kernels that they launch, and small code is compiled faster.

template <class ExecutionSpace, class Projections>
using ProjectionsArray =
    Array<const Kokkos::complex<real_of<Projections>>, typename ExecutionSpace::memory_space>;

template <class Kernel, int M, int D, class ExecutionSpace, class T, class MemorySpace>
[[gnu::cold]] void
backproject(const ExecutionSpace& space, const Array<const Kokkos::complex<T>, MemorySpace>& projections,
            const Poses<T, MemorySpace>& poses, const Backprojection<T, MemorySpace, D>& target,
            const ProjectionOptions& options) {
  Kokkos::Profiling::ScopedRegion region("Bracewell::backproject");
  const ProjectionArguments arguments{{"backproject"}};
  const auto samples =
      arguments.samples<M, D>("data", target.data, "projections", projections, poses, options);
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

template <class Kernel, int M, int D, class ExecutionSpace, class Reference, class T, class MemorySpace>
[[gnu::cold]] void backproject_gradients(const ExecutionSpace& space, const Reference& data,
                                         const Array<const Kokkos::complex<T>, MemorySpace>& projections,
                                         const Poses<T, MemorySpace>& poses,
                                         const BackprojectGradients<T, MemorySpace, D>& gradients,
                                         ProjectionOptions options) {
  using Stored = typename Reference::Stored;
  Kokkos::Profiling::ScopedRegion region("Bracewell::backproject_gradients");
  const ProjectionArguments arguments{{"backproject_gradients"}};
  if (!options.oversampling)
    options.oversampling = data.oversampling;
  const auto samples =
      arguments.samples<M, D>("data", data.shape, "projections", projections, poses, options);
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
  auto work = sampling_work<Kernel, ExecutionSpace>(arguments, samples, data);
  work.values = bool(gradients.projections);
  work.weights = bool(gradients.projection_weights);
  work.pose_gradients = gradients.matrices || gradients.shifts;
  set_zero(space, "Bracewell::backproject_gradients::zero",
           std::array{reals(gradients.matrices), reals(gradients.shifts)});
  if (samples.none())
    return;

  const std::int64_t stride = data.shape.extents[0] == 1 ? 0 : samples.reconstruction.elements();
  const PoseGradients<T> of_poses{gradients.matrices.data, gradients.shifts.data,
                                  options.strategy == Strategy::Owned};
  launch_sampling(space, "Bracewell::backproject_gradients", choose_sampling(work), data.spectra,
                  SampleTiles<Kernel, T, M, D, Mates::Both, Stored>{
                      .amplitudes = amplitudes,
                      .weight_volumes = {gradients.weight.data, stride},
                      .absolute = options.kernel_weights == KernelWeights::Absolute,
                      .values = gradients.projections.data,
                      .weights = gradients.projection_weights.data},
                  of_poses);
}

template <class Kernel, int M, int D, class ExecutionSpace, class T, class MemorySpace>
[[gnu::cold]] void backproject_gradients(const ExecutionSpace& space,
                                         const Array<const Kokkos::complex<T>, MemorySpace>& projections,
                                         const Poses<T, MemorySpace>& poses,
                                         const BackprojectGradients<T, MemorySpace, D>& gradients,
                                         const ProjectionOptions& options) {
  backproject_gradients<Kernel, M, D>(space,
                                      reference_to<Kokkos::complex<T>, MemorySpace>("data", gradients.data),
                                      projections, poses, gradients, options);
}

} // namespace Impl

/// Adjoint of `project` in the inner product over the full Hermitian spectrum: <project V, P> = <V,
/// backproject P> with every stored element counted as often as it stands for (twice, except on self-mated
/// columns). Each stored sample adds half its multiplicity times P(k) exp(+2 pi i k.s / n) at M (oversampling
/// k) and its conjugate at the opposite point; the stored half is kept. Weights go the same way, without
/// phase, into a real weight volume, so that data / weight estimates the reconstruction: `normalise`.
///
/// To reconstruct from images as they are (not padded), oversample 1.5 to 1.7 times with the default kernel
/// and leave normalise's floor as it is: beyond 1.75 samples lie so far apart near zero frequency that signed
/// weights cancel there, however many images there are. With fewer than a hundred images take Linear, which
/// has no negative weights. Error of the map of a molecule from noise-free images of 64 pixels, defaults of
/// normalise:
///
///     images                30     200    1000   5000
///     CatmullRom, 1.5       0.31   0.035  0.023  0.022
///     CatmullRom, 1.6875    0.38   0.038  0.014  0.014
///     CatmullRom, 2         0.60   0.18   0.16   0.16
///     Linear, 1.5           0.22   0.047  0.037  0.036
///     Linear, 1.6875        0.24   0.036  0.027  0.026
///     Linear, 2             0.29   0.039  0.028  0.027
///
/// @param projections  complex [B, P, (d,) h, w/2+1]
/// @param poses        matrices and shifts, see Poses
/// @param target       volumes that are added to: data complex, weight real, [B|1, (D,) H, W/2+1]; weights
/// [B|1, P|1, (d,) h, w/2+1]
/// @throws Error on shapes that do not fit, shared memory, or options out of range; nothing is written then.
/// Poses that are not finite add nothing; nor do samples and shifts as far out as project's docstring says.
template <class Kernel = CatmullRom, class ExecutionSpace, class Projections>
void backproject(const ExecutionSpace& space, const Projections& projections,
                 const PosesFor<ExecutionSpace, Projections>& poses,
                 const BackprojectionFor<ExecutionSpace, Projections, 3>& target,
                 const ProjectionOptions& options = {}) {
  constexpr int M = int(Impl::view_of<Projections>::rank()) - 2;
  constexpr bool kernel = Impl::is_kernel<Kernel>, spectrum = Impl::is_complex<Projections>,
                 rank = M == 2 || M == 3;
  static_assert(kernel, "Bracewell::backproject: Kernel: expected Linear, CatmullRom or CubicBSpline, found "
                        "another type (precision is that of the Views).");
  static_assert(spectrum,
                "Bracewell::backproject: projections: expected a View of Kokkos::complex, found another "
                "type of values.");
  static_assert(rank, "Bracewell::backproject: expected projections [B, P, h, w/2+1] or "
                      "[B, P, d, h, w/2+1], found another number of axes.");
  if constexpr (kernel && spectrum && rank)
    Impl::backproject<Kernel, M, 3>(space, Impl::ProjectionsArray<ExecutionSpace, Projections>(projections),
                                    poses, target, options);
}

/// The same of images: projections [B, P, h, w/2+1], data [B|1, H, W/2+1].
template <class Kernel = CatmullRom, class ExecutionSpace, class Projections>
void backproject(const ExecutionSpace& space, const Projections& projections,
                 const PosesFor<ExecutionSpace, Projections>& poses,
                 const BackprojectionFor<ExecutionSpace, Projections, 2>& target,
                 const ProjectionOptions& options = {}) {
  constexpr int M = int(Impl::view_of<Projections>::rank()) - 2;
  constexpr bool kernel = Impl::is_kernel<Kernel>, spectrum = Impl::is_complex<Projections>, rank = M == 2;
  static_assert(kernel, "Bracewell::backproject: Kernel: expected Linear, CatmullRom or CubicBSpline, found "
                        "another type (precision is that of the Views).");
  static_assert(spectrum,
                "Bracewell::backproject: projections: expected a View of Kokkos::complex, found another "
                "type of values.");
  static_assert(rank, "Bracewell::backproject: expected projections [B, P, h, w/2+1] of images "
                      "[B, H, W/2+1], found another number of axes.");
  if constexpr (kernel && spectrum && rank)
    Impl::backproject<Kernel, M, 2>(space, Impl::ProjectionsArray<ExecutionSpace, Projections>(projections),
                                    poses, target, options);
}

/// Exact derivatives of a loss with respect to what `backproject` reads, from the cotangents of data and
/// weight. A matrix or shift shared over batches or poses gets the sum; the gradient of broadcast weights is
/// given per projection.
///
/// @param projections  complex [B, P, (d,) h, w/2+1], as given to backproject
/// @throws Error as backproject does, and where nothing is asked for
template <class Kernel = CatmullRom, class ExecutionSpace, class Projections>
void backproject_gradients(const ExecutionSpace& space, const Projections& projections,
                           const PosesFor<ExecutionSpace, Projections>& poses,
                           const BackprojectGradientsFor<ExecutionSpace, Projections, 3>& gradients,
                           const ProjectionOptions& options = {}) {
  constexpr int M = int(Impl::view_of<Projections>::rank()) - 2;
  constexpr bool kernel = Impl::is_kernel<Kernel>, spectrum = Impl::is_complex<Projections>,
                 rank = M == 2 || M == 3;
  static_assert(
      kernel, "Bracewell::backproject_gradients: Kernel: expected Linear, CatmullRom or CubicBSpline, found "
              "another type (precision is that of the Views).");
  static_assert(
      spectrum,
      "Bracewell::backproject_gradients: projections: expected a View of Kokkos::complex, found another "
      "type of values.");
  static_assert(rank, "Bracewell::backproject_gradients: expected projections [B, P, h, w/2+1] or "
                      "[B, P, d, h, w/2+1], found another number of axes.");
  if constexpr (kernel && spectrum && rank)
    Impl::backproject_gradients<Kernel, M, 3>(
        space, Impl::ProjectionsArray<ExecutionSpace, Projections>(projections), poses, gradients, options);
}

/// The same of images: projections [B, P, h, w/2+1], data [B|1, H, W/2+1].
template <class Kernel = CatmullRom, class ExecutionSpace, class Projections>
void backproject_gradients(const ExecutionSpace& space, const Projections& projections,
                           const PosesFor<ExecutionSpace, Projections>& poses,
                           const BackprojectGradientsFor<ExecutionSpace, Projections, 2>& gradients,
                           const ProjectionOptions& options = {}) {
  constexpr int M = int(Impl::view_of<Projections>::rank()) - 2;
  constexpr bool kernel = Impl::is_kernel<Kernel>, spectrum = Impl::is_complex<Projections>, rank = M == 2;
  static_assert(
      kernel, "Bracewell::backproject_gradients: Kernel: expected Linear, CatmullRom or CubicBSpline, found "
              "another type (precision is that of the Views).");
  static_assert(
      spectrum,
      "Bracewell::backproject_gradients: projections: expected a View of Kokkos::complex, found another "
      "type of values.");
  static_assert(rank, "Bracewell::backproject_gradients: expected projections [B, P, h, w/2+1] of images "
                      "[B, H, W/2+1], found another number of axes.");
  if constexpr (kernel && spectrum && rank)
    Impl::backproject_gradients<Kernel, M, 2>(
        space, Impl::ProjectionsArray<ExecutionSpace, Projections>(projections), poses, gradients, options);
}

/// The same where the cotangent of data was prepared for ReadBy::BackprojectGradients, and for its kernel;
/// gradients.data is left out.
template <class ExecutionSpace, class Projections, class Kernel, int D, class Stored>
void backproject_gradients(const ExecutionSpace& space, const Projections& projections,
                           const PosesFor<ExecutionSpace, Projections>& poses,
                           const PreparedReference<Kernel, ExecutionSpace, D, Stored>& data,
                           const BackprojectGradientsFor<ExecutionSpace, Projections, D>& gradients,
                           const ProjectionOptions& options = {}) {
  constexpr int M = int(Impl::view_of<Projections>::rank()) - 2;
  constexpr bool ranks = Impl::is_complex<Projections> && (M == 2 || (M == 3 && D == 3));
  static_assert(ranks, "Bracewell::backproject_gradients: expected complex projections [B, P, h, w/2+1], or "
                       "[B, P, d, h, w/2+1] of volumes.");
  if constexpr (ranks) {
    Impl::Arguments{"backproject_gradients"}.require(!gradients.data, "gradients.data",
                                                     "none beside a prepared cotangent", "one");
    Impl::backproject_gradients<Kernel, M, D>(
        space, data.reference("backproject_gradients", "data", ReadBy::BackprojectGradients),
        Impl::ProjectionsArray<ExecutionSpace, Projections>(projections), poses, gradients, options);
  }
}

} // namespace Bracewell
