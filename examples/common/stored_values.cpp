// SPDX-License-Identifier: MIT
#include "stored_values.hpp"

#include <Kokkos_BitManipulation.hpp>

#include <type_traits>

namespace Bracewell::Examples {
namespace {

struct StoredHalf {
  std::uint16_t bits;
};

template <class Value>
using BitsOf = std::conditional_t<
    sizeof(Value) == 1, std::uint8_t,
    std::conditional_t<sizeof(Value) == 2, std::uint16_t,
                       std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>>>;

/// Moving the exponent's bits to their place leaves it too small by the difference of the biases, 112; the product
/// corrects that exactly, subnormal numbers included. Infinity and NaN keep the largest exponent.
KOKKOS_INLINE_FUNCTION float from_half(std::uint16_t half) {
  const std::uint32_t magnitude = (half & 0x7fffu) << 13, sign = (half & 0x8000u) << 16,
                      special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  const auto scaled = Kokkos::bit_cast<std::uint32_t>(Kokkos::bit_cast<float>(magnitude) * 0x1p112f);
  return Kokkos::bit_cast<float>(scaled | special | sign);
}

struct ToHalves {
  const float* values;
  std::uint16_t* stored;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto bits = Kokkos::bit_cast<std::uint32_t>(values[i]);
    const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    std::uint32_t half = 0;
    if (magnitude > 0x7f800000u) // not a number
      half = 0x7e00u;
    else if (magnitude <
             0x38800000u) // below 2^-14: units of 2^-24, the spacing of floats just above one half
      half = Kokkos::bit_cast<std::uint32_t>(Kokkos::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    else
      half = Kokkos::min((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13, 0x7c00u);
    stored[i] = static_cast<std::uint16_t>(sign | half);
  }
};

template <class Value>
struct ToFloats {
  const BitsOf<Value>* stored;
  float* values;
  bool swapped;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    BitsOf<Value> bits = stored[i];
    if constexpr (sizeof(Value) > 1)
      if (swapped)
        bits = Kokkos::byteswap(bits);
    if constexpr (std::is_same_v<Value, StoredHalf>)
      values[i] = from_half(bits);
    else
      values[i] = static_cast<float>(Kokkos::bit_cast<Value>(bits));
  }
};

template <class Value>
void convert(const Space& space, bool swapped, const std::byte* stored, float* values, std::int64_t count) {
  Kokkos::parallel_for("Bracewell::examples::to_floats",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count),
                       ToFloats<Value>{reinterpret_cast<const BitsOf<Value>*>(stored), values, swapped});
}

} // namespace

void to_halves(const Space& space, const float* values, std::uint16_t* stored, std::int64_t count) {
  Kokkos::parallel_for("Bracewell::examples::to_halves",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(space, 0, count),
                       ToHalves{values, stored});
}

void to_floats(const Space& space, StoredFormat format, const std::byte* stored, float* values,
               std::int64_t count) {
  switch (format.type) {
  case StoredType::Int8:
    return convert<std::int8_t>(space, format.swapped, stored, values, count);
  case StoredType::UInt8:
    return convert<std::uint8_t>(space, format.swapped, stored, values, count);
  case StoredType::Int16:
    return convert<std::int16_t>(space, format.swapped, stored, values, count);
  case StoredType::UInt16:
    return convert<std::uint16_t>(space, format.swapped, stored, values, count);
  case StoredType::Int32:
    return convert<std::int32_t>(space, format.swapped, stored, values, count);
  case StoredType::UInt32:
    return convert<std::uint32_t>(space, format.swapped, stored, values, count);
  case StoredType::Float16:
    return convert<StoredHalf>(space, format.swapped, stored, values, count);
  case StoredType::Float32:
    return convert<float>(space, format.swapped, stored, values, count);
  case StoredType::Float64:
    return convert<double>(space, format.swapped, stored, values, count);
  }
}

} // namespace Bracewell::Examples
