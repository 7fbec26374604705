// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>

#include <utility>

namespace Bracewell {

/// An Array of half spectra of D dimensions behind `leading` axes, [B|1, (D,) H, W/2+1] or [B, P, (d,) h,
/// w/2+1]: by the rank of the View that it is made from a compiler tells images from volumes.
template <class Value, class MemorySpace, int D, int leading = 1>
struct SpectraArray : Array<Value, MemorySpace> {
  SpectraArray() = default;

  /// From a View, or a HalfSpectrum of one, of images (D = 2) or of any other number of axes (D = 3).
  template <class Spectra>
  // Not a copy, which has no such rank. NOLINTNEXTLINE(bugprone-forwarding-reference-overload)
  requires((Impl::view_of<Spectra>::rank() == leading + 2) == (D == 2)) SpectraArray(Spectra&& spectra)
      : Array<Value, MemorySpace>(std::forward<Spectra>(spectra)) {
    static_assert(
        Impl::view_of<Spectra>::rank() == D + leading,
        "Bracewell: expected data [B, H, W/2+1] of images or [B, D, H, W/2+1] of volumes, projections with "
        "one axis more.");
  }
};

} // namespace Bracewell
