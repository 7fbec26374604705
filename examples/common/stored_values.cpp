// SPDX-License-Identifier: MIT
#include "stored_values.hpp"

#include "half_values.hpp"

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

struct ToHalves {
  const float* values;
  std::uint16_t* stored;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { stored[i] = half_of_float(values[i]); }
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
      values[i] = float_of_half(bits);
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
