// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

namespace Bracewell {

/// How StripeRemoval finds stripes.
enum class StripeMethod {
  /// An offset per column, such that the mean over the angles becomes smooth:
  ///   min |D(m - z)|^2 + strength |z|^2
  /// with m the mean and D differences of neighbours (after Titarenko, Withers and Yagola, Appl. Math. Lett.
  /// 23, 2010). For detector pixels whose response is slightly wrong.
  Offset,
  /// The values of every column, sorted by size, are smoothed over `window` columns by a median, which keeps
  /// their order in time (Vo, Atwood and Drakopoulos, Opt. Express 26, 2018). For partial stripes as well.
  Sorting,
  /// Three steps of that article. Unresponsive and fluctuating columns are interpolated (its algorithm 6): they change
  /// more over the angles than the median of `large_window` columns around them. Large stripes take the medians over
  /// `large_window` columns (algorithm 5): their sorted values stand out. Sorting comes last. Two things differ from the
  /// article. A fluctuating column also has to change twice as much as the columns on either side. Large stripes are
  /// found by differences, because quotients mean nothing in air: they have steep sides, are no wider than half of the
  /// window, are in most values, and are above the noise. An object has none of this, so it stays.
  All,
  /// The details of `levels` wavelet levels along the columns lose what changes slowly over the angles: their
  /// frequency of k cycles per scan is multiplied by 1 - exp(-k^2 / (2 damping^2)) (Muench, Trtik, Marone and Stampanoni,
  /// Opt. Express 17, 2009). Daubechies' wavelets of ten taps go along the columns alone, because wavelets along the angles
  /// would not tell the damped frequencies apart. Takes edges of objects that are even about the axis for stripes. Linear:
  /// see transpose
  Wavelet
};

/// Options of StripeRemoval.
struct StripeOptions {
  StripeMethod method = StripeMethod::Sorting; ///< see there
  double strength = 1; ///< of Offset: stripes wider than about 1 / sqrt(strength) columns stay
  int window = 5;      ///< of Sorting, odd, up to 63 columns: stripes wider than half of it stay
  int levels = 3;      ///< of Wavelet, 1 to 12: stripes wider than about 2^levels / 2 columns stay
  double damping = 1;  ///< of Wavelet, 0.1 to 100: cycles per scan over which stripes may change
  double dead = 3;     ///< columns whose values change this many times more or less over the angles than
      ///< those on either side are interpolated from their neighbours first; 0: none are. Not of All
  int large_window = 61; ///< of All, odd, up to 63 columns: twice as wide as the widest stripe, at least
  double ratio = 3;      ///< of All: how many times more than all columns differ a stripe stands out of them
};

} // namespace Bracewell
