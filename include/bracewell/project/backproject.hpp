// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/compiled.hpp>
#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/interpolation/cubic_bspline.hpp>
#include <bracewell/interpolation/linear.hpp>
#include <bracewell/project/detail/operators/backproject_impl.hpp>
#include <bracewell/project/options.hpp>
#include <bracewell/project/prepared_reference.hpp>

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

/// Cotangents of the images (D = 2) or volumes that backproject adds to, and the outputs of backproject_gradients. Outputs
/// are overwritten. Outputs that are left out are not computed.
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

/// Adjoint of `project` in the inner product over the full Hermitian spectrum: <project V, P> = <V,
/// backproject P> with every stored element counted by its multiplicity (2, and 1 on self-mated columns). Each stored sample
/// adds half its multiplicity times P(k) exp(+2 pi i k.s / n) at M (oversampling k), and the conjugate at the opposite point.
/// The stored half is kept. Weights go the same way, without phase, into a real weight volume. data / weight then estimates
/// the reconstruction: `normalise`.
///
/// To reconstruct from images as they are (not padded), oversample 1.5 to 1.7 times with the default kernel
/// and leave normalise's floor as it is. Beyond 1.75, samples lie so far apart near zero frequency that signed
/// weights cancel there, for any number of images. With fewer than a hundred images take Linear, which
/// has no negative weights. The table has the error of the map of a molecule from noise-free images of 64 pixels,
/// with the defaults of normalise:
///
///     images                30     200    1000   5000
///     CatmullRom, 1.5       0.31   0.035  0.023  0.022
///     CatmullRom, 1.6875    0.38   0.038  0.014  0.014
///     CatmullRom, 2         0.60   0.18   0.16   0.16
///     Linear, 1.5           0.22   0.047  0.037  0.036
///     Linear, 1.6875        0.24   0.036  0.027  0.026
///     Linear, 2             0.29   0.039  0.028  0.027
///
/// For maps from noisy or uneven views take Linear at an oversampling of 2. Give normalise the weight that WeightEqualiser
/// makes of the weights and of the noise of half sets.
///
/// In float, blocks of many poses are summed, and these in double: the error does not grow with the number of poses.
///
///                                         hosts    GPUs
///     error, poses at random              3e-7     1e-6
///     error, one pose again and again     3e-6     1e-4
///     blocks from how many poses on       256      2048; more where the volume is much larger than the image
///
/// The blocks take memory for three more volumes (on GPUs up to 66 where images are small).
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
  if constexpr (Impl::check_backproject<Kernel, Projections, 3>())
    Impl::backproject<Kernel, Impl::projected_dimensions_of<Projections>, 3>(space, projections, poses,
                                                                             target, options);
}

/// The same of images: projections [B, P, h, w/2+1], data [B|1, H, W/2+1].
template <class Kernel = CatmullRom, class ExecutionSpace, class Projections>
void backproject(const ExecutionSpace& space, const Projections& projections,
                 const PosesFor<ExecutionSpace, Projections>& poses,
                 const BackprojectionFor<ExecutionSpace, Projections, 2>& target,
                 const ProjectionOptions& options = {}) {
  if constexpr (Impl::check_backproject<Kernel, Projections, 2>())
    Impl::backproject<Kernel, 2, 2>(space, projections, poses, target, options);
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
  if constexpr (Impl::check_backproject<Kernel, Projections, 3>())
    Impl::backproject_gradients<Kernel, Impl::projected_dimensions_of<Projections>, 3>(
        space, Impl::reference_to("data", gradients.data), projections, poses, gradients, options);
}

/// The same of images: projections [B, P, h, w/2+1], data [B|1, H, W/2+1].
template <class Kernel = CatmullRom, class ExecutionSpace, class Projections>
void backproject_gradients(const ExecutionSpace& space, const Projections& projections,
                           const PosesFor<ExecutionSpace, Projections>& poses,
                           const BackprojectGradientsFor<ExecutionSpace, Projections, 2>& gradients,
                           const ProjectionOptions& options = {}) {
  if constexpr (Impl::check_backproject<Kernel, Projections, 2>())
    Impl::backproject_gradients<Kernel, 2, 2>(space, Impl::reference_to("data", gradients.data), projections,
                                              poses, gradients, options);
}

