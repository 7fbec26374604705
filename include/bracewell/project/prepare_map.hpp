// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/fft/plan.hpp>
#include <bracewell/project/prepared_reference.hpp>
#include <bracewell/reconstruct/pad_crop.hpp>
#include <bracewell/reconstruct/rolloff.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

namespace Bracewell {

/// A PreparedReference from a map: divided by the attenuation that the kernel will bring (correct_rolloff),
/// padded, its centre moved to index 0, transformed and prepared. Its oversampling is N/n. Temporary memory: the
/// padded map and its spectrum. For references that change often keep a plan of your own and `update`.
/// \code
/// const auto reference = prepare_map<Linear, HalfComplex>(space, map, 2 * n);
/// project(space, reference, {.matrices = matrices}, projections);
/// \endcode
///
/// @param map     real [B, (n,) n, n], its centre at element floor(n/2); kept
/// @param padded  N, at least n; 2 n keeps the aliases of the kernel out of the box's inner half
/// @throws Error on sides that differ, a padded box that is smaller, and where FFT or PreparedReference do
template <class Kernel = CatmullRom, class Stored = void, class ExecutionSpace, class Map>
auto prepare_map(const ExecutionSpace& space, const Map& map, int padded) {
  constexpr int D = int(Map::rank()) - 1;
  static_assert(D == 2 || D == 3, "Bracewell::prepare_map: expected a map [B, n, n] or [B, n, n, n].");
  using T = typename Map::non_const_value_type;
  using Reals = Kokkos::View<std::conditional_t<D == 2, T***, T****>, Kokkos::LayoutRight, ExecutionSpace>;
  using Complex = Kokkos::complex<T>;
  using Spectra =
      Kokkos::View<std::conditional_t<D == 2, Complex***, Complex****>, Kokkos::LayoutRight, ExecutionSpace>;
  const Array<const T, typename ExecutionSpace::memory_space> input(map);
  const Impl::Arguments arguments{"prepare_map"};
  arguments.given("map", input);
  const std::int64_t count = input.extents[0], n = input.extents[D];
  for (int axis = 1; axis < D; ++axis)
    arguments.require(input.extents[axis] == n, "map", "sides of one length", [&] { return input.shape(); });
  arguments.within<std::int64_t>("padded", padded, std::max<std::int64_t>(n, 1), 32768);

  const Kokkos::Profiling::ScopedRegion region("Bracewell::prepare_map");
  const auto make = [&]<class View>(const char* label, std::int64_t side, std::int64_t columns) {
    const auto properties = Kokkos::view_alloc(space, std::string(label), Kokkos::WithoutInitializing);
    if constexpr (D == 2)
      return View(properties, count, side, columns);
    else
      return View(properties, count, side, side, columns);
  };
  const auto corrected = make.template operator()<Reals>("Bracewell::prepare_map::corrected", n, n);
  Kokkos::deep_copy(space, corrected, map);
  std::array<int, D> shape;
  shape.fill(padded);
  correct_rolloff<Kernel>(space, corrected, shape);
  const auto padded_map = make.template operator()<Reals>("Bracewell::prepare_map::padded", padded, padded);
  pad_centre(space, corrected, padded_map);
  const auto spectra =
      make.template operator()<Spectra>("Bracewell::prepare_map::spectra", padded, padded / 2 + 1);
  const FFT<ExecutionSpace, D, T, Complex> transform(space, shape, count);
  transform.execute(space, padded_map, spectra);
  auto reference = prepare<Kernel, Stored>(space, HalfSpectrum{spectra, padded});
  reference.set_oversampling(double(padded) / double(n));
  space.fence("Bracewell::prepare_map"); // what it has worked on goes
  return reference;
}

} // namespace Bracewell
