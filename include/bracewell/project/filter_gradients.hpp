// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/project/detail/problem.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// Chain rule from projections to the filters of Poses, dL/df = Re(conj g U): project without filters gives U,
/// and P = f U; g = dL/dRe P + i dL/dIm P. For the filters of backproject U is the projection that is inserted
/// and g the gradient of it that backproject_gradients gives without filters. Where the filters are a CTF,
/// ctf_gradients leads on to its parameters.
/// @param projections  U, complex [B, P, (d,) h, w/2+1]
/// @param cotangent    g, like projections
/// @param gradients    real [B|1, P|1, (d,) h, w/2+1], overwritten; where shared, the sum over batches or poses
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Projections, class Cotangent, class Gradients>
void filter_gradients(const ExecutionSpace& space, const Projections& projections, const Cotangent& cotangent,
                      const Gradients& gradients);

namespace Impl {

/// A gradient's element takes in its batches and poses in order: the same sum in every run.
template <class T>
struct SumFilterGradients {
  const Kokkos::complex<T>*projections, *cotangent;
  T* gradients;
  std::int64_t batches, poses, elements; ///< of the projections
  bool each_batch, each_pose;            ///< have gradients of their own

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t element = i % elements, pose = each_pose ? i / elements % poses : 0,
                       batch = each_batch ? i / (each_pose ? elements * poses : elements) : 0;
    double sum = 0;
    for (std::int64_t b = batch; b < (each_batch ? batch + 1 : batches); ++b)
      for (std::int64_t p = pose; p < (each_pose ? pose + 1 : poses); ++p) {
        const std::int64_t at = (b * poses + p) * elements + element;
        sum += double(cotangent[at].real()) * projections[at].real() +
               double(cotangent[at].imag()) * projections[at].imag();
      }
    gradients[i] = T(sum);
  }
};

} // namespace Impl

template <class ExecutionSpace, class Projections, class Cotangent, class Gradients>
void filter_gradients(const ExecutionSpace& space, const Projections& projections, const Cotangent& cotangent,
                      const Gradients& gradients) {
  using T = Impl::real_of<Projections>;
  using Memory = typename ExecutionSpace::memory_space;
  constexpr int rank = int(Impl::view_of<Projections>::rank());
  static_assert(rank == 4 || rank == 5,
                "Bracewell::filter_gradients: expected projections [B, P, h, w/2+1] or "
                "[B, P, d, h, w/2+1].");
  const Array<const Kokkos::complex<T>, Memory> values(projections), slopes(cotangent);
  const Array<T, Memory> out(gradients);
  const Impl::ProjectionArguments arguments{{"filter_gradients"}};
  arguments.given("projections", values);
  arguments.same_spectrum("cotangent", slopes, values);
  arguments.per_projection("gradients", Array<const T, Memory>(out), values);
  arguments.disjoint({{"gradients", out}}, {{"projections", values}, {"cotangent", slopes}});
  if (out.size() == 0)
    return;
  const Kokkos::Profiling::ScopedRegion region("Bracewell::filter_gradients");
  const std::int64_t batches = values.extents[0], poses = values.extents[1];
  Kokkos::parallel_for(
      "Bracewell::filter_gradients::sum",
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(space, 0, out.size()),
      Impl::SumFilterGradients<T>{values.data, slopes.data, out.data, batches, poses,
                                  out.size() / (out.extents[0] * out.extents[1]), out.extents[0] == batches,
                                  out.extents[1] == poses});
}

} // namespace Bracewell
