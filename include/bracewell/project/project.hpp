// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/compiled.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/detail/operators/project_impl.hpp>
#include <bracewell/project/options.hpp>
#include <bracewell/project/prepared_reference.hpp>

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

/// Samples the spectra of projections from the spectrum of a reconstruction:
///   P(k) = F(M oversampling k) exp(-2 pi i k.s / n)
/// for every stored frequency k with |k| <= radius, and zero elsewhere. F is the reconstruction's spectrum, interpolated
/// by Kernel. The ranks of the Views say whether this is 2D -> 2D, 3D -> 2D (the projection-slice theorem, Bracewell
/// 1956; k = (kx, ky, 0)) or 3D -> 3D.
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
  if constexpr (Impl::check_project<Kernel, Reconstruction, Projections>())
    Impl::project<Kernel, Impl::projected_dimensions_of<Projections>, Impl::dimensions_of<Reconstruction>>(
        space, Impl::reconstruction_of<ExecutionSpace>(reconstruction), poses, projections, options);
}

/// The same from a reference that was prepared for its kernel (prepared_reference.hpp). On GPUs this reads a copy
/// in an order that suits the caches. If options leave the oversampling out, the reference's counts.
/// @throws Error as above, and on GPUs for 2^31 or more poses
template <class ExecutionSpace, class Kernel, int D, class Stored, class Projections>
void project(const ExecutionSpace& space,
             const PreparedReference<Kernel, ExecutionSpace, D, Stored>& reconstruction,
             const Poses<Impl::real_of_stored<Stored>, typename ExecutionSpace::memory_space>& poses,
             const Projections& projections, const ProjectionOptions& options = {}) {
  if constexpr (Impl::check_project_prepared<D, Projections>())
    Impl::project<Kernel, Impl::projected_dimensions_of<Projections>, D>(
        space, reconstruction.reference("project", "reconstruction"), poses, projections, options);
}

/// Computes exact derivatives of a loss L with respect to what `project` reads. Its input is the cotangent
/// g = dL/dRe P + i dL/dIm P of every stored element. A gradient with respect to a complex element is dL/dRe + i dL/dIm,
/// too. A matrix, shift or reconstruction that batches or poses share gets the sum. Matrices need not be orthogonal. The
/// third column of a 3D -> 2D matrix gets nothing. A HalfComplex reconstruction has its gradient in float.
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
  if constexpr (Impl::check_project<Kernel, Reconstruction, Projections>())
    Impl::project_gradients<Kernel, Impl::projected_dimensions_of<Projections>,
                            Impl::dimensions_of<Reconstruction>>(
        space, Impl::reconstruction_of<ExecutionSpace>(reconstruction), poses, cotangent, gradients, options);
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
  if constexpr (Impl::check_project_prepared<D, Projections>())
    Impl::project_gradients<Kernel, Impl::projected_dimensions_of<Projections>, D>(
        space, reconstruction.reference("project_gradients", "reconstruction"), poses, cotangent, gradients,
        options);
}

// Sampling from spectra as they are stored, and from those that were prepared for GPUs; last, the reference.
#define BRACEWELL_PROJECT_FROM(Extern, Space, Real, Kernel, M, D, ...)                                       \
  Extern template void Impl::project<Kernel, M, D>(                                                          \
      const Space&, const __VA_ARGS__&, const Poses<Real, Space::memory_space>&,                             \
      const Array<Kokkos::complex<Real>, Space::memory_space>&, ProjectionOptions);                          \
  Extern template void Impl::project_gradients<Kernel, M, D>(                                                \
      const Space&, const __VA_ARGS__&, const Poses<Real, Space::memory_space>&,                             \
      const Array<const Kokkos::complex<Real>, Space::memory_space>&,                                        \
      const ProjectGradients<Real, Space::memory_space>&, ProjectionOptions);
#define BRACEWELL_PROJECT_STORED(Extern, Space, Real, Kernel, Stored)                                        \
  BRACEWELL_PROJECT_FROM(Extern, Space, Real, Kernel, 2, 2, Impl::StoredReference<Stored>)                   \
  BRACEWELL_PROJECT_FROM(Extern, Space, Real, Kernel, 2, 3, Impl::StoredReference<Stored>)                   \
  BRACEWELL_PROJECT_FROM(Extern, Space, Real, Kernel, 3, 3, Impl::StoredReference<Stored>)
#define BRACEWELL_PROJECT_PREPARED(Extern, Space, Real, Kernel, Stored)                                      \
  BRACEWELL_PROJECT_FROM(Extern, Space, Real, Kernel, 2, 2,                                                  \
                         Impl::PreparedReferenceOf<Kernel, Space, 2, Stored>)                                \
  BRACEWELL_PROJECT_FROM(Extern, Space, Real, Kernel, 2, 3,                                                  \
                         Impl::PreparedReferenceOf<Kernel, Space, 3, Stored>)                                \
  BRACEWELL_PROJECT_FROM(Extern, Space, Real, Kernel, 3, 3,                                                  \
                         Impl::PreparedReferenceOf<Kernel, Space, 3, Stored>)
#define BRACEWELL_INSTANCES_PROJECT(Extern, Space, Real, Kernel)                                             \
  BRACEWELL_PROJECT_STORED(Extern, Space, Real, Kernel, Kokkos::complex<Real>)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE, BRACEWELL_INSTANCES_PROJECT)
#define BRACEWELL_INSTANCES_PROJECT_HALF(Extern, Space, Real, Kernel)                                        \
  BRACEWELL_PROJECT_STORED(Extern, Space, Real, Kernel, HalfComplex)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE_FLOAT, BRACEWELL_INSTANCES_PROJECT_HALF)
#define BRACEWELL_INSTANCES_PROJECT_DEVICE(Extern, Space, Real, Kernel)                                      \
  BRACEWELL_PROJECT_PREPARED(Extern, Space, Real, Kernel, Kokkos::complex<Real>)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE_DEVICE, BRACEWELL_INSTANCES_PROJECT_DEVICE)
#define BRACEWELL_INSTANCES_PROJECT_DEVICE_HALF(Extern, Space, Real, Kernel)                                 \
  BRACEWELL_PROJECT_PREPARED(Extern, Space, Real, Kernel, HalfComplex)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE_DEVICE_FLOAT, BRACEWELL_INSTANCES_PROJECT_DEVICE_HALF)

} // namespace Bracewell
