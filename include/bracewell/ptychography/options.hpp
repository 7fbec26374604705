// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/array.hpp>
#include <bracewell/strategy.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace Bracewell {

/// What the modelled pattern J and the measured one t are compared by, per pixel.
enum class PatternLoss {
  LeastSquares, ///< (J - t)^2
  Amplitude,    ///< (sqrt(J) - sqrt(t))^2
  Poisson       ///< J + b - t + t log(t / (J + b)), the deviance / 2, with a background b > 0
};

/// How a modelled intensity I_j becomes J_j.
enum class PatternScale {
  PerPattern, ///< J_j = I_j C / mean(I_j), and the measured pattern likewise: only shapes are compared
  None        ///< J_j = I_j: object and probe carry the counts
};

/// What is known of single detector pixels.
enum class PixelWeights {
  None,    ///< every pixel counts fully
  Mask,    ///< weights 0 and 1
  PerPixel ///< any weights >= 0, stored per pattern
};

/// How the patterns are computed. Fused: one kernel holds a pattern on the chip from the exit wave to its
/// gradient. General: through the FFT library, any size, sub-pixel positions, several modes.
enum class PatternPath { Automatic, Fused, General };

/// Sizes of a ptychographic experiment, in pixels.
struct PtychographyShape {
  std::array<std::int64_t, 2> object; ///< rows, columns
  int probe;                          ///< m: the probe is m x m
  int detector;                       ///< n >= m: a pattern is n x n
  int modes = 1;                      ///< mutually incoherent probe modes
};

struct PtychographyOptions {
  PatternLoss loss = PatternLoss::LeastSquares;
  PatternScale scale = PatternScale::PerPattern;
  double counts = 1;        ///< C: mean of a scaled pattern (PatternScale::PerPattern)
  double background = 1e-3; ///< b of PatternLoss::Poisson, in units of J
  PixelWeights weights = PixelWeights::None;
  bool reduced_grid = false; ///< compare on the smallest grid that holds every lag of |Psi|^2: exact, least
                             ///< squares without weights only
  /// Near field: detector and probe have the same pixels, n = m, and the wave is propagated by the Fresnel
  /// transfer function exp(-i pi |k|^2 / F), k in cycles per window, F = window^2 / (wavelength distance).
  std::optional<double> fresnel_number = {};
  Strategy object_gradient = Strategy::Owned; ///< or Strategy::Atomic
  PatternPath path = PatternPath::Automatic;
  std::size_t workspace_bytes = std::size_t(160)
                                << 20; ///< patterns are computed in groups that need about this
};

namespace Impl {

/// A complex number as it is stored in memory: in the precision of the arithmetic or in half precision.
template <class T>
struct alignas(2 * sizeof(T)) StoredComplex {
  T re, im;

  // Two halves are one access to memory, which compilers would split.
  template <class Real>
  KOKKOS_INLINE_FUNCTION void store(const Kokkos::complex<Real>& value) {
    const T real = static_cast<T>(value.real()), imaginary = static_cast<T>(value.imag());
    if constexpr (sizeof(T) == 2)
      *reinterpret_cast<std::uint32_t*>(this) =
          Kokkos::bit_cast<std::uint16_t>(real) | std::uint32_t(Kokkos::bit_cast<std::uint16_t>(imaginary))
                                                      << 16;
    else
      re = real, im = imaginary;
  }
  template <class Real>
  KOKKOS_INLINE_FUNCTION Kokkos::complex<Real> load() const {
    if constexpr (sizeof(T) == 2) {
      const std::uint32_t both = *reinterpret_cast<const std::uint32_t*>(this);
      return {static_cast<Real>(Kokkos::bit_cast<T>(static_cast<std::uint16_t>(both & 0xffff))),
              static_cast<Real>(Kokkos::bit_cast<T>(static_cast<std::uint16_t>(both >> 16)))};
    } else {
      return {static_cast<Real>(re), static_cast<Real>(im)};
    }
  }
};

} // namespace Impl
} // namespace Bracewell