/// The same where the cotangent of data was prepared for ReadBy::BackprojectGradients, and for its kernel;
/// gradients.data is left out.
template <class ExecutionSpace, class Projections, class Kernel, int D, class Stored>
void backproject_gradients(const ExecutionSpace& space, const Projections& projections,
                           const PosesFor<ExecutionSpace, Projections>& poses,
                           const PreparedReference<Kernel, ExecutionSpace, D, Stored>& data,
                           const BackprojectGradientsFor<ExecutionSpace, Projections, D>& gradients,
                           const ProjectionOptions& options = {}) {
  if constexpr (Impl::check_backproject<Kernel, Projections, D>()) {
    Impl::Arguments{"backproject_gradients"}.require(!gradients.data, "gradients.data",
                                                     "none beside a prepared cotangent", "one");
    Impl::backproject_gradients<Kernel, Impl::projected_dimensions_of<Projections>, D>(
        space, data.reference("backproject_gradients", "data", ReadBy::BackprojectGradients), projections,
        poses, gradients, options);
  }
}

#define BRACEWELL_BACKPROJECT_TO(Extern, Space, Real, Kernel, M, D)                                          \
  Extern template void Impl::backproject<Kernel, M, D>(                                                      \
      const Space&, const Array<const Kokkos::complex<Real>, Space::memory_space>&,                          \
      const Poses<Real, Space::memory_space>&, const Backprojection<Real, Space::memory_space, D>&,          \
      const ProjectionOptions&);
#define BRACEWELL_BACKPROJECT_GRADIENTS(Extern, Space, Real, Kernel, M, D, ...)                              \
  Extern template void Impl::backproject_gradients<Kernel, M, D>(                                            \
      const Space&, const __VA_ARGS__&, const Array<const Kokkos::complex<Real>, Space::memory_space>&,      \
      const Poses<Real, Space::memory_space>&, const BackprojectGradients<Real, Space::memory_space, D>&,    \
      ProjectionOptions);
#define BRACEWELL_BACKPROJECT_GRADIENTS_PREPARED(Extern, Space, Real, Kernel, M, D)                          \
  BRACEWELL_BACKPROJECT_GRADIENTS(Extern, Space, Real, Kernel, M, D,                                         \
                                  Impl::PreparedReferenceOf<Kernel, Space, D, Kokkos::complex<Real>>)
#define BRACEWELL_INSTANCES_BACKPROJECT(Extern, Space, Real, Kernel)                                         \
  BRACEWELL_BACKPROJECT_TO(Extern, Space, Real, Kernel, 2, 2)                                                \
  BRACEWELL_BACKPROJECT_TO(Extern, Space, Real, Kernel, 2, 3)                                                \
  BRACEWELL_BACKPROJECT_TO(Extern, Space, Real, Kernel, 3, 3)
#define BRACEWELL_INSTANCES_BACKPROJECT_GRADIENTS(Extern, Space, Real, Kernel)                               \
  BRACEWELL_BACKPROJECT_GRADIENTS(Extern, Space, Real, Kernel, 2, 2,                                         \
                                  Impl::StoredReference<Kokkos::complex<Real>>)                              \
  BRACEWELL_BACKPROJECT_GRADIENTS(Extern, Space, Real, Kernel, 2, 3,                                         \
                                  Impl::StoredReference<Kokkos::complex<Real>>)                              \
  BRACEWELL_BACKPROJECT_GRADIENTS(Extern, Space, Real, Kernel, 3, 3,                                         \
                                  Impl::StoredReference<Kokkos::complex<Real>>)
#define BRACEWELL_INSTANCES_BACKPROJECT_GRADIENTS_DEVICE(Extern, Space, Real, Kernel)                        \
  BRACEWELL_BACKPROJECT_GRADIENTS_PREPARED(Extern, Space, Real, Kernel, 2, 2)                                \
  BRACEWELL_BACKPROJECT_GRADIENTS_PREPARED(Extern, Space, Real, Kernel, 2, 3)                                \
  BRACEWELL_BACKPROJECT_GRADIENTS_PREPARED(Extern, Space, Real, Kernel, 3, 3)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE, BRACEWELL_INSTANCES_BACKPROJECT)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE, BRACEWELL_INSTANCES_BACKPROJECT_GRADIENTS)
BRACEWELL_DECLARE_KERNELS(BRACEWELL_DECLARE_DEVICE, BRACEWELL_INSTANCES_BACKPROJECT_GRADIENTS_DEVICE)

} // namespace Bracewell
