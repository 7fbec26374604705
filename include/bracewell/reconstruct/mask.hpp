// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/impl/row_loop.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// A sphere (disc in 2D) about the centre floor(n/2) with a raised-cosine edge. All lengths in pixels.
struct SoftSphere {
  double radius;   ///< 1 up to here
  double edge = 0; ///< width over which the mask falls to 0

  /// The mask at a distance from the centre.
  template <class T>
  KOKKOS_FUNCTION T operator()(T distance) const {
    const T beyond = distance - T(radius);
    if (beyond <= 0)
      return 1;
    return beyond >= T(edge) ? T(0)
                             : T(0.5) + T(0.5) * Kokkos::cos(Kokkos::numbers::pi_v<T> * beyond / T(edge));
  }
};

/// Multiplies images or volumes by a soft sphere, in place. (Applied to ones it makes the mask itself.)
/// @param volume  real or complex [B, (d,) h, w], centre at floor(n/2)
/// @throws Error on an empty View, and a radius or an edge that is negative or not finite
template <class ExecutionSpace, class Volume>
void apply_mask(const ExecutionSpace& space, const Volume& volume, const SoftSphere& mask);

namespace Impl {

template <class Value, int Dim>
struct ApplyMask {
  Value* values;
  Box<Dim> box;
  SoftSphere mask;

  template <class Member>
  KOKKOS_FUNCTION void operator()(std::int64_t row, const Member& member) const {
    using T = typename RealOf<Value>::type;
    int index[Dim];
    box.locate(row, index);
    T squared = 0;
    for (int d = 1; d < Dim; ++d) {
      const T x = T(index[d] - box.size[d] / 2);
      squared += x * x;
    }
    Value* out = values + row * box.columns;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, box.columns), [&](int i) {
      const T x = T(i - box.size[0] / 2);
      out[i] *= mask(Kokkos::sqrt(squared + x * x));
    });
  }
};

} // namespace Impl

template <class ExecutionSpace, class Volume>
void apply_mask(const ExecutionSpace& space, const Volume& volume, const SoftSphere& mask) {
  constexpr int Dim = int(Volume::rank()) - 1;
  using Value = typename Volume::value_type;
  const Array<Value, typename ExecutionSpace::memory_space> array(volume);
  constexpr Impl::Arguments arguments{"apply_mask"};
  const auto box = Impl::image_box<Dim>(arguments, "volume", array);
  arguments.not_negative("mask.radius", mask.radius);
  arguments.not_negative("mask.edge", mask.edge);
  const Kokkos::Profiling::ScopedRegion region("Bracewell::apply_mask");
  Impl::for_each_row(space, "Bracewell::apply_mask::multiply", box.rows(),
                     Impl::ApplyMask<Value, Dim>{array.data, box, mask});
}

} // namespace Bracewell
