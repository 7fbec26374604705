// SPDX-License-Identifier: MIT
#pragma once

#include <bracewell/version.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

namespace Bracewell {

namespace Impl {
KOKKOS_INLINE_FUNCTION float widen(std::uint16_t bits);
KOKKOS_INLINE_FUNCTION std::uint16_t narrow(float value);
} // namespace Impl

/// A number stored in IEEE 754 half precision, 2 bytes on every backend (Kokkos' half_t is a float on hosts). All arithmetic
/// is in float. From 6.1e-5 to 65504 in magnitude it keeps 11 significant bits, a relative error up to 2^-11 = 4.9e-4.
/// Smaller numbers have an absolute error up to 3e-8, larger numbers are infinite. Every backend rounds to nearest, ties to
/// even. GPUs convert by an instruction. Hosts take a few instructions for each conversion: there it saves memory but no
/// time.
struct Half {
  std::uint16_t bits = 0; ///< sign, exponent, significand

  Half() = default;
  /// Rounds.
  KOKKOS_INLINE_FUNCTION explicit Half(float value) : bits(Impl::narrow(value)) {}
  /// Exact.
  KOKKOS_INLINE_FUNCTION operator float() const { return Impl::widen(bits); }
};

/// A complex number stored as two numbers like Half, 4 bytes: what a reconstruction may be made of that `project`
/// samples (in float). Scale a spectrum so that its largest value stays below 65504: the zero frequency is the sum
/// over all voxels.
/// \code
/// Kokkos::parallel_for(n, KOKKOS_LAMBDA(int i) {
///   stored.data()[i] = HalfComplex(scale * spectrum.data()[i]);
/// });
/// \endcode
struct HalfComplex {
  std::uint32_t bits = 0; ///< the real part, then the imaginary one: one access to memory

  HalfComplex() = default;
  /// Rounds both parts.
  KOKKOS_INLINE_FUNCTION explicit HalfComplex(const Kokkos::complex<float>& value)
      : bits(Impl::narrow(value.real()) | std::uint32_t(Impl::narrow(value.imag())) << 16) {}
  KOKKOS_INLINE_FUNCTION operator Kokkos::complex<float>() const {
    return {Impl::widen(static_cast<std::uint16_t>(bits & 0xffff)),
            Impl::widen(static_cast<std::uint16_t>(bits >> 16))};
  }
};

namespace Impl {

/// The float that equals an IEEE 754 half-precision number given by its bits.
KOKKOS_INLINE_FUNCTION float widen(std::uint16_t bits) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return __half2float(__ushort_as_half(bits));
#else
  // Moving the exponent divides by 2^112, subnormal numbers included; only infinity and NaN are special.
  const float magnitude = Kokkos::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
  const std::uint32_t special = magnitude >= 0x1p16f ? 0x7f800000u : 0u;
  return Kokkos::bit_cast<float>(Kokkos::bit_cast<std::uint32_t>(magnitude) | special |
                                 (bits & 0x8000u) << 16);
#endif
}

/// Bits of the nearest half-precision number, of the even one of two; infinite from 65520 on.
KOKKOS_INLINE_FUNCTION std::uint16_t narrow(float value) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return __half_as_ushort(__float2half_rn(value));
#else
  const auto bits = Kokkos::bit_cast<std::uint32_t>(value);
  std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x47800000u) // 2^16, infinity, NaN
    magnitude = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  else if (magnitude < 0x38800000u) // below 2^-14: adding 1/2 rounds to the steps of subnormal numbers
    magnitude = Kokkos::bit_cast<std::uint32_t>(Kokkos::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  else // drops 13 bits of the fraction and 112 of the exponent
    magnitude = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  return static_cast<std::uint16_t>(magnitude | (bits >> 16 & 0x8000u));
#endif
}

/// What a stored value is computed with.
template <class Stored>
using computed_with = std::conditional_t<std::is_same_v<Stored, HalfComplex>, Kokkos::complex<float>, Stored>;

/// The type of the real and imaginary parts that a stored complex number is computed with.
template <class Stored>
using real_of_stored = typename computed_with<Stored>::value_type;

/// The complex number whose parts are stored as a type of real numbers.
template <class Stored>
using complex_of = std::conditional_t<std::is_same_v<Stored, Half>, HalfComplex, Kokkos::complex<Stored>>;

/// Whether a number is neither infinite nor not a number, by its bits: compilers that are told that there are no such numbers
/// (-ffast-math, -Ofast) take comparisons and isfinite() away.
template <class T>
KOKKOS_INLINE_FUNCTION bool is_finite(T value) {
  if constexpr (sizeof(T) == 4)
    return (Kokkos::bit_cast<std::uint32_t>(value) & 0x7f800000u) != 0x7f800000u;
  else
    return (Kokkos::bit_cast<std::uint64_t>(value) & 0x7ff0000000000000u) != 0x7ff0000000000000u;
}

/// Whether it is no number, likewise.
template <class T>
KOKKOS_INLINE_FUNCTION bool is_nan(T value) {
  if constexpr (sizeof(T) == 4)
    return (Kokkos::bit_cast<std::uint32_t>(value) & 0x7fffffffu) > 0x7f800000u;
  else
    return (Kokkos::bit_cast<std::uint64_t>(value) & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

} // namespace Impl
} // namespace Bracewell
