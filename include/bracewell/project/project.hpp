// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/project/detail/insertion.hpp>
#include <bracewell/project/detail/problem.hpp>
#include <bracewell/project/detail/sampling.hpp>
#include <bracewell/project/memory.hpp>
#include <bracewell/project/options.hpp>
#include <bracewell/project/poses.hpp>
#include <bracewell/project/prepared_reference.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// Outputs of project_gradients, overwritten; what is left out is not computed.
template <class T, class MemorySpace>
struct ProjectGradients {
  Array<Kokkos::complex<T>, MemorySpace> projections = {};    ///< [B, P, ...] the values themselves
  Array<Kokkos::complex<T>, MemorySpace> reconstruction = {}; ///< like the reconstruction
  Array<T, MemorySpace> matrices = {};                        ///< like poses.matrices
  Array<T, MemorySpace> shifts = {};                          ///< like poses.shifts
  Array<T, MemorySpace> scratch =
      {}; ///< only for Strategy::Duplicated: scratch_size(space, strategy, elements, weight)
};

/// The ProjectGradients that fit a reconstruction of a type, for operators that run on ExecutionSpace.
template <class ExecutionSpace, class Reconstruction>
using ProjectGradientsFor =
    ProjectGradients<Impl::real_of<Reconstruction>, typename ExecutionSpace::memory_space>;

namespace Impl {

// Doors are `cold`: their time is that of the kernels that they launch, and small code is compiled faster.

template <class Kernel, int M, int D, class ExecutionSpace, class Reference, class T, class Memory>
[[gnu::cold]] void project(const ExecutionSpace& space, const Reference& reference,
                           const Poses<T, Memory>& poses, const Array<Kokkos::complex<T>, Memory>& output,
                           ProjectionOptions options) {
  using Stored = typename Reference::Stored;
  Kokkos::Profiling::ScopedRegion region("Bracewell::project");
  const ProjectionArguments arguments{{"project"}};
  if (!options.oversampling)
    options.oversampling = reference.oversampling;
  const auto samples =
      arguments.samples<M, D>("reconstruction", reference.shape, "projections", output, poses, options);
  arguments.disjoint({{"projections", output}}, {reference.memory,
                                                 {"poses.matrices", poses.matrices},
                                                 {"poses.shifts", poses.shifts},
                                                 {"poses.filters", poses.filters}});
  if (samples.none())
    return;
  const auto work = sampling_work<Kernel, ExecutionSpace>(arguments, samples, reference);
  launch_sampling(space, "Bracewell::project", choose_sampling(work), reference.spectra,
                  SampleTiles<Kernel, T, M, D, Mates::Single, Stored>{.amplitudes = {.samples = samples},
                                                                      .values = output.data},
                  SamplesAlone());
}

template <class Kernel, int M, int D, class ExecutionSpace, class Reference, class T, class Memory>
[[gnu::cold]] void
project_gradients(const ExecutionSpace& space, const Reference& reference, const Poses<T, Memory>& poses,
                  const Array<const Kokkos::complex<T>, Memory>& slopes,
                  const ProjectGradients<T, Memory>& gradients, ProjectionOptions options) {
  using Stored = typename Reference::Stored;
  Kokkos::Profiling::ScopedRegion region("Bracewell::project_gradients");
  const ProjectionArguments arguments{{"project_gradients"}};
  if (!options.oversampling)
    options.oversampling = reference.oversampling;
  const auto samples =
      arguments.samples<M, D>("reconstruction", reference.shape, "cotangent", slopes, poses, options);
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
  auto work = sampling_work<Kernel, ExecutionSpace>(arguments, samples, reference);
  work.values = bool(gradients.projections);
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
  if (work.values || work.pose_gradients)
    launch_sampling(space, "Bracewell::project_gradients", choose_sampling(work), reference.spectra,
                    SampleTiles<Kernel, T, M, D, Mates::Single, Stored>{.amplitudes = amplitudes,
                                                                        .values = gradients.projections.data},
                    PoseGradients<T>{gradients.matrices.data, gradients.shifts.data,
                                     options.strategy == Strategy::Owned});
}

/// What operators on ExecutionSpace read of a View.
template <class ExecutionSpace, class Reconstruction>
auto reconstruction_of(const Reconstruction& reconstruction) {
  return reference_to(
      "reconstruction",
      Array<const spectrum_value_of<Reconstruction>, typename ExecutionSpace::memory_space>(reconstruction));
}

template <class Reconstruction>
inline constexpr int dimensions_of = int(view_of<Reconstruction>::rank()) - 1;

/// The types that project takes; false where they are others, after a sentence that says so.
template <class Kernel, class Reconstruction, int M>
constexpr bool check_project() {
  constexpr int D = dimensions_of<Reconstruction>;
  constexpr bool kernel = is_kernel<Kernel>, spectrum = is_spectrum<Reconstruction>,
                 ranks = (D == 2 && M == 2) || (D == 3 && (M == 2 || M == 3));
  static_assert(kernel,
                "Bracewell::project: Kernel: expected Linear, CatmullRom or CubicBSpline, found another "
                "type (precision is that of the Views).");
  static_assert(spectrum,
                "Bracewell::project: reconstruction: expected a View of Kokkos::complex or HalfComplex, "
                "found another type of values.");
  static_assert(
      ranks,
      "Bracewell::project: expected a reconstruction [B, H, W/2+1] with projections [B, P, h, w/2+1], or "
      "[B, D, H, W/2+1] with [B, P, h, w/2+1] or [B, P, d, h, w/2+1], found other numbers of axes.");
  return kernel && spectrum && ranks;
}

} // namespace Impl

