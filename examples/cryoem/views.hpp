// SPDX-License-Identifier: MIT
#pragma once

#include "common/views.hpp"

#include <cstdint>
#include <utility>

/// The arrays that the cryo-EM programs work on.
namespace Bracewell::Examples {

using Map = Owned<float****>;                          ///< [1, depth, height, width]
using MapSpectrum = Owned<Kokkos::complex<float>****>; ///< [1, depth, height, width/2+1]
using MapWeight = Owned<float****>;                    ///< like MapSpectrum
using Images = Owned<float***>;                        ///< [count, height, width]
using Spectra = Owned<Kokkos::complex<float>****>;     ///< [1, count, height, width/2+1]
using Weights = Owned<float****>;                      ///< like Spectra

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
