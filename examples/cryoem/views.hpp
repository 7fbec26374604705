// SPDX-License-Identifier: MIT
#pragma once

#include "common/views.hpp"

#include <cstdint>
#include <utility>

/// The arrays that the cryo-EM programs work on.
namespace Bracewell::Examples {

using Map = DeviceView<float****>;                          ///< [1, depth, height, width]
using MapSpectrum = DeviceView<Kokkos::complex<float>****>; ///< [1, depth, height, width/2+1]
using MapWeight = DeviceView<float****>;                    ///< like MapSpectrum
using Images = DeviceView<float***>;                        ///< [count, height, width]
using Spectra = DeviceView<Kokkos::complex<float>****>;     ///< [1, count, height, width/2+1]
using Weights = DeviceView<float****>;                      ///< like Spectra

/// Elements [first, last) along the second axis of [1, count, ...].
template <class View>
auto range(const View& view, std::size_t first, std::size_t last) {
  static_assert(View::rank() >= 3 && View::rank() <= 4);
  const std::pair part(first, last);
  if constexpr (View::rank() == 3)
    return Kokkos::subview(view, Kokkos::ALL, part, Kokkos::ALL);
  else
    return Kokkos::subview(view, Kokkos::ALL, part, Kokkos::ALL, Kokkos::ALL);
}

} // namespace Bracewell::Examples
