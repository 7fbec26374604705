// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/execution.hpp>
#include <bracewell/impl/row_loop.hpp>
#include <bracewell/rfft/layout.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// Outputs of squared_error; what is left out is not computed.
template <class T, class MemorySpace>
struct SquaredErrorOutputs {
  Array<double, MemorySpace> losses = {};                ///< [B, P], one of each projection, overwritten
  Array<Kokkos::complex<T>, MemorySpace> cotangent = {}; ///< like the projections, overwritten
};

/// Multiplies a half spectrum, in place, by its multiplicity: 1 on self-mated columns, 2 on the others. Let p be the
/// pixels of the inverse transform, not scaled, of a spectrum P. The forward transform of dL/dp(x) becomes the cotangent
/// of P. A gradient per element of the full spectrum becomes the gradient of each stored element.
/// @param spectrum  complex [..., h, w/2+1]
/// @throws Error on an array of fewer axes or another width
template <class ExecutionSpace, class Spectrum>
void multiply_by_multiplicity(const ExecutionSpace& space, const Spectrum& spectrum);

/// Chain rule from a spectrum V, the forward transform of pixels, to the pixels: divides dL/dV (dL/dRe + i
/// dL/dIm of each stored element), in place, by the multiplicity, and takes the part with the symmetry of
/// spectra on self-mated columns. The inverse transform, not scaled, of that is dL/dpixels. From there
/// crop_centre leads through pad_centre, and correct_rolloff, which is its own transpose, to the map.
/// @param gradient  complex [B, (D,) H, W/2+1]
/// @throws Error on an array that is no half spectrum of its width
template <class ExecutionSpace, class Gradient>
void divide_by_multiplicity(const ExecutionSpace& space, const Gradient& gradient);

/// The squared error of projections P against images D over the full spectrum, L = sum m w |P - D|^2 with the multiplicity m.
/// Its cotangent is dL/dRe P + i dL/dIm P = 2 m w (P - D) for every stored element. Without weights L is the number of pixels
/// times the squared error of the inverse transforms, if both have all frequencies. Beyond its radius `project` gives zeros:
/// give images or weights of zero there.
/// @param projections  P, complex [B, P, (d,) h, w/2+1]
/// @param images       D, like projections
/// @param outputs      what is wanted
/// @param weights      w, real [B|1, P|1, (d,) h, w/2+1]; optional
/// @throws Error on shapes that do not fit and shared memory
template <class ExecutionSpace, class Projections, class Images>
void squared_error(
    const ExecutionSpace& space, const Projections& projections, const Images& images,
    const SquaredErrorOutputs<Impl::real_of<Projections>, typename ExecutionSpace::memory_space>& outputs,
    const Array<const Impl::real_of<Projections>, typename ExecutionSpace::memory_space>& weights = {});

namespace Impl {

template <class T>
struct MultiplyByMultiplicity {
  Kokkos::complex<T>* values;
  Box<2> box;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    const HalfSpectrumLayout<2> layout{box.size[0], box.size[1]};
    Kokkos::complex<T>* own = values + row * box.columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, box.columns),
                         [&](int x) { own[x] *= T(layout.multiplicity(x)); });
  }
};

/// The first of two rows that are mates writes both on self-mated columns.
template <class T, int Dim>
struct DivideByMultiplicity {
  Kokkos::complex<T>* values;
  Box<Dim> box;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    int index[Dim];
    std::int64_t mate = box.locate(row, index);
    for (int d = Dim - 1; d > 0; --d)
      mate = mate * box.size[d] + (index[d] == 0 ? 0 : box.size[d] - index[d]);
    Kokkos::complex<T>*own = values + row * box.columns, *other = values + mate * box.columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, box.columns), [&](int x) {
      if (x != 0 && 2 * x != box.size[0]) {
        own[x] *= T(0.5);
      } else if (row <= mate) {
        const Kokkos::complex<T> mean = T(0.5) * (own[x] + Kokkos::conj(other[x]));
        own[x] = mean;
        other[x] = Kokkos::conj(mean);
      }
    });
  }
};

/// One team per projection.
template <class ExecutionSpace, class T>
struct SquaredError {
  using Policy = Kokkos::TeamPolicy<ExecutionSpace>;

  const Kokkos::complex<T>*projections, *images;
  const T* weights; ///< null: ones
  double* losses;   ///< null when not wanted
  Kokkos::complex<T>* cotangent;
  std::int64_t elements, poses, weight_of_batch, weight_of_pose;
  int columns, width;

