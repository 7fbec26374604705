// SPDX-License-Identifier: MIT
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <utility>

/// The arrays that the drivers work on, all in the memory of the default execution space.
namespace Bracewell::Examples {

using Space = Kokkos::DefaultExecutionSpace;
using Memory = Space::memory_space;

template <class Data>
using Owned = Kokkos::View<Data, Kokkos::LayoutRight, Memory>;
template <class Data>
using Part = Kokkos::View<Data, Kokkos::LayoutRight, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

using Map = Owned<float****>;                          ///< [1, depth, height, width]
using MapSpectrum = Owned<Kokkos::complex<float>****>; ///< [1, depth, height, width/2+1]
using MapWeight = Owned<float****>;                    ///< like MapSpectrum
using Images = Owned<float***>;                        ///< [count, height, width]
using Spectra = Owned<Kokkos::complex<float>****>;     ///< [1, count, height, width/2+1]
using Weights = Owned<float****>;                      ///< like Spectra

template <class View, class... Extents>
View allocate(const std::string& label, Extents... extents) {
  return View(Kokkos::view_alloc("Bracewell::examples::" + label, Kokkos::WithoutInitializing),
              static_cast<std::size_t>(extents)...);
}

/// Elements [first, last) along the second axis of [1, count, ...], contiguous as a subview's type cannot
/// say.
template <class View>
auto range(const View& view, std::size_t first, std::size_t last) {
  static_assert(View::rank() >= 3 && View::rank() <= 4);
  using Result = Part<typename View::data_type>;
  const std::size_t stride = view.extent(1) == 0 ? 0 : view.size() / view.extent(1);
  typename View::pointer_type begin = view.data() + first * stride;
  if constexpr (View::rank_dynamic == 2)
    return Result(begin, 1, last - first);
  else
    return Result(begin, 1, last - first, view.extent(2), view.extent(3));
}

} // namespace Bracewell::Examples