/// Samples the transform of projections from that of a reconstruction: P(k) = F(M oversampling k) exp(-2 pi i
/// k.s / n) for every stored frequency k with |k| <= radius, zero elsewhere, where F is the reconstruction's
/// spectrum interpolated by Kernel. 2D -> 2D, 3D -> 2D (the projection-slice theorem, Bracewell 1956; k =
/// (kx, ky, 0)) or 3D -> 3D, as the ranks of the Views say.
///
/// @param space           instance that the kernel is queued on; the call does not wait
/// @param reconstruction  complex [B|1, (D,) H, W/2+1], half spectrum, zero frequency and real-space origin
/// at index 0; HalfComplex for float projections where memory counts
/// @param poses           matrices and shifts, see Poses
/// @param projections     complex [B, P, (d,) h, w/2+1], overwritten
/// @throws Error on shapes that do not fit, shared memory, or options out of range; nothing is written then.
/// Poses that are not finite give NaN projections, as do samples beyond 2^21 (float) or 2^50 (double)
/// elements from the origin, and shifts beyond 1e9 boxes: their fractions are lost.
template <class Kernel = CatmullRom, class ExecutionSpace, class Reconstruction, class Projections>
void project(const ExecutionSpace& space, const Reconstruction& reconstruction,
             const PosesFor<ExecutionSpace, Reconstruction>& poses, const Projections& projections,
             const ProjectionOptions& options = {}) {
  constexpr int M = int(Impl::view_of<Projections>::rank()) - 2;
  if constexpr (Impl::check_project<Kernel, Reconstruction, M>())
    Impl::project<Kernel, M, Impl::dimensions_of<Reconstruction>>(
        space, Impl::reconstruction_of<ExecutionSpace>(reconstruction), poses,
        Array<Kokkos::complex<Impl::real_of<Reconstruction>>, typename ExecutionSpace::memory_space>(
            projections),
        options);
}

/// The same from a reference that was prepared for its kernel (prepared_reference.hpp): on GPUs from the copies
/// of docs/internals/projection.md. Its oversampling is taken where options leave it out.
/// @throws Error as above, and on GPUs for 2^31 or more poses
template <class ExecutionSpace, class Kernel, int D, class Stored, class Projections>
void project(const ExecutionSpace& space,
             const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reconstruction,
             const Poses<Impl::real_of_stored<Stored>, typename ExecutionSpace::memory_space>& poses,
             const Projections& projections, const ProjectionOptions& options = {}) {
  constexpr int M = int(Impl::view_of<Projections>::rank()) - 2;
  constexpr bool ranks = (D == 2 && M == 2) || (D == 3 && (M == 2 || M == 3));
  static_assert(ranks,
                "Bracewell::project: expected images with projections [B, P, h, w/2+1], or volumes with "
                "[B, P, h, w/2+1] or [B, P, d, h, w/2+1], found other numbers of axes.");
  if constexpr (ranks)
    Impl::project<Kernel, M, D>(
        space, reconstruction.reference("project", "reconstruction"), poses,
        Array<Kokkos::complex<Impl::real_of_stored<Stored>>, typename ExecutionSpace::memory_space>(
            projections),
        options);
}

