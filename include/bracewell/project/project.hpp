// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/interpolation/catmull_rom.hpp>
#include <bracewell/project/choose_insertion.hpp>
#include <bracewell/project/detail/sample_padded.hpp>
#include <bracewell/project/detail/sample_tiles.hpp>

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

/// Values of the real type that `project` with the same kernel can use as scratch on GPUs for reconstructions
/// [B|1, (D,) H, W/2+1]: a copy of them, continued a little beyond the stored half. In float, of 128 elements
/// a side: 1.1 (linear) or 1.2 times the memory of volumes, 2.2 to 2.4 times that of images. 0 on hosts, and
/// beyond 2^32 elements, where `project` does not use any.
template <class Kernel = CatmullRom, class ExecutionSpace, class Reconstruction>
std::int64_t projection_scratch_size(const ExecutionSpace&, const Reconstruction& reconstruction) {
  using T = Impl::real_of<Reconstruction>;
  using Stored = Impl::spectrum_value_of<Reconstruction>;
  constexpr int D = int(Impl::view_of<Reconstruction>::rank()) - 1;
  static_assert(D == 2 || D == 3,
                "Bracewell::projection_scratch_size: expected a reconstruction [B, H, W/2+1] "
                "or [B, D, H, W/2+1].");
  if (Impl::is_host<ExecutionSpace>)
    return 0;
  const Array<const Stored, typename ExecutionSpace::memory_space> array(reconstruction);
  HalfSpectrumLayout<D> layout{static_cast<int>(array.width)};
  for (int d = 1; d < D; ++d)
    layout.size[d] = static_cast<int>(array.extents[D - d]);
  using Order = Impl::PaddedOrder<Stored, D, Kernel::width>;
  const std::int64_t bytes = Order(layout).usable_size() * std::int64_t(sizeof(typename Order::Entry));
  return array.extents[0] * bytes / std::int64_t(sizeof(T));
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
/// @param scratch         real, projection_scratch_size<Kernel>(space, reconstruction) values, overwritten:
/// room for a copy of the reconstruction, made where projections are many, that GPUs sample up to 1.7 times
/// as fast; optional
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
  const Impl::ProjectionArguments arguments{{"project"}};
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
  arguments.disjoint(outputs, inputs);
  const std::int64_t stride = input.extents[0] == 1 ? 0 : samples.reconstruction.elements();
  const Impl::StoredSpectra<Stored> stored{input.data, stride};
  if constexpr (!Impl::is_host<ExecutionSpace>) {
    const std::int64_t needed = projection_scratch_size<Kernel>(space, reconstruction);
    if (scratch && needed > 0) {
      arguments.scratch("scratch", scratch, needed, "(projection_scratch_size<Kernel>)", 32);
      const std::int64_t spectra = input.extents[0];
      if (Impl::copies_pay(D, Kernel::width, output.size(), spectra, samples.reconstruction.elements()) &&
          samples.batches * samples.poses < std::int64_t(1) << 31)
        return Impl::GatherPadded<Kernel, T, M, D, Stored>(
                   samples,
                   Impl::copy_to_padded<Kernel::width>(space, "Bracewell::project::copy",
                                                       samples.reconstruction, stored, spectra, scratch.data),
                   output.data)
            .launch(space, "Bracewell::project");
    }
  }
  Impl::launch_gather(space, "Bracewell::project",
                      Impl::Gather<Kernel, T, M, D, Mates::Single, Stored>{
                          .amplitudes = {.samples = samples}, .volumes = stored, .values = output.data});
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
  const Impl::ProjectionArguments arguments{{"project_gradients"}};
  const Array<const Kokkos::complex<T>, Memory> input(reconstruction), slopes(cotangent);
  const auto samples = arguments.samples<M, D>("reconstruction", input, "cotangent", slopes, poses, options);
  if (gradients.projections)
    arguments.same_spectrum("gradients.projections", gradients.projections, slopes);
  if (gradients.reconstruction)
    arguments.same_spectrum("gradients.reconstruction", gradients.reconstruction, input);
  if (gradients.matrices)
    arguments.same_spectrum("gradients.matrices", gradients.matrices, poses.matrices);
  if (gradients.shifts)
    arguments.same_spectrum("gradients.shifts", gradients.shifts, poses.shifts);
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
  arguments.disjoint(outputs, inputs);
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