  KOKKOS_FUNCTION void operator()(const typename Policy::member_type& member) const {
    const std::int64_t projection = member.league_rank(), begin = projection * elements;
    const T* weight =
        weights ? weights + projection / poses * weight_of_batch + projection % poses * weight_of_pose
                : nullptr;
    Sums<1> loss;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(member, elements),
        [&](std::int64_t i, Sums<1>& sum) {
          const int x = static_cast<int>(i % columns);
          const T m = x == 0 || 2 * x == width ? T(1) : T(2), factor = weight ? m * weight[i] : m;
          const Kokkos::complex<T> difference = projections[begin + i] - images[begin + i];
          sum.values[0] += double(factor) * (double(difference.real()) * difference.real() +
                                             double(difference.imag()) * difference.imag());
          if (cotangent)
            cotangent[begin + i] = 2 * factor * difference;
        },
        loss);
    if (losses)
      Kokkos::single(Kokkos::PerTeam(member), [&] { losses[projection] = loss.values[0]; });
  }
};

} // namespace Impl

template <class ExecutionSpace, class Spectrum>
void multiply_by_multiplicity(const ExecutionSpace& space, const Spectrum& spectrum) {
  using T = Impl::real_of<Spectrum>;
  const Array<Kokkos::complex<T>, typename ExecutionSpace::memory_space> array(spectrum);
  const auto box = Impl::spectrum_box<2>(Impl::Arguments{"multiply_by_multiplicity"}, "spectrum", array);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::multiply_by_multiplicity");
  Impl::for_each_row(space, "Bracewell::multiply_by_multiplicity::multiply", box.rows(),
                     Impl::MultiplyByMultiplicity<T>{array.data, box});
}

template <class ExecutionSpace, class Gradient>
void divide_by_multiplicity(const ExecutionSpace& space, const Gradient& gradient) {
  constexpr int Dim = int(Impl::view_of<Gradient>::rank()) - 1;
  using T = Impl::real_of<Gradient>;
  const Array<Kokkos::complex<T>, typename ExecutionSpace::memory_space> array(gradient);
  const auto box = Impl::spectrum_box<Dim>(Impl::Arguments{"divide_by_multiplicity"}, "gradient", array);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::divide_by_multiplicity");
  Impl::for_each_row(space, "Bracewell::divide_by_multiplicity::divide", box.rows(),
                     Impl::DivideByMultiplicity<T, Dim>{array.data, box});
}

template <class ExecutionSpace, class Projections, class Images>
void squared_error(
    const ExecutionSpace& space, const Projections& projections, const Images& images,
    const SquaredErrorOutputs<Impl::real_of<Projections>, typename ExecutionSpace::memory_space>& outputs,
    const Array<const Impl::real_of<Projections>, typename ExecutionSpace::memory_space>& weights) {
  using T = Impl::real_of<Projections>;
  using MemorySpace = typename ExecutionSpace::memory_space;
  constexpr int Dim = int(Impl::view_of<Projections>::rank()) - 2;
  const Array<const Kokkos::complex<T>, MemorySpace> values(projections), measured(images);
  constexpr Impl::Arguments arguments{"squared_error"};
  const auto box = Impl::spectrum_box<Dim>(arguments, "projections", values);
  const std::int64_t batches = values.extents[0], poses = values.extents[1];
  arguments.same_spectrum("images", measured, values);
  if (outputs.losses)
    arguments.shape("outputs.losses", outputs.losses, {batches, poses});
  if (outputs.cotangent)
    arguments.same_spectrum("outputs.cotangent", outputs.cotangent, values);
  std::int64_t elements = 1;
  for (int axis = 2; axis < values.rank; ++axis)
    elements *= values.extents[axis];
  if (weights) {
    Array<const Kokkos::complex<T>, MemorySpace> like = values;
    for (const int axis : {0, 1})
      like.extents[axis] = weights.extents[axis] == 1 ? 1 : values.extents[axis];
    arguments.same_spectrum("weights", weights, like);
  }
  arguments.disjoint({{"outputs.losses", outputs.losses}, {"outputs.cotangent", outputs.cotangent}},
                     {{"projections", values}, {"images", measured}, {"weights", weights}});
  if (values.size() == 0)
    return;
  const Kokkos::Profiling::ScopedRegion region("Bracewell::squared_error");
  using Functor = Impl::SquaredError<ExecutionSpace, T>;
  const typename Functor::Policy policy(space, static_cast<int>(batches * poses),
                                        Impl::is_host<ExecutionSpace> ? 1 : 128);
  Kokkos::parallel_for("Bracewell::squared_error::sum", policy,
                       Functor{values.data, measured.data, weights.data, outputs.losses.data,
                               outputs.cotangent.data, elements, poses,
                               weights && weights.extents[0] > 1 ? weights.extents[1] * elements : 0,
                               weights && weights.extents[1] > 1 ? elements : 0, box.columns, box.size[0]});
}

} // namespace Bracewell