/// Exact derivatives of a loss L with respect to what `project` reads, from its cotangent g = dL/dRe P + i
/// dL/dIm P of every stored element; a gradient with respect to a complex element is dL/dRe + i dL/dIm too. A
/// matrix, shift or reconstruction shared over batches or poses gets the sum. No orthogonality of the
/// matrices is assumed; the third column of a 3D -> 2D matrix gets nothing. Gradients of a HalfComplex
/// reconstruction are those of what it holds, in float.
///
/// @param cotangent  complex [B, P, (d,) h, w/2+1]
/// @param gradients  the gradients wanted, and optionally the projections themselves, in the same pass
/// @throws Error as project does, and where nothing is asked for. Where project gives NaN, nothing is added
/// to the gradient of the reconstruction, and the pose gets NaN.
template <class Kernel = CatmullRom, class ExecutionSpace, class Reconstruction, class Projections>
void project_gradients(const ExecutionSpace& space, const Reconstruction& reconstruction,
                       const PosesFor<ExecutionSpace, Reconstruction>& poses, const Projections& cotangent,
                       const ProjectGradientsFor<ExecutionSpace, Reconstruction>& gradients,
                       const ProjectionOptions& options = {}) {
  constexpr int D = int(Impl::view_of<Reconstruction>::rank()) - 1,
                M = int(Impl::view_of<Projections>::rank()) - 2;
  constexpr bool kernel = Impl::is_kernel<Kernel>, spectrum = Impl::is_spectrum<Reconstruction>,
                 ranks = (D == 2 && M == 2) || (D == 3 && (M == 2 || M == 3));
  static_assert(
      kernel,
      "Bracewell::project_gradients: Kernel: expected Linear, CatmullRom or CubicBSpline, found another "
      "type (precision is that of the Views).");
  static_assert(
      spectrum,
      "Bracewell::project_gradients: reconstruction: expected a View of Kokkos::complex or HalfComplex, "
      "found another type of values.");
  static_assert(
      ranks, "Bracewell::project_gradients: expected a reconstruction [B, H, W/2+1] with a cotangent [B, P, "
             "h, w/2+1], or "
             "[B, D, H, W/2+1] with [B, P, h, w/2+1] or [B, P, d, h, w/2+1], found other numbers of axes.");
  if constexpr (kernel && spectrum && ranks)
    Impl::project_gradients<Kernel, M, D>(
        space, Impl::reconstruction_of<ExecutionSpace>(reconstruction), poses,
        Array<const Kokkos::complex<Impl::real_of<Reconstruction>>, typename ExecutionSpace::memory_space>(
            cotangent),
        gradients, options);
}

/// The same from a reference that was prepared for its kernel; a gradient of the reconstruction has the shape of
/// what it was prepared from.
template <class ExecutionSpace, class Kernel, int D, class Stored, class Projections>
void project_gradients(
    const ExecutionSpace& space, const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reconstruction,
    const Poses<Impl::real_of_stored<Stored>, typename ExecutionSpace::memory_space>& poses,
    const Projections& cotangent,
    const ProjectGradients<Impl::real_of_stored<Stored>, typename ExecutionSpace::memory_space>& gradients,
    const ProjectionOptions& options = {}) {
  constexpr int M = int(Impl::view_of<Projections>::rank()) - 2;
  constexpr bool ranks = (D == 2 && M == 2) || (D == 3 && (M == 2 || M == 3));
  static_assert(ranks, "Bracewell::project_gradients: expected images with a cotangent [B, P, h, w/2+1], or "
                       "volumes with [B, P, h, w/2+1] or [B, P, d, h, w/2+1], found other numbers of axes.");
  if constexpr (ranks)
    Impl::project_gradients<Kernel, M, D>(
        space, reconstruction.reference("project_gradients", "reconstruction"), poses,
        Array<const Kokkos::complex<Impl::real_of_stored<Stored>>, typename ExecutionSpace::memory_space>(
            cotangent),
        gradients, options);
}

} // namespace Bracewell
