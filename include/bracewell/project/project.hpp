// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/project/gather.hpp>
#include <bracewell/project/scatter.hpp>

namespace Bracewell {

/// Outputs of project_gradients; what is left out is not computed.
template <class T, class MemorySpace>
struct ProjectGradients {
  Array<Kokkos::complex<T>, MemorySpace> projections = {}; ///< [B, P, ...] the values themselves, overwritten
  Array<Kokkos::complex<T>, MemorySpace> reconstruction = {}; ///< like the reconstruction, added to
  Array<T, MemorySpace> matrices = {};                        ///< like poses.matrices, added to
  Array<T, MemorySpace> shifts = {};                          ///< like poses.shifts, added to
  Array<T, MemorySpace> scratch = {}; ///< only for Strategy::Duplicated (duplicated_scratch_size)
};

/// Values of the real type that `project` can use as scratch on GPUs for 3D reconstructions [B|1, D, H,
/// W/2+1]: a copy of them, each axis rounded up to a multiple of at most four. 0 on hosts, in 2D, and beyond
/// 2^32 elements, where it does not use any.
template <class ExecutionSpace, class Reconstruction>
std::int64_t projection_scratch_size(const ExecutionSpace&, const Reconstruction& reconstruction) {
  using T = Impl::real_of<Reconstruction>;
  using Stored = Impl::spectrum_value_of<Reconstruction>;
  const Array<const Stored, typename ExecutionSpace::memory_space> array(reconstruction);
  if (Impl::is_host<ExecutionSpace> || array.rank != 4)
    return 0;
  const HalfSpectrumLayout<3> layout{static_cast<int>(array.width), static_cast<int>(array.extents[2]),
                                     static_cast<int>(array.extents[1])};
  return array.extents[0] * Impl::BlockedOrder<Stored>(layout).usable_size() *
         std::int64_t(sizeof(Stored) / sizeof(T));
}

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
/// @param scratch         real, projection_scratch_size(space, reconstruction) values, overwritten: room for
/// a copy of 3D reconstructions, made where projections are many, that GPUs sample up to a third faster;
/// optional
/// @throws Error on shapes that do not fit, shared memory, or options out of range; nothing is written then.
/// Poses that are not finite give NaN projections, as do samples beyond 2^21 (float) or 2^50 (double)
/// elements from the origin, and shifts beyond 1e9 boxes: their fractions are lost.
template <class Kernel = CatmullRom, class ExecutionSpace, class Reconstruction, class Projections>
void project(
    const ExecutionSpace& space, const Reconstruction& reconstruction,
    const Poses<Impl::real_of<Reconstruction>, typename ExecutionSpace::memory_space>& poses,
    const Projections& projections, const ProjectionOptions& options = {},
    const Array<Impl::real_of<Reconstruction>, typename ExecutionSpace::memory_space>& scratch = {}) {
  using T = Impl::real_of<Reconstruction>;
  using Memory = typename ExecutionSpace::memory_space;
  constexpr int D = int(Impl::view_of<Reconstruction>::rank()) - 1,
                M = int(Impl::view_of<Projections>::rank()) - 2;
  static_assert(
      (D == 2 && M == 2) || (D == 3 && (M == 2 || M == 3)),
      "Bracewell::project: expected a reconstruction [B, H, W/2+1] with projections [B, P, h, w/2+1], or "
      "[B, D, H, W/2+1] with [B, P, h, w/2+1] or [B, P, d, h, w/2+1].");
  const Impl::Arguments arguments{"project"};
  using Stored = Impl::spectrum_value_of<Reconstruction>;
  const Array<const Stored, Memory> input(reconstruction);
  const Array<Kokkos::complex<T>, Memory> output(projections);
  const auto samples =
      arguments.samples<M, D>("reconstruction", input, "projections", output, poses, options);
  const Impl::NamedMemory outputs[] = {Impl::NamedMemory("projections", output),
                                       Impl::NamedMemory("scratch", scratch)};
  const Impl::NamedMemory inputs[] = {
      Impl::NamedMemory("reconstruction", input), Impl::NamedMemory("poses.matrices", poses.matrices),
      Impl::NamedMemory("poses.shifts", poses.shifts), Impl::NamedMemory("poses.filters", poses.filters)};
  arguments.require_disjoint(outputs, inputs);
  const std::int64_t stride = input.extents[0] == 1 ? 0 : samples.reconstruction.elements();
  const Impl::Gather<Kernel, T, M, D, Mates::Single, Impl::StoredVolumes<Stored>> gather{
      .amplitudes = {.samples = samples}, .volumes = {input.data, stride}, .values = output.data};
  if constexpr (D == 3 && !Impl::is_host<ExecutionSpace>) {
    const std::int64_t needed = projection_scratch_size(space, reconstruction);
    if (scratch && needed > 0) {
      arguments.scratch(scratch, needed, "(projection_scratch_size)");
      const std::int64_t volumes = input.extents[0];
      if (Impl::blocks_pay(Kernel::width, output.size(), volumes, samples.reconstruction.elements()))
        return Impl::launch_gather_blocked(space, "Bracewell::project", gather, volumes,
                                           reinterpret_cast<Stored*>(scratch.data));
    }
  }
  Impl::launch_gather(space, "Bracewell::project", gather);
}

/// Exact derivatives of a loss L with respect to what `project` reads, from its cotangent g = dL/dRe P + i
/// dL/dIm P of every stored element; a gradient with respect to a complex element is dL/dRe + i dL/dIm too. A
/// matrix, shift or reconstruction shared over batches or poses gets the sum. No orthogonality of the
/// matrices is assumed; the third column of a 3D -> 2D matrix gets nothing.
///
/// @param cotangent  complex [B, P, (d,) h, w/2+1]
/// @param gradients  the gradients wanted, and optionally the projections themselves, in the same pass
/// @throws Error as project does. Where project gives NaN, nothing is added to the gradient of the
/// reconstruction, and the pose gets NaN.
template <class Kernel = CatmullRom, class ExecutionSpace, class Reconstruction, class Projections>
void project_gradients(
    const ExecutionSpace& space, const Reconstruction& reconstruction,
    const Poses<Impl::real_of<Reconstruction>, typename ExecutionSpace::memory_space>& poses,
    const Projections& cotangent,
    const ProjectGradients<Impl::real_of<Reconstruction>, typename ExecutionSpace::memory_space>& gradients,
    const ProjectionOptions& options = {}) {
  using T = Impl::real_of<Reconstruction>;
  using Memory = typename ExecutionSpace::memory_space;
  constexpr int D = int(Impl::view_of<Reconstruction>::rank()) - 1,
                M = int(Impl::view_of<Projections>::rank()) - 2;
  static_assert((D == 2 && M == 2) || (D == 3 && (M == 2 || M == 3)),
                "Bracewell::project_gradients: expected a reconstruction [B, H, W/2+1] with a cotangent [B, "
                "P, h, w/2+1], or "
                "[B, D, H, W/2+1] with [B, P, h, w/2+1] or [B, P, d, h, w/2+1].");
  const Impl::Arguments arguments{"project_gradients"};
  const Array<const Kokkos::complex<T>, Memory> input(reconstruction), slopes(cotangent);
  const auto samples = arguments.samples<M, D>("reconstruction", input, "cotangent", slopes, poses, options);
  if (gradients.projections)
    arguments.same_shape("gradients.projections", gradients.projections, slopes);
  if (gradients.reconstruction)
    arguments.same_shape("gradients.reconstruction", gradients.reconstruction, input);
  if (gradients.matrices)
    arguments.same_shape("gradients.matrices", gradients.matrices, poses.matrices);
  if (gradients.shifts)
    arguments.same_shape("gradients.shifts", gradients.shifts, poses.shifts);
  const Impl::NamedMemory outputs[] = {
      Impl::NamedMemory("gradients.projections", gradients.projections),
      Impl::NamedMemory("gradients.reconstruction", gradients.reconstruction),
      Impl::NamedMemory("gradients.matrices", gradients.matrices),
      Impl::NamedMemory("gradients.shifts", gradients.shifts),
      Impl::NamedMemory("scratch", gradients.scratch)};
  const Impl::NamedMemory inputs[] = {
      Impl::NamedMemory("reconstruction", input), Impl::NamedMemory("cotangent", slopes),
      Impl::NamedMemory("poses.matrices", poses.matrices), Impl::NamedMemory("poses.shifts", poses.shifts),
      Impl::NamedMemory("poses.filters", poses.filters)};
  arguments.require_disjoint(outputs, inputs);
  const std::int64_t stride = input.extents[0] == 1 ? 0 : samples.reconstruction.elements();
  const Impl::Amplitudes<T, M, D, Mates::Single> amplitudes{
      .samples = samples, .values = slopes.data, .skip_redundant = options.skip_redundant};
  if (gradients.reconstruction)
    Impl::scatter<Kernel>(
        space, arguments, "Bracewell::project_gradients::reconstruction", options.strategy, amplitudes,
        Impl::ScatterTarget<T>{
            .data = gradients.reconstruction.data, .batches = input.extents[0], .batch_stride = stride},
        gradients.scratch);
  if (gradients.projections || gradients.matrices || gradients.shifts)
    Impl::launch_gather(space, "Bracewell::project_gradients",
                        Impl::Gather<Kernel, T, M, D, Mates::Single>{.amplitudes = amplitudes,
                                                                     .volumes = {input.data, stride},
                                                                     .values = gradients.projections.data},
                        gradients.matrices.data, gradients.shifts.data);
}

} // namespace Bracewell
